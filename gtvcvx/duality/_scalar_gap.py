r"""Gaps of problems in one dimension whose losses have piecewise linear slopes, in two passes.

A solution takes no values beyond A and B, between which every loss has a minimizer: what is cut off
there was not needed. So any flow within the capacities gives a bound, with conjugates that are
taken over [A, B] alone,

    L_i(w_i) + sup {s_i x - L_i(x) : A <= x <= B} - s_i w_i,    s = -D^T u,

and none has to be repaired: flow that is not conserved to the last digit at a node without a loss
costs that digit times B - A. With e the distance of s_i from the slopes at w_i and q the least
second derivative of L_i, this is at most e (B - w_i) or e (w_i - A), and at most e^2 / (2 q); where
the pair is optimal e is a matter of rounding.

Rounding is bounded, not estimated: every sum and product adds its last digits to e, and a kink that
is as near to w_i as the last digits of values is taken to be there, at the price of its jump times
the distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._norms import EPS
from gtvcvx.compiled import compiled
from gtvcvx.duality._terms import Gap


class Slopes(NamedTuple):
    """Slopes of the nodes' losses in one coordinate.

    That of node i is ``q_i x - b_i`` left of all changes, and by ``rise_i`` more right of them.

    Attributes
    ----------
    q, b, rise : (n,)
    node : (K,)
        Whose change it is, in ascending order.
    position, bend, jump : (K,)
        Where the slope's slope grows by bend, and the slope by jump.
    """

    q: FloatArray
    b: FloatArray
    rise: FloatArray
    node: IntArray
    position: FloatArray
    bend: FloatArray
    jump: FloatArray


class Extent(NamedTuple):
    """Where losses have minimizers, and how large their numbers are.

    Attributes
    ----------
    low, high : float
        Between them every loss has a minimizer; both are 0 without any loss.
    size, bends : float
        Sums of all |b| and rises, and of the sizes of all second derivatives.
    reach : float
        How far from 0 changes, and minimizers of the quadratics left of them, are.
    flattest : float
        The least q > 0, infinite where there is none.
    centre : float
        The minimizer of the sum of the quadratics left of all changes, 0 where there are none.
    """

    low: float
    high: float
    size: float
    bends: float
    reach: float
    flattest: float
    centre: float


class Balance(NamedTuple):
    """What the edges leave at the nodes, (n,) each.

    Attributes
    ----------
    injection : (n,)
        s = -D^T u.
    through : (n,)
        Sums of the flows' sizes.
    degree : (n,) of int64
    """

    injection: FloatArray
    through: FloatArray
    degree: IntArray


def scalar_gap(
    slopes: Slopes,
    hull: tuple[float, float],
    edges: IntArray,
    capacities: FloatArray,
    w: FloatArray,
    u: FloatArray,
) -> tuple[Gap, float]:
    """Return the gap of w (n,) against a flow u (m,), and the total variation of w.

    The gap is infinite where the flow exceeds a capacity. Rounding of the objective itself is not
    in it.

    Parameters
    ----------
    slopes : Slopes
    hull : (low, high)
        Every loss has a minimizer between them.
    edges : (m, 2)
    capacities : (m,)
    w, u : (n,), (m,)
    """
    n, m = len(w), len(u)
    balance = Balance(np.zeros(n), np.zeros(n), np.zeros(n, np.int64))
    edge, node, variation = np.empty(m), np.empty(n), np.empty(m)
    work = edge_gaps(edges, capacities, w, u, balance, edge, variation)
    unsure = node_gaps(slopes, balance, w, *widened(hull, w), node)
    return Gap(node, edge, unsure + 4.0 * EPS * work), float(variation.sum())


def widened(hull: tuple[float, float], w: FloatArray) -> tuple[float, float]:
    """Return an interval with the hull and all of w (n,) in it, whatever rounding did to them."""
    low, high = min(hull[0], float(w.min())), max(hull[1], float(w.max()))
    # Minimizers are quotients, and the sides of the hull among them rounded.
    digits = 4.0 * EPS * max(abs(low), abs(high))
    return low - digits, high + digits


def total_gap(gaps: list[Gap], value: float) -> Gap:
    """Return the gap of a problem that is a sum of others over the same graph.

    Rounding of the objective, of this value, is in it.
    """
    rounding = sum(gap.rounding for gap in gaps) + 4.0 * EPS * abs(value)
    if len(gaps) == 1:
        return Gap(gaps[0].node, gaps[0].edge, rounding)
    node, edge = (
        np.sum(parts, axis=0) for parts in zip(*((g.node, g.edge) for g in gaps), strict=True)
    )
    return Gap(node, edge, rounding)


@compiled
def edge_gaps(
    edges: IntArray,
    capacities: FloatArray,
    w: FloatArray,
    u: FloatArray,
    balance: Balance,
    gaps: FloatArray,
    variation: FloatArray,
) -> float:
    """Write gaps and variations of the edges (m,), and what is left at the nodes.

    Returns the sum of |u D w|.
    """
    injection, through, degree = balance
    work = 0.0
    for e in range(len(u)):
        head, tail, flow = edges[e, 0], edges[e, 1], u[e]
        jump, size = w[head] - w[tail], abs(flow)
        gaps[e] = edge_gap(capacities[e], flow, jump)
        variation[e] = capacities[e] * abs(jump)
        work += size * abs(jump)
        injection[head] -= flow
        injection[tail] += flow
        through[head] += size
        through[tail] += size
        degree[head] += 1
        degree[tail] += 1
    return work


@compiled(allocates=False, inner=True)
def edge_gap(capacity: float, flow: float, jump: float) -> float:
    """Return the gap of an edge, infinite beyond its capacity."""
    if not abs(flow) <= capacity:
        return np.inf
    # No term is negative, so nothing cancels.
    return max(capacity - (flow if jump > 0.0 else -flow), 0.0) * abs(jump)


@compiled
def node_gaps(
    slopes: Slopes, balance: Balance, w: FloatArray, low: float, high: float, gaps: FloatArray
) -> float:
    """Write the nodes' gaps (n,), and return what rounding may add to their sum."""
    n, unsure, k = len(w), 0.0, 0
    near = 8.0 * EPS * max(abs(low), abs(high))
    for i in range(n):
        q, x = slopes.q[i], w[i]
        left = q * x - slopes.b[i]
        size = abs(q * x) + abs(slopes.b[i]) + slopes.rise[i]
        jump, beyond, first = 0.0, 0.0, k
        while k < len(slopes.node) and slopes.node[k] == i:
            place, bend = slopes.position[k], slopes.bend[k]
            if abs(place - x) <= near:
                jump += slopes.jump[k]
                beyond += slopes.jump[k] * (abs(place - x) + EPS * abs(place))
            elif place < x:
                left += slopes.jump[k]
            if place < x:
                added = bend * (x - place)
                left += added
                size += abs(added) + abs(bend) * (abs(x) + abs(place))
            k += 1
        # Each sum loses less than a last digit of all that it is of, and there are so many of them.
        size = EPS * (
            (4.0 + 2.0 * (k - first)) * size + (1.0 + balance.degree[i]) * balance.through[i]
        )
        gaps[i], more = node_gap(q, left, jump, balance.injection[i], size, x, low, high)
        unsure += more + beyond
    return unsure


@compiled(allocates=False, inner=True)
def node_gap(
    q: float, left: float, jump: float, s: float, size: float, x: float, low: float, high: float
) -> tuple[float, float]:
    """Return the gap of a node at x with injection s, and what rounding may add to it.

    Slopes at x go from left up by the jump; they and s are known up to the size.
    """
    over, under = s - (left + jump), left - s
    excess = max(over, under, 0.0)
    further = max(high - x, x - low)
    reach = (high - x if over > under else x - low) if excess > size else further
    gap = _least(q, excess, reach)
    return gap, max(_least(q, excess + size, reach) - gap, 0.0)


@compiled(allocates=False, inner=True)
def _least(q: float, excess: float, reach: float) -> float:
    """Return how far a slope that is short by so much leads, curvature q at least."""
    linear = excess * reach
    return min(linear, 0.5 * excess * excess / q) if q > 0.0 else linear


def extent(slopes: Slopes) -> Extent:
    """Return where the losses have minimizers, and how large their numbers are."""
    return Extent(*_extent(slopes)) if len(slopes.node) else _quadratic_extent(slopes.q, slopes.b)


def _quadratic_extent(q: FloatArray, b: FloatArray) -> Extent:
    """Return the extent of slopes without changes, in passes that NumPy vectorizes."""
    with np.errstate(over="ignore", invalid="ignore"):  # of data that are too large, and refused
        curvature, linear = float(q.sum()), float(b.sum())
        best = np.abs(b)
        size, flattest = float(best.sum()), float(q.min()) if len(q) else 0.0
        if not flattest > 0.0:
            some = q > 0.0
            if not some.any():
                return Extent(0.0, 0.0, size, curvature, 0.0, np.inf, 0.0)
            q, b, best = q[some], b[some], best[some]
            flattest = float(q.min())
        np.divide(b, q, out=best)
    low, high = float(best.min()), float(best.max())
    reach = max(abs(low), abs(high))
    return Extent(low, high, size, curvature, reach, flattest, linear / curvature)


@compiled
def _extent(slopes: Slopes) -> tuple[float, float, float, float, float, float, float]:
    """Return the fields of the `Extent` of slopes with changes."""
    low, high, k = np.inf, -np.inf, 0
    size, bends, reach, flattest = 0.0, 0.0, 0.0, np.inf
    curvature, linear = 0.0, 0.0
    for i in range(len(slopes.q)):
        q, b, rise = slopes.q[i], slopes.b[i], slopes.rise[i]
        first, last = np.inf, -np.inf
        while k < len(slopes.node) and slopes.node[k] == i:
            first = min(first, slopes.position[k])
            last = max(last, slopes.position[k])
            bends += abs(slopes.bend[k])
            reach = max(reach, abs(slopes.position[k]))
            k += 1
        low, high = min(low, first), max(high, last)
        size += abs(b) + rise
        bends += q
        curvature += q
        linear += b
        if q > 0.0:
            flattest = min(flattest, q)
            left, right = b / q, (b - rise) / q
            reach = max(reach, abs(left))
            if left <= first:
                low, high = min(low, left), max(high, left)
            if right >= last:
                low, high = min(low, right), max(high, right)
    if low > high:
        low = high = 0.0
    centre = linear / curvature if curvature > 0.0 else 0.0
    return low, high, size, bends, reach, flattest, centre
