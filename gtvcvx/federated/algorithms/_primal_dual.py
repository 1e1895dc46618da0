"""Algorithm 1 of [GTV] as messages: both ends of an edge keep its flow.

References
----------
[GTV] Y. SarcheshmehPour, Y. Tian, L. Zhang, A. Jung, "Clustered Federated Learning via Generalized
Total Variation Minimization", Algorithm 1, (32), (33).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import Algorithm, link_flows, own_problem
from gtvcvx.federated.models import LocalModel
from gtvcvx.federated.programs import ClientProgram, Inbox, Outbox, Report, View
from gtvcvx.federated.wire import Field, Message, Schema
from gtvcvx.penalties import Penalty
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


class PrimalDualClient(ClientProgram):
    """A client of `PrimalDual`."""

    def start(self, view: View) -> None:
        """Begin with w = 0 and no flow; a client without neighbours stays at its minimizer."""
        self._id, self._model, self._links = view.id, view.model, view.links
        degree = len(view.links)
        self._penalty: Penalty = view.parameters["penalty"]
        self._capacities = view.parameters["lam"] * view.weights
        self._place = {int(j): k for k, j in enumerate(view.links)}
        # Flows point from the smaller number to the larger.
        self._sign = np.where(view.links > view.id, 1.0, -1.0)[:, None]
        self._tau = 1.0 / max(degree, 1)
        self._sigma = np.full(degree, 0.5)
        self._u = np.zeros((degree, view.dim))
        self._heard = np.zeros((degree, view.dim))
        self._w = np.zeros(view.dim)
        self._extrapolated = np.zeros(view.dim)
        self._through = 0
        if not degree:
            self._w = _minimizer(view.model, view.dim)

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Update flows from what was heard, then the vector."""
        if not len(self._links):
            return {}
        if round_ > 1:
            for message in inbox:
                self._heard[self._place[message.sender]] = message.arrays["w"]
            self._update_flows()
        self._through = round_ - 1
        out = self._sign * self._u
        w = self._model.prox(self._w - self._tau * out.sum(axis=0), self._tau)
        self._extrapolated = 2.0 * w - self._w
        self._w = w
        sent = Message("extrapolated", {"w": self._extrapolated})
        return {int(j): sent for j in self._links}

    def _update_flows(self) -> None:
        differences = self._sign * (self._extrapolated - self._heard)
        self._u = self._penalty.prox_conjugate(
            self._u + 0.5 * differences, self._sigma, self._capacities, check=False
        )

    def report(self) -> Report:
        """Return w and the flows of the links."""
        return Report(self._w, self._sign * self._u, self._through)


def _minimizer(model: LocalModel, dim: int) -> FloatArray:
    """Return a minimizer of a client's own loss."""
    minimizer = getattr(model, "minimizer", None)
    return model.prox(np.zeros(dim), 1.0) if minimizer is None else np.asarray(minimizer())
