"""What a transport is told, and what it must offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx.federated._network import Network
from gtvcvx.federated._streams import OF_PROGRAMS, Streams
from gtvcvx.federated.algorithms import Algorithm
from gtvcvx.federated.programs import Inbox, Outbox, Program, Report, View
from gtvcvx.federated.wire import WireFormat, decoded, encoded

#: Frames of one step: the recipients of each.
Posted = Sequence[tuple[Sequence[int], bytes]]


@dataclass(frozen=True)
class Deployment:
    """An algorithm on a network: who runs which program, with which view.

    Attributes
    ----------
    algorithm : Algorithm
    net : Network
        As the algorithm uses it.
    streams : Streams
    rounds : int
        How many are planned.
    """

    algorithm: Algorithm
    net: Network
    streams: Streams
    rounds: int

    def form(self) -> WireFormat:
        """Return the format of messages on the wire."""
        return self.algorithm.schema.sized(self.algorithm.sizes(self.net))

    def view(self, i: int, joined: int = 1) -> View:
        """Return all that participant i is told when it starts."""
        net = self.net
        return View(
            id=i,
            dim=net.dim,
            model=net.models[i] if i < net.n_clients else None,
            links=net.links(i).copy(),
            weights=net.link_weights(i).copy(),
            parameters=self.algorithm.parameters(net, i),
            joined=joined,
            rounds=self.rounds,
            streams={p: self.streams.state(p, i, joined) for p in OF_PROGRAMS},
        )

    def program(self, i: int) -> Program:
        """Return a new program for participant i."""
        return self.algorithm.client() if i < self.net.n_clients else self.algorithm.server()


class Transport(Protocol):
    """Runs the programs. Rounds are driven from outside, and frames are carried there.

    A participant that gives no answer, since its process is gone, is left out of what `step` and
    `reports` return.
    """

    def start(self, deployment: Deployment) -> None:
        """Start all participants."""

    def step(
        self,
        round_: int,
        phase: int,
        inboxes: Mapping[int, Sequence[bytes]],
        present: Mapping[int, IntArray],
    ) -> Mapping[int, Posted]:
        """Let participants take a step, with the frames that have come for them."""

    def crash(self, client: int) -> None:
        """End a client at once."""

    def restart(self, client: int, round_: int) -> None:
        """Start a client again, without memory."""

    def reports(self) -> Mapping[int, Report]:
        """Return the states of those who are there."""

    def close(self) -> None:
        """End everything."""


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
        return self._frames(round_, self._program.step(round_, inbox))

    def _frames(self, round_: int, out: Outbox) -> list[tuple[list[int], bytes]]:
        frames: dict[int, tuple[list[int], bytes]] = {}
        for peer, message in out.items():
            if peer not in self._links:
                raise ValueError(f"{self._label}: round {round_}: no link to participant {peer!r}")
            known = frames.get(id(message))
            if known is None:
                try:
                    frame = encoded(self._id, round_, message, self._form)
                except ValueError as error:
                    named = f"{self._label}: round {round_}: {error}"
                    raise type(error)(named) from error
                known = frames[id(message)] = ([], frame)
            known[0].append(peer)
        return list(frames.values())

    def report(self) -> Report:
        """Return the program's state."""
        return self._program.report()
