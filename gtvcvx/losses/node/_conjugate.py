"""Compiled pieces of conjugates: what coordinates take of a linear term, and what rows share.

With g_j the separable part of a node's loss in coordinate j, ``L*(s)`` is the least value of
``sum_r f_r*(a_r) + sum_j g_j*(t_j) + T nu`` over multipliers with ``X^T a + t + nu 1 = s``. What
multipliers miss of s, the leak, is shared out among those that have room.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._newton_systems import factorize, substitute

MAX_SHARES = 20


@compiled
def coordinate_value(coordinate: Any, w: float) -> float:
    """Return ``g(w) = mu/2 w^2 - linear w + kappa |w|``, +inf outside the bounds."""
    if not coordinate.lower <= w <= coordinate.upper:
        return math.inf
    smooth = 0.5 * coordinate.mu * w * w - coordinate.linear * w
    return smooth + coordinate.kappa * abs(w)


@compiled
def coordinate_domain(coordinate: Any) -> tuple[float, float]:
    """Return the interval where g* is finite."""
    k, curved = coordinate.kappa, coordinate.mu > 0.0
    low = -math.inf if curved or coordinate.lower > -math.inf else -k
    high = math.inf if curved or coordinate.upper < math.inf else k
    return low, high


@compiled
def coordinate_maximizer(coordinate: Any, t: float) -> float:
    """Return a maximizer of ``t w - g(w)`` for t in the domain of g*."""
    r = t + coordinate.linear
    k = coordinate.kappa
    if coordinate.mu > 0.0:
        w = (max(r - k, 0.0) + min(r + k, 0.0)) / coordinate.mu
    elif r > k:
        w = coordinate.upper
    elif r < -k:
        w = coordinate.lower
    else:
        w = 0.0
    w = min(max(w, coordinate.lower), coordinate.upper)
    # On the edge of the domain any point is a maximizer.
    return w if abs(w) < math.inf else 0.0


@compiled
def coordinate_gap(coordinate: Any, w: float, t: float) -> float:
    """Return ``g(w) + g*(t) - t w >= 0`` for t in the domain of g*, without cancellation."""
    if not coordinate.lower <= w <= coordinate.upper:
        return math.inf
    best = coordinate_maximizer(coordinate, t)
    r = t + coordinate.linear - coordinate.mu * best
    k = coordinate.kappa
    sign = k if best > 0.0 else -k
    part = sign if best != 0.0 else min(max(r, -k), k)
    bent = k * abs(w) - part * w
    pressed = -(r - part) * (w - best)
    return 0.5 * coordinate.mu * (w - best) ** 2 + max(bent, 0.0) + max(pressed, 0.0)


@compiled(inline="always")
def _leak(
    i: int, X: FloatArray, indptr: IntArray, coordinates: Records, total: float, s: FloatArray,
    a: FloatArray, t: FloatArray, nu: FloatArray, leak: FloatArray,
) -> float:  # fmt: skip
    """Set t to what g has to take of s, write what it cannot take; return its norm.

    Where the sum is given, nu is raised until nothing is left.
    """
    d = X.shape[1]
    summed = not math.isnan(total)
    raised = 0.0
    for j in range(d):
        rest = s[i, j] - nu[i, 0] if summed else s[i, j]
        for r in range(indptr[i], indptr[i + 1]):
            rest -= X[r, j] * a[r]
        low, high = coordinate_domain(coordinates[i, j])
        raised = max(raised, rest - high)
        t[i, j] = rest
    square = 0.0
    if summed:
        nu[i, 0] += raised
    for j in range(d):
        low, high = coordinate_domain(coordinates[i, j])
        rest = t[i, j] - raised if summed else t[i, j]
        t[i, j] = min(max(rest, low), high)
        leak[i, j] = rest - t[i, j]
        square += leak[i, j] * leak[i, j]
    return math.sqrt(square)


@compiled(inline="always")
def _room(a: float, low: float, high: float, c: float) -> float:
    """Return how far a multiplier may go, and a little where it may not."""
    spread = high - low if high - low < math.inf else c + abs(a)
    return min(min(a - low, high - a), spread) + 1e-3 * spread


@compiled(inline="always")
def _directions(
    i: int, X: FloatArray, rows: Records, indptr: IntArray, a: FloatArray, leak: FloatArray,
    H: FloatArray, y: FloatArray, unit: FloatArray, room: FloatArray,
) -> bool:  # fmt: skip
    """Write y, along which the leak is shared by the rooms of the rows; say whether there is any.

    Coordinates without a leak take what comes.
    """
    d, first = X.shape[1], indptr[i]
    for j in range(d):
        y[j] = leak[i, j]
        for k in range(j + 1):
            H[j, k] = 0.0
    for r in range(first, indptr[i + 1]):
        square = 0.0
        for j in range(d):
            square += X[r, j] * X[r, j]
        room[r - first] = 0.0
        if square > 0.0:
            room[r - first] = _room(a[r], rows[r].low, rows[r].high, rows[r].c) / square
        for j in range(d):
            scaled = room[r - first] * X[r, j] if y[j] != 0.0 else 0.0
            for k in range(j + 1):
                if y[k] != 0.0:
                    H[j, k] += scaled * X[r, k]
    largest = 0.0
    for j in range(d):
        largest = max(largest, H[j, j])
    # Equilibrated, since columns may be in different units.
    for j in range(d):
        if y[j] == 0.0:
            H[j, j] = largest
        unit[j] = 1.0 / math.sqrt(H[j, j]) if H[j, j] > 0.0 else 1.0
        y[j] *= unit[j]
        for k in range(j + 1):
            H[j, k] *= unit[j] * unit[k]
    if largest > 0.0:
        factorize(H, d, 1e-14)
        substitute(H, d, y)
    for j in range(d):
        y[j] *= unit[j]
    return largest > 0.0


@compiled
def share(
    nodes: IntArray, X: FloatArray, rows: Records, indptr: IntArray, coordinates: Records,
    totals: FloatArray, s: FloatArray, a: FloatArray, t: FloatArray, nu: FloatArray,
    leak: FloatArray, left: FloatArray, scale: FloatArray, goal: float,
) -> None:  # fmt: skip
    """Share leaks out among the multipliers (N,) of some nodes that have room.

    Writes what t (k, d) has to take, what is left of the leaks (k, d), their norms (k,), and the
    sizes (k,) of what adds up to s (k, d). Leaks below this share of them stay as they are.
    """
    d, most = X.shape[1], 0
    for i in nodes:
        most = max(most, indptr[i + 1] - indptr[i])
    H, y, unit = np.empty((d, d)), np.empty(d), np.empty(d)
    room, before = np.empty(most), np.empty(most)
    for i in nodes:
        first, end = indptr[i], indptr[i + 1]
        scale[i] = 0.0
        for j in range(d):
            size = abs(s[i, j])
            for r in range(first, end):
                size += abs(X[r, j] * a[r])
            scale[i] = max(scale[i], size)
        left[i], back = math.inf, False
        for count in range(MAX_SHARES + 2):
            found = _leak(i, X, indptr, coordinates, totals[i], s, a, t, nu, leak)
            if count > 0 and not (back or found < left[i]):
                back = True
                for r in range(first, end):
                    a[r] = before[r - first]
                continue
            left[i] = found
            if back or count == MAX_SHARES or not found > goal * scale[i]:
                break
            if not _directions(i, X, rows, indptr, a, leak, H, y, unit, room):
                break
            for r in range(first, end):
                change = 0.0
                for j in range(d):
                    change += X[r, j] * y[j]
                before[r - first] = a[r]
                a[r] = min(max(a[r] + room[r - first] * change, rows[r].low), rows[r].high)
