"""Proximal points of composite losses, which follow those of the call before."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import pieces
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node._batch import proximal_points
from gtvcvx.losses.node._following import Batch, Points, follow_all, scratch_of
from gtvcvx.losses.node._scalar import KINK, ROW

# Maps are kept up to this dimension: beyond, a product with one takes longer than a step with the
# few rows that a node mostly has there, and their memory is many times that of the data.
LARGEST_MAP = 32


class ProximalPoints:
    """Proximal points of k nodes.

    They start at those of the last call. What they are does not depend on it, but for rounding.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._batch = _with_sums(parts)
        k, d = parts.coordinates.shape
        size = d if d <= LARGEST_MAP else 0
        rows = self._batch.rows
        self._points = Points(
            np.zeros((k, d)),
            np.clip(0.0, rows["low"], rows["high"]),
            np.zeros((k, d)),
            np.zeros((k, size, size)),
            np.zeros((len(rows), size)),
            np.zeros(k),
            np.zeros((k, size)),
        )
        self._scratch = scratch_of(d, int(np.diff(self._batch.indptr).max(initial=0)))
        self._failed = np.ones(k, dtype=bool)

    def of(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Return ``argmin_z L_i(z) + ||z - v_i||^2 / (2 tau_i)``, (k, d), to be copied."""
        v, tau = np.ascontiguousarray(v), np.ascontiguousarray(tau)
        for at in pieces(len(v), self._parts.nodes_a_look):
            left = at.stop - at.start
            if self._points.balanced.size:
                left = self._follow(at, v, tau)
            if left:
                nodes = at.start + np.flatnonzero(self._failed[at])
                self._from_scratch(nodes, v, tau)
        return self._points.z

    def _follow(self, at: slice, v: FloatArray, tau: FloatArray) -> int:
        """Follow at a piece of the nodes; return at how many that failed."""
        batch, points = self._batch, self._points
        return int(
            follow_all(
                Batch(
                    batch.X,
                    batch.rows,
                    batch.indptr[at.start : at.stop + 1],
                    batch.coordinates[at],
                ),
                Points(
                    points.z[at],
                    points.a,
                    points.t[at],
                    points.inverse[at],
                    points.pull,
                    points.tau[at],
                    points.balanced[at],
                ),
                self._scratch,
                v[at],
                tau[at],
                self._failed[at],
            )
        )

    def _from_scratch(self, nodes: IntArray, v: FloatArray, tau: FloatArray) -> None:
        """Write the proximal points of some nodes, by a method that always ends."""
        batch, points = self._batch, self._points
        proximal_points(
            nodes,
            batch.X,
            batch.rows,
            batch.indptr,
            batch.coordinates,
            self._parts.totals,
            v,
            tau,
            points.z,
            points.a,
            points.t,
        )


def _with_sums(parts: Parts) -> Batch:
    """Return the rows with a row more wherever a sum is given, at the end of the node's rows."""
    summed = np.flatnonzero(~np.isnan(parts.totals))
    if not len(summed):
        return Batch(parts.X, parts.rows, parts.indptr, parts.coordinates)
    sums = np.zeros(len(summed), ROW)
    sums["kind"], sums["c"], sums["y"] = KINK, 1.0, parts.totals[summed]
    sums["low"], sums["high"] = -np.inf, np.inf
    place = parts.indptr[summed + 1]
    indptr = parts.indptr.copy()
    indptr[1:] += np.cumsum(~np.isnan(parts.totals))
    return Batch(
        np.ascontiguousarray(np.insert(parts.X, place, 1.0, axis=0)),
        np.insert(parts.rows, place, sums),
        indptr,
        parts.coordinates,
    )
