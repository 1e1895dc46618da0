"""What a client answers to the requests of the router, whatever carries them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.federated._streams import OF_PROGRAMS
from gtvcvx.federated.algorithms import Algorithm
from gtvcvx.federated.flower._plain import described, packed, unpacked
from gtvcvx.federated.flower._state import KeptState, pickled, restored
from gtvcvx.federated.models import LocalModel
from gtvcvx.federated.programs import Participant, View, local_losses, quiet
from gtvcvx.losses import Loss

#: Requests and answers: numbers, text, bytes, and lists of such.
Record = Mapping[str, Any]
#: Returns the loss, or the model, of a client by its number.
Loader = Callable[[int], Any]


class Client:
    """One client: its requests are independent of each other but for the state kept between them.

    Parameters
    ----------
    algorithm : Algorithm
    load_loss : callable
    tell : bool
        Whether the model is told the server in the end.
    keep : callable, optional
        Is given the client's number and its model in the end.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        load_loss: Loader,
        tell: bool = True,
        keep: Callable[[int, FloatArray], Any] | None = None,
    ) -> None:
        self._algorithm, self._load = algorithm, load_loss
        self._tell, self._keep = tell, keep

    def answer(self, number: int, request: Record, state: KeptState) -> tuple[Record, KeptState]:
        """Return the answer to a request, and the state to keep.

        Parameters
        ----------
        number : int
            Of the client.
        request : mapping
        state : KeptState

        Raises
        ------
        StaleRequestError
            A later request has been answered.
        """
        if request["ask"] == "who":
            return self._who(number), state
        state.check_new(request["number"])
        model = _model(self._load(number), request["dim"])
        participant = self._participant(request, state, model)
        if participant is None:
            return {"forgotten": True}, state
        if request["ask"] == "report":
            return self._report(number, participant), state
        with quiet():
            out = participant.step(request["round"], request["phase"], request["frames"], None)
        kept = state.then(request["since"], request["number"], pickled(participant, model))
        return _as_record(out), kept

    def _who(self, number: int) -> Record:
        """Return the number, and the dimension of the loss: 0 where any will do."""
        dim = getattr(self._load(number), "dim", None)
        return {"client": number, "dim": 0 if dim is None else int(dim)}

    def _participant(
        self, request: Record, state: KeptState, model: LocalModel
    ) -> Participant | None:
        if "start" in request:
            return self._started(request["start"], model)
        raw = state.at(request["since"])
        return None if raw is None else restored(raw, model)

    def _started(self, start: bytes, model: LocalModel) -> Participant:
        program = self._algorithm.client()
        told = unpacked(start, sys.modules[type(program).__module__])
        if told["algorithm"] != (own := described(self._algorithm)):
            raise ValueError(f"algorithm: the server runs {told['algorithm']}, the client {own}")
        streams = told["streams"] or _own_seeds()
        view = View(model=model, streams=streams, **told["view"])
        form = self._algorithm.schema.sized(told["sizes"])
        with quiet():
            return Participant(program, view, form, told["label"])

    def _report(self, number: int, participant: Participant) -> Record:
        report = participant.report()
        if self._keep is not None:
            self._keep(number, report.w.copy())
        if not self._tell:
            return {"kept": True}
        told = {"w": report.w, "flows": report.flows}
        return {"report": packed(told | {"through": report.through, "choice": report.choice})}


def _own_seeds() -> dict[str, tuple[int, ...]]:
    """Seeds from the operating system, which nobody else knows."""
    return {
        purpose: tuple(int(word) for word in np.random.SeedSequence().generate_state(4))
        for purpose in OF_PROGRAMS
    }


def _model(loaded: Any, dim: int) -> Any:
    """Return what load_loss has given as a model of d parameters."""
    if isinstance(loaded, Loss):
        if loaded.dim not in (None, dim):
            raise ValueError(f"load_loss: d = {dim} is expected, got {loaded.dim}")
        return local_losses([loaded], 1, dim)[0]
    if isinstance(loaded, LocalModel):
        return loaded
    raise TypeError(f"load_loss: a loss or a model is expected, got {loaded!r}")


def _as_record(out: list[tuple[list[int], bytes]]) -> Record:
    return {
        "frames": [frame for _, frame in out],
        "counts": [len(peers) for peers, _ in out],
        "to": [peer for peers, _ in out for peer in peers],
    }
