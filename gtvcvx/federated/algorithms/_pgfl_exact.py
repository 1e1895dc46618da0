r"""PGFL made exact: ADMM with clients and servers as nodes, which agree along all links (ours).

Every link has a vector z at each of its ends. With theta_i the node's vector, a = (z_ij - z_ji)/2:

.. math::
    \theta_i &= \arg\min_w f_i(w) + \tfrac\rho2 \sum_j \lVert w - z_{ij} \rVert^2 \\
    z_{ij} &\leftarrow \theta_j + a, \qquad z_{ji} \leftarrow \theta_i - a

which are (14) to (16) of [FedADMM] with an exact node step and equality in place of the penalty.
Both ends know both vectors. It is Douglas-Rachford splitting; leaving out the links of those who
are absent is its random coordinate form.

References
----------
[PGFL] "Personalized Graph Federated Learning with Differential Privacy": the problem (1), (4).
F. Iutzeler, P. Bianchi, P. Ciblat, W. Hachem, "Asynchronous Distributed Optimization using a
Randomized Alternating Direction Method of Multipliers".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import Algorithm, positive
from gtvcvx.federated.algorithms._pgfl_exact_programs import ExactClient, ExactServer
from gtvcvx.federated.algorithms._pgfl_roles import (
    MODELS,
    NOT_ADDED,
    Roles,
    pooled_problem,
    roles_of,
)
from gtvcvx.federated.models._checks import nonnegative
from gtvcvx.federated.programs import ClientProgram, Report, ServerProgram
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.problem import GTVProblem


class PGFLExact(Algorithm):
    r"""The problem of PGFL, solved exactly: ``min_w sum_k f_k(w)`` for each cluster.

    ``f_k(w) = L_k(w) + (ridge / |C_s|) ||w||^2`` as in [PGFL] (4). Traffic is that of `PGFL`; the
    servers of a cluster end up with the same vector, whatever rho > 0.

    Parameters
    ----------
    rho : float
        ADMM's penalty parameter, > 0; it changes the speed alone.
    ridge : float
        lambda of (4); in the pooled problem of cluster q it counts ``sum_s |C_{s,q}| / |C_s|``
        times.

    Notes
    -----
    Problem: one node for each cluster (each cluster and component, where servers have no way to
    each other), no edges; certified. Losses must be convex. With absent clients their links rest;
    that converges as well, with probability one, if presence is independent over rounds. Lost
    messages from or to clients cost rounds; those between servers spoil the fixed point.

    ``run.w`` has for each cluster the vector of the server that is farthest from the mean of all.

    What leaves a client: its vector, d numbers a round in which it takes part; none of it private.
    Bytes a round, of n clients there: ``n (8 d + 20)`` up and as many down, and ``8 Q d + 20`` from
    each server to each neighbour.
    """

    guarantee: ClassVar[str] = "optimum of the pooled problem of each cluster, certified"
    leaves: ClassVar[str] = "theta_k to its server, 8d + 20 bytes a round in which it takes part"
    schema: ClassVar[Schema] = Schema(
        {
            "theta": (Field("w"),),
            "models": (Field("w", MODELS),),
            "state": (Field("w"), Field("own"), Field("far")),
        }
    )
    fragile = "two linked servers keep different multipliers for good, if their messages are lost"

    def __init__(self, rho: float = 1.0, *, ridge: float = 0.0) -> None:
        self.rho = positive(rho, "rho")
        self.ridge = nonnegative(ridge, "ridge")

    def client(self) -> ClientProgram:
        """Return the client program."""
        return ExactClient()

    def server(self) -> ServerProgram:
        """Return the server program."""
        return ExactServer()

    def network(self, net: Network) -> Network:
        """Return the network; refuse one without servers, or with clients of several."""
        self._roles(net)
        return net

    def _roles(self, net: Network) -> Roles:
        return roles_of(net, self.name)

    def phases(self, net: Network) -> list[IntArray]:
        """Return servers, clients, and servers again, which update their links."""
        return [net.server_ids, net.clients, net.server_ids]

    def sizes(self, net: Network) -> Mapping[str, int]:
        """Return d and Q."""
        return {"d": net.dim, "Q": self._roles(net).n_clusters}

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return rho and the ridge; a server knows the clusters of its clients."""
        roles, n = self._roles(net), net.n_clients
        told: dict[str, Any] = {"rho": self.rho}
        if i < n:
            return told | {"ridge": self.ridge / int(roles.served[roles.server[i]])}
        own = roles.cluster[roles.server == i - n]
        return told | {"n": n, "clusters": own, "n_clusters": roles.n_clusters}

    def problem(self, net: Network) -> GTVProblem | None:
        """Return ``min sum_k f_k`` of each cluster: one node for each, and no edges."""
        return pooled_problem(net.models, net.dim, self._roles(net), self.ridge)

    def reason(self, net: Network) -> str:
        """Say why there is no certificate."""
        if not net.convex:
            return "a client's model is not convex"
        return "" if self.problem(net) else NOT_ADDED

    def point(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return for each cluster the vector of the server farthest from the mean of all."""
        return self._roles(net).farthest(np.array([r.w for r in reports[net.n_clients :]]))

    def steps_of(self, net: Network) -> str:
        """Say what rho is."""
        return f"rho = {self.rho:g}"
