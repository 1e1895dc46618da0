"""Sums over the nodes of a batch, and their proximal points from scratch.

Rows of node i are ``indptr[i] .. indptr[i + 1] - 1``; coordinates have shape (k, d), totals (k,)
are NaN where the sum is free.
"""

from __future__ import annotations

import math

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._conjugate import (
    coordinate_gaps,
    coordinate_maximizer,
    coordinate_value,
)
from gtvcvx.losses.node._minimize import minimize
from gtvcvx.losses.node._problem import Node, Point, Room
from gtvcvx.losses.node._residuals import Centred, residuals
from gtvcvx.losses.node._scalar import row_conjugate, row_gap, row_slope, row_value
from gtvcvx.losses.node._segments import images, sums, weighted, weighted_sizes


def values(
    X: FloatArray, centred: Centred, indptr: IntArray, w: FloatArray, out: FloatArray
) -> None:
    """Add the rows' values at w (k, d) to out (k,)."""
    out += sums(indptr, row_value(centred.rows, residuals(X, centred.targets, indptr, w)))


def gradients(
    X: FloatArray, rows: Records, indptr: IntArray, w: FloatArray, out: FloatArray
) -> None:
    """Add the rows' (sub)gradients at w (k, d) to out (k, d)."""
    out += weighted(indptr, row_slope(rows, images(X, indptr, w)), X)


@compiled(small=True, allocates=False, inner=True)
def _reset(rows: Records, point: Point) -> None:
    """Start anew from zero, with multipliers inside their intervals."""
    point.nu[0] = 0.0
    for j in range(len(point.z)):
        point.z[j] = point.t[j] = 0.0
    for r in range(len(rows)):
        point.a[r] = min(max(0.0, rows[r].low), rows[r].high)


@compiled(small=True, allocates=False, inner=True)
def _is_finite(point: Point) -> bool:
    total = point.nu[0]
    for j in range(len(point.z)):
        total += point.z[j] + point.t[j]
    for r in range(len(point.a)):
        total += point.a[r]
    return math.isfinite(total)


@compiled(small=True, allocates=False)
def proximal_points(
    nodes: IntArray,
    X: FloatArray,
    rows: Records,
    indptr: IntArray,
    coordinates: Records,
    totals: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    z: FloatArray,
    a: FloatArray,
    t: FloatArray,
    q: FloatArray,
    p: FloatArray,
    room: Room,
) -> None:
    """Write ``argmin_z L_i(z) + ||z - v_i||^2 / (2 tau_i)`` to z (k, d), for some nodes i.

    z, a (N,) and t (k, d) hold where to start, best the result of a similar call. A given sum is
    the last row of its node; its multiplier goes to a. There is room for all rows of a node, and
    for q and p (d,) of `gtvcvx.losses.node._problem`.
    """
    d = v.shape[1]
    for i in nodes:
        first, end = indptr[i], indptr[i + 1]
        last = end if np.isnan(totals[i]) else end - 1
        for j in range(d):
            q[j] = coordinates[i, j].mu + 1.0 / tau[i]
            p[j] = coordinates[i, j].linear + v[i, j] / tau[i]
        node = Node(X[first:last], rows[first:last], coordinates[i], q, p, totals[i])
        # A sum that is free has no multiplier: a zero that stays one, as no penalty is a sum's.
        nu = room.penalties.nu if last == end else a[last:end]
        point = Point(z[i], a[first:last], t[i], nu)
        for _ in range(2):
            minimize(node, point, room)
            if _is_finite(point):
                break
            _reset(node.rows, point)


def conjugates(
    rows: Records,
    indptr: IntArray,
    coordinates: Records,
    totals: FloatArray,
    a: FloatArray,
    t: FloatArray,
    nu: FloatArray,
) -> FloatArray:
    """Sum the conjugates at multipliers: upper bounds (k,) on L_i* up to the losses' constants."""
    best = coordinate_maximizer(coordinates, t)
    out = sums(indptr, row_conjugate(rows, a))
    out += np.sum(t * best - coordinate_value(coordinates, best), axis=1)
    return out + np.where(np.isnan(totals), 0.0, nu[:, 0] * totals)


def gaps(
    X: FloatArray,
    centred: Centred,
    indptr: IntArray,
    coordinates: Records,
    w: FloatArray,
    a: FloatArray,
    t: FloatArray,
) -> FloatArray:
    """Sum ``f(z) + f*(a) - a z`` over rows and coordinates, w (k, d) feasible: (k,), all >= 0."""
    r = residuals(X, centred.targets, indptr, w)
    of_rows = sums(indptr, row_gap(centred.rows, r, a))
    return np.asarray(of_rows + coordinate_gaps(coordinates, w, t))


def sizes(
    X: FloatArray, rows: Records, indptr: IntArray, s: FloatArray, a: FloatArray
) -> FloatArray:
    """Return the size of what adds up to s_i: ``max_j |s_ij| + sum_r |x_rj a_r|``, (k,).

    Bounded multipliers count with their whole interval, others with the slope at zero at least.
    """
    span = rows["high"] - rows["low"]
    least = np.abs(row_slope(rows, np.zeros_like(a))) + rows["c"]
    most = np.maximum(np.abs(a), np.where(span == np.inf, least, span))
    parts = weighted_sizes(indptr, most, X)
    return np.asarray((np.abs(s) + parts).max(axis=1, initial=0.0))
