"""What methods with one server in the middle share: the star, and a server that averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, finite_array
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import (
    Algorithm,
    one_of,
    positive,
    positive_integer,
    start,
)
from gtvcvx.federated.algorithms._pooling import (
    NotPlainError,
    pooled_problem,
    row_weights,
    star_problem,
)
from gtvcvx.federated.algorithms._star_programs import AveragingServer, StepsClient
from gtvcvx.federated.algorithms._step_bounds import known_lipschitz, scale_warning, step_warning
from gtvcvx.federated.algorithms._step_sizes import step_size
from gtvcvx.federated.programs import ClientProgram, Report, ServerProgram
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.problem import GTVProblem

WEIGHTS = ("uniform", "rows")
ABSENCES = ("keep", "skip")
#: Messages of servers, which ask, and of clients, which answer. What one of them does not need of
#: a hello is zero.
QUESTIONS = {"model": (Field("w"),), "paced": (Field("w"), Field("lr", ())), "who": ()}
HELLO = {"hello": (Field("rows", ()), Field("lipschitz", ()))}
ANSWER = {"answer": (Field("w"),)}


class StarAlgorithm(Algorithm):
    """A method of clients around one server, which asks and is answered in every round.

    Parameters
    ----------
    weights : {"uniform", "rows"}
        What a client counts for in the server's means: 1, or its number of rows m_i.
    absence : {"keep", "skip"}
        Whether the server's means are over the last vectors of all clients that it has heard of,
        or over those that take part in the round.
    initial : array_like, shape (d,), optional
        The server's first model. Default: zero.
    steps : int, optional
        Gradient steps E that a client takes; None where it does something else.
    lr : float, optional
        Their length. Default: 1 / max_i l_i.
    """

    schema: ClassVar[Schema] = Schema({**QUESTIONS, **HELLO, **ANSWER})
    #: Why there is no convex problem that the method solves; "" where there is one.
    biased: str = ""
    #: lambda of a star problem with the squared penalty; None where clients have one model.
    coupling: float | None = None

    def __init__(
        self,
        weights: str = "uniform",
        absence: str = "keep",
        initial: ArrayLike | None = None,
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.steps = None if steps is None else positive_integer(steps, "steps")
        self.lr = None if lr is None else positive(lr, "lr")
        self.weights = one_of(weights, WEIGHTS, "weights")
        self.absence = one_of(absence, ABSENCES, "absence")
        self.initial = None if initial is None else finite_array(initial, "initial", 1)

    @property
    def needs_all(self) -> str:  # type: ignore[override]
        """What absent clients do to the result."""
        if self.absence == "keep":
            return ""
        return (
            "means over those who take part change from round to round, and so does the result; "
            "absence='keep' has a limit"
        )

    def network(self, net: Network) -> Network:
        """Return the star of the clients.

        Raises
        ------
        ValueError
            The network is a star whose links have weights.
        """
        star = net.as_star()
        if not np.all(star.graph.weights == 1.0):
            raise ValueError("net: a star whose links all have the weight 1 is expected")
        return star

    def phases(self, net: Network) -> list[IntArray]:
        """Return the server, which asks; the clients; the server, which takes the answers."""
        return [net.server_ids, net.clients, net.server_ids]

    def groups(self, net: Network) -> IntArray:
        """Return which of the server's models each client has: the only one."""
        return np.zeros(net.n_clients, np.int64)

    def client(self) -> ClientProgram:
        """Return the client program."""
        return StepsClient()

    def server(self) -> ServerProgram:
        """Return the server program."""
        return AveragingServer()

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return the start, the steps, and what means are over; for the server also the groups."""
        told: dict[str, Any] = {"weights": self.weights, "initial": start(self.initial, net)}
        if self.steps is not None:
            told |= {"steps": self.steps, "lr": np.nan if self.lr is None else self.lr}
        if i >= net.n_clients:
            told |= {"groups": self.groups(net), "keep": self.absence == "keep"}
        return told

    def problem(self, net: Network) -> GTVProblem | None:
        """Return what is minimized: a star, or the sum of the losses of each group."""
        return None if self.biased else self.target(net)

    def target(self, net: Network) -> GTVProblem | None:
        """Return the same also where the limit is biased."""
        try:
            return self._minimized(net)
        except NotPlainError:
            return None

    def reason(self, net: Network) -> str:
        """Say why there is no certificate."""
        try:
            self._minimized(net)
        except NotPlainError as error:
            return str(error)
        return self.biased

    def _minimized(self, net: Network) -> GTVProblem:
        weights = row_weights(net) if self.weights == "rows" else None
        if self.coupling is None:
            share = None if weights is None else weights / weights.sum()
            return pooled_problem(net, self.groups(net), share)
        return star_problem(net, self.coupling, weights)

    def warnings(self, net: Network) -> list[str]:
        """Warn of steps above their bound of stability, which the server does not know."""
        if self.steps is None:
            return []
        texts = scale_warning(net, "use FedAvg with lam, or Global")
        if self.lr is not None:
            rows = row_weights(net) if self.weights == "rows" else np.ones(net.n_clients)
            texts += step_warning(net, self.steps, self.lr, self.groups(net), rows)
        return texts

    def steps_of(self, net: Network) -> str:
        """Say how long the steps are."""
        if self.steps is None:
            return ""
        slopes = known_lipschitz(net)
        lr = step_size(slopes) if self.lr is None and slopes is not None else self.lr
        return "" if lr is None else f"lr = {lr:.3g}"

    def point(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the server's models; of a star the clients', and the server's last."""
        if self.coupling is None:
            return np.atleast_2d(reports[net.n_clients].w)
        return np.vstack([report.w for report in reports])

    def models(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the clients' own models in a star, else the server's for their group."""
        if self.coupling is None:
            return np.asarray(np.atleast_2d(reports[net.n_clients].w)[self.groups(net)])
        return super().models(net, reports)
