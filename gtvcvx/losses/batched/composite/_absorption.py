"""What it costs that multipliers do not quite add up to what they should.

Multipliers a of the rows and t of the coordinates' terms give s_i up to a leak r_i that rounding
left, or a method that ended early. Beside a nearly singular X_i a leak is worth far more than its
product with any point at hand: along a direction in which the predictions hardly change, solutions
may be far away. But other multipliers, ``(X_i^T, 1) beta = r_i``, make up for it, so that the dual
point is exact again, and it is these that are paid for:

- what row functions and coordinates' terms lose where the multipliers stay in their intervals;
- the share by which they leave them, times the objective above its least: the whole dual point,
  made shorter by that share, is feasible, and its value is concave;
- where an interval ends at zero, where that is no help, the excess times the predictions.

What no multipliers make up, where X_i has not full rank, pairs with points: but for coordinates
that are bounded on one side, whose multipliers have no end on the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.losses.batched._doubt import SUM_ULPS, uncertain
from gtvcvx.losses.batched.composite._least_multipliers import LeastMultipliers
from gtvcvx.losses.batched.composite._parts import EPS, Parts
from gtvcvx.losses.node._conjugate import coordinate_domain, gaps_of_coordinates
from gtvcvx.losses.node._residuals import residuals
from gtvcvx.losses.node._scalar import DECIDED, KINK, LOGISTIC, POISSON, row_gap, row_slope
from gtvcvx.losses.node._segments import (
    images,
    products_of_sizes,
    sums,
    weighted,
    weighted_sizes,
)


class Cost(NamedTuple):
    """What leaks cost a bound."""

    node: FloatArray  # (k,), of multipliers that stay in their intervals
    share: float  # by which all are to be made shorter
    rest: float  # of what nothing makes up

    def total(self, level: float) -> float:
        """Return the sum, for an objective that is so far above its value at the flow zero."""
        return float(np.sum(self.node)) + self.share * level + self.rest


class Absorption:
    """Multipliers that make up for leaks, for all nodes.

    Parameters
    ----------
    parts : Parts
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        c = parts.coordinates
        self._low, self._high = coordinate_domain(c)
        # Where points are in a bounded set, a leak is worth its product with the set's width.
        totals = np.where(np.isnan(parts.totals), np.inf, parts.totals)[:, None]
        self._width = np.minimum(c["upper"] - c["lower"], totals)
        self._narrow = np.isfinite(self._width)
        # A coordinate that takes nothing on one side cannot make up for what leaks there.
        room = np.minimum(self._high, -self._low)
        curved = c["mu"] > 0.0
        room = np.where(curved, c["kappa"] + c["mu"], np.where(np.isinf(room), 0.0, room))
        room[self._narrow] = 0.0
        # But with an end on one side alone it takes on the other whatever leaks, of that sign.
        self._one_sided = ~self._narrow & (np.isinf(self._low) != np.isinf(self._high))
        span = parts.rows["high"] - parts.rows["low"]
        span = np.where(np.isinf(span), parts.rows["c"], span)
        self._least = LeastMultipliers(parts, span, room)

    def cost(
        self,
        w: FloatArray,
        a: FloatArray,
        t: FloatArray,
        leak: FloatArray,
        doubt: FloatArray,
        reach: FloatArray,
    ) -> Cost:
        """Return what leaks (k, d), each known up to a doubt (k, d) >= 0, cost at w (k, d).

        Parameters
        ----------
        w : ndarray, shape (k, d)
        a : ndarray, shape (N,)
        t : ndarray, shape (k, d)
        leak, doubt : ndarray, shape (k, d)
        reach : ndarray, shape (d,) or (k, d)
            How far solutions may be from w where the losses do not tell.
        """
        parts, indptr = self._parts, self._parts.indptr
        width = np.where(self._narrow, self._width, 0.0)
        known = float(np.sum((np.abs(leak) + doubt) * width))
        leak, doubt = (np.where(self._narrow, 0.0, x) for x in (leak, doubt))
        least = self._least
        change = images(least.rows, indptr, leak)
        wide = products_of_sizes(least.rows, indptr, doubt)
        found = weighted(indptr, change, parts.X)
        ends = a + change - wide, a + change + wide
        rows, targets = parts.centred
        r = residuals(parts.X, targets, indptr, w)
        inside = (np.clip(end, rows["low"], rows["high"]) for end in ends)
        gaps = np.maximum(*(row_gap(rows, r, end) for end in inside))
        lost = np.maximum(gaps - row_gap(rows, r, a), 0.0)
        # A gap changes with the residual by the slope less the multiplier. The value changes
        # with it, where there are kinks, so that only the multiplier's share is left.
        sizes = products_of_sizes(parts.X, indptr, np.abs(w))
        blurred = EPS * np.abs(r) + uncertain(w.shape[1]) * sizes
        lost += np.where(rows["kind"] == KINK, 0.0, np.abs(row_slope(rows, r) - a) * blurred)
        node = sums(indptr, lost)
        z = images(parts.X, indptr, w)
        long = np.where((rows["kind"] == LOGISTIC) | (rows["kind"] == POISSON), DECIDED, 1.0)
        share, rest = _outside(ends, rows["low"], rows["high"], long + 2.0 * np.abs(z))
        rest += self._beyond(a + change, wide, reach)
        rest += known
        moves = least.of_coordinates(leak, doubt, found, wide)
        if moves is not None:
            found += moves[0]
            own, more, left = self._coordinates(w, t, *moves)
            node += own
            share, rest = max(share, more), rest + left
        unmade, loose = leak - found, np.where(least.short[:, None], doubt, 0.0)
        missing = np.where(self._narrow, 0.0, np.abs(unmade) + loose)
        if self._one_sided.any():
            own, beyond = self._taken(w, t, unmade, loose)
            node, missing = node + own, np.where(self._one_sided, beyond, missing)
        return Cost(node, share, rest + 2.0 * float(np.sum(missing * reach)))

    def _beyond(self, a: FloatArray, wide: FloatArray, reach: FloatArray) -> float:
        """Return what rows' multipliers (N,) cost that are beyond an end at zero for sure.

        That is by more than may be rounding: predictions of solutions are as far from those at w
        as reach says.
        """
        parts = self._parts
        low, high = parts.rows["low"], parts.rows["high"]
        over = np.where(low == 0.0, -a, 0.0) + np.where(high == 0.0, a, 0.0) - wide
        over = np.maximum(over, 0.0)
        if not over.any():
            return 0.0
        far = products_of_sizes(parts.X, parts.indptr, np.broadcast_to(reach, self._width.shape))
        return float(2.0 * np.sum(over * far))

    def _taken(
        self, w: FloatArray, t: FloatArray, left: FloatArray, doubt: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what leaks cost (k,) that coordinates bounded on one side take, and the excess.

        That is what leaks (k, d), up to a doubt, are beyond the end of the multipliers.
        """
        ends = t + left - doubt, t + left + doubt
        own = np.where(self._one_sided, self._widened(w, t, *ends), 0.0).sum(axis=1)
        return own, np.maximum(np.maximum(self._low - ends[0], ends[1] - self._high), 0.0)

    def _widened(
        self, w: FloatArray, t: FloatArray, first: FloatArray, last: FloatArray
    ) -> FloatArray:
        """Return what gaps of coordinates (k, d) grow by, from t to what is between two ends."""
        c, low, high = self._parts.coordinates, self._low, self._high
        with np.errstate(invalid="ignore"):  # infinite less infinite where w is outside
            gaps = [gaps_of_coordinates(c, w, np.clip(end, low, high)) for end in (first, last)]
            own = np.maximum(*gaps) - gaps_of_coordinates(c, w, t)
        return np.where(np.isnan(own), 0.0, np.maximum(own, 0.0))

    def _coordinates(
        self, w: FloatArray, t: FloatArray, moved: FloatArray, loose: FloatArray
    ) -> tuple[FloatArray, float, float]:
        ends = t + moved - loose, t + moved + loose
        own = self._widened(w, t, *ends).sum(axis=1)
        return own, *_outside(ends, self._low, self._high, np.abs(w))


def doubts(parts: Parts, s: FloatArray, a: FloatArray, t: FloatArray) -> FloatArray:
    """Return what rounding makes of ``s - X^T a - t``, (k, d)."""
    size = np.abs(s) + weighted_sizes(parts.indptr, a, parts.X) + np.abs(t)
    return np.asarray(SUM_ULPS * EPS * size)


def _outside(
    ends: tuple[FloatArray, FloatArray], low: FloatArray, high: FloatArray, size: FloatArray
) -> tuple[float, float]:
    """Return the largest share by which intervals are left, and what it costs at ends of zero."""
    share, rest = 0.0, 0.0
    for excess, end in ((low - ends[0], low), (ends[1] - high, high)):
        over = np.where(np.isinf(end), 0.0, np.maximum(excess, 0.0))
        if over.any():
            none: BoolArray = end == 0.0
            share = max(share, float(np.max(over / np.where(none, np.inf, np.abs(end)))))
            rest += float(np.sum(np.where(none, over * size, 0.0)))
    return share, rest
