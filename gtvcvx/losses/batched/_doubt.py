"""What rounding leaves open about linear terms, and what that adds to gaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._norms import EPS

# Units in the last place that a sum of products loses: half of one for each product, and roundings
# cancel in part.
SUM_ULPS = 2.0


class Doubt(NamedTuple):
    """What is uncertain about linear terms and solutions, for bounds of the effect of rounding."""

    injection: FloatArray  # (k, d), what rounding may have made of s_i
    reach: FloatArray  # (d,) or (k, d), how far solutions may be from w where no loss tells
    variation: Callable[[], float]  # of w, times the capacities

    def of(self, at: IntArray | slice) -> Doubt:
        """Return the same for some nodes."""
        reach = self.reach if self.reach.ndim == 1 else self.reach[at]
        return self._replace(injection=self.injection[at], reach=reach)


def widened(gap: FloatArray, *parts: float) -> float:
    """Return what may be added to gaps (k,) by changes of multipliers that have gaps themselves.

    Roots of the sums are norms.
    """
    more, total = sum(np.sqrt(part) for part in parts), float(np.sum(gap))
    return float(more * (more + 2.0 * np.sqrt(total)))


def uncertain(d: int) -> float:
    """Return what residuals of twice the precision miss beside half a unit of their last place.

    From above, as a share of the sum of the sizes of d products (`gtvcvx.losses.node._residuals`);
    a target is at most the residual and these.
    """
    return float(2.0 * (0.5 * (d + 2) * EPS) ** 2)
