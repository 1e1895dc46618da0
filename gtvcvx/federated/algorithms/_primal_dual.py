"""Algorithm 1 of [GTV] as messages: both ends of an edge keep its flow.

References
----------
[GTV] Y. SarcheshmehPour, Y. Tian, L. Zhang, A. Jung, "Clustered Federated Learning via Generalized
Total Variation Minimization", Algorithm 1, (32), (33).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gtvcvx._arrays import FloatArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import Algorithm, link_flows, own_problem
from gtvcvx.federated.algorithms._primal_dual_client import PrimalDualClient
from gtvcvx.federated.programs import Report
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.problem import GTVProblem


class PrimalDual(Algorithm):
    """Primal-dual method of [GTV], Algorithm 1, with tau_i = 1/deg_i and sigma_e = 1/2.

    In a round each client hears the extrapolated vectors of its neighbours, updates the flows of
    its links by (33) and then its own vector by (32), and sends ``2 w_new - w_old``. Both ends of
    an edge compute the same flow, so that no flow is sent.

    The problem is the one that the network is from. It is solved exactly; the flows give a
    certified gap at every recorded round. All clients must be present: the two ends of an edge
    drift apart where a message is missed.

    What leaves a client: one vector of length d to each neighbour and round.
    """

    schema: ClassVar[Schema] = Schema({"extrapolated": (Field("w"),)})
    guarantee = "the problem's optimum, with a certified gap at every record"
    leaves = "2 w_new - w_old to each neighbour, 8d + 20 bytes each and round"
    fragile = "the two ends of an edge keep different flows for good"
    needs_all = fragile

    def client(self) -> PrimalDualClient:
        """Return the client program."""
        return PrimalDualClient()

    def parameters(self, net: Network, i: int) -> dict[str, object]:
        """Return lambda and the penalty."""
        problem = own_problem(net, self.name)
        return {"lam": problem.lam, "penalty": problem.penalty}

    def problem(self, net: Network) -> GTVProblem | None:
        """Return the problem that the network is from."""
        return own_problem(net, self.name)

    def flow(
        self, net: Network, problem: GTVProblem, w: FloatArray, reports: Sequence[Report]
    ) -> FloatArray:
        """Return the flows that the clients keep."""
        return link_flows(net, reports)
