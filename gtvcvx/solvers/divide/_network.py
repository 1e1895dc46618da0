"""What divide and conquer works on: demands, clusters, and the arcs of a graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.compiled import compiled
from gtvcvx.graph import EmpiricalGraph
from verify.flows._network import Arcs, Network, arcs_of, network_without_flow

# From this many edges on the working set outgrows the caches, and neighbours should be near.
_ORDERING_EDGES = 20_000


class Demands(NamedTuple):
    """What the losses ask of the flow at a node of a cluster with value t: minus their slopes.

    Where a slope jumps at t, the flow may bring anything between: the demand right of the jump,
    and up to the slack more.

    Attributes
    ----------
    curvature, linear : (n,)
        q and b: slopes are q t - b left of all changes that are still to come. Of others they have
        been added to.
    limit : (n,)
        Demands are cut off here, in units: no flow could meet them, and that is all that counts.
    demand : (n,)
        Part of the excess that is the node's own, in units.
    slack : (n,)
        What the node can do with beyond that, in units.
    slope, bent, jump : (n,)
        Room for what changes left of t add to slopes and curvatures, and what jumps there; zero
        between rounds.
    unit : float
    """

    curvature: FloatArray
    linear: FloatArray
    limit: FloatArray
    demand: IntArray
    slack: IntArray
    slope: FloatArray
    bent: FloatArray
    jump: FloatArray
    unit: float

    @staticmethod
    def of(curvature: FloatArray, linear: FloatArray, limit: FloatArray, unit: float) -> Demands:
        """Ask for nothing yet."""
        n = len(curvature)
        demand, slack = np.zeros(n, np.int64), np.zeros(n, np.int64)
        slope, bent, jump = np.zeros(n), np.zeros(n), np.zeros(n)
        return Demands(curvature, linear, limit, demand, slack, slope, bent, jump, unit)


class Changes(NamedTuple):
    """Changes of the nodes' slopes, (K,) each: those of a cluster together, in ascending order.

    Attributes
    ----------
    node : (K,)
    position, bend, jump : (K,)
        Where the slope's slope grows by bend, and the slope by jump.
    """

    node: IntArray
    position: FloatArray
    bend: FloatArray
    jump: FloatArray

    def room(self) -> Changes:
        """Return as much memory again."""
        bend, jump = np.empty_like(self.bend), np.empty_like(self.jump)
        return Changes(np.empty_like(self.node), np.empty_like(self.position), bend, jump)


class Clusters(NamedTuple):
    """Clusters that may still split; nodes first[c] .. last[c] - 1 of ``order`` are in cluster c.

    Attributes
    ----------
    first, last : (k,)
    begin, end : (k,)
        Changes begin[c] .. end[c] - 1 are its own, and lie between the bounds.
    low, high : (k,)
        Bounds on the values at the nodes.
    threshold : (k,)
        Value of w at the nodes, if the cluster does not split.
    lower : (k,) of bool
        Whether the cluster was the lower part of the one that it came from.
    """

    first: IntArray
    last: IntArray
    begin: IntArray
    end: IntArray
    low: FloatArray
    high: FloatArray
    threshold: FloatArray
    lower: BoolArray


class Parts(NamedTuple):
    """How clusters have split, (k,) each: the upper part comes first, the lower one after it.

    What is left has the threshold as its value. All are 0 where a cluster does not split.

    Attributes
    ----------
    upper, lower : (k,)
        Numbers of nodes.
    above, below : (k,)
        Numbers of changes that are left.
    """

    upper: IntArray
    lower: IntArray
    above: IntArray
    below: IntArray


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
        look()
        if graph.n_edges >= _ORDERING_EDGES:
            self._renumber(graph)
        self.components = graph.components[self.nodes]

    def _renumber(self, graph: EmpiricalGraph) -> None:
        nodes = np.empty(graph.n_nodes, np.int64)
        _breadth_first(self._arcs, nodes)
        look()
        place = np.empty_like(nodes)
        place[nodes] = np.arange(len(nodes))
        edges = place[self.edges]
        if _span(edges) < _span(self.edges):
            self.nodes, self.edges = nodes, edges
            look()
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
