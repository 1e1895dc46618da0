"""Smooth rows of data, whose slopes are derivatives at the point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.losses.batched._terms import Term
from gtvcvx.losses.batched.composite._parts import records_of
from gtvcvx.losses.node._scalar import (
    PSEUDO_HUBER,
    ROW,
    row_curvature,
    row_point,
    row_slope,
    row_value,
)
from gtvcvx.solvers.interior_point.blockwise._duals import dot


@dataclass(frozen=True)
class SmoothSettings:
    """How far a step may lead.

    Attributes
    ----------
    overshoot : float
        The slope along the step may be this share of its size at the start at most, uphill: slopes
        change by more than was expected where curvatures grow.
    shortest : float
        No step is made shorter than that.
    steep : float
        A row is steep where its slope changes by so many times as much as its curvature says.
    """

    overshoot: float = 0.5
    shortest: float = 2.0**-40
    steep: float = 2.0


DEFAULTS = SmoothSettings()


class SmoothRows(NamedTuple):
    """Rows ``f_k(x_k^T w)`` of smooth convex functions."""

    X: FloatArray  # (N, d)
    table: Records  # (N,) of ROW
    node: IntArray  # (N,)

    @staticmethod
    def of(terms: Iterable[Term], d: int) -> SmoothRows:
        """Return the rows of some terms, perhaps none."""
        terms = list(terms)
        return SmoothRows(
            np.concatenate([np.empty((0, d)), *(term["X"] for term in terms)]),
            np.concatenate([np.empty(0, ROW), *(records_of(term) for term in terms)]),
            np.concatenate([np.empty(0, np.int64), *(term["node"] for term in terms)]),
        )

    @property
    def start(self) -> FloatArray:
        """Points (N,) at which rows have a curvature to start with.

        Far from its target a pseudo-Huber row has next to none, and steps would know no end.
        """
        table = self.table
        return np.where(table["kind"] == PSEUDO_HUBER, table["y"], 0.0)

    def value(self, x: FloatArray) -> float:
        """Return the sum of all rows at x (N,)."""
        return float(np.sum(row_value(self.table, x)))

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return all derivatives at x (N,)."""
        return row_slope(self.table, x)

    def curvatures(self, x: FloatArray) -> FloatArray:
        """Return all second derivatives at x (N,)."""
        return row_curvature(self.table, x)

    def turn(self, x: FloatArray, step: FloatArray, curvatures: FloatArray, length: float) -> float:
        """Return how much more the slope along a step from x (N,) changes than curvatures say."""
        change = self.slopes(x + length * step) - self.slopes(x)
        return dot(step, change) - length * dot(step, curvatures * step)

    def steeper(self, x: FloatArray, step: FloatArray, curvatures: FloatArray) -> FloatArray:
        """Return curvatures (N,), larger where a step from x (N,) turns slopes by more than these.

        What such a step wants of a slope is what others press with; only where it takes the point
        for that is wrong. So curvatures are those of chords to where slopes are as wanted, and
        where that tells nothing, to where the step leads.
        """
        slope, wanted = self.slopes(x), curvatures * step
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            change = self.slopes(x + step) - slope
            # Slopes that change by more than is wanted have room for that.
            steep = np.abs(change) > DEFAULTS.steep * np.abs(wanted)
            found = wanted / (row_point(self.table, slope + wanted) - x)
            found = np.where(found > curvatures, found, change / step)
        return np.where(steep & np.isfinite(found), np.maximum(found, curvatures), curvatures)


def safe_length(
    turn: Callable[[float], float],
    length: float,
    descent: float,
    settings: SmoothSettings = DEFAULTS,
) -> float:
    """Return the length, or so many halves of it that a step leads not too far.

    Parameters
    ----------
    turn : callable
        By how much more the slope along the step changes at a length than curvatures say.
    length : float
    descent : float
        Product of the whole step with the matrix that it was found with: what the slope along it
        loses from its start to its end, if nothing but linear changes.
    """
    while length > settings.shortest:
        if turn(length) <= (1.0 - length + settings.overshoot) * descent:
            break
        length *= 0.5
    return length
