"""Capacities beyond what any flow can reach, made smaller: slopes clipped there lose digits."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import compiled
from gtvcvx.solvers.forest._rooted import RootedForest
from gtvcvx.solvers.forest._slopes import Slopes

# Of a sum, far more than rounding takes from it.
ROUNDING = 1e-6
# Slopes may be clipped this far away, in units of the distance of the minimizers: three digits.
FAR = 1e3


def effective(forest: RootedForest, slopes: Slopes, capacity: FloatArray) -> FloatArray:
    """Return capacities (n,) that allow the same flows, by position as those that are given.

    What a subtree sends up is no more than its slopes between the least and the largest minimizer
    of all nodes, where all values of some solution are.
    """
    q, b, rise = slopes.q, slopes.b, slopes.rise
    largest, size = float(capacity.max(initial=0.0)), float(np.abs(b).sum()) + float(rise.sum())
    low, high = _hull(slopes)
    flattest = float(np.min(q, where=q > 0.0, initial=np.inf))
    if largest <= size and (flattest == np.inf or largest <= FAR * (high - low) * flattest):
        return capacity
    steepest = np.maximum(np.abs(q * low - b), np.abs(q * high - b)) + rise
    # Twice, and some more than rounding: nothing is clipped among those values.
    most = 2.0 * steepest + ROUNDING * (np.abs(b) + rise)
    below = most[forest.node]
    _add_up(forest.parent, below)
    limited: FloatArray = np.minimum(capacity, below)
    return limited


def _hull(slopes: Slopes) -> tuple[float, float]:
    """Return the least and the largest minimizer of a node; 0 without any."""
    q, b, n = slopes.q, slopes.b, len(slopes.q)
    first, last = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(first, slopes.node, slopes.position)
    np.maximum.at(last, slopes.node, slopes.position)
    curved = q > 0.0
    left = np.divide(b, q, out=np.full(n, np.inf), where=curved)
    right = np.divide(b - slopes.rise, q, out=np.full(n, -np.inf), where=curved)
    own = np.isfinite(first)
    found = np.concatenate(
        [first[own], last[own], left[curved & (left <= first)], right[curved & (right >= last)]]
    )
    return (float(found.min()), float(found.max())) if len(found) else (0.0, 0.0)


@compiled
def _add_up(parent: IntArray, total: FloatArray) -> None:
    """Replace values (n,) by their sums over what is below each position, itself included."""
    for p in range(len(total)):
        if parent[p] >= 0:
            total[parent[p]] += total[p]
