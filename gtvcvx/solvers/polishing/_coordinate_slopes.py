"""Subgradients of l1 terms, boxes and simplices, whose sum over each cluster is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.losses.batched._terms import Term

COORDINATE_KINDS = frozenset({"l1", "box", "simplex"})
# A coordinate this near to a kink or a bound, relative to the spread, is there: the accuracy of the
# conic solver, with some room.
THERE = 1e-7


class CoordinateSlopes:
    """Subgradients of the terms of single coordinates.

    Parameters
    ----------
    terms : sequence of dict
        Plain data; other kinds do not count.
    n_nodes, dim : int
    """

    def __init__(self, terms: Sequence[Term], n_nodes: int, dim: int) -> None:
        shape = n_nodes, dim
        self._kappa = np.zeros(shape)
        self._lower, self._upper = np.full(shape, -np.inf), np.full(shape, np.inf)
        self._summed = np.zeros(n_nodes, dtype=bool)
        self.any = False
        for term in terms:
            self.any |= term["kind"] in COORDINATE_KINDS
            node = term["node"]
            if term["kind"] == "l1":
                self._kappa[node] += term["kappa"].reshape(len(node), -1)
            elif term["kind"] == "box":
                self._lower[node] = np.maximum(self._lower[node], term["lower"])
                self._upper[node] = np.minimum(self._upper[node], term["upper"])
            elif term["kind"] == "simplex":
                self._lower[node] = np.maximum(self._lower[node], 0.0)
                self._summed[node] = True

    def split(self, w: FloatArray, variables: IntArray, total: FloatArray) -> FloatArray:
        """Return subgradients (n, d) at w that add up to a total (N,) over shared variables.

        Intervals are used up to the same share everywhere; what is beyond them goes in equal parts
        to the nodes whose intervals have no end.
        """
        at, size = variables.ravel(), len(total)
        low, high = (ends.ravel() for ends in self._intervals(w))
        least, most = (np.where(np.isfinite(ends), ends, 0.0) for ends in (low, high))
        least, most = np.minimum(least, most), np.maximum(least, most)
        sums = [np.bincount(at, ends, size) for ends in (least, most)]
        width = sums[1] - sums[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.clip(np.where(width > 0.0, (total - sums[0]) / width, 0.0), 0.0, 1.0)
        out: FloatArray = least + share[at] * (most - least)
        left = total - np.bincount(at, out, size)
        unlimited = np.where(left[at] > 0.0, high == np.inf, low == -np.inf)
        count = np.bincount(at, unlimited, size)
        each = np.where(count > 0.0, left / np.maximum(count, 1.0), 0.0)
        return np.reshape(out + unlimited * each[at], w.shape)

    def _intervals(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends (n, d) of the subdifferentials; given sums leave all coordinates free."""
        near = THERE * float(np.ptp(w))
        sign = np.where(np.abs(w) > near, np.sign(w), 0.0)
        low = np.where(sign > 0.0, self._kappa, -self._kappa)
        high = np.where(sign < 0.0, -self._kappa, self._kappa)
        summed = self._summed[:, None]
        low = np.where((w <= self._lower + near) | summed, -np.inf, low)
        high = np.where((w >= self._upper - near) | summed, np.inf, high)
        return low, high
