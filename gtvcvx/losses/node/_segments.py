"""Sums over the rows of each node.

Rows of node i are ``indptr[i] .. indptr[i + 1] - 1``.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import FAST, compiled

# From so many columns on loops are compiled: what NumPy has to write on the way, one array as large
# as all rows after the other, takes ten times as long.
MANY = 32


def owners(indptr: IntArray) -> IntArray:
    """Return the node of each row (N,)."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def images(X: FloatArray, indptr: IntArray, w: FloatArray) -> FloatArray:
    """Return <x_r, w_i> of all rows (N,), for w (k, d)."""
    if X.shape[1] <= MANY:
        return np.asarray(np.einsum("rj,rj->r", X, w[owners(indptr)]))
    out = np.empty(len(X))
    _write_products(X, indptr, w, out)
    return out


def sums(indptr: IntArray, x: FloatArray) -> FloatArray:
    """Return sums over each node's rows (k, ...) of x (N, ...)."""
    out = np.zeros((len(indptr) - 1, *x.shape[1:]))
    some = np.diff(indptr) > 0
    if len(x):
        out[some] = np.add.reduceat(x, indptr[:-1][some], axis=0)
    return out


def weighted(indptr: IntArray, a: FloatArray, X: FloatArray) -> FloatArray:
    """Return sums over each node's rows (k, d) of rows (N, d) times weights (N,)."""
    if X.shape[1] <= MANY:
        return sums(indptr, a[:, None] * X)
    out = np.zeros((len(indptr) - 1, X.shape[1]))
    _add_weighted(indptr, a, X, out)
    return out


def weighted_sizes(indptr: IntArray, a: FloatArray, X: FloatArray) -> FloatArray:
    """Return the sums (k, d) of the sizes of what `weighted` adds up."""
    if X.shape[1] <= MANY:
        return sums(indptr, np.abs(a[:, None] * X))
    out = np.zeros((len(indptr) - 1, X.shape[1]))
    _add_sizes(indptr, a, X, out)
    return out


def products_of_sizes(X: FloatArray, indptr: IntArray, w: FloatArray) -> FloatArray:
    """Return <|x_r|, w_i> of all rows (N,), for w (k, d)."""
    if X.shape[1] <= MANY:
        return images(np.abs(X), indptr, w)
    out = np.empty(len(X))
    _write_products_of_sizes(X, indptr, w, out)
    return out


@compiled(fastmath=FAST, allocates=False)
def _write_products(X: FloatArray, indptr: IntArray, w: FloatArray, out: FloatArray) -> None:
    for i in range(len(indptr) - 1):
        for r in range(indptr[i], indptr[i + 1]):
            total = 0.0
            for j in range(X.shape[1]):
                total += X[r, j] * w[i, j]
            out[r] = total


@compiled(fastmath=FAST, allocates=False)
def _write_products_of_sizes(
    X: FloatArray, indptr: IntArray, w: FloatArray, out: FloatArray
) -> None:
    for i in range(len(indptr) - 1):
        for r in range(indptr[i], indptr[i + 1]):
            total = 0.0
            for j in range(X.shape[1]):
                total += abs(X[r, j]) * w[i, j]
            out[r] = total


@compiled(allocates=False)
def _add_weighted(indptr: IntArray, a: FloatArray, X: FloatArray, out: FloatArray) -> None:
    for i in range(len(indptr) - 1):
        for r in range(indptr[i], indptr[i + 1]):
            for j in range(X.shape[1]):
                out[i, j] += a[r] * X[r, j]


@compiled(allocates=False)
def _add_sizes(indptr: IntArray, a: FloatArray, X: FloatArray, out: FloatArray) -> None:
    for i in range(len(indptr) - 1):
        for r in range(indptr[i], indptr[i + 1]):
            for j in range(X.shape[1]):
                out[i, j] += abs(a[r] * X[r, j])
