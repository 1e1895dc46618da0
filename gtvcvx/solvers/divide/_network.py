"""What divide and conquer works on: demands, clusters, and the arcs of a graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.compiled import compiled
from gtvcvx.graph import EmpiricalGraph
from verify.flows._network import Arcs, Network, arcs_of, network_without_flow

# From this many edges on the working set outgrows the caches, and neighbours should be near.
_ORDERING_EDGES = 20_000


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
        self._arcs: Arcs = arcs_of(graph.n_nodes, self.edges)
        if graph.n_edges >= _ORDERING_EDGES:
            self._renumber(graph)
        self.components = graph.components[self.nodes]

    def _renumber(self, graph: EmpiricalGraph) -> None:
        nodes = np.empty(graph.n_nodes, np.int64)
        _breadth_first(self._arcs, nodes)
        place = np.empty_like(nodes)
        place[nodes] = np.arange(len(nodes))
        edges = place[self.edges]
        if _span(edges) < _span(self.edges):
            self.nodes, self.edges = nodes, edges
            self._arcs = arcs_of(graph.n_nodes, edges)

    def network(self, capacities: IntArray, excess: IntArray) -> Network:
        """Return a network without flow; capacities (m,), excess (n,) in the new numbers."""
        start, *changing = self._arcs  # division exchanges and retires arcs
        own = Arcs(start, *(array.copy() for array in changing))
        return network_without_flow(own, capacities, excess)


def _span(edges: IntArray) -> float:
    """Mean binary logarithm of how far apart the ends of an edge lie."""
    return float(np.mean(np.log2(np.abs(edges[:, 0] - edges[:, 1]))))


@compiled(error_model="python")
def _breadth_first(arcs: Arcs, order: IntArray) -> None:
    """List the nodes, (n,), so that neighbours are near: breadth first in each component."""
    start, stop, head = arcs.start, arcs.stop, arcs.head
    n = len(start)
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
