"""Flows of edges under l2 norms: vectors (t, x) and (c, -u) of second-order cones, scaled."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.solvers.interior_point.blockwise._cones import aim, longest, scale


class Lengths:
    """Flows no longer than the capacities: penalties are l2 norms, bounded by numbers t.

    Parameters
    ----------
    capacities : ndarray, shape (m,)
    d : int
    """

    retracted = False

    def __init__(self, capacities: FloatArray, d: int) -> None:
        m = len(capacities)
        self._capacities = capacities
        self.y = np.zeros((m, d))
        self.weights = np.zeros((m, d, d))
        self.degree = float(m)
        self._scaling, self._r = np.zeros((m, 3)), np.zeros((m, d))
        # Steps of t with x at rest, and of t, x and u.
        self._rise, self._dt, self._dx, self._du = np.zeros(m), np.zeros(m), self.y, self.y

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start from zero."""
        self._t, self._x = np.sqrt(np.einsum("mk,mk->m", x, x)) + mu / self._capacities, x

    def complementarity(self) -> float:
        """Return the sum of the inner products."""
        return float(np.sum(self._t * self._capacities - np.einsum("mk,mk->m", self._x, self.y)))

    def linearize(self, x: FloatArray) -> None:
        """Scale the vectors."""
        self._x, self.weights = np.ascontiguousarray(x), np.empty_like(self.weights)
        pairs = self._t, self._x, self._capacities, self.y
        scale(*pairs, self._scaling, self._r, self.weights)

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of the flow for products of mu."""
        self._offset = np.empty_like(self.y)
        last = self._dt, self._dx, self._du
        pairs = self._capacities, self.y, self._scaling, self._r
        aim(*pairs, mu, corrected, *last, self._rise, self._offset)
        return self._offset

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of the flow; that of t follows."""
        f, eta, corner = self._scaling.T
        share = (2.0 / corner) * np.einsum("mk,mk->m", self._r, dx)
        du = (dx - share[:, None] * self._r) / (eta * eta)[:, None] + self._offset
        self._dx, self._dt, self._du = np.ascontiguousarray(dx), self._rise + f * share, du
        return self._du

    def longest(self) -> float:
        """Return the length at which the first vector is at the boundary of its cone."""
        pairs = self._t, self._x, self._capacities, self.y
        return float(longest(*pairs, self._dt, self._dx, self._du))

    def move(self, length: float) -> None:
        """Move the flow, t and x."""
        self._t, self._x = self._t + length * self._dt, self._x + length * self._dx
        self.y = self.y + length * self._du
