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
from gtvcvx.losses.node._problem import EPS, Node, Point, dot, residual_size
from gtvcvx.losses.node._scalar import KINK, row_gap, row_value

# The first step size, relative to the inverse curvature, and its growth from step to step.
FIRST_STEP, GROWTH, LARGEST_STEP = 1e2, 1e2, 1e17
MAX_SHARES = 20
# Rounding may leave this share of what adds up to s, and then longer steps do not help.
STALLED = 1e-13
# A leak of this share of what adds up to s is rounding; it costs its product with the first point.
ROUNDING = 1e-12
# Multipliers whose sum is above the best by this share of what adds up to it are the best ones.
EXACT = 1e-13
# A residual below this share of what cancels in it is guessed to be at its kink.
AT_KINK = 1e-6


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
    room, unit = np.empty(m), np.empty(d)
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
        # Equilibrated, since columns may be in different units.
        for j in range(d):
            unit[j] = 1.0 / math.sqrt(H[j, j]) if H[j, j] > 0.0 else 1.0
        for i in range(d):
            y[i] *= unit[i]
            for j in range(i + 1):
                H[i, j] *= unit[i] * unit[j]
        factorize(H, d, 1e-14)
        substitute(H, d, y)
        for j in range(d):
            y[j] *= unit[j]
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
def node_gap(
    X: FloatArray, rows: Records, coordinates: Records, w: FloatArray, a: FloatArray, t: FloatArray
) -> float:
    """Sum ``f(z) + f*(a) - a z >= 0`` over the rows and coordinates of one node."""
    gap = 0.0
    for r in range(len(a)):
        gap += row_gap(rows[r], dot(X[r], w), a[r])
    for j in range(len(w)):
        gap += coordinate_gap(coordinates[j], w[j], t[j])
    return gap


@compiled
def _size_of_value(X: FloatArray, rows: Records, s: FloatArray, w: FloatArray) -> float:
    """Size of what cancels in ``<s, w> - L(w)``."""
    size = 0.0
    for r in range(len(rows)):
        size += abs(row_value(rows[r], dot(X[r], w)))
    for j in range(len(s)):
        size += abs(s[j] * w[j])
    return size


@compiled
def _guess(X: FloatArray, rows: Records, coordinates: Records, point: Point) -> None:
    """Write multipliers with which z would be optimal, inside their intervals at the kinks."""
    for r in range(len(rows)):
        if rows[r].kind == KINK:
            residual = dot(X[r], point.z) - rows[r].y
            size = residual_size(rows[r], X[r], point.z, 0.0)
            point.a[r] = rows[r].high if residual > 0.0 else rows[r].low
            if abs(residual) <= AT_KINK * size:
                point.a[r] = 0.5 * (rows[r].low + rows[r].high)
    for j in range(len(coordinates)):
        kappa = coordinates[j].kappa
        point.t[j] = 0.0
        if point.z[j] != 0.0:
            point.t[j] = math.copysign(kappa, point.z[j])


@compiled
def _proximal_step(
    X: FloatArray, rows: Records, coordinates: Records, total: float, s: FloatArray,
    slopes: Point, lengths: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Maximize ``<s, z> - L(z) - sum_j (z_j - slopes.z_j)^2 / (2 lengths_j)``, in place.

    Returns what the multipliers miss of s, and the size of what adds up to it.
    """
    m, d = X.shape
    start, q, p = slopes.z.copy(), np.empty(d), np.empty(d)
    for j in range(d):
        q[j] = coordinates[j].mu + 1.0 / lengths[j]
        p[j] = coordinates[j].linear + s[j] + start[j] / lengths[j]
    minimize(Node(X, rows, coordinates, q, p, total), slopes)
    square, scale = 0.0, 0.0
    for j in range(d):
        square += ((slopes.z[j] - start[j]) / lengths[j]) ** 2
        size = abs(s[j])
        for r in range(m):
            size += abs(X[r, j] * slopes.a[r])
        scale = max(scale, size)
    return math.sqrt(square), scale


@compiled
def _first_lengths(X: FloatArray, rows: Records, coordinates: Records) -> FloatArray:
    """Return the first step sizes, which follow the curvatures: columns may differ in units."""
    d = len(coordinates)
    curvature, largest = np.empty(d), 0.0
    for j in range(d):
        curvature[j] = coordinates[j].mu
        for r in range(len(rows)):
            curvature[j] += rows[r].c * X[r, j] * X[r, j]
        largest = max(largest, curvature[j])
    for j in range(d):
        # No curvature at all: any step will do.
        typical = curvature[j] if curvature[j] > 0.0 else largest
        curvature[j] = FIRST_STEP / (typical if typical > 0.0 else 1.0)
    return curvature


@compiled
def _ascend(
    X: FloatArray,
    rows: Records,
    coordinates: Records,
    total: float,
    s: FloatArray,
    point: Point,
    leak: FloatArray,
    lengths: FloatArray,
    rough: bool,
) -> bool:
    """Run the proximal point method from steps of some lengths; see `maximize`.

    Says whether multipliers were found that miss no more of s than rounding.
    """
    m, d = X.shape
    first = point.z.copy()
    reach = math.sqrt(dot(first, first))
    slopes = Point(point.z.copy(), point.a.copy(), np.zeros(d), point.nu.copy())
    _guess(X, rows, coordinates, slopes)
    trial = Point(slopes.z, np.empty(m), np.empty(d), np.empty(1))
    least_leak, least_gap, least_above, before = math.inf, math.inf, math.inf, math.inf
    step, size = FIRST_STEP, _size_of_value(X, rows, s, first)
    while step <= LARGEST_STEP:
        moved, scale = _proximal_step(X, rows, coordinates, total, s, slopes, lengths)
        goal = 8.0 * EPS * scale
        trial.a[:], trial.nu[:] = slopes.a, slopes.nu
        left = _share(X, rows, coordinates, s, total, trial, leak, goal)
        cost = 2.0 * left * reach
        left = 0.0 if left <= ROUNDING * scale else left
        gap = cost + node_gap(X, rows, coordinates, first, trial.a, trial.t)
        if left < least_leak or (left == least_leak and gap < least_gap):
            least_leak, least_gap = left, gap
            point.a[:], point.nu[:] = trial.a, trial.nu
        above = cost + node_gap(X, rows, coordinates, slopes.z, trial.a, trial.t)
        if left > 0.0 or above <= least_above:
            # Off the domain the supremum is far out, and each step leads farther.
            least_above = above if left == 0.0 else math.inf
            point.z[:] = slopes.z
        best = left == 0.0 and above <= EXACT * size
        stalled = moved <= goal or (moved > 0.3 * before and moved <= STALLED * scale)
        if rough or best or stalled:
            break
        before = moved
        step *= GROWTH
        for j in range(d):
            lengths[j] *= GROWTH
    return least_leak == 0.0


@compiled
def maximize(
    X: FloatArray,
    rows: Records,
    coordinates: Records,
    total: float,
    s: FloatArray,
    point: Point,
    leak: FloatArray,
    rough: bool,
) -> float:
    """Maximize ``<s, w> - L(w)`` from w = point.z; return the norm of the leak.

    On return z is the best point, and a, t, nu are the best multipliers up to rounding with
    ``X^T a + t + nu 1 + leak = s``; t is that of all of g, not only of its kinks. A rough answer
    is what the first step gives: the slopes near the first point, and what s has beside them.
    """
    start = Point(point.z.copy(), point.a.copy(), point.t, point.nu.copy())
    lengths = _first_lengths(X, rows, coordinates)
    if not (_ascend(X, rows, coordinates, total, s, point, leak, lengths, rough) or rough):
        # Off the domain steps of one length make the leak the distance from it.
        point.z[:], point.a[:], point.nu[:] = start.z, start.a, start.nu
        lengths[:] = _first_lengths(X, rows, coordinates).min()
        _ascend(X, rows, coordinates, total, s, point, leak, lengths, rough)
    return _leak(X, coordinates, s, total, point, leak)


@compiled
def complete(
    X: FloatArray,
    rows: Records,
    coordinates: Records,
    total: float,
    s: FloatArray,
    point: Point,
    leak: FloatArray,
) -> float:
    """Complete multipliers a of the rows that give s up to rounding; return the norm of the leak.

    It is infinite if they do not, or if some are NaN. They are not the best ones, but where there
    are kinks those are found slowly, and what a repaired flow has come with is nearly as good.
    """
    kinks, known = False, True
    for r in range(len(rows)):
        kinks = kinks or rows[r].kind == KINK
        known = known and not math.isnan(point.a[r])
    if not (kinks and known):
        for r in range(len(rows)):
            point.a[r] = min(max(0.0, rows[r].low), rows[r].high)
        return math.inf
    scale = 0.0
    for j in range(len(s)):
        size = abs(s[j])
        for r in range(len(rows)):
            size += abs(X[r, j] * point.a[r])
        scale = max(scale, size)
    left = _share(X, rows, coordinates, s, total, point, leak, 8.0 * EPS * scale)
    return left if left <= ROUNDING * scale else math.inf
