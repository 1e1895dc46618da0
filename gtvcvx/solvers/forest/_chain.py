"""Clipped slopes along a chain without kinks: their changes are in order, in a queue."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import compiled
from gtvcvx.solvers.forest._nodes import Bounds


class Queue(NamedTuple):
    """Changes of the clipped slope of a chain, in order, with room at both ends.

    Attributes
    ----------
    position, bend : (2 n + 2,)
    state : (2,)
        Where the first and the last of them are.
    limits : (2,)
        The slope left and right of all of them.
    """

    position: FloatArray
    bend: FloatArray
    state: IntArray
    limits: FloatArray

    @staticmethod
    def of(n: int) -> Queue:
        """Return the queue of a chain of n nodes at most."""
        room = 2 * n + 2
        return Queue(np.empty(room), np.empty(room), np.zeros(2, np.int64), np.zeros(2))


@compiled(allocates=False, inner=True)
def begin_chain(queue: Queue) -> None:
    """Begin where there are no changes yet."""
    half = len(queue.position) // 2
    queue.state[0], queue.state[1] = half, half - 1
    queue.limits[0] = queue.limits[1] = 0.0


@compiled(allocates=False, inner=True)
def chain_bounds(
    start: int,
    stop: int,
    top: int,
    q: FloatArray,
    b: FloatArray,
    shift: float,
    capacity: FloatArray,
    queue: Queue,
    bounds: Bounds,
) -> None:
    """Clip the slopes of the positions start .. stop - 1 of a chain without changes of its own.

    Slopes are ``q[p] (x + shift) - b[p]``, and the root is at the position top.
    """
    position, bend, state, limits = queue
    first, last = state[0], state[1]
    below, above = limits[0], limits[1]
    for p in range(start, stop):
        qp, bp = q[p], b[p] - q[p] * shift
        root = p == top
        c = 0.0 if root else capacity[p]
        low, high = -np.inf, np.inf
        if qp > 0.0 or below < -c:
            slope, x = qp, -np.inf
            value = below
            if first <= last:
                x = position[first]
                value = qp * x - bp + below
            if first > last or value >= -c:
                low = min((bp - below - c) / qp, np.inf if first > last else x)
            else:
                slope += bend[first]
                first += 1
                while first <= last:
                    further = value + slope * (position[first] - x)
                    if further >= -c:
                        break
                    value, x = further, position[first]
                    slope += bend[first]
                    first += 1
                if first <= last:
                    low = min(x + (-c - value) / slope, position[first])
                elif qp > 0.0:
                    slope = qp
                    low = max((bp - above - c) / qp, x)
                else:  # rounding alone leads beyond the last change
                    low = x
            first -= 1
            position[first], bend[first] = low, slope
            below = -c
        if root:
            if low == -np.inf:
                low = position[first] if first <= last else 0.0
            bounds.low[p] = bounds.high[p] = low
            continue
        if qp > 0.0 or above > c:
            slope, x = qp, position[last]
            value = qp * x - bp + above
            if value <= c:
                high = max((c + bp - above) / qp, x)
            else:
                slope -= bend[last]
                last -= 1
                while first <= last:
                    further = value - slope * (x - position[last])
                    if further <= c:
                        break
                    value, x = further, position[last]
                    slope -= bend[last]
                    last -= 1
                high = x
                if first <= last:
                    high = max(x - (value - c) / slope, position[last])
            last += 1
            position[last], bend[last] = high, -slope
            above = c
        bounds.low[p], bounds.high[p] = low, high
    state[0], state[1] = first, last
    limits[0], limits[1] = below, above
