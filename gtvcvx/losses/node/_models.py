"""Quadratic models of smooth rows.

The model of ``f(z)`` at z_0 is ``f(z_0) + f'(z_0) (z - z_0) + h (z - z_0)^2 / 2``. Newton's has
h = f''(z_0); where that is too flat, as in the tails of Huber and logistic rows, h is a share of
the curvature of a parabola that lies above f. Every row has its own share, which rises where the
model turned out to be below f, and falls where it was above.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.compiled import compiled
from gtvcvx.compiled._conjugate_gradients import add_blocks
from gtvcvx.losses.node import _segments as segments
from gtvcvx.losses.node._newton_systems import factorize, substitute
from gtvcvx.losses.node._scalar import by_kind, row_curvature, row_gap, row_slope

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


def row_majorizer(rows: Records, z: FloatArray) -> FloatArray:
    """Return the curvatures (N,) of parabolas that touch f at z (N,) and lie above it.

    For Poisson rows below their count it lies above f up to the minimizer, which they share; above
    the count it is f''(z), good for smaller rates.
    """
    return by_kind(_MAJORIZERS, rows, z)


def _logistic_majorizer(rows: Records, z: FloatArray) -> FloatArray:
    size = np.maximum(np.abs(z), NEAR)
    bent = np.tanh(0.5 * size) / (2.0 * size)
    return np.asarray(rows["c"] * np.where(np.abs(z) < NEAR, 0.25, bent))


def _poisson_majorizer(rows: Records, z: FloatArray) -> FloatArray:
    curvature = row_curvature(rows, z)
    below = np.log(rows["y"]) - z
    chord = np.maximum(-row_slope(rows, z) / np.maximum(below, NEAR), curvature)
    return np.where((rows["y"] > 0.0) & (below > NEAR), chord, curvature)


def _huber_majorizer(rows: Records, z: FloatArray) -> FloatArray:
    size = np.maximum(np.abs(z - rows["y"]), rows["delta"])
    return np.asarray(2.0 * rows["c"] * (rows["delta"] / size))


def _pseudo_huber_majorizer(rows: Records, z: FloatArray) -> FloatArray:
    return np.asarray(rows["c"] * rows["delta"] / np.hypot(rows["delta"], z - rows["y"]))


_MAJORIZERS = (
    row_curvature,
    _logistic_majorizer,
    _poisson_majorizer,
    _huber_majorizer,
    _pseudo_huber_majorizer,
    row_curvature,
)


def images(X: FloatArray, indptr: IntArray, w: FloatArray, out: FloatArray) -> None:
    """Write <x_r, w_i> of all rows (N,)."""
    out[:] = segments.images(X, indptr, w)


def models(
    rows: Records, z: FloatArray, share: FloatArray, slope: FloatArray, curvature: FloatArray
) -> None:
    """Write slopes at z (N,), and curvatures of models with the given shares (N,)."""
    slope[:] = row_slope(rows, z)
    np.maximum(row_curvature(rows, z), share * row_majorizer(rows, z), out=curvature)


def learn(
    rows: Records,
    before: FloatArray,
    z: FloatArray,
    slope: FloatArray,
    curvature: FloatArray,
    share: FloatArray,
) -> None:
    """Change the shares (N,) by what models at `before` have been worth at z, both (N,)."""
    expected = 0.5 * curvature * (z - before) ** 2
    rise = row_gap(rows, z, slope)
    flat, steep = rise > TOO_FLAT * expected, rise <= expected
    learned = np.where(flat, np.minimum(CHANGE * share, 1.0), share)
    learned = np.where(steep, np.maximum(share / CHANGE, LEAST_SHARE), learned)
    moved = np.abs(z - before) > SHORT * (1.0 + np.abs(z))
    share[:] = np.where(moved, learned, share)


def rises(
    X: FloatArray,
    rows: Records,
    indptr: IntArray,
    w: FloatArray,
    before: FloatArray,
    out: FloatArray,
) -> None:
    """Add to out (k,) how far rows at w (k, d) are above their tangents at `before` (k, d)."""
    slope = row_slope(rows, segments.images(X, indptr, before))
    out += segments.sums(indptr, row_gap(rows, segments.images(X, indptr, w), slope))


def hessians(X: FloatArray, indptr: IntArray, out: FloatArray) -> None:
    """Write ``(2 / m_i) X_i^T X_i`` (k, d, d)."""
    counts = np.diff(indptr)
    out[:] = 0.0
    weight = np.repeat(2.0 / np.maximum(counts, 1), counts)
    add_blocks(np.repeat(np.arange(len(out)), counts), X, weight, out)


def resolvents(
    H: FloatArray, linear: FloatArray, tau: FloatArray, matrix: FloatArray, offset: FloatArray
) -> None:
    """Write the inverses of ``I + tau_i H_i`` (k, d, d), and them times ``tau_i linear_i``."""
    d = linear.shape[1]
    _resolvents(H, linear, tau, matrix, offset, np.empty((d, d)), np.empty(d))


@compiled(small=True, allocates=False)
def _resolvents(
    H: FloatArray,
    linear: FloatArray,
    tau: FloatArray,
    matrix: FloatArray,
    offset: FloatArray,
    L: FloatArray,
    x: FloatArray,
) -> None:
    """Write `resolvents`, with room for one factor (d, d) and one column (d,)."""
    k, d = linear.shape
    for i in range(k):
        for a in range(d):
            for c in range(d):
                L[a, c] = tau[i] * H[i, a, c]
            L[a, a] += 1.0
        # In exact arithmetic no pivot is less than one.
        factorize(L, d, 1.0)
        # The columns of the identity, and one more: what one loop does is compiled once.
        for c in range(d + 1):
            for a in range(d):
                x[a] = tau[i] * linear[i, a] if c == d else 1.0 if a == c else 0.0
            substitute(L, d, x)
            for a in range(d):
                if c == d:
                    offset[i, a] = x[a]
                else:
                    matrix[i, a, c] = x[a]
