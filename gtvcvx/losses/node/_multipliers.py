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

from gtvcvx.compiled import compiled
from gtvcvx.losses.node._newton_systems import constrained_step
from gtvcvx.losses.node._problem import (
    TINY,
    Node,
    Point,
    Room,
    copy_to,
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


@compiled(small=True, allocates=False, inner=True)
def _typical_curvature(row: Any, z: float) -> float:
    """Bound of f'' near z."""
    if row.kind == LOGISTIC:
        return 0.25 * row.c
    if row.kind == POISSON:
        return row.c * max(row.y, math.exp(min(z, 50.0)))
    if row.kind == PSEUDO_HUBER:
        return row.c
    return 2.0 * row.c if row.kind == SQUARED or row.kind == HUBER else 0.0


@compiled(small=True, allocates=False, inner=True)
def _row_multiplier(row: Any, z: float, centre: float, stiffness: float) -> float:
    """Multiplier of a row at z: the slope, for a kink that of its envelope."""
    if row.kind == KINK:
        return min(max(centre + stiffness * (z - row.y), row.low), row.high)
    return slope_and_curvature(row, z)[0]


@compiled(small=True, allocates=False, inner=True)
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


@compiled(small=True, allocates=False, inner=True)
def _slope_along(node: Node, point: Point, room: Room, length: float) -> float:
    """Return the derivative of the envelope at z + length * step along the step."""
    centre, penalties, step = room.centre, room.penalties, room.step
    total = 0.0
    for r in range(len(node.rows)):
        image = room.image[r] + length * room.change[r]
        a = _row_multiplier(node.rows[r], image, centre.a[r], penalties.a[r])
        total += room.change[r] * a
    for j in range(len(step)):
        x = point.z[j] + length * step[j]
        t = _coordinate_multiplier(node.coordinates[j], x, centre.t[j], penalties.t[j])
        total += step[j] * (node.q[j] * x - node.p[j] + t + point.nu[0])
    return total


@compiled(small=True, allocates=False, inner=True)
def _search(node: Node, point: Point, room: Room, slope: float) -> float:
    """Return a length at which the slope along the step, negative at 0, has mostly vanished."""
    low, high, low_slope, high_slope = 0.0, math.inf, slope, math.inf
    length = 1.0
    for _ in range(MAX_SEARCH):
        found = _slope_along(node, point, room, length)
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


@compiled(small=True, allocates=False, inner=True)
def _penalty(curvature: float, slope: float, size: float, factor: float) -> float:
    """Return the penalty of a residual of some size, for multipliers as large as the slope.

    It rises with the factor as far as rounding leaves enough digits of the multipliers.
    """
    linear = slope / size if size > 0.0 else 0.0
    penalty = factor * max(STIFFNESS * curvature, linear)
    penalty = min(penalty, STIFFEST * max(curvature, linear))
    return penalty if penalty > 0.0 else 1.0


@compiled(small=True, allocates=False, inner=True)
def penalties_of(node: Node, point: Point, room: Room, factor: float, reach: float) -> None:
    """Write the penalties of the method of multipliers, by row and by coordinate."""
    X, rows, coordinates, z = node.X, node.rows, node.coordinates, point.z
    m, d = X.shape
    curvature, penalties = room.diagonal, room.penalties
    copy_to(curvature, node.q)
    for r in range(m):
        typical = _typical_curvature(rows[r], dot(X[r], z))
        for j in range(d):
            curvature[j] += typical * X[r, j] * X[r, j]
    for r in range(m):
        square, along = 0.0, 0.0
        for j in range(d):
            square += X[r, j] * X[r, j]
            along += X[r, j] * X[r, j] * curvature[j]
        penalties.a[r] = 1.0
        if rows[r].kind == KINK:
            slope = rows[r].high - rows[r].low
            size = residual_size(rows[r], X[r], z, LEAST_REACH * reach)
            typical = along / (square * square) if square > 0.0 else 0.0
            penalties.a[r] = _penalty(typical, slope, size, factor)
    for j in range(d):
        slope = max(coordinates[j].kappa, abs(point.t[j]))
        penalties.t[j] = _penalty(curvature[j], slope, reach, factor)


@compiled(small=True, allocates=False, inner=True)
def _linearize(node: Node, point: Point, room: Room) -> float:
    """Write multipliers, curvatures and the gradient of the envelope; return its relative size."""
    z, a, t, _ = point
    for j in range(len(z)):
        coordinate, stiff = node.coordinates[j], room.penalties.t[j]
        t[j] = _coordinate_multiplier(coordinate, z[j], room.centre.t[j], stiff)
        stays = abs(t[j]) != coordinate.kappa
        room.diagonal[j] = node.q[j] + stiff if stays else node.q[j]
    for r in range(len(node.rows)):
        row, stiff = node.rows[r], room.penalties.a[r]
        room.image[r] = dot(node.X[r], z)
        if row.kind == KINK:
            a[r] = _row_multiplier(row, room.image[r], room.centre.a[r], stiff)
            room.weight[r] = stiff if row.low < a[r] < row.high else 0.0
        else:
            a[r], room.weight[r] = slope_and_curvature(row, room.image[r])
    return stationarity(node, point, room.weight, room.gradient, room.size)


@compiled(small=True, allocates=False, inner=True)
def newton(node: Node, point: Point, room: Room, tolerance: float) -> bool:
    """Minimize the envelope by Newton steps, from and to the point; say whether they ended."""
    d, summed = len(node.q), not math.isnan(node.total)
    last, total = math.inf, 0.0
    for j in range(d):
        room.moving[j] = True
        total += point.z[j]
    for j in range(d if summed else 0):
        point.z[j] += (node.total - total) / d
    for r in range(len(node.rows)):
        room.active[r] = False
    for _ in range(MAX_NEWTON):
        worst = _linearize(node, point, room)
        if not worst > tolerance or (last < 1e-9 and worst > 0.5 * last):
            return True
        last = worst
        # Rounding leaves a sum in the step, which must not count as a way down.
        rise, total = constrained_step(node.X, room.diagonal, room, summed, 0.0), 0.0
        for j in range(d):
            total += room.step[j]
        point.nu[0] += rise
        slope = dot(room.gradient, room.step) + rise * total
        if not slope < 0.0:
            return True
        for r in range(len(node.rows)):
            room.change[r] = dot(node.X[r], room.step)
        length = _search(node, point, room, slope)
        for j in range(d):
            point.z[j] += length * room.step[j]
    return False


@compiled(small=True, allocates=False, inner=True)
def violation_of(node: Node, point: Point, room: Room, reach: float) -> float:
    """How far z is from the points where the multipliers are subgradients, relative to them."""
    centre, penalties, worst = room.centre, room.penalties, 0.0
    for r in range(len(node.rows)):
        if node.rows[r].kind == KINK:
            away = abs(point.a[r] - centre.a[r]) / penalties.a[r]
            size = residual_size(node.rows[r], node.X[r], point.z, reach)
            worst = max(worst, away / (size + TINY))
    for j in range(len(point.z)):
        away = abs(point.t[j] - centre.t[j]) / penalties.t[j]
        worst = max(worst, away / (reach + abs(centre.t[j]) / penalties.t[j] + TINY))
    return worst
