"""What is told row by row of large arrays, without others of their size on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gtvcvx._arrays import FloatArray

#: Entries of a piece, 8 megabytes: NumPy is at least as fast on them as on larger arrays.
PIECE = 2**20


def rows_at_once(m: int, d: int) -> Iterator[slice]:
    """Cut m rows of d entries into pieces."""
    size = max(PIECE // max(d, 1), 1)
    for first in range(0, m, size):
        yield slice(first, min(first + size, m))


def rowwise(function: Callable[[slice], FloatArray], m: int, d: int) -> FloatArray:
    """Join what a function tells (q,) of every q rows of an array (m, d)."""
    if m * d <= PIECE:
        return function(slice(0, m))
    return np.concatenate([function(rows) for rows in rows_at_once(m, d)])
