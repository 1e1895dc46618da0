"""Compiled loops that make quadratic models of smooth rows; their twins are in the tests.

The model of ``f(z)`` at z_0 is ``f(z_0) + f'(z_0) (z - z_0) + h (z - z_0)^2 / 2``. Newton's has
h = f''(z_0); where that is too flat, as in the tails of Huber and logistic rows, h is a share of
the curvature of a parabola that lies above f. Every row has its own share, which rises where the
model turned out to be below f, and falls where it was above.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._newton_systems import factorize, substitute
from gtvcvx.losses.node._problem import dot
from gtvcvx.losses.node._scalar import (
    HUBER,
    LOGISTIC,
    POISSON,
    PSEUDO_HUBER,
    row_curvature,
    row_gap,
    row_slope,
)

# A share changes by this factor, and does not fall below the least: flatter rows gain nothing, and
# nodes all of whose rows are in their tails would have next to no curvature.
CHANGE, LEAST_SHARE = 10.0, 0.01
# A row is more than so many times as high above its tangent as its model: the model is too flat.
TOO_FLAT = 1.5
# Steps that are so short, relative to the point, say nothing about a model but for rounding.
SHORT = 1e-9
# Below this |z| the logistic parabola's curvature is that at 0, and a Poisson rate is at its count,
# both up to rounding.
NEAR = 1e-4


@compiled
def row_majorizer(row: Any, z: float) -> float:
    """Return the curvature of a parabola that touches f at z and lies above it.

    For Poisson rows below their count it lies above f up to the minimizer, which they share; above
    the count it is f''(z), good for smaller rates.
    """
    c, r = row.c, z - row.y
    if row.kind == HUBER:
        return 2.0 * c * (row.delta / max(abs(r), row.delta))
    if row.kind == PSEUDO_HUBER:
        return c * row.delta / math.hypot(row.delta, r)
    if row.kind == LOGISTIC:
        size = abs(z)
        return 0.25 * c if size < NEAR else c * math.tanh(0.5 * size) / (2.0 * size)
    if row.kind == POISSON and row.y > 0.0:
        below = math.log(row.y) - z
        if below > NEAR:
            return max(-row_slope(row, z) / below, row_curvature(row, z))
    return row_curvature(row, z)


@compiled
def images(X: FloatArray, indptr: IntArray, w: FloatArray, out: FloatArray) -> None:
    """Write <x_r, w_i> of all rows (N,)."""
    for i in range(len(w)):
        for r in range(indptr[i], indptr[i + 1]):
            out[r] = dot(X[r], w[i])


@compiled
def models(
    rows: Records, z: FloatArray, share: FloatArray, slope: FloatArray, curvature: FloatArray
) -> None:
    """Write slopes at z (N,), and curvatures of models with the given shares (N,)."""
    for r in range(len(z)):
        slope[r] = row_slope(rows[r], z[r])
        least = share[r] * row_majorizer(rows[r], z[r])
        curvature[r] = max(row_curvature(rows[r], z[r]), least)


@compiled
def learn(
    rows: Records,
    before: FloatArray,
    z: FloatArray,
    slope: FloatArray,
    curvature: FloatArray,
    share: FloatArray,
) -> None:
    """Change the shares (N,) by what models at `before` have been worth at z, both (N,)."""
    for r in range(len(z)):
        if abs(z[r] - before[r]) <= SHORT * (1.0 + abs(z[r])):
            continue
        rise = row_gap(rows[r], z[r], slope[r])
        expected = 0.5 * curvature[r] * (z[r] - before[r]) ** 2
        if rise > TOO_FLAT * expected:
            share[r] = min(CHANGE * share[r], 1.0)
        elif rise <= expected:
            share[r] = max(share[r] / CHANGE, LEAST_SHARE)


@compiled
def rises(
    X: FloatArray,
    rows: Records,
    indptr: IntArray,
    w: FloatArray,
    before: FloatArray,
    out: FloatArray,
) -> None:
    """Add to out (k,) how far rows at w (k, d) are above their tangents at `before` (k, d)."""
    for i in range(len(w)):
        for r in range(indptr[i], indptr[i + 1]):
            slope = row_slope(rows[r], dot(X[r], before[i]))
            out[i] += row_gap(rows[r], dot(X[r], w[i]), slope)


@compiled
def hessians(X: FloatArray, indptr: IntArray, out: FloatArray) -> None:
    """Write ``(2 / m_i) X_i^T X_i`` (k, d, d)."""
    d = X.shape[1]
    for i in range(len(out)):
        for j in range(d):
            for k in range(d):
                out[i, j, k] = 0.0
        weight = 2.0 / (indptr[i + 1] - indptr[i])
        for r in range(indptr[i], indptr[i + 1]):
            for j in range(d):
                scaled = weight * X[r, j]
                for k in range(j + 1):
                    out[i, j, k] += scaled * X[r, k]
        for j in range(d):
            for k in range(j):
                out[i, k, j] = out[i, j, k]


@compiled
def resolvents(
    H: FloatArray, linear: FloatArray, tau: FloatArray, matrix: FloatArray, offset: FloatArray
) -> None:
    """Write the inverses of ``I + tau_i H_i`` (k, d, d), and them times ``tau_i linear_i``."""
    k, d = linear.shape
    L, x = np.empty((d, d)), np.empty(d)
    for i in range(k):
        for a in range(d):
            for c in range(d):
                L[a, c] = tau[i] * H[i, a, c]
            L[a, a] += 1.0
        # In exact arithmetic no pivot is less than one.
        factorize(L, d, 1.0)
        for c in range(d):
            for a in range(d):
                x[a] = 1.0 if a == c else 0.0
            substitute(L, d, x)
            for a in range(d):
                matrix[i, a, c] = x[a]
        for a in range(d):
            x[a] = tau[i] * linear[i, a]
        substitute(L, d, x)
        for a in range(d):
            offset[i, a] = x[a]
