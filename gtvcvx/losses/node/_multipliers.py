"""Compiled method of multipliers for one node, and Newton's method for its smooth subproblems.

Kinks, absolute values and bounds are replaced by their envelopes around centres, the multipliers
of the round before. The envelopes' generalized Hessians are diagonal; the line search looks for a
zero of the slope along the step, which is monotone. For quadratic rows this is the semismooth
Newton augmented Lagrangian method [1]_.

References
----------
.. [1] X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method
   for solving Lasso problems", SIAM J. Optim. 28, 2018.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._newton_systems import constrained_step
from gtvcvx.losses.node._problem import (
    TINY,
    Node,
    Point,
    dot,
    residual_size,
    stationarity,
)
from gtvcvx.losses.node._scalar import (
    HUBER,
    KINK,
    LOGISTIC,
    POISSON,
    PSEUDO_HUBER,
    SQUARED,
)
from gtvcvx.losses.node._slopes import slope_and_curvature

MAX_NEWTON = 50
MAX_SEARCH = 60
# Penalties of the method of multipliers, as multiples of the curvature along a row: the first and
# the largest one.
STIFFNESS, STIFFEST = 30.0, 1e5
# A point is not taken as smaller than this share of what it was on the way.
LEAST_REACH = 1e-6


@compiled(small=True)
def _typical_curvature(row: Any, z: float) -> float:
    """Bound of f'' near z."""
    if row.kind == LOGISTIC:
        return 0.25 * row.c
    if row.kind == POISSON:
        return row.c * max(row.y, math.exp(min(z, 50.0)))
    if row.kind == PSEUDO_HUBER:
        return row.c
    return 2.0 * row.c if row.kind == SQUARED or row.kind == HUBER else 0.0


@compiled(small=True)
def _row_multiplier(row: Any, z: float, centre: float, stiffness: float) -> float:
    """Multiplier of a row at z: the slope, for a kink that of its envelope."""
    if row.kind == KINK:
        return min(max(centre + stiffness * (z - row.y), row.low), row.high)
    return slope_and_curvature(row, z)[0]


@compiled(small=True)
def _coordinate_multiplier(coordinate: Any, z: float, centre: float, stiffness: float) -> float:
    """Slope of the envelope of kappa |.| on [lower, upper]; exactly +-kappa where z moves."""
    v = z + centre / stiffness
    k = coordinate.kappa / stiffness
    y, t = 0.0, stiffness * v
    if v > k:
        y, t = v - k, coordinate.kappa
    elif v < -k:
        y, t = v + k, -coordinate.kappa
    if y < coordinate.lower:
        return stiffness * (v - coordinate.lower)
    if y > coordinate.upper:
        return stiffness * (v - coordinate.upper)
    return t


@compiled(inline="always")
def _slope_along(
    node: Node,
    point: Point,
    centre: Point,
    penalties: Point,
    images: FloatArray,
    change: FloatArray,
    step: FloatArray,
    length: float,
) -> float:
    """Return the derivative of the envelope at z + length * step along the step."""
    total = 0.0
    for r in range(len(images)):
        image = images[r] + length * change[r]
        total += change[r] * _row_multiplier(node.rows[r], image, centre.a[r], penalties.a[r])
    for j in range(len(step)):
        x = point.z[j] + length * step[j]
        t = _coordinate_multiplier(node.coordinates[j], x, centre.t[j], penalties.t[j])
        total += step[j] * (node.q[j] * x - node.p[j] + t + point.nu[0])
    return total


@compiled(inline="always")
def _search(
    node: Node,
    point: Point,
    centre: Point,
    penalties: Point,
    images: FloatArray,
    change: FloatArray,
    step: FloatArray,
    slope: float,
) -> float:
    """Return a length at which the slope along the step, negative at 0, has mostly vanished."""
    low, high, low_slope, high_slope = 0.0, math.inf, slope, math.inf
    length = 1.0
    for _ in range(MAX_SEARCH):
        found = _slope_along(node, point, centre, penalties, images, change, step, length)
        if abs(found) <= 0.5 * abs(slope):
            break
        if found < 0.0:
            low, low_slope = length, found
        else:
            high, high_slope = length, found
        if high == math.inf:
            length *= 4.0
            continue
        length = 0.5 * (low + high)
        if high_slope < math.inf:
            secant = low + (high - low) * low_slope / (low_slope - high_slope)
            margin = 0.1 * (high - low)
            length = min(max(secant, low + margin), high - margin)
    return length


@compiled(small=True)
def _penalty(curvature: float, slope: float, size: float, factor: float) -> float:
    """Return the penalty of a residual of some size, for multipliers as large as the slope.

    It rises with the factor as far as rounding leaves enough digits of the multipliers.
    """
    linear = slope / size if size > 0.0 else 0.0
    penalty = factor * max(STIFFNESS * curvature, linear)
    penalty = min(penalty, STIFFEST * max(curvature, linear))
    return penalty if penalty > 0.0 else 1.0


@compiled(inline="always")
def penalties_of(node: Node, point: Point, factor: float, reach: float) -> Point:
    """Return the penalties of the method of multipliers, by row and by coordinate."""
    X, rows, coordinates, q, _, _ = node
    z = point.z
    m, d = X.shape
    curvature = q.copy()
    for r in range(m):
        typical = _typical_curvature(rows[r], dot(X[r], z))
        for j in range(d):
            curvature[j] += typical * X[r, j] * X[r, j]
    a, t = np.ones(m), np.ones(d)
    for r in range(m):
        square, along = 0.0, 0.0
        for j in range(d):
            square += X[r, j] * X[r, j]
            along += X[r, j] * X[r, j] * curvature[j]
        if rows[r].kind == KINK:
            slope = rows[r].high - rows[r].low
            size = residual_size(rows[r], X[r], z, LEAST_REACH * reach)
            typical = along / (square * square) if square > 0.0 else 0.0
            a[r] = _penalty(typical, slope, size, factor)
    for j in range(d):
        slope = max(coordinates[j].kappa, abs(point.t[j]))
        t[j] = _penalty(curvature[j], slope, reach, factor)
    return Point(z, a, t, point.nu)


@compiled(inline="always")
def newton(node: Node, point: Point, centre: Point, penalties: Point, tolerance: float) -> bool:
    """Minimize the envelope by Newton steps, from and to the point; say whether they ended."""
    X, rows, coordinates, q, _, total = node
    m, d = X.shape
    summed = not math.isnan(total)
    z, a, t, nu = point
    weight, diagonal, gradient, size = np.empty(m), np.empty(d), np.empty(d), np.empty(d)
    images, change, step = np.empty(m), np.zeros(m), np.zeros(d)
    moving, active, offset = np.ones(d, np.bool_), np.zeros(m, np.bool_), np.zeros(m)
    if summed:
        shift = (total - z.sum()) / d
        for j in range(d):
            z[j] += shift
    last = math.inf
    for _ in range(MAX_NEWTON):
        for j in range(d):
            t[j] = _coordinate_multiplier(coordinates[j], z[j], centre.t[j], penalties.t[j])
            stays = abs(t[j]) != coordinates[j].kappa
            diagonal[j] = q[j] + penalties.t[j] if stays else q[j]
        for r in range(m):
            images[r] = dot(X[r], z)
            a[r] = _row_multiplier(rows[r], images[r], centre.a[r], penalties.a[r])
            if rows[r].kind != KINK:
                weight[r] = slope_and_curvature(rows[r], images[r])[1]
            else:
                bent = rows[r].low < a[r] < rows[r].high
                weight[r] = penalties.a[r] if bent else 0.0
        worst = stationarity(node, point, weight, gradient, size)
        if not worst > tolerance or (last < 1e-9 and worst > 0.5 * last):
            return True
        last = worst
        rise = constrained_step(
            X, weight, diagonal, gradient, moving, active, summed, offset, 0.0, step, change
        )
        # Rounding leaves a sum in the step, which must not count as a way down.
        nu[0] += rise
        slope = dot(gradient, step) + rise * step.sum()
        if not slope < 0.0:
            return True
        for r in range(m):
            change[r] = dot(X[r], step)
        length = _search(node, point, centre, penalties, images, change, step, slope)
        for j in range(d):
            z[j] += length * step[j]
    return False


@compiled(inline="always")
def violation_of(node: Node, point: Point, centre: Point, penalties: Point, reach: float) -> float:
    """How far z is from the points where the multipliers are subgradients, relative to them."""
    worst = 0.0
    for r in range(len(point.a)):
        if node.rows[r].kind == KINK:
            away = abs(point.a[r] - centre.a[r]) / penalties.a[r]
            size = residual_size(node.rows[r], node.X[r], point.z, reach)
            worst = max(worst, away / (size + TINY))
    for j in range(len(point.z)):
        away = abs(point.t[j] - centre.t[j]) / penalties.t[j]
        worst = max(worst, away / (reach + abs(centre.t[j]) / penalties.t[j] + TINY))
    return worst
