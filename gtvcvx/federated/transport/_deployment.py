"""What a transport is told, and what it must offer."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.federated._network import Network
from gtvcvx.federated._streams import OF_PROGRAMS, Streams
from gtvcvx.federated.algorithms import Algorithm
from gtvcvx.federated.programs import Participant, Program, Report, View
from gtvcvx.federated.wire import WireFormat

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
            # A copy: what losses remember of earlier runs would change the last bits of this one.
            model=copy.copy(net.models[i]) if i < net.n_clients else None,
            links=net.links(i).copy(),
            weights=net.link_weights(i).copy(),
            # Copies, too: an array that all are told is no channel between them.
            parameters=copy.deepcopy(self.algorithm.parameters(net, i)),
            joined=joined,
            rounds=self.rounds,
            streams={p: self.streams.state(p, i, joined) for p in OF_PROGRAMS},
        )

    def program(self, i: int) -> Program:
        """Return a new program for participant i."""
        return self.algorithm.client() if i < self.net.n_clients else self.algorithm.server()

    def participant(self, i: int, form: WireFormat, joined: int = 1) -> Participant:
        """Return participant i, started in this process."""
        return Participant(self.program(i), self.view(i, joined), form, self.net.label(i))

    def check_report(self, i: int, report: Report) -> None:
        """Refuse the report of a client whose arrays have other shapes.

        Raises
        ------
        ValueError
            Naming the client.
        """
        net = self.net
        # A server may have several models.
        if i >= net.n_clients:
            return
        size = self.algorithm.report_size(net)
        expected: dict[str, tuple[FloatArray, tuple[int, ...]]] = {"w": (report.w, (size,))}
        if report.flows is not None:
            expected["flows"] = (report.flows, (len(net.links(i)), net.dim))
        for name, (array, shape) in expected.items():
            if array.shape != shape:
                raise ValueError(
                    f"{net.label(i)}: report: {name}: shape {shape} is expected, got {array.shape}"
                )


class Transport(Protocol):
    """Runs the programs. Rounds are driven from outside, and frames are carried there.

    A participant that gives no answer, since its process is gone, is left out of what `step` and
    `reports` return, and `lost` says why.

    Attributes
    ----------
    restarts : bool
        Whether clients that are lost are to be started again in the next round.
    """

    restarts: bool

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

    def lost(self) -> Mapping[int, str]:
        """Return the clients found gone since the last call, and why; none that `crash` ended."""

    def close(self) -> None:
        """End everything."""


def check_transport(transport: Any) -> None:
    """Refuse what is no object with the methods of a transport.

    Raises
    ------
    TypeError
    """
    methods = ("start", "step", "crash", "restart", "reports", "lost", "close")
    fits = all(callable(getattr(transport, name, None)) for name in methods)
    if isinstance(transport, type) or not (fits and hasattr(transport, "restarts")):
        raise TypeError(
            "transport: 'memory', 'processes', or an object such as Processes() or "
            f"Recorded(InMemory()) is expected, got {transport!r}"
        )


class BusyError(RuntimeError):
    """A transport that carries a run, and was given to another one in the meantime."""

    def __init__(self) -> None:
        super().__init__("transport: it carries another run; give each run its own")
