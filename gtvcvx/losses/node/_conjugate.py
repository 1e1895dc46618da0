"""Pieces of conjugates: what coordinates take of a linear term, and what rows share.

With g_j the separable part of a node's loss in coordinate j, ``L*(s)`` is the least value of
``sum_r f_r*(a_r) + sum_j g_j*(t_j) + T nu`` over multipliers with ``X^T a + t + nu 1 = s``. What
multipliers miss of s, the leak, is shared out among those that have room.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, Records
from gtvcvx._deadline import pieces
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._newton_systems import factorize, substitute
from gtvcvx.losses.node._segments import MANY, weighted_sizes

MAX_SHARES = 20
# What rows cannot move any more counts as room, so little that others go first.
LEAST_ROOM = 1e-3
# From `MANY` coordinates on, rows that are fewer have a system of their own: what depends on each
# other by 1e-9 it shares less well, but it takes a small part of the time.
# Pivots below this share of the largest are those of directions without room.
LEAST_PIVOT = 1e-14


def coordinate_value(coordinate: Records, w: FloatArray) -> FloatArray:
    """Return ``g(w) = mu/2 w^2 - linear w + kappa |w|``, +inf outside the bounds."""
    smooth = 0.5 * coordinate["mu"] * w * w - coordinate["linear"] * w
    inside = (coordinate["lower"] <= w) & (w <= coordinate["upper"])
    return np.where(inside, smooth + coordinate["kappa"] * np.abs(w), np.inf)


def coordinate_domain(coordinate: Records) -> tuple[FloatArray, FloatArray]:
    """Return the interval where g* is finite."""
    k, curved = coordinate["kappa"], coordinate["mu"] > 0.0
    low = np.where(curved | (coordinate["lower"] > -np.inf), -np.inf, -k)
    high = np.where(curved | (coordinate["upper"] < np.inf), np.inf, k)
    return low, high


def coordinate_maximizer(coordinate: Records, t: FloatArray) -> FloatArray:
    """Return a maximizer of ``t w - g(w)`` for t in the domain of g*."""
    r, k, curved = t + coordinate["linear"], coordinate["kappa"], coordinate["mu"] > 0.0
    lower, upper = coordinate["lower"], coordinate["upper"]
    shrunk = np.maximum(r - k, 0.0) + np.minimum(r + k, 0.0)
    at_end = np.where(r > k, upper, np.where(r < -k, lower, 0.0))
    w = np.where(curved, shrunk / np.where(curved, coordinate["mu"], 1.0), at_end)
    w = np.clip(w, lower, upper)
    # On the edge of the domain any point is a maximizer.
    return np.where(np.abs(w) < np.inf, w, 0.0)


def coordinate_gap(coordinate: Records, w: FloatArray, t: FloatArray) -> FloatArray:
    """Return ``g(w) + g*(t) - t w >= 0`` for t in the domain of g*, without cancellation."""
    best = coordinate_maximizer(coordinate, t)
    r = t + coordinate["linear"] - coordinate["mu"] * best
    k = coordinate["kappa"]
    part = np.where(best != 0.0, np.where(best > 0.0, k, -k), np.clip(r, -k, k))
    bent = k * np.abs(w) - part * w
    pressed = -(r - part) * (w - best)
    away = np.where(coordinate["mu"] > 0.0, w - best, 0.0)
    with np.errstate(over="ignore"):  # squares of points that have run away are infinite
        gap = 0.5 * coordinate["mu"] * away**2
    gap = gap + np.maximum(bent, 0.0) + np.maximum(pressed, 0.0)
    inside = (coordinate["lower"] <= w) & (w <= coordinate["upper"])
    return np.where(inside, gap, np.inf)


def coordinate_gaps(coordinates: Records, w: FloatArray, t: FloatArray) -> FloatArray:
    """Return the sums (k,) of the gaps of all coordinates (k, d) of each node."""
    return np.asarray(gaps_of_coordinates(coordinates, w, t).sum(axis=1))


def gaps_of_coordinates(coordinates: Records, w: FloatArray, t: FloatArray) -> FloatArray:
    """Return what `coordinate_gap` does for (k, d), by compiled loops where there are many."""
    if w.shape[1] <= MANY:
        return coordinate_gap(coordinates, w, t)
    out = np.empty_like(w)
    _write_each_gap(coordinates, w, t, out)
    return out


@compiled(small=True, allocates=False, inner=True)
def _gap(c: Any, x: float, t: float) -> float:
    """Return what `coordinate_gap` does for one coordinate."""
    if not (c.lower <= x <= c.upper and math.isfinite(x) and math.isfinite(t)):
        return math.inf
    r, k, best = t + c.linear, c.kappa, 0.0
    if c.mu > 0.0:
        best = (max(r - k, 0.0) + min(r + k, 0.0)) / c.mu
    elif r > k:
        best = c.upper
    elif r < -k:
        best = c.lower
    best = min(max(best, c.lower), c.upper)
    if not abs(best) < math.inf:
        best = 0.0
    r -= c.mu * best
    part = (k if best > 0.0 else -k) if best != 0.0 else min(max(r, -k), k)
    away = x - best if c.mu > 0.0 else 0.0
    bent, pressed = k * abs(x) - part * x, -(r - part) * (x - best)
    return 0.5 * c.mu * away * away + max(bent, 0.0) + max(pressed, 0.0)


@compiled(small=True, allocates=False)
def _write_each_gap(coordinates: Records, w: FloatArray, t: FloatArray, out: FloatArray) -> None:
    for i in range(len(w)):
        for j in range(w.shape[1]):
            out[i, j] = _gap(coordinates[i, j], w[i, j], t[i, j])


class _Shares(NamedTuple):
    """What is shared, and where; the last six are room for one node's work."""

    X: FloatArray  # (N, d)
    rows: Records  # (N,) of ROW
    indptr: IntArray  # (k + 1,)
    low: FloatArray  # (k, d), where g* begins to be finite
    high: FloatArray  # (k, d), and where it ends
    s: FloatArray  # (k, d)
    a: FloatArray  # (N,)
    t: FloatArray  # (k, d)
    nu: FloatArray  # (k, 1)
    leak: FloatArray  # (k, d)
    H: FloatArray  # (d, d), or (m, m) if that is smaller and d is large
    y: FloatArray  # (d,)
    unit: FloatArray  # (d,)
    room: FloatArray  # (m,)
    step: FloatArray  # (m,)
    before: FloatArray  # (m,)


def share(
    nodes: IntArray, X: FloatArray, rows: Records, indptr: IntArray, coordinates: Records,
    totals: FloatArray, s: FloatArray, a: FloatArray, t: FloatArray, nu: FloatArray,
    leak: FloatArray, left: FloatArray, scale: FloatArray, goal: float, at_once: int,
) -> None:  # fmt: skip
    """Share leaks out among the multipliers (N,) of some nodes that have room.

    Writes what t (k, d) has to take, what is left of the leaks (k, d), their norms (k,), and the
    sizes (k,) of what adds up to s (k, d). Leaks below this share of them stay as they are.
    Between so many nodes at once somebody looks at the clock.
    """
    d, most = X.shape[1], int(np.diff(indptr).max(initial=0))
    least = min(d, most) if d > MANY else d
    room = np.empty((least, least)), np.empty(d), np.empty(d), *(np.empty(most) for _ in range(3))
    shares = _Shares(X, rows, indptr, *coordinate_domain(coordinates), s, a, t, nu, leak, *room)
    parts = np.abs(s) + weighted_sizes(indptr, a, X)
    scale[nodes] = parts.max(axis=1)[nodes]
    summed = ~np.isnan(totals)
    fewer = np.diff(indptr) < d if d > MANY else None
    for at in pieces(len(nodes), at_once):
        _share_all(nodes[at], shares, summed, fewer, left, scale, goal)


@compiled(small=True, allocates=False, inner=True)
def _leak(i: int, shares: _Shares, summed: bool) -> float:
    """Set t to what g has to take of s, write what it cannot take; return its norm.

    Where the sum is given, nu is raised until nothing is left.
    """
    X, a, t, leak, nu = shares.X, shares.a, shares.t, shares.leak, shares.nu
    raised, square = 0.0, 0.0
    for j in range(X.shape[1]):
        rest = shares.s[i, j] - (nu[i, 0] if summed else 0.0)
        for r in range(shares.indptr[i], shares.indptr[i + 1]):
            rest -= X[r, j] * a[r]
        raised = max(raised, rest - shares.high[i, j])
        t[i, j] = rest
    if not summed:
        raised = 0.0
    nu[i, 0] += raised
    for j in range(X.shape[1]):
        rest = t[i, j] - raised
        t[i, j] = min(max(rest, shares.low[i, j]), shares.high[i, j])
        leak[i, j] = rest - t[i, j]
        square += leak[i, j] * leak[i, j]
    return math.sqrt(square)


@compiled(small=True, allocates=False, inner=True)
def _room(row: Any, a: float) -> float:
    """Return how far a multiplier may go, and a little where it may not."""
    spread = row.high - row.low
    if not spread < math.inf:
        spread = row.c + abs(a)
    return min(min(a - row.low, row.high - a), spread) + LEAST_ROOM * spread


@compiled(small=True, allocates=False, inner=True)
def _rooms(i: int, shares: _Shares) -> float:
    """Write how freely rows move, and the units of columns in which that is alike.

    Returns the largest of what the rows give a coordinate with a leak.
    """
    X, unit, first, largest = shares.X, shares.unit, shares.indptr[i], 0.0
    for j in range(X.shape[1]):
        unit[j] = 0.0
    for r in range(first, shares.indptr[i + 1]):
        square = 0.0
        for j in range(X.shape[1]):
            square += X[r, j] * X[r, j]
        room = _room(shares.rows[r], shares.a[r]) / square if square > 0.0 else 0.0
        shares.room[r - first] = room
        for j in range(X.shape[1]):
            if shares.leak[i, j] != 0.0:
                unit[j] += room * X[r, j] * X[r, j]
    for j in range(X.shape[1]):
        largest = max(largest, unit[j])
        unit[j] = 1.0 / math.sqrt(unit[j]) if unit[j] > 0.0 else 1.0
    return largest


@compiled(small=True, allocates=False, inner=True)
def _by_columns(i: int, shares: _Shares, largest: float) -> None:
    """Write the steps of the rows, by a system of the coordinates: ``room X y``, H y = leak."""
    X, H, y, unit, room = shares.X, shares.H, shares.y, shares.unit, shares.room
    d, first = X.shape[1], shares.indptr[i]
    for j in range(d):
        # Equilibrated, since columns may be in different units.
        y[j] = shares.leak[i, j] * unit[j]
        for k in range(j + 1):
            H[j, k] = 0.0
        if y[j] == 0.0:
            H[j, j] = largest
    for r in range(first, shares.indptr[i + 1]):
        for j in range(d):
            scaled = room[r - first] * X[r, j] * unit[j] if y[j] != 0.0 else 0.0
            for k in range(j + 1):
                if y[k] != 0.0:
                    H[j, k] += scaled * X[r, k] * unit[k]
    factorize(H, d, LEAST_PIVOT)
    substitute(H, d, y)
    for r in range(first, shares.indptr[i + 1]):
        change = 0.0
        for j in range(d):
            change += X[r, j] * unit[j] * y[j]
        shares.step[r - first] = room[r - first] * change


@compiled(small=True, allocates=False, inner=True)
def _by_rows(i: int, shares: _Shares) -> None:
    """Write the same by a system of the rows, which are fewer: the step that leaves the least."""
    X, H, unit, room, step = shares.X, shares.H, shares.unit, shares.room, shares.step
    first, m = shares.indptr[i], shares.indptr[i + 1] - shares.indptr[i]
    for r in range(m):
        step[r] = 0.0
        for q in range(r + 1):
            H[r, q] = 0.0
    for j in range(X.shape[1]):
        leak, square = shares.leak[i, j], unit[j] * unit[j]
        if leak != 0.0:
            for r in range(m):
                scaled = X[first + r, j] * square
                step[r] += scaled * leak
                for q in range(r + 1):
                    H[r, q] += scaled * X[first + q, j]
    largest = 0.0
    for r in range(m):
        largest = max(largest, room[r] * H[r, r])
    if largest == 0.0:
        return
    # In units of their rooms: those that depend on each other share by these.
    for r in range(m):
        shares.y[r] = math.sqrt(room[r] / largest)
        step[r] *= shares.y[r]
        for q in range(r + 1):
            H[r, q] *= shares.y[r] * shares.y[q]
        H[r, r] += LEAST_PIVOT
    factorize(H, m, LEAST_PIVOT)
    substitute(H, m, step)
    for r in range(m):
        step[r] *= shares.y[r]


@compiled(small=True, allocates=False, inner=True)
def _directions(i: int, shares: _Shares, fewer: BoolArray | None) -> bool:
    """Write the steps by which rows share the leak, by their rooms; say whether there is any.

    Coordinates without a leak take what comes. Where rows are fewer, if that is to be seen to at
    all, the system is theirs.
    """
    largest = _rooms(i, shares)
    if fewer is not None and fewer[i]:
        _by_rows(i, shares)
    else:
        _by_columns(i, shares, largest)
    return largest > 0.0


@compiled(small=True, allocates=False, inner=True)
def _move(i: int, shares: _Shares, back: bool) -> None:
    """Move the multipliers of a node's rows by their steps, or back to where they were."""
    a, first = shares.a, shares.indptr[i]
    for r in range(first, shares.indptr[i + 1]):
        if back:
            a[r] = shares.before[r - first]
            continue
        shares.before[r - first] = a[r]
        moved = a[r] + shares.step[r - first]
        a[r] = min(max(moved, shares.rows[r].low), shares.rows[r].high)


@compiled(small=True, allocates=False)
def _share_all(
    nodes: IntArray,
    shares: _Shares,
    summed: BoolArray,
    fewer: BoolArray | None,
    left: FloatArray,
    scale: FloatArray,
    goal: float,
) -> None:
    """Share the leaks of some nodes, one after the other."""
    for n in range(len(nodes)):
        i = nodes[n]
        left[i], back = math.inf, False
        for count in range(MAX_SHARES + 2):
            found = _leak(i, shares, summed[i])
            # What has made it worse is taken back, and that is the end.
            worse = count > 0 and not (back or found < left[i])
            if not worse:
                left[i] = found
                if back or count == MAX_SHARES or not found > goal * scale[i]:
                    break
                if not _directions(i, shares, fewer):
                    break
            back = worse
            _move(i, shares, back)
