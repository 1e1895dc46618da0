"""Many small matrices at once, with a look at the clock in between."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify._arrays import FloatArray
from verify._deadline import look

# Cubes of dimensions between two looks: eigenvalues, the slowest, take .1 s for so many.
CUBES = 5_000_000
SINGULAR = 1e-13  # beside ones: their rounding, so that roots exist


def _pieces(count: int, d: int) -> Iterator[slice]:
    size = max(CUBES // max(d, 1) ** 3, 1)
    for first in range(0, count, size):
        look()
        yield slice(first, first + size)


def eigh(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues (n, d) and eigenvectors (n, d, d) of symmetric matrices (n, d, d)."""
    n, d = matrices.shape[:2]
    values, vectors = np.empty((n, d)), np.empty((n, d, d))
    for at in _pieces(n, d):
        values[at], vectors[at] = np.linalg.eigh(matrices[at])
    return values, vectors


def solve(matrices: FloatArray, rhs: FloatArray) -> FloatArray:
    """Return the solutions (n, d) of systems with matrices (n, d, d)."""
    n, d = rhs.shape
    out = np.empty((n, d))
    for at in _pieces(n, d):
        out[at] = np.linalg.solve(matrices[at], rhs[at][:, :, None])[:, :, 0]
    return out


def inverse_roots(matrices: FloatArray) -> FloatArray:
    """Return upper triangular R (n, d, d) with R^T M R = 1.

    For M (n, d, d) with ones on the diagonals, or rows of zeros, where R has zeros; what rounding
    makes of least eigenvalues is not divided by.
    """
    n, d = matrices.shape[:2]
    out = np.empty((n, d, d))
    for at in _pieces(n, d):
        none = np.einsum("njj->nj", matrices[at]) < 0.5
        more = np.where(none, 1.0, SINGULAR)[:, :, None] * np.eye(d)
        roots = np.linalg.inv(np.linalg.cholesky(matrices[at] + more)).transpose(0, 2, 1)
        out[at] = np.where(none[:, None, :], 0.0, roots)
    return out
