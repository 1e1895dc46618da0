"""Programs of FedSGD."""

from __future__ import annotations

from collections.abc import Mapping

from gtvcvx._arrays import FloatArray
from gtvcvx.federated.algorithms._star_programs import AveragingServer, StarClient
from gtvcvx.federated.algorithms._step_sizes import gradient_at
from gtvcvx.federated.wire import Message, Received


class GradientClient(StarClient):
    """Answers with the gradient at the server's model."""

    field = "g"

    def _answer(self, question: Received) -> FloatArray:
        self._w = question.arrays["w"]
        return gradient_at(self._model, self._w)


class GradientServer(AveragingServer):
    """Takes the clients' steps for them."""

    def _question(self, q: int) -> Message:
        return Message("model", {"w": self._centre[q]})

    def _take(self, i: int, arrays: Mapping[str, FloatArray]) -> None:
        q = int(self._groups[i])
        # Where nothing is late this is the model that the client was asked about.
        self._vectors[i] = self._centre[q] - self.lr(q) * arrays["g"]
