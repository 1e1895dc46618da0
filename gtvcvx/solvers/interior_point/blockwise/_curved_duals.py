"""Slopes of smooth rows as dual variables, inside the intervals where conjugates are finite.

The function of a row is ``f(x) = max_y y x - f*(y)``. The derivative of f* is what of x the slope
explains by itself. It is infinite at the ends, but slowly so: near them a barrier does better, so
that slopes have slacks and multipliers there as those of rows with a kink have. Since third
derivatives of f* are no more than a constant times the second ones over the slacks, Newton's method
gets as far in a step as it does for linear programs [1]_.

.. [1] K. O. Kortanek, F. Potra, Y. Ye, "On some efficient interior point methods for nonlinear
   convex programming", Linear Algebra and its Applications 152, 1991.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.losses.node._scalar import LOGISTIC, POISSON, PSEUDO_HUBER, row_gap
from gtvcvx.solvers.interior_point.blockwise._duals import Intervals, longest

# Derivatives of conjugates by slopes y with slacks `down` and `up`, and second ones.
Curve = Callable[[Records, FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


def _logistic(
    rows: Records, y: FloatArray, down: FloatArray, up: FloatArray
) -> tuple[FloatArray, FloatArray]:
    return np.log(down) - np.log(up), 1.0 / down + 1.0 / up


def _poisson(
    rows: Records, y: FloatArray, down: FloatArray, up: FloatArray
) -> tuple[FloatArray, FloatArray]:
    return np.log(down) - np.log(rows["c"]), 1.0 / down


def _pseudo_huber(
    rows: Records, y: FloatArray, down: FloatArray, up: FloatArray
) -> tuple[FloatArray, FloatArray]:
    root = np.sqrt(down) * np.sqrt(up)
    x = rows["delta"] * (y / root)
    half = rows["c"] * rows["delta"]  # of the interval
    return rows["y"] + x, rows["delta"] * (half / root) ** 2 / root


_CURVES: Mapping[int, Curve] = {
    LOGISTIC: _logistic,
    POISSON: _poisson,
    PSEUDO_HUBER: _pseudo_huber,
}


class CurvedIntervals(Intervals):
    """Slopes of smooth rows.

    Parameters
    ----------
    table : ndarray of ROW, shape (N,)
        Of kinds `LOGISTIC`, `POISSON` and `PSEUDO_HUBER`.
    """

    def __init__(self, table: Records) -> None:
        self._table = table
        low, high = table["low"], table["high"]
        # Of intervals without an upper end: where the rate is the count, or one.
        ended = np.isfinite(high)
        first = low + table["c"] * np.maximum(table["y"], 1.0)
        super().__init__(low, np.where(ended, high, 2.0 * first - low), np.zeros(len(low)))
        self._ending, self._ended = 1.0 * ended, np.flatnonzero(ended)
        self.degree = float(len(low) + len(self._ended))
        self._of_kinds: list[tuple[Curve, IntArray]] = [
            (curve, np.flatnonzero(table["kind"] == kind)) for kind, curve in _CURVES.items()
        ]

    @property
    def halves(self) -> FloatArray:
        """How far slopes may move from where they begin, or typically do."""
        return 0.5 * (self._high - self._low)

    def points(self) -> tuple[FloatArray, FloatArray]:
        """Return the points (N,) that the slopes explain, and the rows' curvatures there."""
        points, rate = self._explained()
        return points, 1.0 / rate

    def surplus(self, x: FloatArray) -> float:
        """Return what values at x are above those of the tangents with these slopes."""
        if not len(x):
            return 0.0
        return float(np.sum(row_gap(self._table, x, self.y)))

    def _explained(self) -> tuple[FloatArray, FloatArray]:
        x, rate = np.empty_like(self.y), np.empty_like(self.y)
        for curve, at in self._of_kinds:
            if len(at):
                x[at], rate[at] = curve(self._table[at], self.y[at], self._down[at], self._up[at])
        return x, rate

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start from the middle."""
        super().begin(x, mu)
        self._above = self._ending * self._above

    def longest(self) -> float:
        """Return the length at which the first slack or multiplier vanishes."""
        (dy, below, above), ended = self._step, self._ended
        return min(
            longest(self._down, dy),
            longest(self._up[ended], -dy[ended]),
            longest(self._below, below),
            longest(self._above[ended], above[ended]),
        )

    def move(self, length: float) -> None:
        """Move y, the multipliers, and the slacks: afresh, small ones would be rounding."""
        down, up = self._down, self._up
        super().move(length)
        change = length * self._step[0]
        self._down, self._up = down + change, up - self._ending * change
