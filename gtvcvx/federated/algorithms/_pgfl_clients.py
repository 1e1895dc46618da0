"""The clients of PGFL: (4), (5), and what is released."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.federated.models import LocalModel
from gtvcvx.federated.programs import ClientProgram, Inbox, Outbox, Report, View
from gtvcvx.federated.wire import Message, Received

#: w_k of (4), from phi_k and w_qs.
Answer = Callable[[FloatArray, FloatArray], FloatArray]


class ExactAnswer:
    """The minimizer of (4), by the model's proximal map.

    Parameters
    ----------
    model : LocalModel
    rho : float
    ridge : float
        Weight of ``||w||^2`` at this client, lam / |C_s|.
    """

    def __init__(self, model: LocalModel, rho: float, ridge: float) -> None:
        self._model, self._rho = model, rho
        self._total = rho + 2.0 * ridge

    def __call__(self, phi: FloatArray, received: FloatArray) -> FloatArray:
        """Return w_k."""
        centre = (self._rho * received + phi) / self._total
        return self._model.prox(centre, 1.0 / self._total)


class PGFLClient(ClientProgram):
    """A client of `PGFL`: holds w_k and phi_k, and releases w_k.

    The multiplier follows (5) when the server's answer to a release is heard, at the latest in the
    next round in which the client takes part. A client that misses an answer, or has forgotten
    everything in a crash, is silent until the server has told it its multiplier.
    """

    def start(self, view: View) -> None:
        """Begin with the common start and phi_k = 0."""
        told = view.parameters
        self._rho: float = told["rho"]
        self._server = int(view.links[0])
        self._answer: Answer = self._answers(view)
        self._w = np.array(told["start"], dtype=float)
        self._received = self._w
        self._phi = np.zeros(view.dim)
        self._lost = view.joined > 1
        # The round of a release that was not answered yet, and what (5) takes of it.
        self._open = 0
        self._counted = self._w
        self._last = 0

    def _answers(self, view: View) -> Answer:
        return ExactAnswer(view.model, self._rho, view.parameters["ridge"])

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Update phi_k (5), then w_k (4), and release it."""
        for message in inbox:
            self._take(message)
        if self._lost or self._open:
            return {}
        self._w = self._answer(self._phi, self._received)
        self._open = self._last = round_
        return {self._server: self._release(round_)}

    def _release(self, round_: int) -> Message:
        self._counted = self._w
        return Message("release", {"w": self._w})

    def _take(self, message: Received) -> None:
        if message.kind == "state":
            # An old one, which was long on its way, says nothing of what came after it.
            if message.round > self._last:
                self._phi, self._received = message.arrays["phi"], message.arrays["w"]
                self._lost, self._open = False, 0
        elif message.kind == "aggregate":
            if message.round == self._open:
                self._phi = self._phi + self._rho * (message.arrays["w"] - self._counted)
                self._received, self._open = message.arrays["w"], 0
        elif message.round > self._last:
            self._received = message.arrays["w"]

    def report(self) -> Report:
        """Return w_k."""
        return Report(self._w)
