"""Compiled linear algebra of one node: Newton steps with exact constraints.

The matrices are small (the dimension d, or a number of rows) and far too many for LAPACK calls.
"""

from __future__ import annotations

import math

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.compiled import compiled

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


@compiled(inline="always")
def _dense(B: FloatArray, weight: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Cholesky factor of ``diag(diagonal) + B^T diag(weight) B``."""
    size, n = B.shape
    H = np.zeros((n, n))
    smallest = math.inf
    for s in range(size):
        for i in range(n):
            scaled = weight[s] * B[s, i]
            for j in range(i + 1):
                H[i, j] += scaled * B[s, j]
    for j in range(n):
        H[j, j] += diagonal[j]
        smallest = min(smallest, diagonal[j])
    factorize(H, n, 0.5 * smallest)
    return H


@compiled(inline="always")
def _woodbury(B: FloatArray, weight: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Cholesky factor of ``diag(1 / weight) + B diag(1 / diagonal) B^T``."""
    size, n = B.shape
    H = np.empty((size, size))
    smallest = math.inf
    for s in range(size):
        for r in range(s + 1):
            total = 0.0
            for j in range(n):
                total += B[s, j] * B[r, j] / diagonal[j]
            H[s, r] = total
        H[s, s] += 1.0 / weight[s]
        smallest = min(smallest, 1.0 / weight[s])
    factorize(H, size, 0.5 * smallest)
    return H


@compiled(small=True)
def _solve(L: FloatArray, B: FloatArray, diagonal: FloatArray, x: FloatArray) -> None:
    """Solve ``(diag(diagonal) + B^T diag(weight) B) x = b`` in place, by the factor of either."""
    size, n = B.shape
    if size >= n:
        substitute(L, n, x)
        return
    for j in range(n):
        x[j] /= diagonal[j]
    if size == 0:
        return
    y = np.zeros(size)
    for s in range(size):
        for j in range(n):
            y[s] += B[s, j] * x[j]
    substitute(L, size, y)
    for j in range(n):
        total = 0.0
        for s in range(size):
            total += B[s, j] * y[s]
        x[j] -= total / diagonal[j]


@compiled(small=True)
def constrained_step(
    X: FloatArray,
    weight: FloatArray,
    diagonal: FloatArray,
    gradient: FloatArray,
    moving: BoolArray,
    active: BoolArray,
    summed: bool,
    offset: FloatArray,
    drift: float,
    step: FloatArray,
    change: FloatArray,
) -> float:
    """Minimize ``<gradient, s> + s^T (diag(diagonal) + X^T diag(weight) X) s / 2`` over steps s.

    Subject to ``<x_r, s> = offset_r`` for the active rows and, if summed, ``sum_j s_j = drift``.
    Coordinates that do not move keep what ``step`` (d,) holds; the others are written to it. The
    constraints' multipliers go to ``change`` (m,); that of the sum is returned.
    """
    m, d = X.shape
    place = np.empty(d, np.int64)
    n = 0
    for j in range(d):
        if moving[j]:
            place[n] = j
            n += 1
    rows, tied = np.empty(m, np.int64), np.empty(m, np.int64)
    size, count = 0, 0
    for r in range(m):
        change[r] = 0.0
        if active[r]:
            tied[count] = r
            count += 1
        elif weight[r] > 0.0:
            rows[size] = r
            size += 1
    B, scale, inner = np.empty((size, n)), np.empty(size), np.empty(n)
    y = np.empty(n)
    for k in range(n):
        y[k] = -gradient[place[k]]
        inner[k] = diagonal[place[k]]
    for s in range(size):
        r = rows[s]
        scale[s] = weight[r]
        given = 0.0
        if n < d:
            for j in range(d):
                if not moving[j]:
                    given += X[r, j] * step[j]
        for k in range(n):
            B[s, k] = X[r, place[k]]
            y[k] -= scale[s] * given * B[s, k]
    L = _dense(B, scale, inner) if size >= n else _woodbury(B, scale, inner)
    _solve(L, B, inner, y)
    ties = count + 1 if summed else count
    multiplier = 0.0
    if ties > 0:
        A, V, M = np.ones((ties, n)), np.ones((ties, n)), np.empty((ties, ties))
        b = np.empty(ties)
        largest = 0.0
        for c in range(ties):
            b[c] = -drift if c == count else -offset[tied[c]]
            for j in range(d):
                if not moving[j]:
                    b[c] += step[j] * (1.0 if c == count else X[tied[c], j])
            for k in range(n):
                if c < count:
                    A[c, k] = X[tied[c], place[k]]
                b[c] += A[c, k] * y[k]
                V[c, k] = A[c, k]
            _solve(L, B, inner, V[c])
            for e in range(c + 1):
                total = 0.0
                for k in range(n):
                    total += A[e, k] * V[c, k]
                M[c, e] = total
            largest = max(largest, M[c, c])
        factorize(M, ties, DEPENDENT * largest if largest > 0.0 else 1.0)
        substitute(M, ties, b)
        for c in range(ties):
            for k in range(n):
                y[k] -= V[c, k] * b[c]
            if c == count:
                multiplier = b[c]
            else:
                change[tied[c]] = b[c]
    for k in range(n):
        step[place[k]] = y[k]
    return multiplier
