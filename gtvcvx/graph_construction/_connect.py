"""Edges that join the connected components of a graph: as short as possible in all."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.graph_construction._sites import space_of_nodes
from gtvcvx.graph_construction._spaces import Space
from gtvcvx.graph_construction._weights import Bandwidth, Lengths, Weighting, Weights
from verify._display import clipped, fields_text

# More edges than this are counted by the report, not listed.
_LISTED = 10


@dataclass(frozen=True)
class Connection:
    """A connected graph, and the edges that were added to make it one. ``str()`` is a report.

    Attributes
    ----------
    graph : EmpiricalGraph
    n_components : int
        Number of connected components before.
    edges : ndarray of int64, shape (n_components - 1, 2)
        Added edges, the shortest first.
    lengths, weights : ndarray, shape (n_components - 1,)
        Distances between their ends, and their weights.
    """

    graph: EmpiricalGraph
    n_components: int
    edges: IntArray
    lengths: FloatArray
    weights: FloatArray

    __repr__ = fields_text

    def __str__(self) -> str:
        if not len(self.edges):
            return "The graph is connected; no edge was added."
        count = "an edge" if len(self.edges) == 1 else f"{len(self.edges)} edges"
        lines = [f"{self.n_components} components were joined by {count}:"]
        nodes = self.graph.nodes
        for (i, j), length, weight in zip(
            self.edges[:_LISTED].tolist(), self.lengths, self.weights, strict=False
        ):
            ends = f"{_name(nodes[i])} - {_name(nodes[j])}"
            lines.append(f"  {ends}, distance {length:.4g}, weight {weight:.3g}")
        if len(self.edges) > _LISTED:
            lines.append(f"  and {len(self.edges) - _LISTED} more, up to {self.lengths[-1]:.4g}")
        return "\n".join(lines)


def _name(label: Hashable) -> str:
    """Return a label that leaves room for another one, and for numbers, in a line."""
    return clipped(repr(label), 28)


def connect_components(
    graph: EmpiricalGraph,
    X: ArrayLike | Any,
    *,
    metric: str | None = None,
    weights: Weights = "gaussian",
    bandwidth: Bandwidth = None,
    floor: float = 1e-6,
) -> Connection:
    """Join the components of a graph by the edges of a minimum spanning tree between them.

    Of all sets of edges that make the graph connected, one of the least total length is added.

    Parameters
    ----------
    graph : EmpiricalGraph
    X : array_like, shape (n, c) or (n, n), or geometries
        See `knn_graph`; row i is node i of the graph. Rows of a frame whose index has the labels
        of the nodes may have another order.
    metric, weights, bandwidth, floor
        See `knn_graph`. The default bandwidth is the median length of the graph's own edges, from
        which local ones are taken, too.

    Returns
    -------
    Connection
        The graph in ``.graph``; print the rest.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    Boruvka's algorithm: each round joins every component to the nearest other one, for O(log k)
    rounds with k components. With KD-trees a round takes O(n log n log k) for few columns.
    """
    if not isinstance(graph, EmpiricalGraph):
        raise TypeError(f"graph: an EmpiricalGraph is expected, got {type(graph).__name__}")
    space = space_of_nodes(X, metric, graph)
    if space.n_nodes != graph.n_nodes:
        raise ValueError(
            f"X: one row for each of the {graph.n_nodes} nodes is expected, got {space.n_nodes}"
        )
    return joined(graph, space, Weighting(weights, bandwidth, floor))


def joined(graph: EmpiricalGraph, space: Space, weighting: Weighting) -> Connection:
    """Join the components of a graph in a space."""
    added = _spanning_edges(graph.components, space)
    lengths = space.lengths(added)
    order = np.lexsort((added[:, 1], added[:, 0], lengths))
    added, lengths = added[order], lengths[order]
    own = graph.edges if graph.n_edges else added
    weights = weighting.of(graph.n_nodes, added, lengths, Lengths(own, space.lengths(own)))
    if len(added):
        connected = EmpiricalGraph(
            graph.n_nodes,
            np.concatenate([graph.edges, added]),
            np.concatenate([graph.weights, weights]),
            graph.nodes,
            graph.positions,
        )
    else:
        connected = graph
    return Connection(connected, len(added) + 1, added, lengths, weights)


def _spanning_edges(group: IntArray, space: Space) -> IntArray:
    """Edges of a minimum spanning tree between the groups, shape (number of groups - 1, 2)."""
    n = len(group)
    added = np.empty((0, 2), dtype=np.int64)
    while group.max() > 0:
        near = np.sort(np.column_stack([np.arange(n), space.nearest_outside(group)]), axis=1)
        lengths = space.lengths(near)
        # The shortest way out of every group; of several, that of the smallest node.
        order = np.lexsort((np.arange(n), lengths))
        _, first = np.unique(group[order], return_index=True)
        ways = near[order[np.sort(first)]]
        # Where distances are equal the ways may close a circle: of these, shortest first, a tree
        # is kept. Their ranks serve as lengths, for zero would be no edge to SciPy.
        k = int(group.max()) + 1
        ends = np.sort(group[ways], axis=1)
        _, once = np.unique(ends, axis=0, return_index=True)
        links = sp.coo_array((1.0 + once, (ends[once, 0], ends[once, 1])), shape=(k, k))
        tree = sp.csgraph.minimum_spanning_tree(links)
        added = np.concatenate([added, ways[(tree.data - 1.0).astype(np.int64)]])
        _, of_group = sp.csgraph.connected_components(tree, directed=False)
        group = of_group[group].astype(np.int64)
    return added
