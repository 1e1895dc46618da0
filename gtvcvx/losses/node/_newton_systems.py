"""Compiled linear algebra of one node: Newton steps with exact constraints.

The matrices are small (the dimension d, or a number of rows) and far too many for LAPACK calls.
"""

from __future__ import annotations

import math

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._problem import Room, System

# Pivots of dependent constraints are kept at this share of the largest one.
DEPENDENT = 1e-12


@compiled(small=True, allocates=False, inner=True)
def factorize(H: FloatArray, n: int, floor: float) -> None:
    """Cholesky factor of the leading n x n block in place; no pivot falls below the floor."""
    for j in range(n):
        pivot = H[j, j]
        for k in range(j):
            pivot -= H[j, k] * H[j, k]
        root = math.sqrt(max(pivot, floor))
        H[j, j] = root
        for i in range(j + 1, n):
            total = H[i, j]
            for k in range(j):
                total -= H[i, k] * H[j, k]
            H[i, j] = total / root


@compiled(small=True, allocates=False, inner=True)
def substitute(L: FloatArray, n: int, x: FloatArray) -> None:
    """Solve L L^T x = b in place."""
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= L[k, i] * x[k]
        x[i] = total / L[i, i]


@compiled(small=True, allocates=False, inner=True)
def _dense(system: System, size: int, n: int) -> None:
    """Cholesky factor of ``diag(inner) + B^T diag(scale) B``, of size rows and n columns."""
    H, B, smallest = system.H, system.B, math.inf
    for i in range(n):
        for j in range(i + 1):
            H[i, j] = 0.0
    for s in range(size):
        for i in range(n):
            scaled = system.scale[s] * B[s, i]
            for j in range(i + 1):
                H[i, j] += scaled * B[s, j]
    for j in range(n):
        H[j, j] += system.inner[j]
        smallest = min(smallest, system.inner[j])
    factorize(H, n, 0.5 * smallest)


@compiled(small=True, allocates=False, inner=True)
def _woodbury(system: System, size: int, n: int) -> None:
    """Cholesky factor of ``diag(1 / scale) + B diag(1 / inner) B^T``."""
    H, B, smallest = system.H, system.B, math.inf
    for s in range(size):
        for r in range(s + 1):
            total = 0.0
            for j in range(n):
                total += B[s, j] * B[r, j] / system.inner[j]
            H[s, r] = total
        H[s, s] += 1.0 / system.scale[s]
        smallest = min(smallest, 1.0 / system.scale[s])
    factorize(H, size, 0.5 * smallest)


@compiled(small=True, allocates=False, inner=True)
def _solve(system: System, size: int, n: int, x: FloatArray) -> None:
    """Solve ``(diag(inner) + B^T diag(scale) B) x = b`` in place, by the factor of either."""
    B, y = system.B, system.inside
    if size >= n:
        substitute(system.H, n, x)
        return
    for j in range(n):
        x[j] /= system.inner[j]
    for s in range(size):
        y[s] = 0.0
        for j in range(n):
            y[s] += B[s, j] * x[j]
    substitute(system.H, size, y)
    for j in range(n):
        total = 0.0
        for s in range(size):
            total += B[s, j] * y[s]
        x[j] -= total / system.inner[j]


@compiled(small=True, allocates=False, inner=True)
def _restrict(X: FloatArray, diagonal: FloatArray, room: Room) -> tuple[int, int, int]:
    """Write what the system is made of; return its numbers of rows, of columns and of ties."""
    system, step = room.system, room.step
    m, d = X.shape
    # With plain zeros what takes them would be compiled twice: for literals, too.
    n, size, count = np.int64(0), np.int64(0), np.int64(0)
    for j in range(d):
        if room.moving[j]:
            system.place[n] = j
            system.y[n], system.inner[n] = -room.gradient[j], diagonal[j]
            n += 1
    for r in range(m):
        room.change[r] = 0.0
        if room.active[r]:
            system.tied[count] = r
            count += 1
        elif room.weight[r] > 0.0:
            given = 0.0
            for j in range(d):
                if not room.moving[j]:
                    given += X[r, j] * step[j]
            system.scale[size] = room.weight[r]
            for k in range(n):
                system.B[size, k] = X[r, system.place[k]]
                system.y[k] -= room.weight[r] * given * system.B[size, k]
            size += 1
    return int(size), int(n), int(count)


@compiled(small=True, allocates=False, inner=True)
def _tie(X: FloatArray, room: Room, size: int, n: int, count: int, c: int, drift: float) -> float:
    """Write constraint c, its solution and its products with those before; return its square.

    That of the sum comes after the rows', which are as many as the count.
    """
    system, d = room.system, X.shape[1]
    system.b[c] = -drift if c == count else -room.offset[system.tied[c]]
    for j in range(d):
        if not room.moving[j]:
            system.b[c] += room.step[j] * (1.0 if c == count else X[system.tied[c], j])
    for k in range(n):
        system.A[c, k] = 1.0 if c == count else X[system.tied[c], system.place[k]]
        system.b[c] += system.A[c, k] * system.y[k]
        system.V[c, k] = system.A[c, k]
    _solve(system, size, n, system.V[c])
    for e in range(c + 1):
        total = 0.0
        for k in range(n):
            total += system.A[e, k] * system.V[c, k]
        system.M[c, e] = total
    return float(system.M[c, c])


@compiled(small=True, allocates=False, inner=True)
def constrained_step(
    X: FloatArray, diagonal: FloatArray, room: Room, summed: bool, drift: float
) -> float:
    """Minimize ``<gradient, s> + s^T (diag(diagonal) + X^T diag(weight) X) s / 2`` over steps s.

    Subject to ``<x_r, s> = offset_r`` for the active rows and, if summed, ``sum_j s_j = drift``.
    Coordinates that do not move keep what the room's ``step`` (d,) holds; the others are written to
    it. The constraints' multipliers go to ``change`` (m,); that of the sum is returned.
    """
    system, multiplier = room.system, 0.0
    size, n, count = _restrict(X, diagonal, room)
    if size >= n:
        _dense(system, size, n)
    else:
        _woodbury(system, size, n)
    _solve(system, size, n, system.y)
    ties, largest = count + summed, 0.0
    for c in range(ties):
        largest = max(largest, _tie(X, room, size, n, count, c, drift))
    factorize(system.M, ties, DEPENDENT * largest if largest > 0.0 else 1.0)
    substitute(system.M, ties, system.b)
    for c in range(ties):
        for k in range(n):
            system.y[k] -= system.V[c, k] * system.b[c]
        if c == count:
            multiplier = system.b[c]
        else:
            room.change[system.tied[c]] = system.b[c]
    for k in range(n):
        room.step[system.place[k]] = system.y[k]
    return multiplier
