"""Compiled proximal points that follow their arguments from call to call.

As long as the same rows are at their kinks and the same coordinates move, optimality is a smooth
system of equations, linear where no row is curved. The inverse of its matrix is kept for every
node: a new argument then takes a product with it, and a look at whether all is optimal. Where it
is not, multipliers and signs correct the guess and the matrix is made anew, as in
`gtvcvx.losses.node._active_set`; that mostly ends after a step or two. From nothing, and without
an end, `gtvcvx.losses.node._minimize` is left.

The steps are Newton's on the curved rows, with the matrix of an earlier point while that converges
fast. They are damped by a rule that needs no search [1]_: the rows' curvature changes by at most a
factor exp(r) over a step that changes what is scaled to r.

References
----------
.. [1] T. Sun, Q. Tran-Dinh, "Generalized self-concordant functions: a recipe for Newton-type
   methods", Mathematical Programming 178, 2019.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, Records
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._active_set import (
    MANY_TIES,
    MORE_TIES,
    correct_moving,
    correct_row,
    resting_place,
)
from gtvcvx.losses.node._newton_systems import DEPENDENT, factorize, substitute
from gtvcvx.losses.node._problem import EPS, TINY, is_free, subgradients
from gtvcvx.losses.node._scalar import KINK, LOGISTIC, POISSON, PSEUDO_HUBER, slope_and_curvature

MAX_STEPS = 25
# What comes next: a look at the point, the map, a step.
LOOK, MAP, STEP = range(3)
# Steps that change curvatures by less than this are Newton's own.
SHORT = 0.3


class Batch(NamedTuple):
    """Losses of k nodes, see `gtvcvx.losses.batched.composite._parts.Parts`.

    A given sum is a row more here: of ones, with a kink without an end.
    """

    X: FloatArray  # (N, d)
    rows: Records  # (N,) of ROW
    indptr: IntArray  # (k + 1,)
    coordinates: Records  # (k, d) of COORDINATE


class Points(NamedTuple):
    """Points and multipliers of k nodes, and the maps by which they follow p of `Node`.

    The arrays are taken from here wherever they are used: local names of them would cost more than
    the arithmetic, as references are counted.
    """

    z: FloatArray  # (k, d)
    a: FloatArray  # (N,), multipliers of the rows
    t: FloatArray  # (k, d), of the coordinates' absolute values and bounds
    inverse: FloatArray  # (k, d, d), dz / dp; zero for resting coordinates
    pull: FloatArray  # (N, d), da / dp of the rows at their kinks; its transpose is dz / dy
    tau: FloatArray  # (k,), for which the maps were made; 0 where there are none
    balanced: FloatArray  # (k, d), the p for which the points are optimal


class Scratch(NamedTuple):
    """Room for one node's work."""

    q: FloatArray  # (d,)
    p: FloatArray  # (d,)
    gradient: FloatArray  # (d,)
    size: FloatArray  # (d,), of what cancels in the gradient
    step: FloatArray  # (d,)
    weight: FloatArray  # (m,), curvatures of the rows
    start: FloatArray  # (2 d + m,), where the node began
    H: FloatArray  # (d, d)
    V: FloatArray  # (ties, d)
    S: FloatArray  # (ties, ties)
    b: FloatArray  # (ties,)
    place: IntArray  # (d + ties,)


def scratch_of(d: int, m: int) -> Scratch:
    """Return room for nodes of at most m rows."""
    ties = MANY_TIES * d + MORE_TIES + 1
    return Scratch(
        q=np.zeros(d),
        p=np.zeros(d),
        gradient=np.zeros(d),
        size=np.zeros(d),
        step=np.zeros(d),
        weight=np.zeros(m),
        start=np.zeros(2 * d + m),
        H=np.zeros((d, d)),
        V=np.zeros((ties, d)),
        S=np.zeros((ties, ties)),
        b=np.zeros(ties),
        place=np.zeros(d + ties, dtype=np.int64),
    )


@compiled(inline="always")
def at_kink(row: Any, a: float) -> bool:
    """Say whether a row is guessed to be at its kink, by its multiplier."""
    return bool(row.kind == KINK and row.low < a < row.high)


@compiled(inline="always")
def _balance(i: int, batch: Batch, points: Points, scratch: Scratch) -> tuple[float, bool]:
    """Write slopes, curvatures and the gradient; return the kinks' relative error.

    Returns, too, whether rows that are not at their kinks are on the wrong side.
    """
    d, first, last = len(scratch.q), batch.indptr[i], batch.indptr[i + 1]
    away, reach, crossed = 0.0, 0.0, False
    for j in range(d):
        linear = scratch.q[j] * points.z[i, j]
        scratch.gradient[j] = linear - scratch.p[j] + points.t[i, j]
        scratch.size[j] = abs(linear) + abs(scratch.p[j]) + abs(points.t[i, j])
        reach = max(reach, abs(points.z[i, j]))
    for r in range(first, last):
        row = batch.rows[r]
        image, bulk, spread = 0.0, abs(row.y), 0.0
        for j in range(d):
            image += batch.X[r, j] * points.z[i, j]
            bulk += abs(batch.X[r, j] * points.z[i, j])
            spread += abs(batch.X[r, j])
        noise = 0.0
        if row.kind != KINK:
            points.a[r], scratch.weight[r - first] = slope_and_curvature(row, image)
            noise = scratch.weight[r - first] * bulk
        elif row.low < points.a[r] < row.high:
            bulk = abs(row.y) + (spread * reach if row.high < math.inf else 0.0)
            away = max(away, abs(row.y - image) / (bulk + TINY))
        else:
            if correct_row(row, image - row.y, points.a[r]) != points.a[r]:
                crossed = True
        noise += abs(points.a[r])
        for j in range(d):
            scratch.gradient[j] += batch.X[r, j] * points.a[r]
            scratch.size[j] += abs(batch.X[r, j]) * noise
    return away, crossed


@compiled(inline="always")
def _error(scratch: Scratch) -> float:
    """Return the relative error of the gradient, infinite where it is no number."""
    worst = 0.0
    for j in range(len(scratch.gradient)):
        # Also where it is not a number.
        if not abs(scratch.gradient[j]) <= worst * scratch.size[j]:
            ratio = abs(scratch.gradient[j]) / scratch.size[j]
            worst = ratio if ratio < math.inf else math.inf
    return worst


@compiled(inline="always")
def _rest(i: int, batch: Batch, points: Points, scratch: Scratch) -> bool:
    """Let resting coordinates take what is left of the gradient; say whether some cannot."""
    changed = False
    for j in range(len(scratch.q)):
        coordinate, t = batch.coordinates[i, j], points.t[i, j]
        if abs(t) != coordinate.kappa:
            left = t - scratch.gradient[j]
            low, high = subgradients(coordinate, points.z[i, j])
            points.t[i, j] = min(max(left, low), high)
            scratch.gradient[j] += points.t[i, j] - t
            if points.t[i, j] != left:
                changed = True
    return changed


@compiled(inline="always")
def _cross(i: int, batch: Batch, points: Points) -> None:
    """Bring rows that are on the wrong side to their kinks."""
    for r in range(batch.indptr[i], batch.indptr[i + 1]):
        row = batch.rows[r]
        if row.kind == KINK and not row.low < points.a[r] < row.high:
            residual = -row.y
            for j in range(points.z.shape[1]):
                residual += batch.X[r, j] * points.z[i, j]
            points.a[r] = correct_row(row, residual, points.a[r])


@compiled
def _invert(H: FloatArray, n: int) -> None:
    """Invert the leading n x n block, lower triangular, in place."""
    for j in range(n):
        H[j, j] = 1.0 / H[j, j]
    for j in range(n):
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total -= H[i, k] * H[k, j]
            H[i, j] = total * H[i, i]


@compiled(inline="always")
def _map_moving(i: int, batch: Batch, points: Points, scratch: Scratch) -> int:
    """Make the map of the coordinates that move, without ties; return how many move."""
    first, d = batch.indptr[i], len(scratch.q)
    n, smallest = 0, math.inf
    for j in range(d):
        for k in range(d):
            points.inverse[i, j, k] = 0.0
        if abs(points.t[i, j]) == batch.coordinates[i, j].kappa:
            scratch.place[n] = j
            smallest = min(smallest, scratch.q[j])
            for k in range(n):
                scratch.H[n, k] = 0.0
            scratch.H[n, n] = scratch.q[j]
            n += 1
    for r in range(first, batch.indptr[i + 1]):
        if batch.rows[r].kind != KINK and scratch.weight[r - first] > 0.0:
            for k in range(n):
                scaled = scratch.weight[r - first] * batch.X[r, scratch.place[k]]
                for j in range(k + 1):
                    scratch.H[k, j] += scaled * batch.X[r, scratch.place[j]]
    factorize(scratch.H, n, 0.5 * smallest)
    _invert(scratch.H, n)
    for k in range(n):
        for j in range(k + 1):
            total = 0.0
            for s in range(k, n):
                total += scratch.H[s, k] * scratch.H[s, j]
            points.inverse[i, scratch.place[k], scratch.place[j]] = total
            points.inverse[i, scratch.place[j], scratch.place[k]] = total
    return n


@compiled(inline="always")
def _map_ties(i: int, n: int, batch: Batch, points: Points, scratch: Scratch) -> bool:
    """Keep rows at their kinks under the map; say no if they are far too many for n coordinates."""
    d, ties = len(scratch.q), 0
    for r in range(batch.indptr[i], batch.indptr[i + 1]):
        if at_kink(batch.rows[r], points.a[r]):
            if ties == MANY_TIES * n + MORE_TIES or (n == 0 and batch.rows[r].high == math.inf):
                return False
            scratch.place[ties] = r
            ties += 1
    largest = 0.0
    for c in range(ties):
        for k in range(d):
            scratch.V[c, k] = 0.0
            for j in range(d):
                scratch.V[c, k] += points.inverse[i, k, j] * batch.X[scratch.place[c], j]
        for e in range(c + 1):
            scratch.S[c, e] = 0.0
            for j in range(d):
                scratch.S[c, e] += scratch.V[c, j] * batch.X[scratch.place[e], j]
        largest = max(largest, scratch.S[c, c])
    factorize(scratch.S, ties, DEPENDENT * largest if largest > 0.0 else 1.0)
    for k in range(d if ties else 0):
        for c in range(ties):
            scratch.b[c] = scratch.V[c, k]
        substitute(scratch.S, ties, scratch.b)
        for j in range(k, d):
            for c in range(ties):
                points.inverse[i, k, j] -= scratch.b[c] * scratch.V[c, j]
            points.inverse[i, j, k] = points.inverse[i, k, j]
        for c in range(ties):
            points.pull[scratch.place[c], k] = scratch.b[c]
    return True


@compiled(inline="always")
def _place(i: int, batch: Batch, points: Points, scratch: Scratch) -> None:
    """Bring resting coordinates to their places, and rows to their kinks."""
    d = len(scratch.q)
    for j in range(d):
        scratch.step[j] = 0.0
        coordinate = batch.coordinates[i, j]
        if abs(points.t[i, j]) != coordinate.kappa:
            points.z[i, j] = resting_place(coordinate, points.t[i, j])
    for r in range(batch.indptr[i], batch.indptr[i + 1]):
        if at_kink(batch.rows[r], points.a[r]):
            offset = batch.rows[r].y
            for j in range(d):
                offset -= batch.X[r, j] * points.z[i, j]
            for j in range(d):
                scratch.step[j] += points.pull[r, j] * offset
    for j in range(d):
        points.z[i, j] += scratch.step[j]


@compiled(inline="always")
def _safe_length(i: int, batch: Batch, scratch: Scratch) -> float:
    """Return the share of the step that is safe, by what it changes of the curvatures."""
    longest = 0.0
    for r in range(batch.indptr[i], batch.indptr[i + 1]):
        kind = batch.rows[r].kind
        if kind in (LOGISTIC, POISSON, PSEUDO_HUBER):
            change = 0.0
            for j in range(len(scratch.step)):
                change += batch.X[r, j] * scratch.step[j]
            scale = 1.5 / batch.rows[r].delta if kind == PSEUDO_HUBER else 1.0
            longest = max(longest, scale * abs(change))
    return math.log1p(longest) / longest if longest > SHORT else 1.0


@compiled(inline="always")
def _step(i: int, batch: Batch, points: Points, scratch: Scratch) -> bool:
    """Take a step by the map against the gradient; say whether the guess had to change."""
    d, changed = len(scratch.q), False
    for k in range(d):
        total = 0.0
        for j in range(d):
            total -= points.inverse[i, k, j] * scratch.gradient[j]
        scratch.step[k] = total
    length = _safe_length(i, batch, scratch)
    for j in range(d):
        z = points.z[i, j] + length * scratch.step[j]
        coordinate = batch.coordinates[i, j]
        if is_free(coordinate) or abs(points.t[i, j]) != coordinate.kappa:
            points.z[i, j] = z
        else:
            points.z[i, j], points.t[i, j] = correct_moving(coordinate, z, points.t[i, j])
            if points.z[i, j] != z:
                changed = True
    for r in range(batch.indptr[i], batch.indptr[i + 1]):
        row = batch.rows[r]
        if at_kink(row, points.a[r]):
            change = 0.0
            for j in range(d):
                change -= points.pull[r, j] * scratch.gradient[j]
            found = points.a[r] + length * change
            points.a[r] = min(max(found, row.low), row.high)
            if points.a[r] != found:
                changed = True
    return changed


@compiled
def _make_map(i: int, batch: Batch, points: Points, scratch: Scratch) -> bool:
    """Make the map for the guess that the multipliers are, and bring the point there.

    Says no if the guess is of no use.
    """
    n = _map_moving(i, batch, points, scratch)
    if not _map_ties(i, n, batch, points, scratch):
        return False
    _place(i, batch, points, scratch)
    return True


@compiled(inline="always")
def follow(i: int, batch: Batch, points: Points, scratch: Scratch, tolerance: float) -> bool:
    """Minimize node i's problem, from and to its point; say whether that was successful."""
    stage, before = STEP if points.tau[i] > 0.0 else LOOK, math.inf
    found = False
    for j in range(len(scratch.q)):
        scratch.gradient[j] = points.balanced[i, j] - scratch.p[j]
    for _ in range(3 * MAX_STEPS):
        changed = False
        if stage == MAP and not _make_map(i, batch, points, scratch):
            break
        if stage == STEP:
            changed = _step(i, batch, points, scratch)
        away, crossed = _balance(i, batch, points, scratch)
        if stage != STEP:
            stage += 1
            continue
        if crossed:
            _cross(i, batch, points)
        rested = _rest(i, batch, points, scratch)
        changed = changed or crossed or rested
        worst = _error(scratch)
        found = not changed and max(worst, away) <= tolerance
        if found or not worst < math.inf:
            break
        # Would two more steps do that shrink the error as this one did?
        if changed or away > tolerance or worst * (worst / before) ** 2 > tolerance:
            stage = MAP
        before = worst
    if found:
        for j in range(len(scratch.q)):
            points.balanced[i, j] = scratch.p[j] + scratch.gradient[j]
    return found


@compiled(inline="always")
def _keep(i: int, batch: Batch, points: Points, scratch: Scratch, back: bool) -> None:
    """Remember where a node begins, or go back there."""
    d, first = len(scratch.q), batch.indptr[i]
    for j in range(d):
        if back:
            points.z[i, j], points.t[i, j] = scratch.start[j], scratch.start[d + j]
        else:
            scratch.start[j], scratch.start[d + j] = points.z[i, j], points.t[i, j]
    for r in range(first, batch.indptr[i + 1]):
        if back:
            points.a[r] = scratch.start[2 * d + r - first]
        else:
            scratch.start[2 * d + r - first] = points.a[r]


@compiled
def follow_all(
    batch: Batch,
    points: Points,
    scratch: Scratch,
    v: FloatArray,
    tau: FloatArray,
    left: BoolArray,
) -> int:
    """Write ``argmin_z L_i(z) + ||z - v_i||^2 / (2 tau_i)`` to the points of nodes that are left.

    Where that does not succeed, points stay as they were, and the nodes are left; returns how many
    they are.
    """
    count = 0
    for i in range(len(v)):
        if not left[i]:
            continue
        if points.tau[i] != tau[i]:
            points.tau[i] = 0.0
        for j in range(len(scratch.q)):
            scratch.q[j] = batch.coordinates[i, j].mu + 1.0 / tau[i]
            scratch.p[j] = batch.coordinates[i, j].linear + v[i, j] / tau[i]
        _keep(i, batch, points, scratch, False)
        tolerance = 2.0 * EPS * (8.0 + math.sqrt(batch.indptr[i + 1] - batch.indptr[i]))
        left[i] = not follow(i, batch, points, scratch, tolerance)
        points.tau[i] = 0.0 if left[i] else tau[i]
        if left[i]:
            count += 1
            _keep(i, batch, points, scratch, True)
    return count
