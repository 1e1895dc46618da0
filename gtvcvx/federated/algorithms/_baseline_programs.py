"""Programs of the methods that others are compared with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.federated.algorithms._fedrelax_client import minimizer_of
from gtvcvx.federated.algorithms._star_programs import AveragingServer, StarClient
from gtvcvx.federated.programs import (
    ClientProgram,
    Inbox,
    LocalLoss,
    Outbox,
    Report,
    ServerProgram,
    View,
)
from gtvcvx.federated.wire import Message


class LocalClient(ClientProgram):
    """A client of `Local`."""

    def start(self, view: View) -> None:
        """Begin at the initial vector."""
        self._model = view.model
        self._w: FloatArray = view.parameters["initial"]

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Minimize the own loss."""
        self._w = minimizer_of(self._model, self._w)
        return {}

    def report(self) -> Report:
        """Return the vector."""
        return Report(self._w)


class IdleServer(ServerProgram):
    """A server that has nothing to do."""

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Do nothing."""
        return {}

    def report(self) -> Report:
        """Return a vector of zeros."""
        return Report(np.zeros(self.view.dim))


class NewtonClient(StarClient):
    """Answers with a quadratic model of its loss at the server's model."""

    def start(self, view: View) -> None:
        """Get ready.

        Raises
        ------
        ValueError
            The loss has no quadratic models.
        """
        super().start(view)
        model = view.model
        if not (isinstance(model, LocalLoss) and model.batch.modelled):
            raise ValueError(
                f"net: client {view.id}: {model!r} has no quadratic models, which Global needs; "
                "use FedSGD"
            )

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Answer the newest question."""
        question = self._question(inbox)
        if question is None or question.kind == "who":
            return self._greeting(question)
        hessian, linear = self._model.quadratic_at(question.arrays["w"])
        answer = Message("answer", {"hessian": hessian, "linear": linear})
        return {question.sender: answer}


class NewtonServer(AveragingServer):
    """Minimizes the mean of the clients' quadratic models."""

    def start(self, view: View) -> None:
        """Begin with the initial model."""
        super().start(view)
        d = view.dim
        self._vectors = np.zeros((len(self._groups), d * d + d))

    def _take(self, i: int, arrays: Mapping[str, FloatArray]) -> None:
        parts = (arrays["hessian"].ravel(), arrays["linear"])
        self._vectors[i] = np.concatenate(parts)

    def _combined(self, q: int, shares: FloatArray) -> FloatArray:
        d = self._centre.shape[1]
        mean = shares @ self._vectors
        return newton_point(mean[: d * d].reshape(d, d), mean[d * d :], self._centre[q])


def newton_point(hessian: FloatArray, linear: FloatArray, w: FloatArray) -> FloatArray:
    """Return the minimizer of ``(1/2) z^T H z - b^T z`` nearest to w, in units of the curvatures.

    Columns in other units have curvatures that differ by many orders: scaled to one, what is left
    of a singular direction is told from rounding.
    """
    curvature = np.diag(hessian)
    unit = np.where(curvature > 0, 1.0 / np.sqrt(np.where(curvature > 0, curvature, 1.0)), 0.0)
    scaled = unit[:, None] * hessian * unit
    rest = unit * (linear - hessian @ w)
    return np.asarray(w + unit * np.linalg.lstsq(scaled, rest, rcond=None)[0])
