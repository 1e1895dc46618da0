"""Who takes part: clients with their own data, servers without any, and the links between them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, integer_array, is_integer
from gtvcvx.federated.models import LocalModel
from gtvcvx.federated.programs import LocalLoss, local_losses, stacked_locals
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import Loss, StackedLoss
from gtvcvx.problem import GTVProblem


class Network:
    """Clients 0, ..., n - 1, then servers n, ..., n + s - 1, and the links of both.

    Made by `from_problem`, `star` and `servers`.

    Parameters
    ----------
    models : sequence of Loss or LocalModel
        What each client trains, on its own data.
    graph : EmpiricalGraph
        Links of all participants; its weights are those of the links.
    n_servers : int
        How many of the last nodes of the graph are servers.
    clusters : array_like of int, shape (n,), optional
        Cluster 0, ..., Q - 1 of each client, for algorithms that are told.
    problem : GTVProblem, optional
        Where the network is from.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and the client.
    """

    def __init__(
        self,
        models: Sequence[Any],
        graph: EmpiricalGraph,
        n_servers: int = 0,
        clusters: ArrayLike | None = None,
        problem: GTVProblem | None = None,
    ) -> None:
        _check_graph(graph)
        if not is_integer(n_servers):
            raise TypeError(f"n_servers: an integer is expected, got {n_servers!r}")
        self.graph, self.n_servers = graph, int(n_servers)
        self.n_clients = graph.n_nodes - self.n_servers
        if self.n_clients < 1 or self.n_servers < 0:
            raise ValueError(f"n_servers: fewer than {graph.n_nodes} are expected, got {n_servers}")
        if not isinstance(models, Sequence):
            raise TypeError(f"models: a sequence is expected, got {type(models).__name__}")
        if len(models) != self.n_clients:
            raise ValueError(
                f"models: one for each of the {self.n_clients} clients is expected, "
                f"got {len(models)}"
            )
        self.models: list[Any] = _as_models(models, self.nodes)
        self.dim = self.models[0].dim
        self.clusters = None if clusters is None else _checked_clusters(clusters, self)
        self.source = problem
        # The graph of the clients, where the links are a star that a server has.
        self.peers: EmpiricalGraph | None = None

    @staticmethod
    def from_problem(problem: GTVProblem) -> Network:
        """One client for each node of a problem, its edges as links, no server."""
        if not isinstance(problem, GTVProblem):
            raise TypeError(f"problem: a GTVProblem is expected, got {type(problem).__name__}")
        n = problem.graph.n_nodes
        models = local_losses(problem.losses, n, problem.dim)
        return Network(models, problem.graph, problem=problem)

    @staticmethod
    def star(
        losses: Sequence[Any] | StackedLoss,
        nodes: Sequence[Hashable] | None = None,
        clusters: ArrayLike | None = None,
    ) -> Network:
        """Clients around one server that has no data.

        Parameters
        ----------
        losses : sequence of Loss or LocalModel, or StackedLoss
            Of the n clients.
        nodes : sequence, optional
            Labels of the clients. Default 0, ..., n - 1.
        clusters : array_like of int, shape (n,), optional
        """
        models = _listed(losses)
        n = len(models)
        if not n:
            raise ValueError("losses: at least one client is expected, got none")
        edges = np.column_stack([np.arange(n), np.full(n, n)])
        labels = None if nodes is None else [*nodes, _unused("server", nodes)]
        return Network(models, EmpiricalGraph(n + 1, edges, nodes=labels), 1, clusters)

    @staticmethod
    def servers(
        graph: EmpiricalGraph,
        clients_of: Sequence[Sequence[Any]],
        cluster_of: Sequence[Sequence[int]] | None = None,
    ) -> Network:
        """Clients around several servers, which are linked among each other.

        Parameters
        ----------
        graph : EmpiricalGraph
            Links of the s servers.
        clients_of : sequence of s sequences of Loss or LocalModel
            The clients of each server, by what they train. Clients are numbered in this order.
        cluster_of : sequence of s sequences of int, optional
            Cluster 0, ..., Q - 1 of each client.
        """
        _check_graph(graph)
        if not all(isinstance(own, Sequence) for own in clients_of):
            raise TypeError("clients_of: a sequence of losses for each server is expected")
        if len(clients_of) != graph.n_nodes:
            raise ValueError(
                f"clients_of: one sequence for each of the {graph.n_nodes} servers is expected, "
                f"got {len(clients_of)}"
            )
        models = [model for own in clients_of for model in own]
        n = len(models)
        if not n:
            raise ValueError("clients_of: at least one client is expected, got none")
        server = np.repeat(np.arange(graph.n_nodes), [len(own) for own in clients_of])
        edges = np.vstack([np.column_stack([np.arange(n), n + server]), n + graph.edges])
        weights = np.concatenate([np.ones(n), graph.weights])
        clusters = None
        if cluster_of is not None:
            if [len(own) for own in cluster_of] != [len(own) for own in clients_of]:
                raise ValueError("cluster_of: one cluster for each client is expected, as nested")
            clusters = np.array([q for own in cluster_of for q in own])
        joined = EmpiricalGraph(n + graph.n_nodes, edges, weights)
        return Network(models, joined, graph.n_nodes, clusters)

    @property
    def n_participants(self) -> int:
        """Clients and servers."""
        return self.graph.n_nodes

    @property
    def nodes(self) -> Sequence[Any]:
        """Labels of the clients."""
        return self.graph.nodes[: self.n_clients]

    @property
    def clients(self) -> IntArray:
        """Numbers of the clients."""
        return np.arange(self.n_clients)

    @property
    def server_ids(self) -> IntArray:
        """Numbers of the servers."""
        return np.arange(self.n_clients, self.n_participants)

    @cached_property
    def _order(self) -> IntArray:
        """Edges seen from their heads, then from their tails, ordered by that end and the other."""
        head, tail = self.graph.edges.T
        return np.lexsort((np.concatenate([tail, head]), np.concatenate([head, tail])))

    @cached_property
    def adjacency(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Links of each participant: where they begin, the other ends ascending, the weights."""
        head, tail = self.graph.edges.T
        at, other = np.concatenate([head, tail]), np.concatenate([tail, head])
        weights = np.concatenate([self.graph.weights, self.graph.weights])
        order = self._order
        start = np.searchsorted(at[order], np.arange(self.n_participants + 1))
        return start, other[order].astype(np.int64), weights[order]

    @cached_property
    def places(self) -> IntArray:
        """Where each edge is in `adjacency`, seen from its head and from its tail (2, m)."""
        places = np.empty(len(self._order), dtype=np.int64)
        places[self._order] = np.arange(len(places))
        return places.reshape(2, -1)

    def links(self, i: int) -> IntArray:
        """Numbers of the participants that i has a link to, ascending."""
        start, other, _ = self.adjacency
        return other[start[i] : start[i + 1]]

    def link_weights(self, i: int) -> FloatArray:
        """Weights of the links of i."""
        start, _, weights = self.adjacency
        return weights[start[i] : start[i + 1]]

    def label(self, i: int) -> str:
        """How messages call a participant."""
        return f"{'client' if i < self.n_clients else 'server'} {self.graph.nodes[i]!r}"

    def as_star(self) -> Network:
        """Return the clients around one server; links between clients are left out."""
        ends = self.graph.edges[:, 1]
        if self.n_servers == 1 and len(ends) == self.n_clients and np.all(ends == self.n_clients):
            return self
        star = Network.star(self.models, self.nodes, self.clusters)
        star.source = self.source
        return star

    def stacked(self) -> StackedLoss:
        """Return the convex losses of the clients, as `GTVProblem` takes them.

        Raises
        ------
        TypeError
            Naming a client whose model is not convex.
        """
        # The source has no servers: its losses are those of clients alone.
        if self.source is not None and not self.n_servers:
            return self.source.losses
        for i, model in enumerate(self.models):
            if not isinstance(model, LocalLoss):
                raise TypeError(f"{self.label(i)}: {type(model).__name__} is not a convex loss")
        return stacked_locals(self.models, self.dim)

    @property
    def convex(self) -> bool:
        """Whether all clients have convex losses."""
        return all(isinstance(model, LocalLoss) for model in self.models)

    def __repr__(self) -> str:
        links = self.graph.n_edges
        return (
            f"Network({self.n_clients} clients, {self.n_servers} servers, {links} links, "
            f"d = {self.dim})"
        )


def _check_graph(graph: Any) -> None:
    if not isinstance(graph, EmpiricalGraph):
        raise TypeError(f"graph: an EmpiricalGraph is expected, got {type(graph).__name__}")


def _listed(losses: Any) -> list[Any]:
    if isinstance(losses, StackedLoss):
        return list(local_losses(losses, losses.n_named, losses.dim))
    if isinstance(losses, Sequence):
        return list(losses)
    raise TypeError(
        f"losses: a sequence of losses or a stacked loss is expected, got {type(losses).__name__}"
    )


def _unused(name: str, labels: Sequence[Hashable]) -> str:
    """Return a label for the server that no client has."""
    while name in labels:
        name += "'"
    return name


def _as_models(models: Sequence[Any], nodes: Sequence[Any]) -> list[Any]:
    dims = {m.dim for m in models if getattr(m, "dim", None) is not None}
    if len(dims) != 1:
        raise ValueError(
            f"models: one dimension d is expected of all clients, got {sorted(dims) or 'none'}"
        )
    (dim,) = dims
    out: list[Any] = []
    for i, model in enumerate(models):
        if isinstance(model, Loss):
            out += local_losses([model], 1, dim)
        elif isinstance(model, LocalModel):
            out.append(model)
        else:
            raise TypeError(
                f"models: client {nodes[i]!r} has {model!r}, a loss, or a model with dim, value, "
                "gradient and prox, is expected"
            )
    return out


def _checked_clusters(clusters: ArrayLike, net: Network) -> IntArray:
    labels = integer_array(clusters, "clusters").astype(np.int64)
    if labels.shape != (net.n_clients,):
        raise ValueError(f"clusters: shape ({net.n_clients},) is expected, got {labels.shape}")
    missing = np.setdiff1d(np.arange(labels.max(initial=0) + 1), labels)
    if labels.min(initial=0) < 0 or len(missing):
        raise ValueError("clusters: the numbers 0, ..., Q - 1 are expected, each for some client")
    return labels
