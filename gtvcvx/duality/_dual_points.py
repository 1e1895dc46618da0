"""Dual points with multipliers of everything there is at the nodes, and their gaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, Records

NONE = np.empty((0, 1))


class DualPoint(NamedTuple):
    """A flow, and multipliers of whatever else there is at the nodes."""

    u: FloatArray  # (m, d)
    a: FloatArray  # (N,), of the rows, sorted by node
    t: FloatArray  # (n, d), of the coordinates' own terms
    nu: FloatArray  # (n,), of the sums; zero where they are free
    p: FloatArray = NONE  # (N', K), chances of the rows with several classes

    def plus(self, change: DualPoint) -> DualPoint:
        """Return the sum."""
        return DualPoint(*(x + y for x, y in zip(self, change, strict=True)))


class FeasiblePoint(NamedTuple):
    """A dual point that is feasible up to rounding, or nearly so beside an optimal point."""

    point: DualPoint
    largest: FloatArray  # (n, d), sizes of the points that what it misses pairs with

    @property
    def u(self) -> FloatArray:
        """The flow (m, d)."""
        return self.point.u


class Certain(NamedTuple):
    """Gap of a point against a dual point that is feasible up to rounding."""

    node: FloatArray  # (n,)
    edge: FloatArray  # (m,)
    missing: float  # first-order bound on what the balance misses

    @property
    def parts(self) -> float:
        """The gap but for what is missing."""
        return float(np.sum(self.node) + np.sum(self.edge))

    @property
    def total(self) -> float:
        """All of it."""
        return self.parts + self.missing


def attached(coordinates: Records, w: FloatArray, t: FloatArray) -> FloatArray:
    """Return multipliers t (n, d) of l1 terms at their ends, where w (n, d) is off the kink.

    At a solution a multiplier is at an end, or its coordinate at zero. Whichever is closer to that,
    as a share of what it may be, is taken to be what it will be.
    """
    kappa, largest = coordinates["kappa"], np.abs(w).max(axis=0, initial=0.0)
    share = np.abs(w) / np.where(largest > 0.0, largest, 1.0)
    left = kappa - np.sign(w) * t  # negative where a box presses
    off = (left >= 0.0) & (left < share * kappa) & (coordinates["mu"] == 0.0)
    return np.where(off, np.sign(w) * kappa, t)
