"""Capacities beyond what any flow can reach, made smaller: slopes clipped there lose digits."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import compiled
from gtvcvx.duality._scalar_gap import Extent, Slopes
from gtvcvx.solvers.forest._rooted import RootedForest

# Of a sum, far more than rounding takes from it.
ROUNDING = 1e-6
# Slopes may be clipped this far away, in units of the distance of the minimizers: three digits.
FAR = 1e3


def as_given(extent: Extent, capacities: FloatArray) -> bool:
    """Say whether slopes clipped at capacities (m,) lose no digits."""
    largest = float(capacities.max(initial=0.0))
    width, flattest = extent.high - extent.low, extent.flattest
    near = flattest == np.inf or largest <= FAR * width * flattest
    return largest <= extent.size and near


def effective(
    forest: RootedForest, slopes: Slopes, extent: Extent, capacities: FloatArray
) -> FloatArray:
    """Return capacities (n,), by position, that allow the same flows as those of the edges (m,).

    What a subtree sends up is no more than its slopes between the least and the largest minimizer
    of all nodes, where all values of some solution are.
    """
    q, b, rise = slopes.q, slopes.b, slopes.rise
    low, high = extent.low, extent.high
    capacity = np.empty(len(forest.edge))
    _by_position(forest.edge, capacities, capacity)
    if as_given(extent, capacities):
        return capacity
    steepest = np.maximum(np.abs(q * low - b), np.abs(q * high - b)) + rise
    # Twice, and some more than rounding: nothing is clipped among those values.
    most = 2.0 * steepest + ROUNDING * (np.abs(b) + rise)
    below = most[forest.node]
    _add_up(forest.parent, below)
    limited: FloatArray = np.minimum(capacity, below)
    return limited


@compiled
def _by_position(edge: IntArray, capacities: FloatArray, out: FloatArray) -> None:
    """Write the capacities (n,) of the edges to the parents; roots have none."""
    for p in range(len(edge)):
        out[p] = capacities[edge[p]] if edge[p] >= 0 else 0.0


@compiled
def _add_up(parent: IntArray, total: FloatArray) -> None:
    """Replace values (n,) by their sums over what is below each position, itself included."""
    for p in range(len(total)):
        if parent[p] >= 0:
            total[parent[p]] += total[p]
