"""Compiled active-set method for one node: guess, solve, correct.

Which rows are at their kinks, and which coordinates at zero or at a bound, is guessed from
multipliers; then all that is left is a linear system, or a Newton step if some rows are curved. The
signs of the multipliers that it gives correct the guess. From the multipliers of a similar problem
the method mostly ends after a step or two; it need not end from anywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._newton_systems import constrained_step
from gtvcvx.losses.node._problem import (
    EPS,
    TINY,
    Node,
    Point,
    copy_to,
    dot,
    far_off,
    largest_entry,
    residual_size,
    smooth_rows,
    stationarity,
    subgradients,
)
from gtvcvx.losses.node._scalar import KINK

MAX_STEPS = 25
# Rows at their kinks beyond the number of coordinates depend on each other; a few of them do no
# harm.
MANY_TIES, MORE_TIES = 3, 8


@compiled(small=True, allocates=False, inner=True)
def resting_place(coordinate: Any, t: float) -> float:
    """Return where a coordinate stays that does not move, by its multiplier."""
    if t > coordinate.kappa:
        return coordinate.upper
    if t < -coordinate.kappa:
        return coordinate.lower
    return min(max(0.0, coordinate.lower), coordinate.upper)


@compiled(small=True, allocates=False, inner=True)
def correct_row(row: Any, residual: float, a: float) -> float:
    """Return the multiplier of a row that is not at its kink for the next guess."""
    slack = 4.0 * EPS * abs(row.y)
    crossed = (residual < -slack and a == row.high) or (residual > slack and a == row.low)
    return 0.5 * (row.low + row.high) if crossed else a


@compiled(small=True, allocates=False, inner=True)
def correct_moving(coordinate: Any, z: float, t: float) -> tuple[float, float]:
    """Return a coordinate that moved and its multiplier, stopped where its sign or bounds end."""
    k = coordinate.kappa
    low = max(coordinate.lower, 0.0) if k > 0.0 and t > 0.0 else coordinate.lower
    high = min(coordinate.upper, 0.0) if k > 0.0 and t < 0.0 else coordinate.upper
    if low <= z <= high:
        return z, t
    bound = low if z < low else high
    if bound == coordinate.lower:
        return bound, -2.0 * k - 1.0
    if bound == coordinate.upper:
        return bound, 2.0 * k + 1.0
    return bound, 0.0


@compiled(inline="always")
def _guess(
    node: Node,
    trial: Point,
    reach: float,
    moving: BoolArray,
    active: BoolArray,
    step: FloatArray,
    offset: FloatArray,
) -> tuple[float, int, int, float]:
    """Read the guess from the multipliers, and what z has to change for it.

    Writes which coordinates move and which rows are at their kinks, and the changes of z_j, or of
    x_r^T z, that bring the others there. Returns the largest of these changes relative to their
    sizes, the numbers of moving coordinates and of active rows, and what the sum lacks.
    """
    worst, free, ties, total = 0.0, 0, 0, 0.0
    for j in range(len(moving)):
        z, coordinate = trial.z[j], node.coordinates[j]
        moving[j] = abs(trial.t[j]) == coordinate.kappa
        free += moving[j]
        step[j] = 0.0 if moving[j] else resting_place(coordinate, trial.t[j]) - z
        worst = max(worst, abs(step[j]) / (abs(z) + TINY))
        total += z
    for r in range(len(active)):
        row, x = node.rows[r], node.X[r]
        active[r] = row.kind == KINK and row.low < trial.a[r] < row.high
        if active[r]:
            ties += 1
            offset[r] = row.y - dot(x, trial.z)
            size = residual_size(row, x, trial.z, reach)
            worst = max(worst, abs(offset[r]) / (size + TINY))
    if math.isnan(node.total):
        return worst, free, ties, 0.0
    lacking = node.total - total
    return max(worst, abs(lacking) / node.total), free, ties, lacking


@compiled(inline="always")
def _correct(
    node: Node,
    trial: Point,
    moving: BoolArray,
    active: BoolArray,
    change: FloatArray,
    weight: FloatArray,
) -> bool:
    """Take over what the step gives, and turn it into the next guess; say if it is the same."""
    z, a, t, nu = trial
    settled = True
    for r in range(len(a)):
        row = node.rows[r]
        if row.kind == KINK:
            residual = dot(node.X[r], z) - row.y
            found = min(max(a[r] + change[r], row.low), row.high)
            if not active[r]:
                found = correct_row(row, residual, a[r])
            settled = settled and (found == a[r] + change[r])
            a[r] = found
    smooth_rows(node, z, a, weight)
    for j in range(len(z)):
        if moving[j]:
            before = z[j]
            z[j], t[j] = correct_moving(node.coordinates[j], z[j], t[j])
            settled = settled and z[j] == before
        else:
            # What is left of the gradient.
            left = node.p[j] - node.q[j] * z[j] - nu[0]
            for r in range(len(a)):
                left -= node.X[r, j] * a[r]
            low, high = subgradients(node.coordinates[j], z[j])
            t[j] = min(max(left, low), high)
            settled = settled and t[j] == left
    return settled


@compiled(inline="always")
def active_set(node: Node, point: Point, tolerance: float) -> bool:
    """Look for the optimum from the point; say whether it was found, else leave it as it was.

    The guess is in the multipliers: a row is at its kink where a is strictly inside its interval,
    a coordinate moves where t is +-kappa.
    """
    m, d = node.X.shape
    summed = not math.isnan(node.total)
    trial = Point(point.z.copy(), point.a.copy(), point.t.copy(), point.nu.copy())
    moving, active = np.empty(d, np.bool_), np.zeros(m, np.bool_)
    step, change, offset = np.zeros(d), np.zeros(m), np.zeros(m)
    weight, gradient, size = np.zeros(m), np.empty(d), np.empty(d)
    settled, reach = False, 0.0
    for j in range(d):
        # No multiplier beyond kappa where there is no bound to press against.
        k = node.coordinates[j].kappa
        if node.coordinates[j].upper == math.inf:
            trial.t[j] = min(trial.t[j], k)
        if node.coordinates[j].lower == -math.inf:
            trial.t[j] = max(trial.t[j], -k)
    for _ in range(MAX_STEPS):
        reach = largest_entry(trial.z, reach)
        smooth_rows(node, trial.z, trial.a, weight)
        worst = stationarity(node, trial, weight, gradient, size)
        away, free, ties, lacking = _guess(node, trial, reach, moving, active, step, offset)
        hopeless = ties > MANY_TIES * free + MORE_TIES or (summed and free == 0)
        if hopeless or far_off(node, trial.z):
            return False
        if settled and max(worst, away) <= tolerance:
            copy_to(point.z, trial.z)
            copy_to(point.a, trial.a)
            copy_to(point.t, trial.t)
            copy_to(point.nu, trial.nu)
            return True
        trial.nu[0] += constrained_step(
            node.X, weight, node.q, gradient, moving, active, summed, offset, lacking, step, change
        )
        for j in range(d):
            if moving[j]:
                trial.z[j] += step[j]
            else:
                trial.z[j] = resting_place(node.coordinates[j], trial.t[j])
        settled = _correct(node, trial, moving, active, change, weight)
    return False
