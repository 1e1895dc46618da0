"""The client program of FedRelax."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.federated.programs import ClientProgram, Inbox, LocalLoss, Outbox, Report, View
from gtvcvx.federated.wire import Message


class Neighbours:
    """What a client has heard last of each of its neighbours."""

    def __init__(self, view: View, initial: FloatArray) -> None:
        self._place = {int(j): k for k, j in enumerate(view.links)}
        self.vectors = np.tile(initial, (len(view.links), 1))
        self._round = np.zeros(len(view.links), np.int64)

    def listen(self, inbox: Inbox, field: str) -> None:
        """Take over the newest vector of each neighbour."""
        for message in inbox:
            k = self._place[message.sender]
            if message.round >= self._round[k]:
                self._round[k] = message.round
                self.vectors[k] = message.arrays[field]


class RelaxClient(ClientProgram):
    """A client of `FedRelax`."""

    def start(self, view: View) -> None:
        """Begin at the initial vector."""
        told = view.parameters
        self._model = LocalLoss([], view.dim) if view.model is None else view.model
        self._peers = view.links.tolist()
        self._w: FloatArray = told["initial"]
        self._answer = self._w
        self._neighbours = Neighbours(view, self._w)
        total = float(view.weights.sum())
        self._tau = 1.0 / (told["coupling"] * total) if len(view.links) else np.inf
        self._share = view.weights / total if len(view.links) else view.weights
        self._damping: bool = told["damping"]
        self._own_noise: bool = told["own_noise"]
        self._noise = told["noise"]
        self._generator = view.generator("noise") if draws_noise(self._noise) else None

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Minimize the own loss near the neighbours' vectors."""
        self._neighbours.listen(inbox, "w")
        new = self._nearby()
        if self._damping:
            new = (self._w + new) / 2.0
        self._answer = self._w = new
        if self._generator is not None:
            sigma = deviation(self._noise, round_)
            self._w = new + sigma * self._generator.standard_normal(len(new))
            self._answer = self._w if self._own_noise else new
        return dict.fromkeys(self._peers, Message("model", {"w": self._w}))

    def _nearby(self) -> FloatArray:
        if not self._peers:
            return minimizer_of(self._model, self._w)
        return np.asarray(self._model.prox(self._share @ self._neighbours.vectors, self._tau))

    def report(self) -> Report:
        """Return the vector that the client answers with."""
        return Report(self._answer)


def minimizer_of(model: Any, w: FloatArray) -> FloatArray:
    """Return a minimizer of a client's own loss; where it cannot tell one, a point nearer to it.

    Models that are no convex losses take a proximal step from w.
    """
    minimizer = getattr(model, "minimizer", None)
    return np.asarray(model.prox(w, 1.0) if minimizer is None else minimizer())


def draws_noise(noise: Any) -> bool:
    """Whether there is any noise."""
    return callable(noise) or bool(np.any(noise))


def deviation(noise: Any, round_: int) -> float:
    """Return sigma in a round.

    Raises
    ------
    ValueError
        A function of the round gives no number >= 0.
    """
    if not callable(noise):
        sigmas = np.atleast_1d(noise)
        return float(sigmas[min(round_, len(sigmas)) - 1])
    sigma = float(noise(round_))
    if not (np.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"noise: a deviation >= 0 is expected in round {round_}, got {sigma}")
    return sigma
