"""Nodes in many dimensions whose losses are sums over coordinates: each one a node of its own.

The problems of all nodes are then n d of one dimension, in memory of n d numbers; as problems of
nodes they take a matrix (d, d) each: 12 GB for 1,440 points in 1,024 dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from verify._arrays import FloatArray
from verify.instance._blocks import Blocks, Part
from verify.instance._functions import Function

# Below, matrices cost little, and what is typical is so for all coordinates of a node.
FEWEST = 32
# Rows of one node, as a share of its coordinates: above, factors (d, d) are as good.
MOST_ROWS = 0.25


def diagonal(blocks: Sequence[Blocks], d: int) -> bool:
    """Say whether nodes fall apart into coordinates, and are to: dimensions are many."""
    return d >= FEWEST and all(b.x is None for b in blocks)


def few_rows(blocks: Sequence[Blocks], d: int) -> bool:
    """Say whether dimensions are many, and no node has more than few rows."""
    if d < FEWEST or not blocks:
        return False
    count = sum((b.rows for b in blocks if b.x is not None), 0 * blocks[0].rows)
    return bool(count.max(initial=0) <= MOST_ROWS * d)


def coordinate_part(part: Part) -> Part:
    """Return a part whose nodes are coordinates (i, j), numbered i d + j, of one dimension."""
    d = part.d
    node = (part.node[:, None] * d + np.arange(d)).ravel()
    blocks = Blocks(node, None, part.n * d, 1)
    out = Part(blocks, _column(part.function, part.shape), part.equation)
    if part.units is not None:
        units = np.broadcast_to(part.units, part.shape)
        out.units = np.ascontiguousarray(units).reshape(-1, 1)
    return out


def _column(function: Function, shape: tuple[int, ...]) -> Function:
    """Return the function with its arrays of this shape as columns."""
    out = copy(function)
    for name, value in vars(function).items():
        if isinstance(value, np.ndarray) and value.ndim:
            setattr(out, name, np.broadcast_to(value, shape).reshape(-1, 1))
    return out


def column(values: FloatArray) -> FloatArray:
    """Return (n, d) numbers as those of n d nodes of one dimension."""
    return values.reshape(-1, 1)
