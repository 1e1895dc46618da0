"""Least congestion of a scalar flow, by parametric maximum flow.

    min t   such that   D^T v = s,   |v_e| <= t A_e on ordinary edges,   |v_e| <= K_e on fixed ones.

By the max-flow min-cut theorem t is the largest (s(A) - K(A)) / cut(A) over sets of nodes, and a
discrete Newton iteration climbs to it: each step routes the positive to the negative supplies, and
the set at which the flow is stuck gives the next t. For the l1 penalty, or d = 1, the vector flows
of Theorem 2 are d independent such problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.flows._single_sink import FlowGraph
from verify.partitions._rounding import UNIT
from verify.partitions.well_connected._best_sink import scale_exponent

_STEPS = 500
#: Supplies whose sum is less than this (relative) count as adding up to zero.
ZERO_SUM = 1e-9


@dataclass(frozen=True)
class Congestion:
    """Least t (inf if no flow exists), a flow (m,) for it, and the set (n,) that attains it."""

    t: float
    flow: FloatArray
    tight: BoolArray


def least_congestion(
    edges: IntArray,
    weights: FloatArray,
    fixed: FloatArray,
    supply: FloatArray,
    negligible: float = 0.0,
) -> Congestion:
    """Solve the problem of the module's text to floating-point accuracy.

    Parameters
    ----------
    edges : ndarray of int, shape (m, 2)
        Edges of a graph on n nodes.
    weights : ndarray, shape (m,)
        A_e > 0.
    fixed : ndarray, shape (m,)
        Fixed capacities K_e; NaN on ordinary edges.
    supply : ndarray, shape (n,)
        s; what keeps it from adding up to zero over a component stays where it is if it is no more
        than 1e-9 of the total, else no flow exists.
    negligible : float
        Supplies that no edge can take count as rounding errors up to this size.
    """
    n, m = len(supply), len(edges)
    ordinary = np.isnan(fixed)
    to_sink = np.stack([np.arange(n), np.full(n, n)], axis=1)
    graph = FlowGraph(n + 1, np.concatenate([edges, to_sink]))
    positive = np.append(np.maximum(supply, 0.0), 0.0)
    total = float(positive.sum())
    best = Congestion(0.0, np.zeros(m), np.zeros(n, dtype=bool))
    if total <= negligible:
        return best
    e = scale_exponent(total)
    supplies = np.floor(np.ldexp(positive, e)).astype(np.int64)
    needs = np.ceil(np.ldexp(np.maximum(-supply, 0.0), e)).astype(np.int64)
    # units lost by rounding to integers, and by supplies that add up to zero in floats only
    slack = 4 * (n + m) + int(np.ldexp(4.0 * n * UNIT * total, e))
    t, tight = 0.0, best.tight
    for _ in range(_STEPS):
        capacity = np.minimum(np.where(ordinary, t * weights, fixed), total)
        units = np.floor(np.ldexp(capacity, e)).astype(np.int64)
        routing = graph.route(np.concatenate([units, needs]), supplies, n)
        best = Congestion(t, np.ldexp(routing.flow[:m].astype(np.float64), -e), tight)
        if routing.unrouted <= slack:
            break
        inside = routing.source_side[:n]
        crossing = inside[edges[:, 0]] != inside[edges[:, 1]]
        cut = float(weights[crossing & ordinary].sum())
        lack = float(supply[inside].sum()) - float(fixed[crossing & ~ordinary].sum())
        if cut == 0.0 and lack > max(ZERO_SUM * total, negligible):
            return Congestion(inf, np.zeros(m), inside)
        if cut == 0.0 or not lack > t * cut:
            break
        t, tight = lack / cut, inside
    return best
