"""Dual variables of bounds on linear forms x, whose functions are zero inside, infinite outside.

Points may be outside on the way, by what becomes less with every step as the balance does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.solvers.interior_point.blockwise._duals import dot, longest


class Sides(NamedTuple):
    """Inequalities ``sign x >= sign end``."""

    at: IntArray  # (K,), of the forms
    sign: FloatArray  # (K,), 1 or -1
    end: FloatArray  # (K,)

    @staticmethod
    def of(least: FloatArray, most: FloatArray) -> Sides:
        """Return those of all ends (N,) that are finite."""
        low, high = np.flatnonzero(np.isfinite(least)), np.flatnonzero(np.isfinite(most))
        sign = np.concatenate([np.ones(len(low)), -np.ones(len(high))])
        return Sides(np.concatenate([low, high]), sign, np.concatenate([least[low], most[high]]))

    def distances(self, x: FloatArray) -> FloatArray:
        """Return how far inside forms x (N,) are, (K,)."""
        found: FloatArray = self.sign * (x[self.at] - self.end)
        return found


class Walls:
    """Numbers without bounds, of ``least <= x <= most``: multipliers of both sides, subtracted.

    Parameters
    ----------
    least, most : ndarray, shape (N,)
        Of each x one is finite, at least, and least < most.
    """

    def __init__(self, least: FloatArray, most: FloatArray) -> None:
        self._sides = Sides.of(least, most)
        self._width = (most - least)[self._sides.at]
        self._size = len(least)
        self.y = self.weights = np.zeros(len(least))
        self.degree = float(len(self._sides.at))
        self._step: tuple[FloatArray, FloatArray]  # of slacks and multipliers

    def _added(self, values: FloatArray) -> FloatArray:
        return np.bincount(self._sides.at, values, self._size).astype(float)

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start with slacks as large as distances, or as those are on the average."""
        distances = self._sides.distances(x)
        typical = float(np.mean(np.abs(distances))) or 1.0
        self._slacks = np.maximum(distances, np.minimum(typical, 0.5 * self._width))
        self._multipliers = mu / self._slacks
        self._missing = distances - self._slacks
        self.y = self._added(-self._sides.sign * self._multipliers)

    def complementarity(self) -> float:
        """Return the sum of slacks times multipliers, and what is violated by."""
        return dot(self._multipliers, self._slacks + np.abs(self._missing))

    def linearize(self, x: FloatArray) -> None:
        """Take note of what slacks miss of the distances."""
        self._missing = self._sides.distances(x) - self._slacks
        self.weights = self._added(self._multipliers / self._slacks)

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of y for slacks times multipliers of mu."""
        self._aims = mu - self._slacks * self._multipliers
        if corrected:
            self._aims = self._aims - self._step[0] * self._step[1]
        change = self._change(self._missing)
        self._offset = self._added(-self._sides.sign * change)
        return self._offset

    def _change(self, slacks: FloatArray) -> FloatArray:
        """Return the steps of multipliers that go with those of slacks."""
        found: FloatArray = (self._aims - self._multipliers * slacks) / self._slacks
        return found

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of y; those of slacks and multipliers follow."""
        slacks = self._missing + self._sides.sign * dx[self._sides.at]
        self._step = slacks, self._change(slacks)
        found: FloatArray = self.weights * dx + self._offset
        return found

    def longest(self) -> float:
        """Return the length at which the first slack or multiplier vanishes."""
        slacks, multipliers = self._step
        return min(longest(self._slacks, slacks), longest(self._multipliers, multipliers))

    def move(self, length: float) -> None:
        """Move slacks and multipliers, and y with them."""
        slacks, multipliers = self._step
        self._slacks = self._slacks + length * slacks
        self._multipliers = self._multipliers + length * multipliers
        self._missing = (1.0 - length) * self._missing
        self.y = self._added(-self._sides.sign * self._multipliers)
