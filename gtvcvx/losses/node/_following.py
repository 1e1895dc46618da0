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

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._active_set import correct_moving, correct_row
from gtvcvx.losses.node._maps import Batch, Points, Scratch, at_kink, make_map
from gtvcvx.losses.node._problem import EPS, TINY, is_free, subgradients
from gtvcvx.losses.node._scalar import KINK, LOGISTIC, POISSON, PSEUDO_HUBER
from gtvcvx.losses.node._slopes import slope_and_curvature

MAX_STEPS = 25
# What comes next: a look at the point, the map, a step.
LOOK, MAP, STEP = range(3)
# Steps that change curvatures by less than this are Newton's own.
SHORT = 0.3


@compiled(small=True, allocates=False, inner=True)
def _balance(
    i: int,
    batch: Batch,
    points: Points,
    scratch: Scratch,
    correct: bool,
    kinks: bool | None,
    curves: bool | None,
) -> tuple[float, bool]:
    """Write slopes, curvatures and the gradient; return the kinks' relative error.

    Returns, too, whether rows that are not at their kinks are on the wrong side; if told to correct
    that, it brings them to their kinks, for the next map.
    """
    d, first, last = len(scratch.q), batch.indptr[i], batch.indptr[i + 1]
    away, reach, crossed = 0.0, 0.0, False
    for j in range(d):
        linear = scratch.q[j] * points.z[i, j]
        scratch.gradient[j] = linear - scratch.p[j] + points.t[i, j]
        scratch.size[j] = abs(linear) + abs(scratch.p[j]) + abs(points.t[i, j])
        reach = max(reach, abs(points.z[i, j]))
    for r in range(first, last):
        row, right = batch.rows[r], points.a[r]
        image, bulk, spread = 0.0, abs(row.y), 0.0
        for j in range(d):
            image += batch.X[r, j] * points.z[i, j]
            bulk += abs(batch.X[r, j] * points.z[i, j])
            spread += abs(batch.X[r, j])
        noise = 0.0
        # The compiler leaves out the branches that no row takes.
        if curves is not None and row.kind != KINK:
            points.a[r], scratch.weight[r - first] = slope_and_curvature(row, image)
            right = points.a[r]
            noise = scratch.weight[r - first] * bulk
        elif kinks is not None:
            if row.low < points.a[r] < row.high:
                bulk = abs(row.y) + (spread * reach if row.high < math.inf else 0.0)
                away = max(away, abs(row.y - image) / (bulk + TINY))
            else:
                right = correct_row(row, image - row.y, points.a[r])
                crossed = crossed or right != points.a[r]
        noise += abs(points.a[r])
        for j in range(d):
            scratch.gradient[j] += batch.X[r, j] * points.a[r]
            scratch.size[j] += abs(batch.X[r, j]) * noise
        if correct:
            points.a[r] = right
    return away, crossed


@compiled(small=True, allocates=False, inner=True)
def _rest(i: int, batch: Batch, points: Points, scratch: Scratch) -> tuple[bool, float]:
    """Let resting coordinates take what is left of the gradient.

    Returns whether some cannot, and the relative error of the gradient: infinite where it is no
    number.
    """
    changed, worst = False, 0.0
    for j in range(len(scratch.q)):
        coordinate, t = batch.coordinates[i, j], points.t[i, j]
        if abs(t) != coordinate.kappa:
            left = t - scratch.gradient[j]
            low, high = subgradients(coordinate, points.z[i, j])
            points.t[i, j] = min(max(left, low), high)
            scratch.gradient[j] += points.t[i, j] - t
            changed = changed or points.t[i, j] != left
        # Also where it is not a number.
        if not abs(scratch.gradient[j]) <= worst * scratch.size[j]:
            ratio = abs(scratch.gradient[j]) / scratch.size[j]
            worst = ratio if ratio < math.inf else math.inf
    return changed, worst


@compiled(small=True, allocates=False, inner=True)
def _safe_length(i: int, batch: Batch, scratch: Scratch, curves: bool | None) -> float:
    """Return the share of the step that is safe, by what it changes of the curvatures."""
    if curves is None:
        return 1.0
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


@compiled(small=True, allocates=False, inner=True)
def _step(i: int, batch: Batch, points: Points, scratch: Scratch, kinks: bool | None) -> bool:
    """Take a step by the map against the gradient; say whether the guess had to change."""
    d, changed = len(scratch.q), False
    for k in range(d):
        total = 0.0
        for j in range(d):
            total -= points.inverse[i, k, j] * scratch.gradient[j]
        scratch.step[k] = total
    length = _safe_length(i, batch, scratch, batch.curves)
    for j in range(d):
        z = points.z[i, j] + length * scratch.step[j]
        coordinate = batch.coordinates[i, j]
        if is_free(coordinate) or abs(points.t[i, j]) != coordinate.kappa:
            points.z[i, j] = z
        else:
            points.z[i, j], points.t[i, j] = correct_moving(coordinate, z, points.t[i, j])
            if points.z[i, j] != z:
                changed = True
    if kinks is None:
        return changed
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


@compiled(inline="always")
def follow(i: int, batch: Batch, points: Points, scratch: Scratch, tolerance: float) -> bool:
    """Minimize node i's problem, from and to its point; say whether that was successful."""
    stage, before = STEP if points.tau[i] > 0.0 else LOOK, math.inf
    found = False
    for j in range(len(scratch.q)):
        scratch.gradient[j] = points.balanced[i, j] - scratch.p[j]
    for _ in range(3 * MAX_STEPS):
        changed = False
        if stage == MAP:
            scratch.maps[0] += 1
            if not make_map(i, batch, points, scratch):
                break
        if stage == STEP:
            changed = _step(i, batch, points, scratch, batch.kinks)
        away, crossed = _balance(
            i, batch, points, scratch, stage == STEP, batch.kinks, batch.curves
        )
        if stage != STEP:
            stage += 1
            continue
        rested, worst = _rest(i, batch, points, scratch)
        changed = changed or crossed or rested
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


@compiled(small=True, allocates=False, inner=True)
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


@compiled(small=True, allocates=False)
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
        # No literals: it would be compiled twice.
        _keep(i, batch, points, scratch, not left[i])
        tolerance = 2.0 * EPS * (8.0 + math.sqrt(batch.indptr[i + 1] - batch.indptr[i]))
        left[i] = not follow(i, batch, points, scratch, tolerance)
        points.tau[i] = 0.0 if left[i] else tau[i]
        if left[i]:
            count += 1
            _keep(i, batch, points, scratch, left[i])
    return count
