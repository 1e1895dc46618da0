"""Nodes whose coordinates have given sums: steps, and what is missing, without their means.

Multipliers of sums make up for what a mean misses, whatever it is. With them as variables, or as
rows of large weight, what the graph tells would be rounding beside data in large units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray

# Of blocks without anything but the mean, to which any weight is as good.
LEAST = float(np.finfo(np.float64).tiny)


class Sums(NamedTuple):
    """Sums of the coordinates of all nodes, or of none."""

    totals: FloatArray | None  # (n,)

    def within(self, x: FloatArray) -> FloatArray:
        """Return vectors (..., d) without what sums forbid."""
        return x if self.totals is None else x - x.mean(axis=-1, keepdims=True)

    def both(self, blocks: FloatArray) -> FloatArray:
        """Return symmetric blocks (N, d, d) that neither see nor change the mean."""
        if self.totals is None:
            return blocks
        return self.within(self.within(blocks).transpose(0, 2, 1))

    def resting(self, blocks: FloatArray, edges: IntArray, weights: FloatArray) -> FloatArray:
        """Return blocks (n, d, d) of nodes in which means rest, beside edges' weights (m, d, d)."""
        if self.totals is None:
            return blocks
        size = np.einsum("nii->n", blocks) + LEAST
        np.add.at(size, edges, np.einsum("eii->e", weights)[:, None])
        return np.asarray(blocks + (size / blocks.shape[1] ** 2)[:, None, None])

    def start(self, shape: tuple[int, int]) -> FloatArray:
        """Return a point (n, d) with these sums."""
        zero = np.zeros(shape)
        return zero if self.totals is None else zero + self.totals[:, None] / shape[1]
