"""Edge selection as messages: neighbours exchange local minimizers with their covariances.

References
----------
[FedADMM] (10), (11).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gtvcvx._arrays import IntArray, is_number
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import Algorithm, link_flows
from gtvcvx.federated.programs import ClientProgram, Inbox, Outbox, Report, View
from gtvcvx.federated.selection import EdgeSelection, LocalEstimate, wald_statistics
from gtvcvx.federated.selection._local_estimate import COVARIANCES, estimate_of_terms
from gtvcvx.federated.selection._select import check_options, complete, judged
from gtvcvx.federated.wire import Field, Message, Schema
from gtvcvx.problem import GTVProblem


class EdgeTests(Algorithm):
    """Tests at every link whether both ends may have the same parameters, in one round.

    Each client sends its local minimizer and the estimated covariance of it to its neighbours, and
    both ends of a link compute the Wald statistic W_e^2 of (10). `selection` keeps the edges whose
    statistic is within the quantile of (11); other algorithms then run on its graph:
    FedADMM-ES is ``FedADMM`` on ``Network.from_problem`` of a problem with that graph.

    What leaves a client: its minimizer and covariance, once to each neighbour, 8 (d + d (d + 1)/2)
    + 20 bytes each: summaries of its rows, for which no privacy is claimed.

    Parameters
    ----------
    alpha, covariance, ridge
        As of `gtvcvx.federated.selection.select_edges`.
    candidates : {"graph", "complete"}
        Links of the network (ES), or all pairs of clients (Local-ES).
    """

    schema: ClassVar[Schema] = Schema({"estimate": (Field("theta"), Field("covariance", ("t",)))})
    guarantee = "a level for all tests together, for many rows; solves no convex problem"
    leaves = "minimizer and covariance to each neighbour, 8(d + d(d + 1)/2) + 20 bytes, once"

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        covariance: str = "HC3",
        candidates: str = "graph",
        ridge: float = 0.0,
    ) -> None:
        check_options(alpha, candidates)
        if covariance not in COVARIANCES:
            raise ValueError(f"covariance: one of {COVARIANCES} is expected, got {covariance!r}")
        if not (is_number(ridge) and 0.0 <= ridge < np.inf):
            raise ValueError(f"ridge: a finite number >= 0 is expected, got {ridge!r}")
        self.alpha, self.covariance = float(alpha), covariance
        self.candidates, self.ridge = candidates, float(ridge)

    def client(self) -> ClientProgram:
        """Return the client program."""
        return EdgeTestClient()

    def network(self, net: Network) -> Network:
        """Return the network with the links that are tested."""
        if net.n_servers:
            raise ValueError("net: edges are tested in a network without servers")
        if self.candidates == "graph":
            return net
        return Network(net.models, complete(net.graph), clusters=net.clusters)

    def phases(self, net: Network) -> list[IntArray]:
        """Return sending, then testing."""
        return [net.clients, net.clients]

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return which covariance is estimated."""
        return {"covariance": self.covariance, "ridge": self.ridge}

    def sizes(self, net: Network) -> Mapping[str, int]:
        """Return d and the length of half a covariance."""
        return {"d": net.dim, "t": net.dim * (net.dim + 1) // 2}

    def problem(self, net: Network) -> GTVProblem | None:
        """Return None: a test solves no problem."""
        return None

    def reason(self, net: Network) -> str:
        """Say that there is nothing to certify."""
        return "tests of edges solve no convex problem"

    @staticmethod
    def selection(run: Any) -> EdgeSelection:
        """Return the edges that are kept, from a run in which all clients took part.

        Parameters
        ----------
        run : Run
            Of `EdgeTests`, of one round or more.

        Raises
        ------
        TypeError, ValueError
            Another algorithm's run; clients that were absent, so that links are untested.
        """
        algorithm = run.algorithm
        if not isinstance(algorithm, EdgeTests):
            raise TypeError(f"run: a run of EdgeTests is expected, got one of {algorithm.name}")
        untested = [i for i, report in enumerate(run.reports) if not report.through]
        if untested and run.net.graph.n_edges:
            raise ValueError(f"run: {run.net.label(untested[0])} has not heard all its neighbours")
        tested = run.net.graph
        statistics = np.abs(link_flows(run.net, run.reports)[:, 0])
        heuristic = algorithm.ridge > 0
        return judged(
            tested, statistics, run.net.dim, algorithm.alpha, algorithm.covariance, heuristic
        )


class EdgeTestClient(ClientProgram):
    """A client of `EdgeTests`."""

    def start(self, view: View) -> None:
        """Estimate from the client's own rows."""
        told = view.parameters
        self._estimate = estimate_of_terms(
            view.model.terms, told["covariance"], told["ridge"], f"client {view.id}"
        )
        self._peers = view.links.tolist()
        self._statistics: dict[int, float] = {}

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Send the estimate, then test what has come."""
        if inbox.phase == 0:
            # What neighbours that were absent have missed is sent again.
            return dict.fromkeys(self._peers, Message("estimate", self._estimate.message()))
        pair = np.array([[0, 1]])
        for message in inbox:
            other = LocalEstimate.from_message(message.arrays)
            statistic = wald_statistics([self._estimate, other], pair)
            self._statistics[message.sender] = float(statistic[0])
        return {}

    def report(self) -> Report:
        """Return the minimizer, and the statistics of the links as first entries of its flows."""
        theta = self._estimate.theta
        flows = np.zeros((len(self._peers), len(theta)))
        flows[:, 0] = [self._statistics.get(j, 0.0) for j in self._peers]
        return Report(theta, flows, through=int(len(self._statistics) == len(self._peers)))
