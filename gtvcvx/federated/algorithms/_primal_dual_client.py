"""The client program of Algorithm 1 of [GTV]; apart, since its process loads nothing else."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.federated.algorithms._fedrelax_client import minimizer_of
from gtvcvx.federated.programs import ClientProgram, Inbox, Outbox, Report, View
from gtvcvx.federated.wire import Message
from gtvcvx.penalties import Penalty


class PrimalDualClient(ClientProgram):
    """A client of `PrimalDual`."""

    def start(self, view: View) -> None:
        """Begin at the start and no flow; a client without neighbours stays at its minimizer."""
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
        self._w: FloatArray = view.parameters["initial"]
        self._extrapolated = np.zeros(view.dim)
        self._through = 0
        if not degree:
            self._w = minimizer_of(view.model, self._w)

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
