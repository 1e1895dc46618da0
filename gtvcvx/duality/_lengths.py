"""How large solutions may be where no loss tells, by the data of all nodes together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx.losses.node._scalar import DECIDED

#: Columns whose singular value, of one length each, is below this share of the largest one count as
#: dependent: rounding of decompositions.
DEPENDENT = 1e-13
# Entries that are decomposed between two looks at the clock.
PIECE = 1_000_000


@dataclass(frozen=True)
class Lengths:
    """How large solutions may be, by sums over all rows.

    Parameters
    ----------
    totals : ndarray, shape (3 + d,)
        Number of terms that fall without end, number of rows, sum of the squares of all targets,
        and of each feature.
    """

    totals: FloatArray

    @cached_property
    def _squares(self) -> FloatArray:
        """Sums of the squares of the features, (d,); infinite where there are none."""
        return np.where(self.totals[3:] > 0.0, self.totals[3:], np.inf)

    @cached_property
    def alone(self) -> FloatArray:
        """How large each coordinate would be if it had to make up the targets alone, (d,)."""
        return np.asarray(np.sqrt(self.totals[2] / self._squares))

    @property
    def predictions(self) -> float:
        """How long the predictions of all rows may be together."""
        return float(np.sqrt(self.totals[2]) + self._decided)

    @property
    def _decided(self) -> float:
        """How long predictions are that decide all rows; zero where no loss falls without end."""
        return float(DECIDED * np.sqrt(self.totals[1])) if self.totals[0] else 0.0

    @cached_property
    def longest(self) -> FloatArray:
        """How long solutions may be where losses fall without end, (d,); zero where none does."""
        return np.asarray(self._decided / np.sqrt(self._squares))


def pooled_lengths(tables: Iterable[FloatArray], d: int) -> FloatArray:
    """Return how large each coordinate may be, (d,), for predictions of all rows of length one.

    With all nodes at one point: nearly dependent columns, an intercept beside features far from
    zero, let coordinates be large that predict next to nothing. Those along which no row changes do
    not count, as any solution stays one along them.
    """
    tables = list(tables)
    squares = sum((np.sum(X**2, axis=0) for X in tables), np.zeros(d))
    units = np.where(squares > 0.0, np.sqrt(squares), 1.0)
    upper, step = np.zeros((0, d)), max(PIECE // d, d)
    for X in tables:
        for start in range(0, len(X), step):
            look()
            stacked = np.concatenate([upper, X[start : start + step] / units])
            upper = np.asarray(np.linalg.qr(stacked, mode="r"))
    _, sigma, basis = np.linalg.svd(upper, full_matrices=False)
    some = sigma > DEPENDENT * sigma.max(initial=0.0)
    return np.asarray(np.linalg.norm(basis[some] / sigma[some, None], axis=0) / units)
