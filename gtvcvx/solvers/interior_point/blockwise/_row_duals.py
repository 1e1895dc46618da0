"""Slopes of rows as dual variables: most have bounds, those of squares and constraints none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.losses.batched.multinomial._class_rows import ClassRows
from gtvcvx.solvers.interior_point.blockwise._class_duals import ClassDuals
from gtvcvx.solvers.interior_point.blockwise._constraints import Walls
from gtvcvx.solvers.interior_point.blockwise._curved_duals import CurvedIntervals
from gtvcvx.solvers.interior_point.blockwise._duals import Duals, Intervals
from gtvcvx.solvers.interior_point.blockwise._node_terms import Slopes


class FreeNumbers:
    """Numbers without bounds, of the functions ``max_y y x - rate y^2 / 2``: squares.

    They follow x, but are not told by it: where x is a small difference of large numbers, so that
    it is known by few digits, these still balance to the last one.

    Parameters
    ----------
    rate : ndarray, shape (N,)
        > 0.
    """

    degree = 0.0

    def __init__(self, rate: FloatArray) -> None:
        self._rate, self.y, self.weights = rate, np.zeros(len(rate)), 1.0 / rate

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start from the slopes at x."""
        self.y = x * self.weights

    def complementarity(self) -> float:
        """Return zero: there are no bounds."""
        return 0.0

    def linearize(self, x: FloatArray) -> None:
        """Take note of what y misses of the slopes at x: rounding."""
        self._offset = x * self.weights - self.y

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of y when x rests."""
        return self._offset

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of y."""
        self._step = self.weights * dx + self._offset
        return self._step

    def longest(self) -> float:
        """Return infinity."""
        return np.inf

    def move(self, length: float) -> None:
        """Move y."""
        self.y = self.y + length * self._step


class RowDuals:
    """Numbers some of which have bounds, and others none; those of smooth rows come last.

    Parameters
    ----------
    rows : Slopes
        Both ends are finite, or none.
    smooth : ndarray of ROW, shape (M,)
    classes : ClassRows
        After all others.

    Attributes
    ----------
    degree : float
    curved : CurvedIntervals
        Those of smooth rows.
    classes : ClassDuals
    """

    def __init__(self, rows: Slopes, smooth: Records, classes: ClassRows) -> None:
        low, high, rate, walls = rows.low, rows.high, rows.rate, rows.constrained
        free, bounded = np.isinf(high) & ~walls, np.isfinite(high)
        self.curved = CurvedIntervals(smooth)
        self.classes = ClassDuals(classes)
        last = len(low) + len(smooth)
        self._size = last + len(self.classes)
        kinds: tuple[tuple[IntArray, Duals], ...] = (
            (np.flatnonzero(bounded), Intervals(low[bounded], high[bounded], rate[bounded])),
            (np.flatnonzero(free), FreeNumbers(rate[free])),
            (np.flatnonzero(walls), Walls(rows.least[walls], rows.most[walls])),
            (np.arange(len(low), last), self.curved),
            (np.arange(last, self._size), self.classes),
        )
        self._parts = [(some, kind) for some, kind in kinds if len(some)]
        self.degree = sum(part.degree for _, part in self._parts)

    def _joined(self, of: Callable[[Duals, IntArray], FloatArray]) -> FloatArray:
        out = np.zeros(self._size)
        for at, part in self._parts:
            out[at] = of(part, at)
        return out

    @property
    def y(self) -> FloatArray:
        """The numbers."""
        return self._joined(lambda part, at: part.y)

    @property
    def weights(self) -> FloatArray:
        """Their derivatives by x."""
        return self._joined(lambda part, at: part.weights)

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start from the middle, or from the slopes at x."""
        for at, part in self._parts:
            part.begin(x[at], mu)

    def complementarity(self) -> float:
        """Return the sum of slacks times multipliers."""
        return sum(part.complementarity() for _, part in self._parts)

    def linearize(self, x: FloatArray) -> None:
        """Take x as it is now."""
        for at, part in self._parts:
            part.linearize(x[at])

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of y when x rests."""
        return self._joined(lambda part, at: part.offset(mu, corrected))

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of y that goes with that of x."""
        return self._joined(lambda part, at: part.step(dx[at]))

    def longest(self) -> float:
        """Return how many times the last step can be taken."""
        return min((part.longest() for _, part in self._parts), default=np.inf)

    def move(self, length: float) -> None:
        """Take the last step so many times."""
        for _, part in self._parts:
            part.move(length)
