"""Flows as dual variables of the jumps of w: all norms and quadratic functions."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import EPS
from gtvcvx.penalties import Penalty
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point._penalties import PENALTY_KINDS
from gtvcvx.solvers.interior_point.blockwise._duals import Duals, Intervals, longest
from gtvcvx.solvers.interior_point.blockwise._lengths import Lengths
from gtvcvx.solvers.interior_point.blockwise._powers import Powers

# Exponents of p-norms: far from 2, flows change too much where jumps hardly do, or the reverse.
EXPONENTS = 1.05, 6.0
# Slacks miss less of largest entries than this share of them by rounding alone.
ROUNDED = 64.0 * EPS


def flows_known(penalty: Penalty) -> bool:
    """Say whether flows of a penalty have bounds that are known here, or none."""
    data = penalty.to_data()
    if data["kind"] == "pnorm":
        return EXPONENTS[0] <= data["p"] <= EXPONENTS[1]
    return data["kind"] in PENALTY_KINDS


class EdgeDuals(Duals, Protocol):
    """Flows.

    Attributes
    ----------
    retracted : bool
        Whether the last move was not all of the step that was asked for.
    """

    retracted: bool


def edge_duals(problem: GTVProblem) -> EdgeDuals:
    """Return the flow of a problem, in the middle of its bounds."""
    data, d, capacities = problem.penalty.to_data(), problem.dim, problem.capacities
    kind = data["kind"]
    if kind in ("squared", "quadratic"):
        return Springs(capacities, data.get("Q", np.eye(d)))
    if kind == "linf" and d > 1:
        return LargestEntries(capacities, d)
    if kind == "pnorm" and d > 1:
        return Powers(capacities, d, data["p"])
    return Lengths(capacities, d) if kind == "l2" and d > 1 else Moduli(capacities, d)


def diagonals(entries: FloatArray) -> FloatArray:
    """Return diagonal matrices (m, d, d) of their entries (m, d)."""
    m, d = entries.shape
    out = np.zeros((m, d, d))
    out[:, np.arange(d), np.arange(d)] = entries
    return out


class Springs:
    """Flows without bounds: ``c_e Q x_e``.

    Parameters
    ----------
    capacities : ndarray, shape (m,)
    Q : ndarray, shape (d, d)
    """

    degree = 0.0
    retracted = False

    def __init__(self, capacities: FloatArray, Q: FloatArray) -> None:
        self.weights = capacities[:, None, None] * Q
        self.y = np.zeros((len(capacities), len(Q)))

    def begin(self, x: FloatArray, mu: float) -> None:
        """Take the flow that goes with x."""
        self.linearize(x)

    def complementarity(self) -> float:
        """Return zero: there are no bounds."""
        return 0.0

    def linearize(self, x: FloatArray) -> None:
        """Take the flow that goes with x: moved with it, it is the same but for rounding."""
        self.y = np.einsum("mij,mj->mi", self.weights, x)

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return zero: the flow follows x."""
        return np.zeros_like(self.y)

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of the flow."""
        self._step = np.einsum("mij,mj->mi", self.weights, dx)
        return self._step

    def longest(self) -> float:
        """Return infinity."""
        return np.inf

    def move(self, length: float) -> None:
        """Move the flow."""
        self.y = self.y + length * self._step


class Moduli:
    """Flows whose entries are at most the capacities (m,): penalties are l1 norms."""

    retracted = False

    def __init__(self, capacities: FloatArray, d: int) -> None:
        bounds = np.repeat(capacities, d)
        self._entries = Intervals(-bounds, bounds, np.zeros(len(bounds)))
        self._shape = len(capacities), d
        self.degree = self._entries.degree

    @property
    def y(self) -> FloatArray:
        """The flow (m, d)."""
        return self._entries.y.reshape(self._shape)

    @property
    def weights(self) -> FloatArray:
        """Diagonal matrices."""
        return diagonals(self._entries.weights.reshape(self._shape))

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start from zero."""
        self._entries.begin(x.ravel(), mu)

    def complementarity(self) -> float:
        """Return the sum over all entries."""
        return self._entries.complementarity()

    def linearize(self, x: FloatArray) -> None:
        """Take the jumps (m, d)."""
        self._entries.linearize(x.ravel())

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of the flow when w rests."""
        return self._entries.offset(mu, corrected).reshape(self._shape)

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of the flow."""
        return self._entries.step(dx.ravel()).reshape(self._shape)

    def longest(self) -> float:
        """Return the length of all entries."""
        return self._entries.longest()

    def move(self, length: float) -> None:
        """Move the flow."""
        self._entries.move(length)


class LargestEntries:
    """Flows whose moduli add up to the capacity at most: penalties are maximum norms.

    ``t >= |x_k|`` are 2 d constraints, with slacks ``t - x_k`` and ``t + x_k``; the flow is the
    difference of their multipliers, which add up to the capacity.

    Parameters
    ----------
    capacities : ndarray, shape (m,)
    d : int
    """

    retracted = False

    def __init__(self, capacities: FloatArray, d: int) -> None:
        self._up = np.repeat(capacities[:, None] / (2 * d), d, axis=1)
        self._down = self._up.copy()
        self.y = self._up - self._down
        self.weights = np.zeros((len(capacities), d, d))
        self.degree = 2.0 * self._up.size
        # Of slacks, and of multipliers.
        self._step: tuple[FloatArray, FloatArray, FloatArray, FloatArray]
        self._missing: tuple[FloatArray, ...]  # from slacks to what they are of t and x

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start with all multipliers alike."""
        t = np.max(np.abs(x), axis=1) + mu / self._up[:, 0]
        self._above, self._below = t[:, None] - x, t[:, None] + x

    def complementarity(self) -> float:
        """Return the sum of slacks times multipliers."""
        return float(np.sum(self._above * self._up) + np.sum(self._below * self._down))

    def linearize(self, x: FloatArray) -> None:
        """Eliminate t, whose weights are those of all slacks together.

        The slacks have moved with x; afresh, small ones would be lost in t. But what was rounded
        when they were large is far more than that by the end: it is missing, and steps make it up.
        """
        self._rates = self._up / self._above, self._down / self._below
        both, self._tilt = self._rates[0] + self._rates[1], self._rates[0] - self._rates[1]
        self._total = both.sum(axis=1)
        outer = self._tilt[:, :, None] * self._tilt[:, None, :]
        self.weights = diagonals(both) - outer / self._total[:, None, None]
        ends = self._above + x, self._below - x  # t, if nothing had been rounded
        t = np.sum(self._rates[0] * ends[0] + self._rates[1] * ends[1], axis=1) / self._total
        off = t[:, None] - ends[0], t[:, None] - ends[1]
        least = ROUNDED * t[:, None]
        self._missing = tuple(np.where(np.abs(part) > least, part, 0.0) for part in off)

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of the flow when x rests, while t moves."""
        up, down = mu - self._above * self._up, mu - self._below * self._down
        if corrected:
            above, below, dup, ddown = self._step
            up, down = up - above * dup, down - below * ddown
        above, below = self._missing
        self._aims = up / self._above, down / self._below
        self._aims = self._aims[0] - self._rates[0] * above, self._aims[1] - self._rates[1] * below
        rise = (self._aims[0] + self._aims[1]).sum(axis=1) / self._total
        self._rise = rise
        found: FloatArray = self._aims[0] - self._aims[1] - self._tilt * rise[:, None]
        return found

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of the flow; those of t and of the slacks follow."""
        rise = self._rise + np.einsum("mk,mk->m", self._tilt, dx) / self._total
        above, below = rise[:, None] - dx, rise[:, None] + dx
        up = self._aims[0] - self._rates[0] * above
        down = self._aims[1] - self._rates[1] * below
        self._step = above + self._missing[0], below + self._missing[1], up, down
        return up - down

    def longest(self) -> float:
        """Return the length at which the first slack or multiplier vanishes."""
        values = self._above, self._below, self._up, self._down
        return min(longest(v.ravel(), s.ravel()) for v, s in zip(values, self._step, strict=True))

    def move(self, length: float) -> None:
        """Move slacks and multipliers, and the flow with them."""
        above, below, up, down = self._step
        self._above, self._below = self._above + length * above, self._below + length * below
        self._up, self._down = self._up + length * up, self._down + length * down
        self.y = self._up - self._down
