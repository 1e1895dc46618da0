"""Exact decision of Definition 1 near ties, with rational demands and Python integers.

Slow and seldom needed. All capacities and demands are multiplied by a common multiple M n of their
denominators. Then cut(A) and d(A) are integers times n, and

    cut(A) > d(A) for all A    <=>    the demands d_i + 1 (in these units) can be routed,

because |A| < n: strictness costs one unit for each node. The routing starts from the flow of the
compiled engine, so only the last digits are left to Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from verify._arrays import BoolArray, IntArray
from verify.flows._integer_flow import IntegerNetwork
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
    capacities, needs, scale = _integers(graph, demands)
    network = IntegerNetwork(n, graph.edges.tolist(), capacities)
    degree = [sum(capacities[e] for e, _, _ in incident) for incident in network.incident]
    sets = [_set_of([i], n) for i in range(n) if degree[i] <= needs[i]][:2]
    candidates = np.logical_and.reduce([np.ones(n, dtype=bool), *sets])
    total = sum(needs)
    hopeful = [i for i in range(n) if degree[i] + needs[i] > total]
    for sink in sorted(hopeful, key=lambda i: (i != first, -degree[i])):
        if not candidates[sink]:
            continue
        supplies = _to_one_sink([x + 1 for x in needs], sink)
        found = network.route(supplies, _warm_start(graph, capacities, supplies, sink))
        if not found.stuck:
            return ExactSearch(sink, found.flow, scale, [], np.zeros(0, np.int64))
        sets.append(_set_of(list(found.stuck), n))
        candidates &= sets[-1]
    return ExactSearch(None, [], scale, sets, np.flatnonzero(candidates))


def _integers(graph: ClusterGraph, demands: list[Fraction]) -> tuple[list[int], list[int], int]:
    """Capacities and demands in units of 1 / scale, all multiples of the number of nodes; scale."""
    weights = [Fraction(w) for w in graph.weights.tolist()]
    top = int(max(scale_exponent(float(sum(demands))), 0))
    denominators = {x.denominator for x in weights} | {x.denominator for x in demands}
    scale = lcm(1 << top, *denominators) * graph.n_nodes
    return [int(w * scale) for w in weights], [int(d * scale) for d in demands], scale


def _set_of(members: list[int], n_nodes: int) -> BoolArray:
    """Mark some of the nodes, (n_c,)."""
    inside = np.zeros(n_nodes, dtype=bool)
    inside[members] = True
    return inside


def _to_one_sink(supplies: list[int], sink: int) -> list[int]:
    """Let the sink take what all other nodes supply."""
    others = sum(supplies) - supplies[sink]
    return [-others if v == sink else x for v, x in enumerate(supplies)]


def _warm_start(
    graph: ClusterGraph, capacities: list[int], supplies: list[int], sink: int
) -> list[int]:
    """Compute a flow within the capacities and supplies, from the compiled engine."""
    total = -supplies[sink]
    shift = max(total.bit_length() - 60, 0)
    small = np.array([min(c, total) >> shift for c in capacities], dtype=np.int64)
    rounded = np.array([max(x, 0) >> shift for x in supplies], dtype=np.int64)
    return [f << shift for f in graph.flows.route(small, rounded, sink).flow.tolist()]
