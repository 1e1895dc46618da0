"""Constraints B w = y of the nodes: coordinates along them, and the multipliers that are theirs.

Either single coordinates are fixed, or a row of x has a given product with w_i. Fixed coordinates
are left out, and each row makes one more follow from the others: no rounding leads off the
constraints, as it does beside orthogonal projections where columns are in different units.
"""

from __future__ import annotations

import numpy as np

from verify._arrays import FloatArray
from verify.instance._blocks import Part

# Rows of which others, and fixed coordinates, leave no more are no constraints of their own.
LEAST_ROW = 1e-10


class Equations:
    """The equations among the parts of all nodes.

    Parameters
    ----------
    parts : list of Part
    n, d : int

    Attributes
    ----------
    along : ndarray, shape (n, d, d)
        Per node a linear map whose range are the directions that no equation forbids.
    """

    def __init__(self, parts: list[Part], n: int, d: int) -> None:
        self._fixed = [k for k, p in enumerate(parts) if p.equation and p.x is None]
        self._rows: list[tuple[int, FloatArray, FloatArray]] = []
        self.along = np.broadcast_to(np.eye(d), (n, d, d)).copy()
        for k in self._fixed:
            at, none = np.nonzero(~parts[k].function.limited)
            self.along[parts[k].node[at], none] = 0.0
        for k, part in enumerate(parts):
            if part.equation and part.x is not None:
                self._eliminate(k, part)

    def _eliminate(self, k: int, part: Part) -> None:
        """Make one coordinate of each node follow from the others, by the rows of a part."""
        assert part.x is not None
        before = self.along[part.node]
        row = np.einsum("kj,kjl->kl", part.x, before)
        size = np.abs(row)
        pivot = size.argmax(axis=1)[:, None]
        some = np.take_along_axis(size, pivot, 1) > LEAST_ROW * np.abs(part.x).max(axis=1)[:, None]
        row = np.where(some, row, 0.0)
        share = row / np.where(some, np.take_along_axis(row, pivot, 1), 1.0)
        column = np.take_along_axis(before, pivot[:, None, :], 2)
        self.along[part.node] = before - column * share[:, None, :]
        self._rows.append((k, row, before))

    def left_to(self, parts: list[Part], found: list[FloatArray], target: FloatArray) -> None:
        """Write the multipliers of equations into those found, one array for each part.

        All others, which do not add up to the target (n, d), leave it to them.
        """
        left = target - sum((p.pull(r) for p, r in zip(parts, found, strict=True)), 0.0 * target)
        for k, row, before in reversed(self._rows):
            own = np.einsum("kj,kjl->kl", left[parts[k].node], before)
            size = np.einsum("kl,kl->k", row, row)
            found[k] = np.einsum("kl,kl->k", row, own) / np.where(size > 0.0, size, 1.0)
            left = left - parts[k].pull(found[k])
        for k in self._fixed:
            part = parts[k]
            units = 1.0 if part.units is None else part.units
            found[k] = np.where(part.function.limited, 0.0, left[part.node] * units)
