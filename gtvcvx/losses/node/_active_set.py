"""Compiled active-set method for one node: guess, solve, correct.

Which rows are at their kinks, and which coordinates at zero or at a bound, is guessed from
multipliers; then all that is left is a linear system, or a Newton step if some rows are curved. The
signs of the multipliers that it gives correct the guess. From the multipliers of a similar problem
the method mostly ends after a step or two; it need not end from anywhere.
"""

from __future__ import annotations

import math
from typing import Any

from gtvcvx.compiled import compiled
from gtvcvx.losses.node._newton_systems import constrained_step
from gtvcvx.losses.node._problem import (
    EPS,
    MANY_TIES,
    MORE_TIES,
    TINY,
    Node,
    Point,
    Room,
    copy_point,
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


@compiled(small=True, allocates=False, inner=True)
def _guess(node: Node, room: Room, reach: float) -> tuple[float, int, int, float]:
    """Read the guess from the trial's multipliers, and what z has to change for it.

    Writes which coordinates move and which rows are at their kinks, and the changes of z_j, or of
    x_r^T z, that bring the others there. Returns the largest of these changes relative to their
    sizes, the numbers of moving coordinates and of active rows, and what the sum lacks.
    """
    trial = room.trial
    worst, free, ties, total = 0.0, 0, 0, 0.0
    for j in range(len(node.q)):
        z, coordinate = trial.z[j], node.coordinates[j]
        room.moving[j] = abs(trial.t[j]) == coordinate.kappa
        free += room.moving[j]
        room.step[j] = 0.0 if room.moving[j] else resting_place(coordinate, trial.t[j]) - z
        worst = max(worst, abs(room.step[j]) / (abs(z) + TINY))
        total += z
    for r in range(len(node.rows)):
        row, x = node.rows[r], node.X[r]
        room.active[r] = row.kind == KINK and row.low < trial.a[r] < row.high
        if room.active[r]:
            ties += 1
            room.offset[r] = row.y - dot(x, trial.z)
            size = residual_size(row, x, trial.z, reach)
            worst = max(worst, abs(room.offset[r]) / (size + TINY))
    if math.isnan(node.total):
        return worst, free, ties, 0.0
    lacking = node.total - total
    return max(worst, abs(lacking) / node.total), free, ties, lacking


@compiled(small=True, allocates=False, inner=True)
def _correct(node: Node, room: Room) -> bool:
    """Take over what the step gives, and turn it into the next guess; say if it is the same."""
    z, a, t, nu = room.trial
    settled = True
    for r in range(len(node.rows)):
        row = node.rows[r]
        if row.kind == KINK:
            residual = dot(node.X[r], z) - row.y
            found = min(max(a[r] + room.change[r], row.low), row.high)
            if not room.active[r]:
                found = correct_row(row, residual, a[r])
            settled = settled and (found == a[r] + room.change[r])
            a[r] = found
    smooth_rows(node, z, a, room.weight)
    for j in range(len(z)):
        if room.moving[j]:
            before = z[j]
            z[j], t[j] = correct_moving(node.coordinates[j], z[j], t[j])
            settled = settled and z[j] == before
        else:
            # What is left of the gradient.
            left = node.p[j] - node.q[j] * z[j] - nu[0]
            for r in range(len(node.rows)):
                left -= node.X[r, j] * a[r]
            low, high = subgradients(node.coordinates[j], z[j])
            t[j] = min(max(left, low), high)
            settled = settled and t[j] == left
    return settled


@compiled(small=True, allocates=False, inner=True)
def _begin(node: Node, point: Point, room: Room) -> None:
    """Copy the point to the trial, without multipliers beyond kappa where there is no bound."""
    trial = room.trial
    copy_point(trial, point)
    for r in range(len(node.rows)):
        room.weight[r] = 0.0
    for j in range(len(node.q)):
        k = node.coordinates[j].kappa
        if node.coordinates[j].upper == math.inf:
            trial.t[j] = min(trial.t[j], k)
        if node.coordinates[j].lower == -math.inf:
            trial.t[j] = max(trial.t[j], -k)


@compiled(small=True, allocates=False, inner=True)
def active_set(node: Node, point: Point, room: Room, tolerance: float) -> bool:
    """Look for the optimum from the point; say whether it was found, else leave it as it was.

    The guess is in the multipliers: a row is at its kink where a is strictly inside its interval,
    a coordinate moves where t is +-kappa.
    """
    trial, summed = room.trial, not math.isnan(node.total)
    settled, reach = False, 0.0
    _begin(node, point, room)
    for _ in range(MAX_STEPS):
        reach = largest_entry(trial.z, reach)
        smooth_rows(node, trial.z, trial.a, room.weight)
        worst = stationarity(node, trial, room.weight, room.gradient, room.size)
        away, free, ties, lacking = _guess(node, room, reach)
        hopeless = ties > MANY_TIES * free + MORE_TIES or (summed and free == 0)
        if hopeless or far_off(node, trial.z):
            return False
        if settled and max(worst, away) <= tolerance:
            copy_point(point, trial)
            return True
        trial.nu[0] += constrained_step(node.X, node.q, room, summed, lacking)
        for j in range(len(node.q)):
            if room.moving[j]:
                trial.z[j] += room.step[j]
            else:
                trial.z[j] = resting_place(node.coordinates[j], trial.t[j])
        settled = _correct(node, room)
    return False
