"""Federated gradient descent: clients send gradients."""

from __future__ import annotations

from typing import ClassVar

from numpy.typing import ArrayLike

from gtvcvx.federated.algorithms._fedsgd_programs import GradientClient, GradientServer
from gtvcvx.federated.algorithms._star import HELLO, StarAlgorithm
from gtvcvx.federated.programs import ClientProgram, ServerProgram
from gtvcvx.federated.wire import Field, Schema


class FedSGD(StarAlgorithm):
    r"""Gradient descent on the sum of the losses, ``c <- c - eta mean_i grad L_i(c)``.

    [Notes] leave the section empty; this is ours. The result is that of `FedAvg` with one step, but
    gradients are sent and the server takes the step. It converges for quadratic losses exactly when
    ``eta < 2 / L``, with L the largest eigenvalue of the mean Hessian; the server cannot know that
    bound, which takes all data, and the warning about it is the observer's.

    Parameters
    ----------
    lr : float, optional
        eta. Default: 1 / max_i l_i <= 1/L, with l_i the Lipschitz constant of a client's gradient,
        which the server asks for when it first meets a client.
    weights : {"uniform", "rows"}
        Whether ``sum L_i`` is minimized, or the mean over all rows, ``sum m_i L_i / sum m``.
    absence : {"keep", "skip"}
        Whether the step of an absent client is its last one, taken from where it was (ours,
        default: exact), or it counts for nothing in the round.
    initial : array_like, shape (d,), optional
        Start. Default: zero.

    Notes
    -----
    What leaves a client: its gradient, to the server; once its l_i or its number of rows, where
    they are needed. The gradient of a client with few rows can tell the rows. A client and round
    take 8 d + 20 bytes up and as many down.
    """

    schema: ClassVar[Schema] = Schema(
        {"model": (Field("w"),), "who": (), **HELLO, "answer": (Field("g"),)}
    )
    guarantee = "the minimizer of the sum of losses"
    leaves = "the gradient at c to the server, 8d + 20 bytes a round; once l_i or m_i where needed"

    def __init__(
        self,
        lr: float | None = None,
        *,
        weights: str = "uniform",
        absence: str = "keep",
        initial: ArrayLike | None = None,
    ) -> None:
        super().__init__(weights, absence, initial, 1, lr)

    def client(self) -> ClientProgram:
        """Return the client program."""
        return GradientClient()

    def server(self) -> ServerProgram:
        """Return the server program."""
        return GradientServer()
