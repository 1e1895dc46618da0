"""FedRelax: every client minimizes its loss near its neighbours' vectors, again and again.

References
----------
[Notes] A. Jung, "Federated Learning: From Theory to Practice" (lecture notes), (51) to (54), (62),
(65), Algorithm 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import IntArray, finite_array, is_number, real_array
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import (
    Algorithm,
    flag,
    gtv_problem,
    one_of,
    own_problem,
    positive,
    start,
)
from gtvcvx.federated.algorithms._fedrelax_client import RelaxClient
from gtvcvx.federated.programs import ClientProgram, Program
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.problem import GTVProblem

#: Standard deviation of the noise: one, one a round, or a function of the round.
Noise = float | ArrayLike | Callable[[int], float]


class FedRelax(Algorithm):
    r"""FedRelax of [Notes], with perturbed updates (Algorithm 5) if wanted.

    In a round a client takes

    .. math:: w_i = \arg\min_v L_i(v) + \lambda \sum_{j \in N_i} A_{ij} \|v - w_j\|^2

    and sends it to its neighbours. The problem is (51), :math:`\sum_i L_i(w_i) + \lambda \sum_e A_e
    \|w_i - w_j\|^2`: the squared penalty with ``2 lam``. The updates as printed in (53), (54),
    (62), (65) have lam/2, which solves the same problem with ``lam`` for ``2 lam``.

    For quadratic losses "jacobi" converges from any start exactly when the sum of the Hessians is
    positive definite in every component of the graph. The number of rounds grows like lam, and
    "colour" takes about half as many. A component without any data stays where it starts, or moves
    to a common vector; on a bipartite one "jacobi" would go to and fro for ever if it starts
    elsewhere than at one vector: that is refused, unless there is damping.

    Absent clients do nothing, and neighbours keep their last vector: the limit is the same.
    Servers are nodes without data: on a star "colour" does the steps of `FedAvg` with the same lam.

    Parameters
    ----------
    lam : float, optional
        Default: such that the problem is the one that the network is from, whose penalty must be
        squared.
    as_printed : bool
        Whether the update has lam/2.
    order : {"jacobi", "colour"}
        All clients at once; or colour by colour, linked clients having different colours (greedy,
        in the order of their numbers), and each with the newest vectors of its neighbours.
    damping : bool
        Whether a client goes half of the way only, ``(w_i + new) / 2``.
    noise : float, array_like of shape (T,), or callable
        Algorithm 5: every new vector gets ``sigma N(0, I)``, and that is what is shared and what
        the client answers with. One sigma >= 0, one for each round (the last for all later ones),
        or a function of the round, which for clients in processes must stand in a module.
    output_own_noise : bool
        False: a client answers with its last vector before it was made noisy. What was shared stays
        noisy.
    initial : array_like, shape (d,), optional
        Start of all clients. Default: zero.

    Notes
    -----
    What leaves a client: its vector, to each neighbour, 8 d + 20 bytes for each of them and round.

    With a constant sigma there is no limit: the mean squared distance from the optimum stays near
    sigma^2 d. The measure of privacy of [Notes] is mutual information between a feature and what is
    shared. That is not differential privacy: there is no (eps, delta) for this noise, since a
    minimizer has no bounded sensitivity here.
    """

    schema: ClassVar[Schema] = Schema({"model": (Field("w"),)})
    guarantee = "the problem's optimum, squared penalty 2 lam (as printed: lam); with noise none"
    leaves = "w_i to each neighbour, 8d + 20 bytes each and round"

    def __init__(
        self,
        lam: float | None = None,
        as_printed: bool = False,
        order: str = "jacobi",
        damping: bool = False,
        noise: Noise = 0.0,
        output_own_noise: bool = True,
        initial: ArrayLike | None = None,
    ) -> None:
        self.lam = None if lam is None else positive(lam, "lam")
        self.as_printed = flag(as_printed, "as_printed")
        self.order = one_of(order, ("jacobi", "colour"), "order")
        self.damping = flag(damping, "damping")
        self.noise = _checked_noise(noise)
        self.output_own_noise = flag(output_own_noise, "output_own_noise")
        self.initial = None if initial is None else finite_array(initial, "initial", 1)

    @property
    def noisy(self) -> bool:
        """Whether updates are perturbed."""
        return callable(self.noise) or bool(np.any(self.noise))

    def coupling(self, net: Network) -> float:
        """Return lambda of the problem, whose penalty is one half of the squared norm.

        Raises
        ------
        ValueError
            There is no lam, and no problem with squared penalty that the network is from.
        """
        if self.lam is not None:
            return self.lam if self.as_printed else 2.0 * self.lam
        problem = own_problem(net, self.name)
        if problem.penalty.name != "squared":
            raise ValueError(
                f"lam: {self.name} solves problems with the squared penalty, and the network's "
                f"problem has {problem.penalty.name!r}; give lam for the squared one"
            )
        return problem.lam

    def client(self) -> ClientProgram:
        """Return the client program."""
        return RelaxClient()

    def server(self) -> Program:
        """Return the program of a server, which is a node without data like any other."""
        return RelaxClient()

    def network(self, net: Network) -> Network:
        """Return the links as given.

        Raises
        ------
        ValueError
            A component would go to and fro for ever.
        """
        if self.order == "jacobi" and not self.damping and self._moves():
            _refuse_oscillation(net)
        return net

    def _moves(self) -> bool:
        """Whether a component without data does not just stay at zero."""
        return self.noisy or (self.initial is not None and bool(self.initial.any()))

    def phases(self, net: Network) -> list[IntArray]:
        """Return all at once, or those of one colour after the other."""
        return [np.arange(net.n_participants)] if self.order == "jacobi" else coloured(net)

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return the coupling and the noise."""
        told = {"coupling": self.coupling(net), "damping": self.damping, "noise": self.noise}
        told |= {"own_noise": self.output_own_noise, "initial": start(self.initial, net)}
        return told

    def problem(self, net: Network) -> GTVProblem | None:
        """Return (51), None with noise."""
        return None if self.noisy else self.target(net)

    def target(self, net: Network) -> GTVProblem | None:
        """Return (51)."""
        lam = self.coupling(net)
        if self.lam is None:
            return own_problem(net, self.name)
        return gtv_problem(net, "squared", lam)

    def reason(self, net: Network) -> str:
        """Say why there is no certificate."""
        if not net.convex:
            return "a client's model is not convex"
        if self.noisy:
            return "perturbed updates converge to no point"
        return ""


class MOCHA(FedRelax):
    r"""MOCHA as the papers of this library use it: the squared penalty on a given graph.

    The problem is :math:`\sum_i L_i(w_i) + \tfrac\lambda2 \sum_e A_e \|w_i - w_j\|^2`, solved by
    the steps of `FedRelax`, colour by colour. The original (Smith, Chiang, Sanjabi, Talwalkar,
    "Federated Multi-Task Learning") also learns the matrix of relations between tasks, which is not
    meant here, and solves for dual variables inexactly.

    Parameters
    ----------
    lam : float, optional
        lambda of the problem. Default: that of the network's, whose penalty must be squared.
    initial : array_like, shape (d,), optional
        Start of all clients. Default: zero.

    Notes
    -----
    What leaves a client, and how many bytes: as in `FedRelax`.
    """

    guarantee = "the problem's optimum, squared penalty lam"

    def __init__(self, lam: float | None = None, initial: ArrayLike | None = None) -> None:
        super().__init__(lam, as_printed=True, order="colour", initial=initial)

    def __repr__(self) -> str:
        return f"MOCHA(lam={self.lam!r})"


def coloured(net: Network) -> list[IntArray]:
    """Return the participants of each colour, no two linked: greedy, in their order."""
    colour = np.full(net.n_participants, -1)
    for i in range(net.n_participants):
        taken = colour[net.links(i)]
        # One more colour than neighbours is enough.
        free = np.setdiff1d(np.arange(len(taken) + 1), taken)
        colour[i] = free[0]
    return [np.flatnonzero(colour == k) for k in range(int(colour.max()) + 1)]


def _refuse_oscillation(net: Network) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(range(net.n_participants))
    graph.add_edges_from(net.graph.edges.tolist())
    for members in nx.connected_components(graph):
        own = [net.models[i] for i in members if i < net.n_clients]
        data = any(not getattr(model, "trivial", False) for model in own)
        if not data and len(members) > 1 and nx.is_bipartite(graph.subgraph(members)):
            raise ValueError(
                f"order: the component of {net.label(min(members))} has no data and is bipartite: "
                "'jacobi' goes to and fro for ever; give damping=True or order='colour'"
            )


def _checked_noise(noise: Any) -> Any:
    if callable(noise):
        return noise
    if is_number(noise):
        sigmas = np.array([float(noise)])
    else:
        sigmas = np.atleast_1d(real_array(noise, "noise"))
    if sigmas.ndim != 1 or not len(sigmas) or not (np.isfinite(sigmas) & (sigmas >= 0)).all():
        raise ValueError(
            f"noise: a deviation >= 0, one a round, or a function of it is expected, got {noise!r}"
        )
    return float(noise) if is_number(noise) else sigmas
