"""A program fed with frames: what runs, whatever the transport is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, is_integer
from gtvcvx.federated.programs._program import Inbox, Outbox, Program, Report, View
from gtvcvx.federated.wire import Message, WireFormat, decoded, encoded

#: Steps that are too long overflow, and the run ends as diverged: no warnings of NumPy's.
quiet = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")


class Participant:
    """A program with its view, fed with frames; messages are checked on both ways.

    Parameters
    ----------
    program : Program
    view : View
    form : WireFormat
    label : str
        How errors call it.
    """

    def __init__(self, program: Program, view: View, form: WireFormat, label: str) -> None:
        self._program, self._form, self._label = program, form, label
        self._id = view.id
        self._links = frozenset(view.links.tolist())
        program.start(view)

    def step(
        self,
        round_: int,
        phase: int,
        frames: Sequence[bytes],
        present: IntArray | None,
        memo: dict[int, object] | None = None,
    ) -> list[tuple[list[int], bytes]]:
        """Decode what has come, take a step, and encode what is sent.

        ``memo`` keeps decoded frames by identity: they are the same for all who get them, and
        nobody can write to them.
        """
        inbox = Inbox()
        for frame in frames:
            message = None if memo is None else memo.get(id(frame))
            if message is None:
                message = decoded(frame, self._form)
                if memo is not None:
                    memo[id(frame)] = message
            inbox.append(message)  # type: ignore[arg-type]
        inbox.phase, inbox.present = phase, present
        try:
            return self._frames(round_, self._program.step(round_, inbox))
        except Exception as error:
            error.add_note(f"{self._label}: round {round_}")
            raise

    def _frames(self, round_: int, out: Outbox) -> list[tuple[list[int], bytes]]:
        if isinstance(out, dict) and self._is_broadcast(out):
            message = next(iter(out.values()))
            return [(list(out), self._encoded(round_, message))]
        frames: dict[int, tuple[list[int], bytes]] = {}
        here = f"{self._label}: round {round_}"
        if not isinstance(out, Mapping):
            raise TypeError(f"{here}: an outbox, messages by recipient, is expected, got {out!r}")
        for peer, message in out.items():
            if not is_integer(peer) or peer not in self._links:
                raise ValueError(f"{here}: no link to participant {peer!r}")
            if not isinstance(message, Message):
                raise TypeError(f"{here}: a Message to {peer} is expected, got {message!r}")
            known = frames.get(id(message))
            if known is None:
                known = frames[id(message)] = ([], self._encoded(round_, message))
            known[0].append(peer)
        return list(frames.values())

    def _is_broadcast(self, out: dict[int, Message]) -> bool:
        """Whether one message goes to peers that there are links to: nothing else to be checked."""
        return (
            len(set(map(id, out.values()))) == 1
            and set(map(type, out)) == {int}
            and self._links.issuperset(out)
            and type(next(iter(out.values()))) is Message
        )

    def _encoded(self, round_: int, message: Message) -> bytes:
        try:
            return encoded(self._id, round_, message, self._form)
        except ValueError as error:
            raise type(error)(f"{self._label}: round {round_}: {error}") from error

    def report(self) -> Report:
        """Return the program's state, as it is now: the program goes on with its own arrays."""
        state = self._program.report()
        if not isinstance(state, Report):
            raise TypeError(f"{self._label}: a Report is expected of its program, got {state!r}")
        flows = None if state.flows is None else self._array(state.flows, "flows")
        # Some report more than others do.
        return replace(
            state,
            w=self._array(state.w, "w"),
            flows=flows,
            through=int(state.through),
            choice=int(state.choice),
        )

    def _array(self, value: object, name: str) -> FloatArray:
        array = np.array(value)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{self._label}: report: {name}: numbers are expected, got {value!r}")
        return array.astype(np.float64, copy=False)
