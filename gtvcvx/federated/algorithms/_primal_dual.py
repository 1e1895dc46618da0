"""Algorithm 1 of [GTV] as messages: both ends of an edge keep its flow.

References
----------
[GTV] Y. SarcheshmehPour, Y. Tian, L. Zhang, A. Jung, "Clustered Federated Learning via Generalized
Total Variation Minimization", Algorithm 1, (32), (33).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import (
    Algorithm,
    gtv_problem,
    link_flows,
    own_problem,
    positive,
    start,
)
from gtvcvx.federated.algorithms._primal_dual_client import PrimalDualClient
from gtvcvx.federated.programs import Report
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.graph import differences
from gtvcvx.penalties import Penalty, as_penalty
from gtvcvx.problem import GTVProblem


class PrimalDual(Algorithm):
    """Primal-dual method of [GTV], Algorithm 1, with tau_i = 1/deg_i and sigma_e = 1/2.

    In a round each client hears the extrapolated vectors of its neighbours, updates the flows of
    its links by (33) and then its own vector by (32), and sends ``2 w_new - w_old``. Both ends of
    an edge compute the same flow, so that no flow is sent.

    The problem is the one that the network is from, or that of its losses with ``lam`` and
    ``penalty``. It is solved exactly; the flows give a certified gap at every recorded round. All
    clients must be present: the two ends of an edge drift apart where a message is missed.

    Local models that are not convex, such as `gtvcvx.federated.models.TwoLayerNetwork`, take the
    same steps with what their ``prox`` finds, which is how [GTV] (40) trains networks. Then the
    history has the value of the objective, and nothing is certified.

    Parameters
    ----------
    lam : float, optional
        lambda > 0. Default: lambda and penalty of the problem that the network is from.
    penalty : {"l2", "l1", "linf", "squared"} or Penalty, optional
        Goes with ``lam``, "l2" by default.
    initial : array_like, shape (d,), optional
        Start of all clients. Default: zero. The gradient of a network of ReLU layers is zero there:
        it needs another one.

    Notes
    -----
    What leaves a client: one vector of length d to each neighbour and round.
    """

    schema: ClassVar[Schema] = Schema({"extrapolated": (Field("w"),)})
    guarantee = "the problem's optimum, with a certified gap at every record"
    leaves = "2 w_new - w_old to each neighbour, 8d + 20 bytes each and round"
    fragile = "the two ends of an edge keep different flows for good"
    needs_all = fragile

    def __init__(
        self,
        lam: float | None = None,
        penalty: str | Penalty | None = None,
        initial: ArrayLike | None = None,
    ) -> None:
        if lam is None and penalty is not None:
            raise ValueError("penalty: it goes with lam, which is not given")
        self.lam = None if lam is None else positive(lam, "lam")
        self.penalty = penalty
        self.initial = None if initial is None else finite_array(initial, "initial", 1)

    def coupling(self, net: Network) -> tuple[float, Penalty]:
        """Return lambda and the penalty.

        Raises
        ------
        ValueError
            There is no lam, and no problem that the network is from; or there is a server.
        """
        if self.lam is None:
            problem = own_problem(net, self.name)
            return problem.lam, problem.penalty
        if net.n_servers and net.peers is None:
            raise ValueError(f"net: {self.name} needs links between clients, and no server")
        return self.lam, as_penalty("l2" if self.penalty is None else self.penalty, net.dim)

    def client(self) -> PrimalDualClient:
        """Return the client program."""
        return PrimalDualClient()

    def parameters(self, net: Network, i: int) -> dict[str, object]:
        """Return lambda, the penalty and the start."""
        lam, penalty = self.coupling(net)
        return {"lam": lam, "penalty": penalty, "initial": start(self.initial, net)}

    def problem(self, net: Network) -> GTVProblem | None:
        """Return the problem that the network is from, or that of its losses; else None."""
        if self.lam is None:
            return own_problem(net, self.name)
        lam, penalty = self.coupling(net)
        return gtv_problem(net, penalty, lam, net.peers)

    def reason(self, net: Network) -> str:
        """Say why there is no certificate."""
        return "" if net.convex else "a client's model is not convex"

    def value(self, net: Network, reports: Sequence[Report]) -> float:
        """Return the objective: local losses and total variation."""
        lam, penalty = self.coupling(net)
        graph = net.graph if net.peers is None else net.peers
        across = penalty.value(differences(graph.edges, self.models(net, reports)))
        return super().value(net, reports) + lam * float(graph.weights @ across)

    def flow(
        self, net: Network, problem: GTVProblem, w: FloatArray, reports: Sequence[Report]
    ) -> FloatArray:
        """Return the flows that the clients keep."""
        return link_flows(net, reports)
