"""Norms of rows that neither overflow nor underflow, and of whole arrays."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray

#: Distance from 1 to the next larger number: rounding is relative to it.
EPS = float(np.finfo(np.float64).eps)
# Sums of squares between these bounds lost nothing to underflow or overflow.
_SAFE_LOW, _SAFE_HIGH = 1e-280, 1e300


# Rows of at most this length are gone through column by column: NumPy's sums along short rows take
# several times as long; largest entries do up to the other length.
_FEW, _FEW_LARGEST = 3, 8
# Entries of 8 megabytes, which caches do not hold.
_MANY = 2**20


def row_norm_2(v: FloatArray) -> FloatArray:
    """||v_e||_2 for every row of v (m, d): (m,), also where the squares leave the range."""
    if v.shape[1] == 1:
        return np.abs(v[:, 0])
    with np.errstate(over="ignore"):
        squares = row_squares(v)
    norms = np.sqrt(squares)
    if squares.size and squares.min() > _SAFE_LOW and squares.max() < _SAFE_HIGH:
        return norms
    unsafe = np.flatnonzero(~((squares > _SAFE_LOW) & (squares < _SAFE_HIGH)))
    unsafe = unsafe[(v if len(unsafe) == len(v) else v[unsafe]).any(axis=1)]  # many are zero
    if unsafe.size:
        norms[unsafe] = _scaled_row_norm(v[unsafe], 2.0)
    return norms


def row_squares(v: FloatArray) -> FloatArray:
    """||v_e||_2^2 for every row of v (m, d): (m,)."""
    if not 0 < v.shape[1] <= _FEW:
        squares: FloatArray = np.einsum("ij,ij->i", v, v)
        return squares
    squares = np.square(v[:, 0])
    for k in range(1, v.shape[1]):
        squares += np.square(v[:, k])
    return squares


def row_sums(v: FloatArray) -> FloatArray:
    """Sum of every row of v (m, d): (m,)."""
    if not 0 < v.shape[1] <= _FEW:
        sums: FloatArray = v.sum(axis=1)
        return sums
    sums = v[:, 0].copy()
    for k in range(1, v.shape[1]):
        sums += v[:, k]
    return sums


def row_norm_1(v: FloatArray) -> FloatArray:
    """||v_e||_1 for every row of v (m, d): (m,)."""
    with np.errstate(over="ignore"):
        return row_sums(np.abs(v))


def row_norm_inf(v: FloatArray) -> FloatArray:
    """||v_e||_inf for every row of v (m, d): (m,)."""
    if not 0 < v.shape[1] <= _FEW_LARGEST:
        # Without an array of sizes, which takes as long as the rest where v is large.
        norms: FloatArray = np.abs(v).max(axis=1) if v.size < _MANY else _largest(v)
        return norms
    norms = np.abs(v[:, 0])
    for k in range(1, v.shape[1]):
        np.maximum(norms, np.abs(v[:, k]), out=norms)
    return norms


def _largest(v: FloatArray) -> FloatArray:
    norms = v.max(axis=1)
    return np.maximum(norms, -v.min(axis=1), out=norms)


def row_norm_p(v: FloatArray, p: float) -> FloatArray:
    """||v_e||_p, 1 <= p <= inf, for every row of v (m, d): (m,)."""
    if p == 1.0:
        return row_norm_1(v)
    if p == 2.0:
        return row_norm_2(v)
    if p == np.inf:
        return row_norm_inf(v)
    return _scaled_row_norm(v, p)


def _scaled_row_norm(v: FloatArray, p: float) -> FloatArray:
    """p-norm of the rows, each divided by its largest entry first: no power overflows."""
    top = row_norm_inf(v)
    nonzero = top > 0.0
    scaled = np.abs(v) / np.where(nonzero, top, 1.0)[:, None]
    with np.errstate(over="ignore"):
        norms: FloatArray = top * np.power(np.power(scaled, p).sum(axis=1), 1.0 / p)
    return norms


def unit_rows(v: FloatArray, norms: FloatArray) -> FloatArray:
    """v_e / norms_e (m, d), zero rows staying zero."""
    return v / np.where(norms > 0.0, norms, 1.0)[:, None]


def norm(x: FloatArray) -> float:
    """Frobenius norm without BLAS, whose threads stall on a busy machine."""
    return float(np.sqrt(np.sum(x * x)))
