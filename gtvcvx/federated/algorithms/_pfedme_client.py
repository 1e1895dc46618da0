"""The client program of pFedMe."""

from __future__ import annotations

from gtvcvx._arrays import FloatArray
from gtvcvx.federated.algorithms._star_programs import StarClient
from gtvcvx.federated.programs import Report, View
from gtvcvx.federated.wire import Received


class MoreauClient(StarClient):
    """A client of `PFedMe`."""

    def start(self, view: View) -> None:
        """Begin with theta at the initial model."""
        super().start(view)
        told = view.parameters
        self._tau: float = 1.0 / told["lam"]
        self._step: float = told["step"]
        self._rounds: int = told["local_rounds"]
        self._theta = self._w

    def _answer(self, question: Received) -> FloatArray:
        w = question.arrays["w"]
        for _ in range(self._rounds):
            self._theta = self._model.prox(w, self._tau)
            # At a step of 1 this is theta to the last bit, as in FedAvg.
            w = self._theta if self._step == 1.0 else w - self._step * (w - self._theta)
        return w

    def report(self) -> Report:
        """Return theta."""
        return Report(self._theta)
