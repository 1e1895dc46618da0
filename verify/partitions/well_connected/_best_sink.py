"""The best sink of a cluster: parametric maximum flow in floating point.

For a connected cluster with inner weights A_e and demands base + mu * rate, find

    max over i0 of  min over nonempty A in C - {i0} of  (cut(A) - base(A)) / rate(A),

the largest mu up to which all demands can be routed to one sink. With base = 0 and rate = d it is
the margin of Definition 1; with rate = delta its inverse is the least good lambda.

For a fixed sink the minimum over A comes from a discrete Newton (Dinkelbach) iteration, each step a
maximum flow. A set A whose ratio is at most mu rules out every sink outside A, so the
candidates are intersected with the sets found until none is left that could do better.

Nothing here needs to be exact: verdicts are proved afterwards, from the sets and sinks found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import frexp, fsum, inf

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.flows._single_sink import FlowGraph
from verify.partitions._data import Partition, ProblemData

#: Scaled supplies add up to less than 2^SCALE_BITS.
SCALE_BITS = 60


@dataclass(frozen=True)
class ClusterGraph:
    """The subgraph induced by a cluster.

    Attributes
    ----------
    nodes
        (n_c,) indices of its nodes in the whole graph, increasing.
    edges
        (m_c, 2) inner edges, by position in ``nodes``.
    weights
        (m_c,) their weights.
    """

    nodes: IntArray
    edges: IntArray
    weights: FloatArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the cluster."""
        return len(self.nodes)

    @cached_property
    def flows(self) -> FlowGraph:
        """Arc structure for maximum flows."""
        return FlowGraph(self.n_nodes, self.edges)

    @cached_property
    def degree(self) -> FloatArray:
        """(n_c,) inner weighted degree of each node."""
        ends = np.repeat(self.weights, 2)
        return np.bincount(self.edges.ravel(), ends, self.n_nodes).astype(np.float64)

    @cached_property
    def components(self) -> tuple[int, IntArray]:
        """Number of connected components, and the component of each node."""
        ones = np.ones(len(self.edges), dtype=np.int8)
        shape = (self.n_nodes, self.n_nodes)
        adjacency = coo_array((ones, (self.edges[:, 0], self.edges[:, 1])), shape=shape)
        count, label = connected_components(adjacency.tocsr(), directed=False)
        return int(count), label.astype(np.int64)

    def crossing(self, inside: BoolArray) -> BoolArray:
        """Inner edges with exactly one end in the set."""
        return inside[self.edges[:, 0]] != inside[self.edges[:, 1]]


def cluster_graphs(data: ProblemData, parts: Partition) -> list[ClusterGraph]:
    """Induced subgraph of every cluster."""
    inner = parts.cluster_of[data.edges[:, 0]] == parts.cluster_of[data.edges[:, 1]]
    ids = np.flatnonzero(inner)
    cluster = parts.cluster_of[data.edges[ids, 0]]
    ids = ids[np.argsort(cluster, kind="stable")]
    first = np.searchsorted(np.sort(cluster), np.arange(1, parts.n_clusters))
    position = np.empty(data.n_nodes, dtype=np.int64)
    for members in parts.members:
        position[members] = np.arange(len(members))
    return [
        ClusterGraph(members, position[data.edges[own]], data.weights[own])
        for members, own in zip(parts.members, np.split(ids, first), strict=True)
    ]


@dataclass
class BestSink:
    """Outcome of :func:`best_sink`.

    Attributes
    ----------
    value
        The max-min ratio (rounded); -inf if no positive or negative mu will do, inf if all do.
    sink
        The sink that attains it.
    tight
        (n_c,) the set attaining the minimum for that sink.
    sets
        Sets with ratio at most ``value``. Together with C - {i} for the i in ``left_out`` they
        have no node in common: no sink can do better.
    left_out
        Nodes i such that C - {i} has a ratio of at most ``value``.
    """

    value: float
    sink: int
    tight: BoolArray
    sets: list[BoolArray] = field(default_factory=list)
    left_out: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))


def scale_exponent(largest: float) -> int:
    """Largest e with largest * 2^e < 2^SCALE_BITS."""
    return SCALE_BITS - frexp(largest)[1] if largest > 0 else 0


def best_sink(graph: ClusterGraph, base: FloatArray, rate: FloatArray) -> BestSink:
    """Find the sink up to which mu can grow most; ``base`` and ``rate`` are (n_c,), nonnegative.

    The cluster must be connected and have at least two nodes.
    """
    without, single = _simple_bounds(graph, base, rate)
    weakest = np.argsort(single, kind="stable")[:2]
    other = np.full(graph.n_nodes, single[weakest[0]])
    other[weakest[0]] = single[weakest[1]]
    bound = np.minimum(without, other)
    candidates = np.ones(graph.n_nodes, dtype=bool)
    best = BestSink(-inf, -1, np.zeros(graph.n_nodes, dtype=bool))
    while True:
        eligible = np.flatnonzero(candidates & (bound > best.value))
        if best.sink < 0 and not len(eligible):
            eligible = np.arange(graph.n_nodes)
        if not len(eligible):
            break
        sink = int(eligible[np.argmax(bound[eligible])])
        start = np.ones(graph.n_nodes, dtype=bool)
        start[sink] = False
        if other[sink] < without[sink]:
            start[:] = False
            start[weakest[0] if weakest[0] != sink else weakest[1]] = True
        value, tight = _least_ratio(graph, base, rate, sink, float(bound[sink]), start, best.value)
        if value > best.value or best.sink < 0:
            best.value, best.sink, best.tight = value, sink, tight
        best.sets.append(tight)
        candidates &= tight
    for node in weakest:
        if single[node] <= best.value:
            alone = np.zeros(graph.n_nodes, dtype=bool)
            alone[node] = True
            best.sets.append(alone)
            candidates &= alone
    best.left_out = np.flatnonzero(candidates)
    return best


def _simple_bounds(
    graph: ClusterGraph, base: FloatArray, rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ratios of the sets C - {i} and {i} for every node i."""
    without = _divide(graph.degree - (base.sum() - base), rate.sum() - rate)
    return without, _divide(graph.degree - base, rate)


def _divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    safe = np.where(denominator > 0.0, denominator, 1.0)
    with np.errstate(over="ignore"):
        quotient = numerator / safe
    return np.where(denominator > 0.0, quotient, np.where(numerator > 0.0, inf, -inf))


def _least_ratio(
    graph: ClusterGraph,
    base: FloatArray,
    rate: FloatArray,
    sink: int,
    value: float,
    tight: BoolArray,
    enough: float,
) -> tuple[float, BoolArray]:
    """Minimize the ratio over A without ``sink``; the minimum and a set attaining it.

    Starts from a set and its ratio; stops early once the ratio is no more than ``enough``.
    """
    while value > max(enough, 0.0):
        demand = base + (value * rate if value < inf else 0.0)
        demand[sink] = 0.0
        total = float(demand.sum())
        if total == 0.0:
            break
        e = scale_exponent(total)
        # rounded so that a set found to be violated is violated in truth
        supplies = np.floor(np.ldexp(demand, e)).astype(np.int64)
        capacities = np.ceil(np.ldexp(np.minimum(graph.weights, total), e)).astype(np.int64)
        routing = graph.flows.route(capacities, supplies, sink)
        if routing.unrouted == 0:
            break
        smaller = _ratio(graph, base, rate, routing.source_side)
        if not smaller < value:
            break
        value, tight = smaller, routing.source_side
    return value, tight


def _ratio(graph: ClusterGraph, base: FloatArray, rate: FloatArray, inside: BoolArray) -> float:
    cut = graph.weights[graph.crossing(inside)]
    numerator = fsum(np.concatenate([cut, -base[inside]]).tolist())
    denominator = fsum(rate[inside].tolist())
    return float(_divide(np.array(numerator), np.array(denominator)))
