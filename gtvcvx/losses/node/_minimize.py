"""Compiled minimization of one node's problem, see `gtvcvx.losses.node._problem`.

Smooth problems are solved by Newton's method; others by the active-set method and, where that one
does not end, by rounds of the method of multipliers, until the active-set method ends from where
they have led.
"""

from __future__ import annotations

import math

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._active_set import active_set, resting_place
from gtvcvx.losses.node._multipliers import newton, penalties_of, violation_of
from gtvcvx.losses.node._problem import (
    EPS,
    Node,
    Point,
    Room,
    copy_point,
    far_off,
    is_free,
    is_smooth,
    largest_entry,
)

MAX_ROUNDS = 60
# Penalties rise by the factor STIFFEN when a round leaves more than SLOW times the violation.
SLOW, STIFFEN = 0.1, 10.0


@compiled(small=True, allocates=False, inner=True)
def _settle(node: Node, z: FloatArray, t: FloatArray) -> None:
    """Make constraints hold exactly that the method of multipliers leaves a little open."""
    largest, total = 0, 0.0
    for j in range(len(z)):
        coordinate = node.coordinates[j]
        if not is_free(coordinate) and abs(t[j]) != coordinate.kappa:
            z[j] = resting_place(coordinate, t[j])
        z[j] = min(max(z[j], coordinate.lower), coordinate.upper)
        total += z[j]
        if z[j] > z[largest]:
            largest = j
    if not math.isnan(node.total):
        z[largest] += node.total - total


@compiled(small=True, allocates=False, inner=True)
def minimize(node: Node, point: Point, room: Room) -> int:
    """Minimize one node's problem, from and to the point; return the number of rounds."""
    tolerance = EPS * (8.0 + math.sqrt(len(node.rows)))
    smooth = is_smooth(node)
    factor, before, reach = 1.0, math.inf, 0.0
    if far_off(node, point.z):
        for j in range(len(point.z)):
            point.z[j] = 0.0
    for rounds in range(MAX_ROUNDS):
        if not smooth and active_set(node, point, room, 2.0 * tolerance):
            return rounds
        reach = largest_entry(point.z, reach)
        copy_point(room.centre, point)
        penalties_of(node, point, room, factor, reach)
        if not newton(node, point, room, tolerance):
            continue
        violation = violation_of(node, point, room, largest_entry(point.z, reach))
        if smooth or not violation > tolerance or (before < 1e-9 and violation > 0.5 * before):
            break
        if violation > SLOW * before:
            factor *= STIFFEN
        before = violation
    _settle(node, point.z, point.t)
    return MAX_ROUNDS
