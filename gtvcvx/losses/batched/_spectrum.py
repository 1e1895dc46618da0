"""Singular value decompositions of the data of nodes with squared errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray

EPS = float(np.finfo(np.float64).eps)


class Spectrum(NamedTuple):
    """What the singular value decompositions of the X_i give; directions: see FLOW_TOLERANCE.

    The right singular vectors of node i are rows ``indptr[i] .. indptr[i + 1] - 1``, as many as
    X_i has rows, or columns if these are fewer.
    """

    indptr: IntArray  # (k + 1,)
    vectors: FloatArray  # (M, d), right singular vectors of X_i
    curvature: FloatArray  # (M,), their eigenvalues of Q_i
    inverse: FloatArray  # (M,), roots of those of pinv(2 Q_i), zero off the strong directions
    targets: FloatArray  # (M,), sqrt(2/m) U^T y: what the rows sqrt(curvature) V^T aim at
    strong: BoolArray  # (M,)
    full: BoolArray  # (k,), nodes whose strong directions are all there are
    centre: FloatArray  # (k, d), least-squares solution within the strong directions
    minimizer: FloatArray  # (k, d), least-squares solution of least norm
    minimum: FloatArray  # (k,), its loss
    weak: FloatArray  # (N, q), left singular vectors of weak directions; q = 0 if there are none


def rounded(rows: int, columns: int) -> float:
    """Return the share of the largest singular value below which others are rounding."""
    return 8.0 * max(rows, columns) * EPS


def weak_directions(X: FloatArray, strong: FloatArray) -> FloatArray:
    """Return what X_i w are there but for strong directions: orthonormal columns, or zeros.

    Parameters
    ----------
    X : ndarray, shape (b, m, d)
    strong : ndarray, shape (b, m, r)
        Left singular vectors of the strong directions, zeros for others; r <= m, d.

    Data are known to the last digits of each row and column: an intercept is less than the last
    digit of times in nanoseconds, and a ridge than that of features beside it, but the targets that
    they explain are explained.
    """
    columns = np.linalg.norm(X, axis=1, keepdims=True)
    even = X / np.where(columns > 0.0, columns, 1.0)
    rows = np.linalg.norm(even, axis=2, keepdims=True)
    even /= np.where(rows > 0.0, rows, 1.0)
    U, sigma, _ = np.linalg.svd(even, full_matrices=False)
    some = sigma > rounded(*X.shape[1:]) * sigma[:, :1]
    U = rows * U * some[:, None, :]
    count = some.sum(axis=1) - strong.any(axis=1).sum(axis=1)
    for _ in range(3):  # what is left may be little
        U = U - strong @ (strong.transpose(0, 2, 1) @ U)
        U = np.linalg.svd(U, full_matrices=False)[0]
        U *= (np.arange(U.shape[2]) < count[:, None])[:, None, :]
    return np.asarray(U)
