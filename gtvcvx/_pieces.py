"""What is told row by row of large arrays, without others of their size on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look

#: Entries of a piece, half a megabyte: arrays on the way fit into a cache, and into memory that is
#: used again. Larger ones are pages that are new each time, which took half of the time.
PIECE = 2**16


def parts_of_rows(m: int, d: int) -> Iterator[slice]:
    """Cut m rows of d entries into pieces."""
    size = max(PIECE // max(d, 1), 1)
    for first in range(0, m, size):
        yield slice(first, min(first + size, m))


def rows_at_once(m: int, d: int) -> Iterator[slice]:
    """Do the same, and look at the clock between them."""
    for rows in parts_of_rows(m, d):
        if rows.start:
            look()
        yield rows


def rowwise(function: Callable[[slice], FloatArray], m: int, d: int) -> FloatArray:
    """Join what a function tells (q,) of every q rows of an array (m, d)."""
    if m * d <= PIECE:
        return function(slice(0, m))
    return np.concatenate([function(rows) for rows in rows_at_once(m, d)])


#: Multiplications of a product of matrices for which BLAS takes no more than one thread: where
#: others use the machine, threads that wait for each other take a hundred times as long.
ONE_THREAD = 2**18
#: Columns of a block: beyond, pieces of rows would be few.
COLUMNS = 48


def gram(rows: FloatArray) -> FloatArray:
    """Return ``X^T X`` (d, d) of rows X (m, d), in products that are small."""
    m, d = rows.shape
    out, width = np.zeros((d, d)), min(d, COLUMNS)
    height = ONE_THREAD // (width * (width + 1))
    blocks = [slice(first, min(first + width, d)) for first in range(0, d, width)]
    for k in range(0, m, height):
        piece = rows[k : k + height]
        for i, at in enumerate(blocks):
            for other in blocks[: i + 1]:
                out[at, other] += piece[:, at].T @ piece[:, other]
    for i, at in enumerate(blocks):
        for other in blocks[:i]:
            out[other, at] = out[at, other].T
    return out
