"""What divide and conquer works on: residual network, clusters, and the arcs of a graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gtvcvx._arrays import BoolArray, FloatArray, Int32Array, IntArray
from gtvcvx.graph import EmpiricalGraph

# From this many edges on the working set outgrows the caches, and neighbours should be near.
_ORDERING_EDGES = 20_000


class Network(NamedTuple):
    """Residual network of an undirected graph with n nodes and m edges, arcs grouped by tail.

    Attributes
    ----------
    start, stop : (n,)
        The live arcs of node v are start[v] .. stop[v] - 1; dead ones follow up to the next start.
    head, mate, edge : (2m,)
        Node where an arc ends, the arc in the other direction, and the edge of both.
    capacity, residual : (2m,)
        Capacity of the edge in either direction, and what is left of it along the arc: the flow
        along an arc is ``capacity - residual``, and ``2 capacity - residual`` is left for the mate.
    excess : (n,)
        Flow that came in, or was there at first, and has not gone out.
    """

    start: Int32Array
    stop: Int32Array
    head: Int32Array
    mate: Int32Array
    edge: Int32Array
    capacity: IntArray
    residual: IntArray
    excess: IntArray


class Scratch(NamedTuple):
    """Working memory for n nodes, (n,) each.

    The first group is indexed by node, the second by a place in the list of nodes or by a height,
    which stays below the number of nodes: a part uses as much of it as it has nodes.
    """

    height: Int32Array
    current: Int32Array
    next_active: Int32Array
    after: Int32Array
    before: Int32Array
    queue: Int32Array
    active: Int32Array
    level: Int32Array


class Demands(NamedTuple):
    """What the losses ask of the flow: b_i - q_i t, in units, at a node of a cluster with value t.

    Attributes
    ----------
    curvature, linear : (n,)
        q and b.
    limit : (n,)
        Demands are cut off here, in units: no flow could meet them, and that is all that counts.
    demand : (n,)
        Part of the excess that is the node's own, in units.
    unit : float
    """

    curvature: FloatArray
    linear: FloatArray
    limit: FloatArray
    demand: IntArray
    unit: float


class Clusters(NamedTuple):
    """Clusters that may still split; nodes first[c] .. last[c] - 1 of ``order`` are in cluster c.

    Attributes
    ----------
    first, last : (k,)
    threshold : (k,)
        Value of w at the nodes, if the cluster does not split.
    lower : (k,) of bool
        Whether the cluster was the lower half of the one that it came from.
    """

    first: IntArray
    last: IntArray
    threshold: FloatArray
    lower: BoolArray


def scratch(n_nodes: int) -> Scratch:
    """Allocate working memory."""
    return Scratch(*(np.empty(n_nodes, np.int32) for _ in Scratch._fields))


class Skeleton:
    """Arcs and components of a graph, its nodes renumbered where that brings neighbours closer.

    Attributes
    ----------
    nodes : (n,)
        The graph's number of each renumbered node.
    edges : (m, 2)
        The graph's edges, head first, in the new numbers.
    components : (n,)
        Connected component of each renumbered node, from 0.
    """

    def __init__(self, graph: EmpiricalGraph) -> None:
        self.nodes = np.arange(graph.n_nodes)
        self.edges = graph.edges
        self._arcs = _arcs(graph.n_nodes, self.edges)
        if graph.n_edges >= _ORDERING_EDGES:
            self._renumber(graph)
        self.components = graph.components[self.nodes]
        # Arcs stay with their tails whatever else is done to them.
        tails = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), graph.degrees[self.nodes])
        self._tails = tails

    def _renumber(self, graph: EmpiricalGraph) -> None:
        start, stop, head, _, _ = self._arcs
        nodes = _breadth_first(start, stop, head)
        place = np.empty_like(nodes)
        place[nodes] = np.arange(len(nodes))
        edges = place[self.edges]
        if _span(edges) < _span(self.edges):
            self.nodes, self.edges = nodes, edges
            self._arcs = _arcs(graph.n_nodes, edges)

    def network(self, capacities: IntArray, excess: IntArray) -> Network:
        """Return a network without flow; capacities (m,), excess (n,) in the new numbers."""
        start, stop, head, mate, edge = self._arcs
        capacity = capacities[edge]
        return Network(
            start,
            stop.copy(),
            head.copy(),
            mate.copy(),
            edge.copy(),
            capacity,
            capacity.copy(),
            excess,
        )

    def flow(self, network: Network) -> IntArray:
        """Return the flow (m,) along the edges, from head to tail."""
        forward = self.edges[network.edge, 0] == self._tails
        flow = np.empty(len(self.edges), np.int64)
        flow[network.edge[forward]] = (network.capacity - network.residual)[forward]
        return flow


def _span(edges: IntArray) -> float:
    """Mean binary logarithm of how far apart the ends of an edge lie."""
    return float(np.mean(np.log2(np.abs(edges[:, 0] - edges[:, 1]))))


@njit(cache=True)
def _arcs(
    n: int, edges: IntArray
) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array, Int32Array]:
    """Arrays start, stop, head, mate and edge of a `Network` for the edges (m, 2)."""
    m = len(edges)
    start = np.zeros(n + 1, np.int32)
    for e in range(m):
        start[edges[e, 0] + 1] += 1
        start[edges[e, 1] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    head, mate = np.empty(2 * m, np.int32), np.empty(2 * m, np.int32)
    edge = np.empty(2 * m, np.int32)
    for e in range(m):
        i, j = edges[e]
        there, back = fill[i], fill[j]
        fill[i] += 1
        fill[j] += 1
        head[there], head[back] = j, i
        mate[there], mate[back] = back, there
        edge[there], edge[back] = e, e
    return start[:-1].copy(), start[1:].copy(), head, mate, edge


@njit(cache=True)
def _breadth_first(start: Int32Array, stop: Int32Array, head: Int32Array) -> IntArray:
    """List the nodes, (n,), so that neighbours are near: breadth first in each component."""
    n = len(start)
    order = np.empty(n, np.int64)
    seen = np.zeros(n, np.bool_)
    last = 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        order[last] = root
        first = last
        last += 1
        while first < last:
            v = order[first]
            first += 1
            for arc in range(start[v], stop[v]):
                w = head[arc]
                if not seen[w]:
                    seen[w] = True
                    order[last] = w
                    last += 1
    return order
