r"""Proximal points of nodes with few smooth rows in many coordinates: Newton's method on the rows.

With the products zeta of the rows as unknowns, a = f'(zeta) are their multipliers, and every
coordinate follows by itself:

.. math:: z_j(a) = \mathrm{clip}(\mathrm{shrink}(p_j - \sum_r a_r x_{rj}, k_j) / q_j, l_j, h_j).

What is left is ``X z(f'(zeta)) = zeta``, as many equations as there are rows. Its semismooth
Newton steps are those of the augmented Lagrangian method of `gtvcvx.losses.node._multipliers`, go
through the coordinates in long plain loops, and end after a few steps from the products of a
similar problem. Nodes where they do not are left to `gtvcvx.losses.node._minimize`.
"""

from __future__ import annotations

import math

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, Records
from gtvcvx.compiled import FAST, compiled
from gtvcvx.losses.node._newton_systems import factorize, substitute
from gtvcvx.losses.node._problem import EPS, Room
from gtvcvx.losses.node._scalar import KINK
from gtvcvx.losses.node._slopes import slope_and_curvature

MAX_STEPS = 30
# Steps that lead away are halved, down to this share.
SHORTEST = 0.1
# Products that miss no more than this share of their summands are a linear step away.
CLOSE = 1e-9


@compiled(fastmath=FAST, allocates=False, inner=True)
def _products(X: FloatArray, r: int, z: FloatArray) -> float:
    total = 0.0
    for j in range(len(z)):
        total += X[r, j] * z[j]
    return total


@compiled(fastmath=FAST, allocates=False, inner=True)
def take_coordinates(
    own: Records, v: FloatArray, tau: float, q: FloatArray, p: FloatArray, bounds: FloatArray
) -> None:
    """Write what a node's coordinates have with ``||z - v||^2 / (2 tau)``; kinks and ends apart."""
    for j in range(len(v)):
        c = own[j]
        q[j] = c.mu + 1.0 / tau
        p[j] = c.linear + v[j] / tau
        bounds[0, j], bounds[1, j], bounds[2, j] = c.kappa, c.lower, c.upper


@compiled(fastmath=FAST, allocates=False, inner=True)
def coordinates_left(
    first: int,
    X: FloatArray,
    m: int,
    q: FloatArray,
    p: FloatArray,
    bounds: FloatArray,
    room: Room,
) -> None:
    """Write what multipliers leave, z(a), and by how much that gives way when more is left.

    To ``gradient``, ``step`` and ``diagonal`` (d,); the multipliers are ``trial.a``.
    """
    left, z, give, d = room.gradient, room.step, room.diagonal, len(q)
    for j in range(d):
        left[j] = p[j]
    for r in range(m):
        a = room.trial.a[r]
        for j in range(d):
            left[j] -= a * X[first + r, j]
    for j in range(d):
        k, inverse = bounds[0, j], 1.0 / q[j]
        shrunk = (max(left[j] - k, 0.0) + min(left[j] + k, 0.0)) * inverse
        z[j] = min(max(shrunk, bounds[1, j]), bounds[2, j])
        moving = z[j] == shrunk and (shrunk != 0.0 or k == 0.0)
        give[j] = inverse if moving else 0.0


@compiled(fastmath=FAST, allocates=False, inner=True)
def _missing(first: int, X: FloatArray, rows: Records, m: int, room: Room) -> float:
    """Write ``X z - zeta`` to ``offset`` (m,); return the largest, relative to its summands."""
    worst = 0.0
    for r in range(m):
        total, size = 0.0, abs(rows[first + r].y)
        for j in range(len(room.step)):
            x = X[first + r, j]
            total += x * room.step[j]
            size += abs(x * room.step[j])
        room.offset[r] = total - room.image[r]
        if not math.isfinite(room.offset[r]):
            return math.inf
        if abs(room.offset[r]) > worst * size:
            worst = abs(room.offset[r]) / size
    return worst


@compiled(fastmath=FAST, allocates=False, inner=True)
def _step(first: int, X: FloatArray, m: int, room: Room) -> None:
    """Move the products zeta by a Newton step: ``(I + G D) dzeta = X z - zeta``.

    D are the rows' curvatures, G what products give way by. ``I + sqrt(D) G sqrt(D)`` has no
    eigenvalue below one.
    """
    system, give = room.system, room.diagonal
    G, H, root, y = system.M, system.H, system.scale, system.inside
    for r in range(m):
        root[r] = math.sqrt(room.weight[r])
        for s in range(r + 1):
            total = 0.0
            for j in range(len(give)):
                total += X[first + r, j] * X[first + s, j] * give[j]
            G[r, s] = total
            H[r, s] = total * root[r] * root[s]
        H[r, r] += 1.0
        y[r] = root[r] * room.offset[r]
    factorize(H, m, 0.5)
    substitute(H, m, y)
    for r in range(m):
        moved = room.offset[r]
        for s in range(m):
            moved -= (G[r, s] if s <= r else G[s, r]) * root[s] * y[s]
        room.change[r] = moved
        room.image[r] += moved


@compiled(fastmath=FAST, allocates=False, inner=True)
def move_along(first: int, X: FloatArray, m: int, bounds: FloatArray, room: Room) -> bool:
    """Move the coordinates along with multipliers that move by ``change``; say if all go on so.

    Points that are told by multipliers alone have products that are wrong by as many roundings as
    their slopes are large: their differences are not.
    """
    left, z, give, ended = room.gradient, room.step, room.diagonal, True
    for j in range(len(z)):
        room.size[j] = 0.0
    for r in range(m):
        for j in range(len(z)):
            room.size[j] -= room.change[r] * X[first + r, j]
    for j in range(len(z)):
        left[j] += room.size[j]
        moved = z[j] + give[j] * room.size[j]
        if give[j] == 0.0:
            # What rests stays there: within kappa, or beyond it at a bound.
            at_end = z[j] == bounds[1, j] or z[j] == bounds[2, j]
            ended = ended and (at_end or abs(left[j]) <= bounds[0, j])
        elif bounds[0, j] > 0.0:
            ended = ended and moved * z[j] > 0.0
        z[j] = min(max(moved, bounds[1, j]), bounds[2, j])
    return ended


@compiled(fastmath=FAST, allocates=False, inner=True)
def _finish(
    first: int, X: FloatArray, rows: Records, m: int, bounds: FloatArray, room: Room, most: float
) -> bool:
    """Move the coordinates along with the products, by a short step; say if that is the end."""
    for r in range(m):
        room.change[r] *= room.weight[r]
        room.trial.a[r] = slope_and_curvature(rows[first + r], room.image[r])[0]
    ended = move_along(first, X, m, bounds, room)
    return bool(ended and _missing(first, X, rows, m, room) <= most)


@compiled(fastmath=FAST, allocates=False, inner=True)
def write_point(
    i: int, first: int, m: int, room: Room, bounds: FloatArray, q: FloatArray,
    z: FloatArray, a: FloatArray, t: FloatArray,
) -> None:  # fmt: skip
    """Write point and multipliers; those of coordinates that move are exactly +-kappa."""
    for r in range(m):
        a[first + r] = room.trial.a[r]
    for j in range(len(q)):
        k, x = bounds[0, j], room.step[j]
        rest = room.gradient[j] - q[j] * x
        z[i, j] = x
        # Where nothing moves what is left is the multiplier, of a bound's side or within kappa.
        t[i, j] = rest if room.diagonal[j] == 0.0 else (k if x > 0.0 else -k)


@compiled(fastmath=FAST, allocates=False)
def few_rows_points(
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
    """Write what `gtvcvx.losses.node._batch.proximal_points` does at nodes where that succeeds.

    Others are left (k,), as they were. There is room for q and p (d,) and bounds (3, d).
    """
    for i in nodes:
        first = indptr[i]
        m = indptr[i + 1] - first
        take_coordinates(coordinates[i], v[i], tau[i], q, p, bounds)
        for r in range(m):
            room.image[r] = _products(X, first + r, z[i])
        tolerance = EPS * (16.0 + 2.0 * math.sqrt(m))
        left[i], before, length = True, math.inf, 1.0
        for _ in range(MAX_STEPS):
            for r in range(m):
                zeta = room.image[r]
                room.trial.a[r], room.weight[r] = slope_and_curvature(rows[first + r], zeta)
            coordinates_left(first, X, m, q, p, bounds, room)
            missing = _missing(first, X, rows, m, room)
            if missing <= tolerance:
                write_point(i, first, m, room, bounds, q, z, a, t)
                left[i] = False
                break
            if not math.isfinite(missing):
                break
            if missing <= CLOSE:
                _step(first, X, m, room)
                if _finish(first, X, rows, m, bounds, room, tolerance):
                    write_point(i, first, m, room, bounds, q, z, a, t)
                    left[i] = False
                break
            square = 0.0
            for r in range(m):
                square += room.offset[r] * room.offset[r]
            if square > before and length > SHORTEST:
                # Too far, over too many kinks of coordinates: half of the step that is left.
                length *= 0.5
                for r in range(m):
                    room.image[r] -= length * room.change[r]
                continue
            before, length = square, 1.0
            _step(first, X, m, room)


def smooth_and_free(rows: Records, indptr: IntArray, totals: FloatArray) -> BoolArray:
    """Say at which nodes (k,) all rows are smooth, and no sum is given."""
    kinks = np.concatenate([[0], np.cumsum(rows["kind"] == KINK)])
    return np.asarray((np.diff(kinks[indptr]) == 0) & np.isnan(totals))
