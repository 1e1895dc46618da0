"""What other methods are compared with: every client alone, and all data in one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import Algorithm, start
from gtvcvx.federated.algorithms._baseline_programs import (
    IdleServer,
    LocalClient,
    NewtonClient,
    NewtonServer,
)
from gtvcvx.federated.algorithms._star import StarAlgorithm
from gtvcvx.federated.programs import (
    ClientProgram,
    Report,
    ServerProgram,
)
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.problem import GTVProblem


class Local(Algorithm):
    """Every client by itself: ``min L_i`` for each i, which is GTV with lambda = 0.

    The problem has one node for each client and no edge. One round is enough for convex losses;
    other models take a proximal step a round.

    Parameters
    ----------
    initial : array_like, shape (d,), optional
        Start of all clients. Default: zero.

    Notes
    -----
    What leaves a client: nothing.
    """

    schema: ClassVar[Schema] = Schema({})
    guarantee = "a minimizer of each client's own loss"
    leaves = "nothing"

    def __init__(self, initial: ArrayLike | None = None) -> None:
        self.initial = None if initial is None else finite_array(initial, "initial", 1)

    def client(self) -> ClientProgram:
        """Return the client program."""
        return LocalClient()

    def server(self) -> ServerProgram:
        """Return a server that does nothing."""
        return IdleServer()

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return the start."""
        return {"initial": start(self.initial, net)}

    def problem(self, net: Network) -> GTVProblem | None:
        """Return the losses without any edge."""
        if not net.convex:
            return None
        graph = EmpiricalGraph(net.n_clients, [], nodes=net.nodes)
        return GTVProblem(graph, net.stacked(), "squared", 1.0)

    def reason(self, net: Network) -> str:
        """Say why there is no certificate."""
        return "" if net.convex else "a client's model is not convex"

    def point(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the clients' vectors."""
        return self.models(net, reports)


class Global(StarAlgorithm):
    """One model for all data: the minimizer of the sum of the losses, by Newton's method.

    The papers mean what a computer that has all data would find. Here clients send quadratic models
    of their losses at c, Hessian and linear term, and the server minimizes the sum of the last ones
    of all clients. One round is enough for squared losses, whatever the units of the features;
    others take a few, or hundreds where classes can almost be told apart. Losses must have such
    models: squared, Huber, logistic and Poisson losses and sums of them with ridges do. `FedSGD`
    has the same limit and sends gradients alone.

    Parameters
    ----------
    weights, absence, initial
        As in `FedSGD`.

    Notes
    -----
    What leaves a client: for squared losses the Hessian is X^T X and the linear term X^T y up to a
    factor, from which rows can be told if they are few; 8 d^2 + 8 d + 20 bytes up for a client and
    round, 8 d + 20 down. It is the baseline of the papers, not a method to be used on private data.
    """

    schema: ClassVar[Schema] = Schema(
        {
            "model": (Field("w"),),
            "who": (),
            "hello": (Field("rows", ()), Field("lipschitz", ())),
            "answer": (Field("hessian", ("d", "d")), Field("linear")),
        }
    )
    guarantee = "the minimizer of the sum of losses"
    leaves = "Hessian and linear term at c to the server, 8d^2 + 8d + 20 bytes a round"

    def __init__(
        self,
        *,
        weights: str = "uniform",
        absence: str = "keep",
        initial: ArrayLike | None = None,
    ) -> None:
        super().__init__(weights, absence, initial)

    def client(self) -> ClientProgram:
        """Return the client program."""
        return NewtonClient()

    def server(self) -> ServerProgram:
        """Return the server program."""
        return NewtonServer()
