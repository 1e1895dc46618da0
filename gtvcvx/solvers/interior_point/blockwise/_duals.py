"""Dual variables inside their bounds, with slacks and multipliers.

An objective ``sum_k f_k(x_k)`` of linear forms x of w has for each k a dual variable y_k, with
``f_k(x_k) = max_y <y, x_k> - f_k*(y)``. The bounds of y have slacks, whose multipliers explain x;
on the central path slacks times multipliers are mu. Newton's method for these equations makes the
step of y an affine function of the step of x: `weights` times it, plus an offset. What is left is
one linear system in w.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gtvcvx._arrays import FloatArray


class Duals(Protocol):
    """Dual variables of some kind, one entry or row for each linear form.

    Attributes
    ----------
    degree : float
        How many products of slacks and multipliers there are.
    """

    degree: float

    @property
    def y(self) -> FloatArray:
        """The dual variables."""

    @property
    def weights(self) -> FloatArray:
        """Derivative of y by x at the point that was linearized: numbers, or matrices."""

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start near the central path, at a product of mu."""

    def complementarity(self) -> float:
        """Return the sum of all products."""

    def linearize(self, x: FloatArray) -> None:
        """Take x, slacks and multipliers as they are now."""

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of y towards mu when x rests.

        Corrected: for the products of the last step's parts.
        """

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of y that goes with that of x."""

    def longest(self) -> float:
        """Return how many times the last step can be taken."""

    def move(self, length: float) -> None:
        """Take the last step so many times."""


def longest(values: FloatArray, step: FloatArray) -> float:
    """Return how many times a step leaves positive numbers positive."""
    fall = float(np.max(-step / values, initial=0.0))
    return 1.0 / fall if fall > 0.0 else np.inf


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product of two vectors, without threads of BLAS: they wait busily."""
    return float(np.einsum("i,i->", a, b))


class Intervals:
    """Numbers from `low` to `high`, of the functions ``max_y y x - rate y^2 / 2``.

    With rate 0 these have a kink, otherwise a curvature of 1 / rate there.

    Parameters
    ----------
    low, high, rate : ndarray, shape (N,)
    """

    def __init__(self, low: FloatArray, high: FloatArray, rate: FloatArray) -> None:
        self._low, self._high, self._rate = low, high, rate
        self.y = 0.5 * (low + high)
        self._down, self._up = self.y - low, high - self.y
        self.weights = np.zeros(len(low))
        self.degree = 2.0 * len(low)
        self._ending: float | FloatArray = 1.0  # zero where there is no upper end
        self._step: tuple[FloatArray, FloatArray, FloatArray]  # of y and the multipliers

    def _explained(self) -> tuple[FloatArray, FloatArray]:
        """Return what of x needs no multipliers, and its derivative by y."""
        return self._rate * self.y, self._rate

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start from the middle."""
        rest = x - self._explained()[0]
        self._below = np.maximum(-rest, 0.0) + mu / self._down
        self._above = np.maximum(rest, 0.0) + mu / self._up

    def complementarity(self) -> float:
        """Return the sum of slacks times multipliers."""
        return dot(self._down, self._below) + dot(self._up, self._above)

    def linearize(self, x: FloatArray) -> None:
        """Take note of what the multipliers leave of x: rounding, unless x was moved otherwise."""
        explained, rate = self._explained()
        self._missing = x - explained - (self._above - self._below)
        self.weights = 1.0 / (rate + self._below / self._down + self._above / self._up)

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of y for slacks times multipliers of mu."""
        self._aims = mu - self._down * self._below, self._ending * mu - self._up * self._above
        if corrected:
            dy, below, above = self._step
            self._aims = self._aims[0] - dy * below, self._aims[1] + dy * above
        below, above = self._aims
        self._offset = self.weights * (self._missing + below / self._down - above / self._up)
        return self._offset

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of y; those of the multipliers follow."""
        dy = self.weights * dx + self._offset
        below, above = self._aims
        self._step = (
            dy,
            (below - self._below * dy) / self._down,
            (above + self._above * dy) / self._up,
        )
        return dy

    def longest(self) -> float:
        """Return the length at which the first slack or multiplier vanishes."""
        dy, below, above = self._step
        return min(
            longest(self._down, dy),
            longest(self._up, -dy),
            longest(self._below, below),
            longest(self._above, above),
        )

    def move(self, length: float) -> None:
        """Move y and the multipliers."""
        dy, below, above = self._step
        self.y = self.y + length * dy
        self._down, self._up = self.y - self._low, self._high - self.y
        self._below, self._above = self._below + length * below, self._above + length * above
