"""Sums over the rows of each node.

Rows of node i are ``indptr[i] .. indptr[i + 1] - 1``.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray


def owners(indptr: IntArray) -> IntArray:
    """Return the node of each row (N,)."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def images(X: FloatArray, indptr: IntArray, w: FloatArray) -> FloatArray:
    """Return <x_r, w_i> of all rows (N,), for w (k, d)."""
    return np.asarray(np.einsum("rj,rj->r", X, w[owners(indptr)]))


def sums(indptr: IntArray, x: FloatArray) -> FloatArray:
    """Return sums over each node's rows (k, ...) of x (N, ...)."""
    out = np.zeros((len(indptr) - 1, *x.shape[1:]))
    some = np.diff(indptr) > 0
    if len(x):
        out[some] = np.add.reduceat(x, indptr[:-1][some], axis=0)
    return out
