"""Checks of the arrays that enter a penalty, and row norms that neither overflow nor underflow."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)

# Sums of squares between these bounds lost nothing to underflow or overflow.
_SAFE_LOW, _SAFE_HIGH = 1e-280, 1e300
# Rows of at most this length are gone through column by column.
_FEW = 8


def rounding_slack(dim: int) -> float:
    """Relative excess that rounding alone can put on a norm of ``dim`` entries: a few ulps."""
    return 4.0 * (dim + 4) * EPS


def _as_real(a: ArrayLike, name: str) -> FloatArray:
    raw = np.asarray(a)
    if raw.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of real numbers, got dtype {raw.dtype}")
    return raw.astype(np.float64, copy=False)


def as_rows(a: ArrayLike, name: str, dim: int | None = None) -> FloatArray:
    """Return ``a`` as a finite float64 array (m, d), one row per edge, or refuse it by name."""
    rows = _as_real(a, name)
    if rows.ndim != 2 or rows.shape[1] < 1:
        raise ValueError(f"{name} must have shape (m, d) with d >= 1, got shape {rows.shape}")
    if dim is not None and rows.shape[1] != dim:
        raise ValueError(f"{name} must have d = {dim} columns, got {rows.shape[1]}")
    finite = np.isfinite(rows)
    if not finite.all():
        edge, k = np.argwhere(~finite)[0]
        raise ValueError(f"{name} must be finite, but edge {edge} has {rows[edge, k]}")
    return rows


def as_per_edge(a: ArrayLike, m: int, name: str, *, zero: bool = False) -> FloatArray:
    """Return ``a`` as a finite positive (or, with ``zero``, nonnegative) array (m,)."""
    values = _as_real(a, name)
    if values.ndim == 0:
        values = np.full(m, values)
    if values.shape != (m,):
        raise ValueError(f"{name} must have shape ({m},), got shape {values.shape}")
    fine = np.isfinite(values) & ((values >= 0.0) if zero else (values > 0.0))
    if not fine.all():
        edge = int(np.argmin(fine))
        bound = ">= 0" if zero else "> 0"
        raise ValueError(f"{name} must be finite and {bound}, but edge {edge} has {values[edge]}")
    return values


def row_norm_2(v: FloatArray) -> FloatArray:
    """||v_e||_2 for every row of v (m, d): (m,), also where the squares leave the range."""
    if v.shape[1] == 1:
        return np.abs(v[:, 0])
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", v, v)
    norms = np.sqrt(squares)
    unsafe = np.flatnonzero(~((squares > _SAFE_LOW) & (squares < _SAFE_HIGH)))
    unsafe = unsafe[v[unsafe].any(axis=1)]  # many rows are zero, and the rest is slow
    if unsafe.size:
        norms[unsafe] = _scaled_row_norm(v[unsafe], 2.0)
    return norms


def row_norm_1(v: FloatArray) -> FloatArray:
    """||v_e||_1 for every row of v (m, d): (m,)."""
    with np.errstate(over="ignore"):
        norms: FloatArray = np.abs(v).sum(axis=1)
    return norms


def row_norm_inf(v: FloatArray) -> FloatArray:
    """||v_e||_inf for every row of v (m, d): (m,)."""
    if not 0 < v.shape[1] <= _FEW:
        norms: FloatArray = np.abs(v).max(axis=1)
        return norms
    # Column by column NumPy is several times faster than along short rows.
    norms = np.abs(v[:, 0])
    for k in range(1, v.shape[1]):
        np.maximum(norms, np.abs(v[:, k]), out=norms)
    return norms


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
