"""Proximal points of composite losses, which follow those of the call before."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, Records
from gtvcvx._deadline import pieces, spend
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node._batch import proximal_points
from gtvcvx.losses.node._following import follow_all
from gtvcvx.losses.node._maps import Batch, Points, scratch_of
from gtvcvx.losses.node._scalar import KINK, ROW

# Maps are kept up to this dimension: beyond, a product with one takes longer than a step with the
# few rows that a node mostly has there, and their memory is many times that of the data.
LARGEST_MAP = 32


# A node from scratch takes about as long as so many passes over it.
SCRATCH = 10
# And a map of one as this many: 4 to 8 up to d = 20.
MAP = 5
# And about so many nanoseconds for each coordinate, with a few rows.
SCRATCH_PRICE = 2000.0
# A residual below this share of what cancels in it is guessed to be at its kink.
AT_KINK = 1e-6


class ProximalPoints:
    """Proximal points of k nodes.

    They start at those of the last call. What they are does not depend on it, but for rounding.

    Attributes
    ----------
    points : Points
    detours : float
        Work so far beyond one pass over all nodes for each call, in such passes.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._batch = _with_sums(parts)
        self._summed = ~np.isnan(parts.totals)
        self.detours = 0.0
        self._is_sum = np.zeros(len(self._batch.rows), dtype=bool)
        self._is_sum[self._batch.indptr[1:][self._summed] - 1] = True
        k, d = parts.coordinates.shape
        size = d if d <= LARGEST_MAP else 0
        rows = self._batch.rows
        self.points = Points(
            np.zeros((k, d)),
            np.clip(0.0, rows["low"], rows["high"]),
            np.zeros((k, d)),
            np.zeros((k, size, size)),
            np.zeros((len(rows), size)),
            np.zeros(k),
            np.zeros((k, size)),
        )
        self._scratch = scratch_of(d, int(np.diff(self._batch.indptr).max(initial=0)))

    def of(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Return ``argmin_z L_i(z) + ||z - v_i||^2 / (2 tau_i)``, (k, d), to be copied."""
        v, tau = np.ascontiguousarray(v), np.ascontiguousarray(tau)
        left = np.ones(len(v), dtype=bool)
        for at in pieces(len(v), self._parts.nodes_a_look):
            self._reach(at, v, tau, left)
        return self.points.z

    def follow(self, v: FloatArray, tau: FloatArray, left: BoolArray) -> None:
        """Go to the proximal points of the nodes (k,) that are left, which are fewer then."""
        for at in pieces(len(v), self._parts.nodes_a_look):
            self._follow(at, v, tau, left)

    def minimize(self, q: FloatArray, p: FloatArray, nodes: BoolArray) -> None:
        """Go to ``argmin_z R_i(z) + sum_j q_ij z_j^2 / 2 - p_ij z_j`` of some nodes (k,).

        R_i is the loss without its quadratic and linear terms of single coordinates. What `of`
        returns afterwards has these terms, too.
        """
        coordinates = self._batch.coordinates.copy()
        coordinates["mu"], coordinates["linear"] = q, p
        self._batch = self._batch._replace(coordinates=coordinates)
        self.points.tau[:] = 0.0
        v, tau, left = np.zeros_like(p), np.full(len(p), np.inf), nodes.copy()
        for at in pieces(len(v), self._parts.nodes_a_look):
            self._reach(at, v, tau, left)

    def set_multipliers(self, a: FloatArray, t: FloatArray, nu: FloatArray) -> None:
        """Set those of the rows (N,), coordinates (k, d) and sums (k,)."""
        self.points.a[~self._is_sum] = a
        self.points.a[self._is_sum] = nu[self._summed]
        self.points.t[:] = t

    def multipliers(self) -> tuple[FloatArray, FloatArray]:
        """Return copies of those of the rows (N,) and sums (k,)."""
        nu = np.zeros(len(self._summed))
        nu[self._summed] = self.points.a[self._is_sum]
        return self.points.a[~self._is_sum], nu

    def _follow(self, at: slice, v: FloatArray, tau: FloatArray, left: BoolArray) -> int:
        """Follow at a piece of the nodes; return how many of them are left."""
        batch, points = self._batch, self.points
        if v.shape[1] > LARGEST_MAP:
            return int(np.count_nonzero(left[at]))
        indptr, coordinates = batch.indptr[at.start : at.stop + 1], batch.coordinates[at]
        here = Points(
            points.z[at],
            points.a,
            points.t[at],
            points.inverse[at],
            points.pull,
            points.tau[at],
            points.balanced[at],
        )
        piece = Batch(batch.X, batch.rows, indptr, coordinates)
        before = self._scratch.maps[0]
        count = int(follow_all(piece, here, self._scratch, v[at], tau[at], left[at]))
        made = int(self._scratch.maps[0] - before)
        self.detours += MAP * made / len(v)
        return count

    def _reach(self, at: slice, v: FloatArray, tau: FloatArray, left: BoolArray) -> None:
        """Go to the proximal points of the nodes of a piece that are left, if need be from scratch.

        Ways round by problems with a term around the last points, as that fades away, took longer
        than to begin anew in all that was tried.
        """
        if self._follow(at, v, tau, left):
            self._from_scratch(at.start + np.flatnonzero(left[at]), v, tau)

    def _from_scratch(self, nodes: IntArray, v: FloatArray, tau: FloatArray) -> None:
        """Write the proximal points of some nodes, by a method that always ends."""
        batch, points = self._batch, self.points
        self.detours += SCRATCH * len(nodes) / len(v)
        for at in pieces(len(nodes), max(self._parts.nodes_a_look // SCRATCH, 1)):
            spend(SCRATCH_PRICE * len(nodes[at]) * v.shape[1])
            proximal_points(
                nodes[at],
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


def kinks_at(X: FloatArray, rows: Records, z: FloatArray) -> FloatArray:
    """Return multipliers of rows (N,) with which z (N, d) is optimal, at kinks inside their ends.

    Where there is no kink they are zero, or the end next to it.
    """
    parts = X * z
    residual = parts.sum(axis=1) - rows["y"]
    size = np.abs(parts).sum(axis=1) + np.abs(rows["y"])
    finite = np.isfinite(rows["high"]) & np.isfinite(rows["low"]) & (rows["kind"] == KINK)
    near = np.clip(0.0, rows["low"], rows["high"])
    middle = 0.5 * (np.where(finite, rows["low"], 0.0) + np.where(finite, rows["high"], 0.0))
    side = np.where(residual > 0.0, rows["high"], rows["low"])
    return np.where(finite, np.where(np.abs(residual) <= AT_KINK * size, middle, side), near)


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
