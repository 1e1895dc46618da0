"""Checks of the arrays that enter a penalty, and row norms that neither overflow nor underflow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray

EPS = float(np.finfo(np.float64).eps)


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
