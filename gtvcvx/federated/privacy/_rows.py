"""Rows that are clipped: norms and targets at most what was announced."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray

# Clipped vectors end this much inside their ball, so that rounding leaves none outside.
_INSIDE = 1.0 - 4.0 * float(np.finfo(np.float64).eps)


def row_norms(rows: FloatArray) -> FloatArray:
    """Euclidean norms of rows (m, d), finite unless beyond the largest double; zero rows too."""
    largest = np.max(np.abs(rows), axis=1, initial=0.0)
    units = rows / np.where(largest > 0.0, largest, 1.0)[:, None]
    with np.errstate(over="ignore"):
        return np.asarray(largest * np.linalg.norm(units, axis=1))


def clipped_rows(rows: FloatArray, bound: float) -> FloatArray:
    """Rows (m, d) with norms of at most the bound: ``x min(1, bound / ||x||)``."""
    norms = row_norms(rows)
    long = norms > bound
    out = rows.copy()
    # The direction first: the norm of a huge row may be infinite.
    units = rows[long] / np.max(np.abs(rows[long]), axis=1, keepdims=True)
    out[long] = units * (bound * _INSIDE / np.linalg.norm(units, axis=1))[:, None]
    return out
