"""Clients of several clusters around linked servers: who belongs to whom, what they solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.programs import LocalLoss
from gtvcvx.graph import EmpiricalGraph, connected_components
from gtvcvx.losses import stacked_from_terms
from gtvcvx.problem import GTVProblem

#: Shape of all models of a server.
MODELS = ("Q", "d")
#: Why there is no pooled problem though all losses are convex.
NOT_ADDED = "losses that are given as functions cannot be added up"

# Far above rounding, and no difference that anybody would see.
_TIE = 1e-6


@dataclass(frozen=True)
class Roles:
    """Servers and clusters of a network, by number from zero.

    Attributes
    ----------
    server, cluster : ndarray of int, shape (n,)
        Of each client.
    component : ndarray of int, shape (s,)
        Servers of one component are linked, if not directly.
    """

    server: IntArray
    cluster: IntArray
    component: IntArray

    @cached_property
    def n_clusters(self) -> int:
        """Number Q of clusters."""
        return int(self.cluster.max()) + 1

    @cached_property
    def n_servers(self) -> int:
        """Number S of servers."""
        return len(self.component)

    @cached_property
    def served(self) -> IntArray:
        """Number of clients of each server |C_s|, (s,)."""
        return np.bincount(self.server, minlength=self.n_servers)

    @cached_property
    def groups(self) -> list[tuple[int, int]]:
        """Component and cluster of each pooled problem: those that have clients, ascending."""
        return sorted(set(zip(self._component.tolist(), self.cluster.tolist(), strict=True)))

    @property
    def _component(self) -> IntArray:
        return np.asarray(self.component[self.server])

    @cached_property
    def group(self) -> IntArray:
        """Which pooled problem each client belongs to, (n,)."""
        place = {group: k for k, group in enumerate(self.groups)}
        own = zip(self._component.tolist(), self.cluster.tolist(), strict=True)
        return np.array([place[pair] for pair in own])

    @cached_property
    def labels(self) -> list[int | str]:
        """Names of the pooled problems: clusters, with their servers' component if several."""
        if not self.component.any():
            return [q for _, q in self.groups]
        return [f"cluster {q}, component {c}" for c, q in self.groups]

    def farthest(self, estimates: FloatArray) -> FloatArray:
        """Return, for each pooled problem, the server's vector farthest from those of all.

        Parameters
        ----------
        estimates : ndarray, shape (s, Q, d)
        """
        out = []
        for component, q in self.groups:
            own = estimates[self.component == component, q]
            apart = np.linalg.norm(own - own.mean(axis=0), axis=1)
            # Two servers are always equally far: the first one, not whom rounding favours.
            out.append(own[np.argmax(apart >= apart.max() * (1.0 - _TIE))])
        return np.array(out)


def roles_of(net: Network, algorithm: str) -> Roles:
    """Return the roles in a network; clients without clusters are all of one.

    Raises
    ------
    ValueError
        There is no server, or a client has not exactly one link, to a server.
    """
    n, s = net.n_clients, net.n_servers
    if not s:
        raise ValueError(f"net: {algorithm} needs servers; see Network.star and Network.servers")
    start, other, _ = net.adjacency
    single = np.diff(start[: n + 1]) == 1
    server = other[np.minimum(start[:n], len(other) - 1)] if len(other) else np.zeros(n, np.int64)
    wrong = np.flatnonzero(~single | (server < n))
    if len(wrong):
        raise ValueError(
            f"net: {net.label(int(wrong[0]))}: one link is expected, to a server of its own"
        )
    between = net.graph.edges[net.graph.edges[:, 0] >= n] - n
    cluster = np.zeros(n, dtype=np.int64) if net.clusters is None else net.clusters
    return Roles(server - n, cluster, connected_components(s, between))


def pooled_problem(
    models: Sequence[Any], dim: int, roles: Roles, ridge: float
) -> GTVProblem | None:
    """Return ``sum_k f_k`` of each cluster: a node for each, no edges. None if not all convex.

    Clusters are taken apart where servers have no way to each other.
    """
    terms = []
    for model, k in zip(models, roles.group.tolist(), strict=True):
        if not isinstance(model, LocalLoss) or model.given is not None:
            return None
        terms += [{**term, "node": np.full(len(term["node"]), k)} for term in model.terms]
    if ridge:
        mu = np.bincount(roles.group, weights=2.0 * ridge / roles.served[roles.server])
        terms.append({"kind": "ridge", "node": np.arange(len(mu)), "mu": mu})
    graph = EmpiricalGraph(len(roles.groups), [], nodes=roles.labels)
    return GTVProblem(graph, stacked_from_terms(terms, dim).completed(len(roles.groups)))
