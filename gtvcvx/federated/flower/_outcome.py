"""What a run with Flower has come to: the clients' models, and who was absent when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms import Algorithm
from gtvcvx.federated.programs import Report
from gtvcvx.federated.runtime._history import History
from gtvcvx.federated.runtime._observer import Observer
from gtvcvx.federated.runtime._run import Run
from gtvcvx.problem import GTVProblem
from verify._display import fields_text


@dataclass(frozen=True)
class Absence:
    """A client that has not answered.

    Attributes
    ----------
    round : int
    client : int
    reason : str
        As Flower tells it, or the router.
    """

    round: int
    client: int
    reason: str


@dataclass(frozen=True)
class Outcome:
    """Models of a run with Flower.

    Attributes
    ----------
    algorithm : Algorithm
    net : Network
        With the links that the algorithm used, and without data.
    rounds : int
    reports : mapping of int to Report
        Last states of the participants, of those that have told them.
    absences : sequence of Absence
    bytes_up, bytes_down : int
        Frames sent by clients, and brought to clients, as `simulate` counts them. Flower's own
        envelopes come on top.
    messages : int
    seconds : float
    """

    algorithm: Algorithm
    net: Network
    rounds: int
    reports: Mapping[int, Report] = field(repr=False)
    absences: Sequence[Absence]
    bytes_up: int
    bytes_down: int
    messages: int
    seconds: float

    def __repr__(self) -> str:
        return fields_text(self)

    def _states(self) -> list[Report]:
        missing = [i for i in range(self.net.n_participants) if i not in self.reports]
        if missing:
            names = ", ".join(self.net.label(i) for i in missing)
            raise ValueError(f"not all models are known: {names} did not tell, or not answer")
        states = [self.reports[i] for i in range(self.net.n_participants)]
        if not all(np.isfinite(state.w).all() for state in states):
            raise ValueError("the run diverged: a vector is no longer finite; take shorter steps")
        return states

    @property
    def w(self) -> FloatArray:
        """Vectors of the nodes of the problem, as in `Run`.

        Raises
        ------
        ValueError
            Naming the clients whose models are not known; the run diverged; or it takes data to
            tell, as with IFCA, where clients choose among the server's models: see `with_data`.
        """
        return self.algorithm.point(self.net, self._states())

    @property
    def models(self) -> dict[int, FloatArray]:
        """Each client's model, by its number; those that are known."""
        n = self.net.n_clients
        return {i: np.array(r.w) for i, r in sorted(self.reports.items()) if i < n}

    def with_data(self, net: Network | GTVProblem) -> Run:
        """Return the run as somebody sees it who has all data, with value, gap and certificate.

        Parameters
        ----------
        net : Network or GTVProblem
            The clients with their losses, and the same links.

        Raises
        ------
        ValueError
            Models are missing, the run diverged, or the links are others.
        """
        if isinstance(net, GTVProblem):
            net = Network.from_problem(net)
        used = self.algorithm.network(net)
        if not np.array_equal(used.graph.edges, self.net.graph.edges):
            raise ValueError("net: the links of the run are expected")
        observer = Observer(self.algorithm, used)
        seen = observer.record(dict(enumerate(self._states())))
        if isinstance(seen, str):
            raise ValueError(f"the run is of no use: {seen}")
        history = History()
        active = used.n_clients - sum(a.round == self.rounds for a in self.absences)
        traffic = {"bytes_up": self.bytes_up, "bytes_down": self.bytes_down}
        counts = {**traffic, "messages": self.messages, "active": active}
        history.add({"round": self.rounds, **seen, **counts})
        return Run(
            w=observer.w,
            models=observer.models,
            u=observer.u,
            history=history,
            status="finished",
            message="",
            rounds=self.rounds,
            problem=observer.problem,
            reason=self.algorithm.reason(used),
            algorithm=self.algorithm,
            net=used,
            nodes=used.nodes,
            reports=observer.states(),
            # Seeds of clients are their own.
            seed=0,
            seconds=self.seconds,
        )
