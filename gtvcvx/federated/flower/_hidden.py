"""What a server knows of the clients' losses: nothing, and it is said when somebody asks."""

from __future__ import annotations

from typing import NoReturn

from gtvcvx._arrays import FloatArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.programs import LocalLoss, stacked_locals
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.problem import GTVProblem


class HiddenDataError(ValueError):
    """Somebody without data has asked for a client's loss."""


class HiddenLoss:
    """The loss of a client, as others see it.

    Parameters
    ----------
    dim : int
        d.
    """

    # Not known; nothing is certified of what cannot be seen.
    convex = False

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def value(self, w: FloatArray) -> NoReturn:
        """Refuse to tell."""
        self._refuse()

    def gradient(self, w: FloatArray) -> NoReturn:
        """Refuse to tell."""
        self._refuse()

    def prox(self, v: FloatArray, tau: float) -> NoReturn:
        """Refuse to tell."""
        self._refuse()

    @property
    def lipschitz(self) -> NoReturn:
        """Refuse to tell."""
        self._refuse()

    @property
    def n_rows(self) -> NoReturn:
        """Refuse to tell."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise HiddenDataError(
            "the server does not have the clients' data; see Outcome.with_data for what needs them"
        )


def without_data(net: Network | EmpiricalGraph, dim: int) -> Network:
    """Return a network with the same links, servers, clusters, penalty and lambda, d = dim."""
    if isinstance(net, EmpiricalGraph):
        return Network([HiddenLoss(dim) for _ in range(net.n_nodes)], net)
    problem = net.source
    if problem is not None:
        # Algorithms ask the problem for penalty and lambda alone.
        empty = [LocalLoss([], dim) for _ in range(net.n_clients)]
        losses = stacked_locals(empty, dim)
        problem = GTVProblem(problem.graph, losses, problem.penalty, problem.lam)
    hidden = [HiddenLoss(dim) for _ in range(net.n_clients)]
    return Network(hidden, net.graph, net.n_servers, net.clusters, problem)
