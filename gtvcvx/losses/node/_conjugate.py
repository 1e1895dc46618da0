r"""Compiled conjugates of one node's loss: the best multipliers for a linear term.

With g_j the separable part of the loss in coordinate j, ``L*(s)`` is the least value of
``sum_r f_r*(a_r) + sum_j g_j*(t_j) + T nu`` over multipliers with ``X^T a + t + nu 1 = s``. Any
feasible multipliers bound it from above, which is what a lower bound on the primal needs; the
proximal point method, applied to ``L - <s, .>``, finds the best ones, and what is left of the
equation, the leak, is shared out at the end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, Records
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._minimize import minimize
from gtvcvx.losses.node._newton_systems import factorize, substitute
from gtvcvx.losses.node._problem import EPS, Node, Point

# The first step size, relative to the inverse curvature, and its growth from step to step.
FIRST_STEP, GROWTH, LARGEST_STEP = 1e2, 1e2, 1e17
MAX_SHARES = 20
# Rounding may leave this share of what adds up to s, and then longer steps do not help.
STALLED = 1e-13
# Beyond this multiple of rounding, s counts as off the domain.
OUTSIDE = 1e5


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


@compiled
def _leak(
    X: FloatArray, coordinates: Records, s: FloatArray, total: float, point: Point, leak: FloatArray
) -> float:
    """Set t to what g has to take of s, write what it cannot take; return its norm.

    Where the sum is given, nu is raised until nothing is left.
    """
    m, d = X.shape
    a, t, nu = point.a, point.t, point.nu
    summed = not math.isnan(total)
    raised = 0.0
    for j in range(d):
        t[j] = s[j] - nu[0] if summed else s[j]
        for r in range(m):
            t[j] -= X[r, j] * a[r]
        low, high = coordinate_domain(coordinates[j])
        raised = max(raised, t[j] - high)
    square = 0.0
    if summed:
        nu[0] += raised
    for j in range(d):
        if summed:
            t[j] -= raised
        low, high = coordinate_domain(coordinates[j])
        inside = min(max(t[j], low), high)
        leak[j] = t[j] - inside
        t[j] = inside
        square += leak[j] * leak[j]
    return math.sqrt(square)


@compiled
def _share(
    X: FloatArray, rows: Records, coordinates: Records, s: FloatArray, total: float, point: Point,
    leak: FloatArray, goal: float,
) -> float:  # fmt: skip
    """Share the leak out among the multipliers that have room; return what is left of it."""
    m, d = X.shape
    a = point.a
    left = _leak(X, coordinates, s, total, point, leak)
    H, y, trial = np.empty((d, d)), np.empty(d), a.copy()
    room = np.empty(m)
    for _ in range(MAX_SHARES):
        if left <= goal:
            break
        H[:] = 0.0
        for r in range(m):
            square = 0.0
            for j in range(d):
                square += X[r, j] * X[r, j]
            spread = rows[r].high - rows[r].low
            if spread == math.inf:
                spread = rows[r].c + abs(a[r])
            slack = min(a[r] - rows[r].low, rows[r].high - a[r])
            room[r] = 0.0
            if square > 0.0:
                room[r] = (min(slack, spread) + 1e-3 * spread) / square
            for i in range(d):
                for j in range(i + 1):
                    H[i, j] += room[r] * X[r, i] * X[r, j]
        largest = 0.0
        for j in range(d):
            if leak[j] == 0.0:
                # The coordinate takes what comes.
                for i in range(d):
                    H[max(i, j), min(i, j)] = 0.0
            y[j] = leak[j]
            largest = max(largest, H[j, j])
        for j in range(d):
            if leak[j] == 0.0:
                H[j, j] = largest
        if largest == 0.0:
            break
        factorize(H, d, 1e-14 * largest)
        substitute(H, d, y)
        trial[:] = a
        for r in range(m):
            change = 0.0
            for j in range(d):
                change += X[r, j] * y[j]
            a[r] = min(max(a[r] + room[r] * change, rows[r].low), rows[r].high)
        found = _leak(X, coordinates, s, total, point, leak)
        if not found < left:
            a[:] = trial
            left = _leak(X, coordinates, s, total, point, leak)
            break
        left = found
    return left


@compiled
def maximize(
    X: FloatArray,
    rows: Records,
    coordinates: Records,
    total: float,
    s: FloatArray,
    point: Point,
    leak: FloatArray,
) -> float:
    """Maximize ``<s, w> - L(w)`` from w = point.z; return the norm of the leak.

    On return z is the last point, and a, t, nu are multipliers with
    ``X^T a + t + nu 1 + leak = s``; t is that of all of g, not only of its kinks.
    """
    m, d = X.shape
    q, p = np.empty(d), np.empty(d)
    curvature = 0.0
    for j in range(d):
        curvature += coordinates[j].mu
    for r in range(m):
        for j in range(d):
            curvature += rows[r].c * X[r, j] * X[r, j]
    curvature = curvature if curvature > 0.0 else 1.0
    goal, before, left = 0.0, math.inf, 0.0
    start, kinks, least = point.z.copy(), np.zeros(d), math.inf
    best = Point(point.z.copy(), point.a.copy(), point.t, point.nu.copy())
    length = FIRST_STEP / curvature
    while length <= LARGEST_STEP / curvature:
        for j in range(d):
            q[j] = coordinates[j].mu + 1.0 / length
            p[j] = coordinates[j].linear + s[j] + start[j] / length
        node = Node(X, rows, coordinates, q, p, total)
        minimize(node, Point(point.z, point.a, kinks, point.nu))
        square, scale = 0.0, 0.0
        for j in range(d):
            square += ((point.z[j] - start[j]) / length) ** 2
            size = abs(s[j])
            for r in range(m):
                size += abs(X[r, j] * point.a[r])
            scale = max(scale, size)
        moved = math.sqrt(square)
        goal = 8.0 * EPS * scale
        left = _leak(X, coordinates, s, total, point, leak)
        if left < least:
            least = left
            best.z[:], best.a[:], best.nu[:] = point.z, point.a, point.nu
        stalled = moved > 0.3 * before and moved <= STALLED * scale
        if moved <= goal or stalled:
            break
        start[:] = point.z
        before = moved
        length *= GROWTH
    if least > OUTSIDE * goal and left > least:
        # s is off the domain, and its distance never becomes more, but for rounding.
        point.z[:], point.a[:], point.nu[:] = best.z, best.a, best.nu
    return _share(X, rows, coordinates, s, total, point, leak, goal)
