"""Exact decision of Definition 1 near ties, with rational demands and Python integers.

Slow and seldom needed. All capacities and demands are multiplied by a common multiple M n of their
denominators. Then cut(A) and d(A) are integers times n, and

    cut(A) > d(A) for all A    <=>    the demands d_i + 1 (in these units) can be routed,

because |A| < n: strictness costs one unit for each node. The routing starts from the flow of the
compiled engine, so only the last digits are left to Python.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from verify._arrays import BoolArray, IntArray
from verify.partitions.well_connected._best_sink import ClusterGraph, scale_exponent


@dataclass(frozen=True)
class ExactSearch:
    """Either a sink with a flow (in units of 1 / scale), or sets that exclude every sink."""

    sink: int | None
    flow: list[int]
    scale: int
    sets: list[BoolArray]
    left_out: IntArray


def search(graph: ClusterGraph, demands: list[Fraction], first: int) -> ExactSearch:
    """Decide exactly whether a sink exists for which every cut(A) > d(A).

    Parameters
    ----------
    graph
        A connected cluster of at least two nodes.
    demands
        (n_c,) nonnegative rational demands.
    first
        Sink to try first.
    """
    n = graph.n_nodes
    weights = [Fraction(w) for w in graph.weights.tolist()]
    top = int(max(scale_exponent(float(sum(demands))), 0))
    denominators = {x.denominator for x in weights} | {x.denominator for x in demands}
    scale = lcm(1 << top, *denominators) * n
    capacities = [int(w * scale) for w in weights]
    needs = [int(d * scale) for d in demands]
    degree = [0] * n
    for (a, b), c in zip(graph.edges.tolist(), capacities, strict=True):
        degree[a] += c
        degree[b] += c
    total = sum(needs)
    candidates = np.ones(n, dtype=bool)
    sets: list[BoolArray] = []
    hopeless = np.array([degree[i] + needs[i] <= total for i in range(n)])
    for i in (i for i in range(n) if degree[i] <= needs[i]):
        alone = np.zeros(n, dtype=bool)
        alone[i] = True
        sets.append(alone)
        candidates &= alone
        if len(sets) == 2:
            break
    order = sorted(np.flatnonzero(~hopeless).tolist(), key=lambda i: (i != first, -degree[i]))
    for sink in order:
        if not candidates[sink]:
            continue
        flow, stuck = _route(graph, capacities, [x + 1 for x in needs], sink, scale)
        if stuck is None:
            return ExactSearch(sink, flow, scale, [], np.zeros(0, np.int64))
        sets.append(stuck)
        candidates &= stuck
    return ExactSearch(None, [], scale, sets, np.flatnonzero(candidates))


def _route(
    graph: ClusterGraph, capacities: list[int], needs: list[int], sink: int, scale: int
) -> tuple[list[int], BoolArray | None]:
    """Route the integers ``needs`` to the sink; the flow, or the smallest set that is stuck."""
    flow = _warm_start(graph, capacities, needs, sink, scale)
    excess = list(needs)
    excess[sink] = 0
    neighbors: list[list[tuple[int, int, int]]] = [[] for _ in excess]
    for e, (a, b) in enumerate(graph.edges.tolist()):
        excess[a] -= flow[e]
        excess[b] += flow[e]
        neighbors[a].append((b, e, 1))
        neighbors[b].append((a, e, -1))
    excess[sink] = 0
    while True:
        distance = _distances(neighbors, capacities, flow, sink)
        active = [v for v, x in enumerate(excess) if x > 0 and distance[v] >= 0]
        if not active:
            break
        _blocking_flow(neighbors, capacities, flow, excess, distance, active, sink)
    if not any(excess):
        return flow, None
    return flow, _stuck_set(neighbors, capacities, flow, excess)


def _warm_start(
    graph: ClusterGraph, capacities: list[int], needs: list[int], sink: int, scale: int
) -> list[int]:
    """Compute a preflow within the capacities and needs, from the compiled engine."""
    total = sum(needs) - needs[sink]
    shift = max(total.bit_length() - 60, 0)
    supplies = np.array([x >> shift for x in needs], dtype=np.int64)
    small = np.array([min(c, total) >> shift for c in capacities], dtype=np.int64)
    routing = graph.flows.route(small, np.where(np.arange(len(needs)) == sink, 0, supplies), sink)
    return [f << shift for f in routing.flow.tolist()]


def _distances(
    neighbors: list[list[tuple[int, int, int]]], capacities: list[int], flow: list[int], sink: int
) -> list[int]:
    distance = [-1] * len(neighbors)
    distance[sink] = 0
    queue = deque([sink])
    while queue:
        v = queue.popleft()
        for w, e, sign in neighbors[v]:  # the arc w -> v carries -sign * flow[e]
            if distance[w] < 0 and capacities[e] + sign * flow[e] > 0:
                distance[w] = distance[v] + 1
                queue.append(w)
    return distance


def _blocking_flow(
    neighbors: list[list[tuple[int, int, int]]],
    capacities: list[int],
    flow: list[int],
    excess: list[int],
    distance: list[int],
    active: list[int],
    sink: int,
) -> None:
    """Push all excess down the levels of ``distance``, highest level first, as far as it goes."""
    by_level: list[list[int]] = [[] for _ in range(max(distance) + 1)]
    for v in active:
        by_level[distance[v]].append(v)
    for level in range(len(by_level) - 1, 0, -1):
        for v in by_level[level]:
            for w, e, sign in neighbors[v]:
                if distance[w] != level - 1:
                    continue
                amount = min(excess[v], capacities[e] - sign * flow[e])
                if amount <= 0:
                    continue
                flow[e] += sign * amount
                excess[v] -= amount
                if w != sink:
                    if excess[w] == 0:
                        by_level[level - 1].append(w)
                    excess[w] += amount
                if excess[v] == 0:
                    break


def _stuck_set(
    neighbors: list[list[tuple[int, int, int]]],
    capacities: list[int],
    flow: list[int],
    excess: list[int],
) -> BoolArray:
    """Nodes that some excess still reaches: the smallest minimizer of cut(A) - needs(A)."""
    inside = np.array([x > 0 for x in excess])
    queue = deque(np.flatnonzero(inside).tolist())
    while queue:
        v = queue.popleft()
        for w, e, sign in neighbors[v]:
            if not inside[w] and capacities[e] - sign * flow[e] > 0:
                inside[w] = True
                queue.append(w)
    return inside
