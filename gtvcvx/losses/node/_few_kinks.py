r"""Proximal points of nodes with few rows, all with kinks, in many coordinates: in the multipliers.

Multipliers a of the rows tell every coordinate by itself, as in `gtvcvx.losses.node._few_rows`;
what they maximize within their intervals is concave, with the slopes ``X z(a) - y`` and, as long as
the same coordinates move, quadratic:

.. math:: \max_{low \le a \le high} \; \langle Xz - y, s \rangle
          - \tfrac12 s^T X \mathrm{diag}(z') X^T s, \qquad s = a - a_0.

That model has as many unknowns as there are rows. Beside a ridge and nothing else it is the
problem itself; where coordinates come to rest or to move, its steps are Newton's, and searched
along. Nodes where that does not end are left to `gtvcvx.losses.node._minimize`.
"""

from __future__ import annotations

import math

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, Records
from gtvcvx.compiled import FAST, compiled
from gtvcvx.losses.node._few_rows import (
    CLOSE,
    coordinates_left,
    move_along,
    take_coordinates,
    write_point,
)
from gtvcvx.losses.node._newton_systems import DEPENDENT, factorize, substitute
from gtvcvx.losses.node._problem import EPS, Room
from gtvcvx.losses.node._scalar import KINK

MAX_STEPS, MAX_SEARCH = 30, 12
# Models are solved by going from face to face, a few for each row at the most.
FACES = 4
# Systems of more rows than that take longer than what they replace.
MOST_ROWS = 64


@compiled(fastmath=FAST, allocates=False, inner=True)
def _slopes(first: int, X: FloatArray, rows: Records, m: int, room: Room) -> float:
    """Write ``X z - y`` to ``offset`` (m,); return the largest that multipliers could follow.

    Relative to its summands.
    """
    worst = 0.0
    for r in range(m):
        row, a = rows[first + r], room.trial.a[r]
        total, size = -row.y, abs(row.y)
        for j in range(len(room.step)):
            x = X[first + r, j] * room.step[j]
            total += x
            size += abs(x)
        room.offset[r] = total
        if not math.isfinite(total):
            return math.inf
        held = a == row.high if total > 0.0 else a == row.low
        if not held and abs(total) > worst * size:
            worst = abs(total) / size
    return worst


@compiled(fastmath=FAST, allocates=False, inner=True)
def _gram(first: int, X: FloatArray, m: int, room: Room) -> None:
    """Write ``X diag(z') X^T`` (m, m), all of it."""
    G, give = room.system.M, room.diagonal
    for r in range(m):
        for s in range(r + 1):
            total = 0.0
            for j in range(len(give)):
                total += X[first + r, j] * X[first + s, j] * give[j]
            G[r, s] = total
            G[s, r] = total


@compiled(fastmath=FAST, allocates=False, inner=True)
def _sweep(first: int, rows: Records, m: int, room: Room) -> None:
    """Maximize the model along one multiplier after the other, by ``image`` and ``scale``."""
    G, slope, at = room.system.M, room.system.scale, room.image
    for r in range(m):
        low, high = rows[first + r].low, rows[first + r].high
        if G[r, r] > 0.0:
            best = min(max(at[r] + slope[r] / G[r, r], low), high)
        else:
            best = high if slope[r] > 0.0 else (low if slope[r] < 0.0 else at[r])
        for s in range(m):
            slope[s] -= (best - at[r]) * G[s, r]
        at[r] = best


@compiled(fastmath=FAST, allocates=False, inner=True)
def _face(first: int, rows: Records, m: int, room: Room) -> bool:
    """Go to the maximum beside what is at an end, or until another is; say if none was."""
    system, at, count, largest = room.system, room.image, np.int64(0), 0.0
    G, H, step = system.M, system.H, system.inside
    for r in range(m):
        if rows[first + r].low < at[r] < rows[first + r].high:
            system.tied[count] = r
            for c in range(count + 1):
                H[count, c] = G[r, system.tied[c]]
            step[count] = system.scale[r]
            largest = max(largest, G[r, r])
            count += 1
    if count == 0:
        return True
    factorize(H, count, DEPENDENT * largest if largest > 0.0 else 1.0)
    substitute(H, count, step)
    length, stopped = 1.0, -1
    for c in range(count):
        row, here = rows[first + system.tied[c]], at[system.tied[c]]
        end = row.high if step[c] > 0.0 else row.low
        if abs(step[c]) * length > abs(end - here):
            length, stopped = (end - here) / step[c], c
    for c in range(count):
        row, here = rows[first + system.tied[c]], at[system.tied[c]]
        end = row.high if step[c] > 0.0 else row.low
        moved = min(max(here + length * step[c], row.low), row.high)
        at[system.tied[c]] = end if c == stopped else moved
    return bool(stopped < 0)


@compiled(fastmath=FAST, allocates=False, inner=True)
def _model_step(first: int, rows: Records, m: int, room: Room) -> None:
    """Write where the model is largest to ``image`` (m,), and the step there to ``change``."""
    G, slope, at, a = room.system.M, room.system.scale, room.image, room.trial.a
    for r in range(m):
        at[r], slope[r] = a[r], room.offset[r]
    for _ in range(FACES * m + FACES):
        _sweep(first, rows, m, room)
        ended = _face(first, rows, m, room)
        for r in range(m):
            slope[r] = room.offset[r]
            for s in range(m):
                slope[r] -= G[r, s] * (at[s] - a[s])
        for r in range(m):
            # What rests at an end and would leave it.
            low, high = rows[first + r].low, rows[first + r].high
            inner = (slope[r] > 0.0 and at[r] == low) or (slope[r] < 0.0 and at[r] == high)
            ended = ended and not (inner and low < high)
        if ended:
            break
    for r in range(m):
        room.change[r] = at[r] - a[r]


@compiled(fastmath=FAST, allocates=False, inner=True)
def _search(
    first: int, X: FloatArray, rows: Records, m: int, q: FloatArray, p: FloatArray,
    bounds: FloatArray, room: Room,
) -> float:  # fmt: skip
    """Go along the step to where its slope has mostly vanished; return what `_slopes` does."""
    a, base, slope, found, worst = room.trial.a, room.weight, 0.0, 0.0, math.inf
    low, high, of_low, of_high, length = 0.0, 1.0, 0.0, 0.0, 1.0
    for r in range(m):
        base[r] = a[r]
        slope += room.offset[r] * room.change[r]
    of_low = slope
    for _ in range(MAX_SEARCH):
        for r in range(m):
            a[r] = room.image[r] if length == 1.0 else base[r] + length * room.change[r]
        coordinates_left(first, X, m, q, p, bounds, room)
        worst, found = _slopes(first, X, rows, m, room), 0.0
        for r in range(m):
            found += room.offset[r] * room.change[r]
        if abs(found) <= 0.5 * slope or (length == 1.0 and found > 0.0):
            break
        if found > 0.0:
            low, of_low = length, found
        else:
            high, of_high = length, found
        margin = 0.1 * (high - low)
        secant = low + (high - low) * of_low / (of_low - of_high)
        length = min(max(secant, low + margin), high - margin)
    return worst


@compiled(fastmath=FAST, allocates=False)
def few_kinks_points(
    nodes: IntArray,
    X: FloatArray,
    rows: Records,
    indptr: IntArray,
    coordinates: Records,
    v: FloatArray,
    tau: FloatArray,
    z: FloatArray,
    a: FloatArray,
    t: FloatArray,
    q: FloatArray,
    p: FloatArray,
    bounds: FloatArray,
    room: Room,
    left: BoolArray,
) -> None:
    """Do what `gtvcvx.losses.node._few_rows.few_rows_points` does, where all rows have kinks."""
    for i in nodes:
        first = indptr[i]
        m = indptr[i + 1] - first
        take_coordinates(coordinates[i], v[i], tau[i], q, p, bounds)
        for r in range(m):
            room.trial.a[r] = min(max(a[first + r], rows[first + r].low), rows[first + r].high)
        tolerance = EPS * (16.0 + 2.0 * math.sqrt(m))
        left[i] = True
        coordinates_left(first, X, m, q, p, bounds, room)
        worst = _slopes(first, X, rows, m, room)
        for _ in range(MAX_STEPS):
            if worst <= tolerance:
                write_point(i, first, m, room, bounds, q, z, a, t)
                left[i] = False
                break
            if not worst < math.inf:
                break
            _gram(first, X, m, room)
            _model_step(first, rows, m, room)
            if worst > CLOSE:
                worst = _search(first, X, rows, m, q, p, bounds, room)
                continue
            # The last digits: beside what coordinates are, not from where they begin.
            for r in range(m):
                room.trial.a[r] = room.image[r]
            if not move_along(first, X, m, bounds, room):
                coordinates_left(first, X, m, q, p, bounds, room)
            worst = _slopes(first, X, rows, m, room)


def kinked_and_free(rows: Records, indptr: IntArray, totals: FloatArray) -> BoolArray:
    """Say at which nodes (k,) all rows have kinks and bounded slopes, and no sum is given.

    And are some, but not too many.
    """
    fits = (rows["kind"] == KINK) & np.isfinite(rows["low"]) & np.isfinite(rows["high"])
    others = np.concatenate([[0], np.cumsum(~fits)])
    counts = np.diff(indptr)
    some = (counts > 0) & (counts <= MOST_ROWS)
    return np.asarray(some & (np.diff(others[indptr]) == 0) & np.isnan(totals))
