"""How one node's optimum follows its problem while the guess stays: the inverse of its conditions.

Where rows of the guess stay at their kinks and the other coordinates rest, what balances the
gradient is linear in it: ``[[H, A^T], [A, 0]]``, with the curvature H of the coordinates that move
and the rows A at their kinks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._active_set import resting_place
from gtvcvx.losses.node._newton_systems import DEPENDENT, factorize, substitute
from gtvcvx.losses.node._problem import MANY_TIES, MORE_TIES
from gtvcvx.losses.node._scalar import KINK


class Batch(NamedTuple):
    """Losses of k nodes, see `gtvcvx.losses.batched.composite._parts.Parts`.

    A given sum is a row more here: of ones, with a kink without an end. Losses mostly have rows of
    one sort: what no row needs is not compiled.
    """

    X: FloatArray  # (N, d)
    rows: Records  # (N,) of ROW
    indptr: IntArray  # (k + 1,)
    coordinates: Records  # (k, d) of COORDINATE
    kinks: bool | None  # None where no row has a kink, and True where some have
    curves: bool | None  # None where all have

    @staticmethod
    def of(X: FloatArray, rows: Records, indptr: IntArray, coordinates: Records) -> Batch:
        """Return a batch, having seen which sorts of rows there are."""
        kinks = rows["kind"] == KINK
        return Batch(
            X, rows, indptr, coordinates, bool(kinks.any()) or None, not kinks.all() or None
        )


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


def unmapped(z: FloatArray, a: FloatArray, t: FloatArray, size: int) -> Points:
    """Return points (k, d) and multipliers with room for maps, of which none is made yet.

    `size` is d, or 0 where no maps are kept.
    """
    k = len(z)
    maps = np.zeros((k, size, size)), np.zeros((len(a), size))
    return Points(z, a, t, *maps, np.zeros(k), np.zeros((k, size)))


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
    maps: IntArray  # (1,), how many were made so far


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
        maps=np.zeros(1, dtype=np.int64),
    )


@compiled(small=True, allocates=False, inner=True)
def at_kink(row: Any, a: float) -> bool:
    """Say whether a row is guessed to be at its kink, by its multiplier."""
    return bool(row.kind == KINK and row.low < a < row.high)


@compiled(small=True, allocates=False, inner=True)
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


@compiled(small=True, allocates=False, inner=True)
def _map_moving(i: int, batch: Batch, points: Points, scratch: Scratch) -> int:
    """Make the map of the coordinates that move, without ties; return how many move."""
    first, d = batch.indptr[i], len(scratch.q)
    # With a plain zero what takes n would be compiled twice: for a literal, too.
    n, smallest = np.int64(0), math.inf
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
    # Where no row is curved this is not left out: without it an iteration takes a seventh longer.
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
    return int(n)


@compiled(small=True, allocates=False, inner=True)
def _map_ties(
    i: int, n: int, batch: Batch, points: Points, scratch: Scratch, kinks: bool | None
) -> bool:
    """Keep rows at their kinks under the map; say no if they are far too many for n coordinates."""
    if kinks is None:
        return True
    d, ties = len(scratch.q), np.int64(0)
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


@compiled(small=True, allocates=False, inner=True)
def _place(i: int, batch: Batch, points: Points, scratch: Scratch, kinks: bool | None) -> None:
    """Bring resting coordinates to their places, and rows to their kinks."""
    d = len(scratch.q)
    for j in range(d):
        scratch.step[j] = 0.0
        coordinate = batch.coordinates[i, j]
        if abs(points.t[i, j]) != coordinate.kappa:
            points.z[i, j] = resting_place(coordinate, points.t[i, j])
    if kinks is None:
        return
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
def make_map(i: int, batch: Batch, points: Points, scratch: Scratch) -> bool:
    """Make the map for the guess that the multipliers are, and bring the point there.

    Says no if the guess is of no use.
    """
    n = _map_moving(i, batch, points, scratch)
    if not _map_ties(i, n, batch, points, scratch, batch.kinks):
        return False
    _place(i, batch, points, scratch, batch.kinks)
    return True
