"""The server of FedADMM with inverse weights, Algorithm 2 of [FedADMM]."""

from __future__ import annotations

import numpy as np

from gtvcvx.federated.algorithms._fedadmm_clients import Average, Steps
from gtvcvx.federated.programs import Inbox, Outbox, Report, ServerProgram, View
from gtvcvx.federated.wire import Message
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.penalties import Penalty


class InverseServer(ServerProgram):
    """Holds theta, beta and alpha of all clients, and knows gradients of those present alone."""

    def start(self, view: View) -> None:
        """Begin with theta = beta = alpha = 0."""
        told = view.parameters
        n, d = told["n"], view.dim
        self._graph = EmpiricalGraph(
            max(n, int(told["edges"].max(initial=0)) + 1), told["edges"], told["weights"]
        )
        self._penalty: Penalty = told["penalty"]
        self._capacities = told["lam"] * self._graph.weights
        self._steps: Steps = told["steps"]
        self._presence, self._inverse = told["presence"], told["inverse"]
        self._average = Average(told["output"], view.rounds)
        self._w = np.zeros((n, d))
        self._u = np.zeros((self._graph.n_edges, d))
        self._before = np.zeros((self._graph.n_edges, d))
        self._lipschitz = np.zeros(n)
        self._seen = np.zeros(n)

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Send theta_i to those present, then take their gradients."""
        if inbox.phase == 0:
            assert inbox.present is not None
            return {int(i): Message("theta", {"w": self._w[i]}) for i in inbox.present}
        gradient = np.zeros_like(self._w)
        for message in inbox:
            # Late gradients count for the round in which they come in.
            i = message.sender
            gradient[i] += message.arrays["g"]
            self._lipschitz[i] = message.arrays["lipschitz"]
        self._seen[list({m.sender for m in inbox})] += 1
        if self._inverse:
            chance = (1.0 + self._seen) / (1.0 + round_)
            if self._presence is not None:
                chance = np.broadcast_to(self._presence, chance.shape)
            gradient /= chance[:, None]
        self._update(round_, gradient)
        return {}

    def _update(self, round_: int, gradient: np.ndarray) -> None:
        degrees = self._graph.degrees
        pull = self._graph.divergence @ (2.0 * self._u - self._before)
        length = self._steps.length(round_, self._lipschitz, degrees)
        new = self._steps.projected(self._w - length[:, None] * (gradient + pull))
        self._average.add(round_, self._w, new)
        self._w = new
        sigma = np.full(len(self._u), self._steps.rho / 2.0)
        ahead = self._u + sigma[:, None] * (self._graph.incidence @ new)
        self._before, self._u = (
            self._u,
            self._penalty.prox_conjugate(ahead, sigma, self._capacities),
        )

    def report(self) -> Report:
        """Return all vectors, and the flows of all edges."""
        return Report(self._average.of(self._w), self._u)
