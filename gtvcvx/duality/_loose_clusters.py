"""Balance inside of clusters whose edges have room, made up for along trees.

Where flows are far from their capacities they change freely, and what nodes have to balance among
themselves is rounding beside that in a factor of the whole system. So clusters of such edges are
taken as one node each. The system that is left has no loose edges; what is missing at the nodes
adds up to zero in each cluster then, and is sent along a tree, to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import sp
from gtvcvx.block_cholesky._factor import BlockCholesky
from gtvcvx.block_cholesky._plan import plan
from gtvcvx.duality._settings import CORRECTION
from gtvcvx.duality._systems import BalanceRows, Metric
from gtvcvx.graph import EmpiricalGraph, connected_components


class LooseClusters:
    """Clusters of nodes that edges with room join, and the system of their balance.

    Parameters
    ----------
    graph : EmpiricalGraph
    rows : BalanceRows
        Of the losses.
    room : ndarray, shape (m,)
        How much each flow may change; zero where it may hardly.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        Cluster of each node.
    planned : bool
        Whether a factorization takes little enough; if not, there is none.
    overloaded : ndarray of bool, shape (m,)
        Which edges were sent more than they have room for.
    """

    def __init__(self, graph: EmpiricalGraph, rows: BalanceRows, room: FloatArray) -> None:
        edges, d = graph.edges, rows.X.shape[1]
        self._rows = rows
        self._shape, self._room = (graph.n_edges, d), room
        self.overloaded = np.zeros(graph.n_edges, bool)
        tree = widest_forest(graph.n_nodes, edges, room)
        self.labels = connected_components(graph.n_nodes, edges[tree]).astype(np.int64)
        self._levels = list(_levels(self.labels, tree, edges))
        self._count = int(self.labels.max()) + 1
        self._between, ends, self._joined = quotient(self.labels, edges)
        self._n_joined = len(ends)
        found = plan(self._count, ends, d, CORRECTION.most_multiplications)
        self.planned = found is not None
        if found is not None:
            owner = self.labels[rows.node]
            self._factor = BlockCholesky(found, ends, owner, rows.X, CORRECTION.regularization)

    def sharpen(self) -> bool:
        """Say that there is no other factor."""
        return False

    def factorize(self, metric: Metric) -> None:
        """Factor the matrix with other weights: what flows inside of clusters is no part of it."""
        d = self._shape[1]
        own = metric.nu[:, None, None] + metric.t[:, :, None] * np.eye(d)
        own, edges = self._added(own), np.zeros((self._n_joined, d, d))
        np.add.at(edges, self._joined, metric.u[self._between])
        self._factor.factorize(own, self._rows.weights(metric), edges)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the potentials (n, d) for what is missing: the same for all nodes of a cluster."""
        found = self._factor.solve(self._added(right))
        return np.ascontiguousarray(found[self.labels])

    def _added(self, x: FloatArray) -> FloatArray:
        """Add up arrays of nodes (n, ...) in each cluster."""
        total = np.zeros((self._count, *x.shape[1:]))
        np.add.at(total, self.labels, x)
        return total

    def sent(self, balance: FloatArray) -> FloatArray:
        """Return the flow (m, d) along trees that leaves what is missing (n, d) to their roots."""
        left, u = balance.copy(), np.zeros(self._shape)
        for level in reversed(self._levels):
            u[level.edge] = -level.sign[:, None] * left[level.child]
            np.add.at(left, level.parent, left[level.child])
        self.overloaded |= np.abs(u).max(axis=1, initial=0.0) > self._room
        return u


class Level(NamedTuple):
    """Nodes of trees that are equally far from their roots."""

    child: IntArray
    parent: IntArray
    edge: IntArray  # between the two
    sign: FloatArray  # of the child in the edge's difference


def _levels(labels: IntArray, tree: IntArray, edges: IntArray) -> Iterator[Level]:
    """Yield the nodes of all trees from the roots to the leaves, without the roots."""
    n, (heads, tails) = len(labels), edges[tree].T
    names = np.arange(1, len(tree) + 1)
    one_way = sp.coo_array((names, (heads, tails)), shape=(n, n)).tocsr()
    links = (one_way + one_way.T).tocsr()
    _, front = np.unique(labels, return_index=True)
    seen = np.zeros(n, bool)
    while len(front):
        seen[front] = True
        found = links[front].tocoo()
        row, child = found.coords
        new = ~seen[child]
        parent, child, at = front[row[new]], child[new], found.data[new] - 1
        if len(child):
            yield Level(child, parent, tree[at], np.where(heads[at] == child, 1.0, -1.0))
        front = child


def quotient(labels: IntArray, edges: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return which edges join clusters; the ends of these joints (q, 2); and each edge's joint."""
    ends = labels[edges].astype(np.int64)
    between = np.flatnonzero(ends[:, 0] != ends[:, 1])
    ends, count = ends[between], int(labels.max()) + 1
    # One number for both ends: rows of two take much longer to sort.
    keys = ends.min(axis=1) * count + ends.max(axis=1)
    keys, joined = np.unique(keys, return_inverse=True)
    return between, np.stack(np.divmod(keys, count), axis=1), joined


def widest_forest(n: int, edges: IntArray, room: FloatArray) -> IntArray:
    """Return the edges with room of a spanning forest that has as much of it as possible."""
    order = np.argsort(-room, kind="stable")
    order = order[room[order] > 0.0]
    # Ranks instead of rooms: which forest it is depends on their order alone.
    ranks = np.arange(1, len(order) + 1)
    links = sp.coo_array((ranks, edges[order].T), shape=(n, n)).tocsr()
    tree = sp.csgraph.minimum_spanning_tree(links)
    found: IntArray = order[np.sort(tree.data.astype(np.int64)) - 1]
    return found
