"""Proximal points of composite losses, which follow those of the call before."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import pieces, spend
from gtvcvx.losses.batched.composite._continuation import go_by_degrees
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node._batch import proximal_points
from gtvcvx.losses.node._few_kinks import few_kinks_points, kinked_and_free
from gtvcvx.losses.node._few_rows import few_rows_points, smooth_and_free
from gtvcvx.losses.node._following import follow_all
from gtvcvx.losses.node._maps import Batch, Points, scratch_of, unmapped
from gtvcvx.losses.node._problem import room_of
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
# The same where rows are few, and all smooth or all with kinks: three to six passes of a few
# nanoseconds.
FEW_ROWS_PRICE = 40.0
# To go by degrees takes about a millisecond of Python a call, which is little beside the pass over
# so many numbers or more; the nodes that do are at most this share of them, others begin from
# scratch.
MANY_NUMBERS, FEW = 20_000, 0.05


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
        self.points = unmapped(np.zeros((k, d)), self._no_slopes(), np.zeros((k, d)), size)
        self._scratch = scratch_of(size, int(np.diff(self._batch.indptr).max(initial=0)))

    def _no_slopes(self) -> FloatArray:
        """Return the multipliers (N,) of the rows that are closest to zero."""
        rows = self._batch.rows
        return np.clip(0.0, rows["low"], rows["high"])

    def forget(self) -> None:
        """Start at zero again, without maps."""
        points = self.points
        points.z[:], points.t[:], points.a[:] = 0.0, 0.0, self._no_slopes()
        points.tau[:] = 0.0

    def of(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Return ``argmin_z L_i(z) + ||z - v_i||^2 / (2 tau_i)``, (k, d), to be copied."""
        v, tau = np.ascontiguousarray(v), np.ascontiguousarray(tau)
        left = np.ones(len(v), dtype=bool)
        self._reach(v, tau, left)
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
        self._reach(np.zeros_like(p), np.full(len(p), np.inf), nodes.copy())

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
        piece = batch._replace(indptr=indptr, coordinates=coordinates)
        before = self._scratch.maps[0]
        count = int(follow_all(piece, here, self._scratch, v[at], tau[at], left[at]))
        made = int(self._scratch.maps[0] - before)
        self.detours += MAP * made / len(v)
        return count

    def _reach(self, v: FloatArray, tau: FloatArray, left: BoolArray) -> None:
        """Go to the proximal points of the nodes that are left, if need be from scratch."""
        self.follow(v, tau, left)
        if left.any() and self._few(left):
            self._by_degrees(v, tau, left)
        for reach, fits in self._few_rows if v.shape[1] > LARGEST_MAP else ():
            if (left & fits).any():
                self._by_rows(reach, np.flatnonzero(left & fits), v, tau, left)
        if left.any():
            self._from_scratch(np.flatnonzero(left), v, tau)

    def _few(self, left: BoolArray) -> bool:
        """Say whether the nodes that are left are worth the way by degrees."""
        k, d = self.points.z.shape
        return d <= LARGEST_MAP and k * d >= MANY_NUMBERS and left.sum() <= FEW * k

    def _by_degrees(self, v: FloatArray, tau: FloatArray, left: BoolArray) -> None:
        """Go there in steps of the argument; what is not reached is left."""
        nodes = np.flatnonzero(left)
        c, weight = self._batch.coordinates[nodes], 1.0 / tau[nodes, None]
        q, p = c["mu"] + weight, c["linear"] + weight * v[nodes]
        there, made = go_by_degrees(self._batch, self.points, nodes, q, p)
        self.detours += MAP * made / len(v)
        left[nodes[there]] = False

    @cached_property
    def _few_rows(self) -> list[tuple[Callable[..., None], BoolArray]]:
        """Methods, and for which nodes (k,) with no more than half as many rows as coordinates."""
        indptr, d = self._batch.indptr, self.points.z.shape[1]
        some, of = 2 * np.diff(indptr) <= d, (self._batch.rows, indptr, self._parts.totals)
        return [
            (few_rows_points, some & smooth_and_free(*of)),
            (few_kinks_points, some & kinked_and_free(*of)),
        ]

    def _by_rows(
        self,
        reach: Callable[..., None],
        nodes: IntArray,
        v: FloatArray,
        tau: FloatArray,
        left: BoolArray,
    ) -> None:
        """Go there by a method that has no more unknowns than rows; what is not reached is left."""
        batch, points, d = self._batch, self.points, v.shape[1]
        room = room_of(d, int(np.diff(batch.indptr).max(initial=0)))
        own = np.empty(d), np.empty(d), np.empty((3, d)), room
        self.detours += SCRATCH * FEW_ROWS_PRICE / SCRATCH_PRICE * len(nodes) / len(v)
        for at in pieces(len(nodes), self._parts.nodes_a_look):
            spend(FEW_ROWS_PRICE * len(nodes[at]) * d)
            reach(
                nodes[at],
                batch.X,
                batch.rows,
                batch.indptr,
                batch.coordinates,
                v,
                tau,
                points.z,
                points.a,
                points.t,
                *own,
                left,
            )

    def _from_scratch(self, nodes: IntArray, v: FloatArray, tau: FloatArray) -> None:
        """Write the proximal points of some nodes, by a method that always ends."""
        batch, points = self._batch, self.points
        self.detours += SCRATCH * len(nodes) / len(v)
        d = v.shape[1]
        q, p = np.empty(d), np.empty(d)
        room = room_of(d, int(np.diff(batch.indptr).max(initial=0)))
        for at in pieces(len(nodes), max(self._parts.nodes_a_look // SCRATCH, 1)):
            spend(SCRATCH_PRICE * len(nodes[at]) * d)
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
                q,
                p,
                room,
            )


def _with_sums(parts: Parts) -> Batch:
    """Return the rows with a row more wherever a sum is given, at the end of the node's rows."""
    summed = np.flatnonzero(~np.isnan(parts.totals))
    if not len(summed):
        return Batch.of(parts.X, parts.rows, parts.indptr, parts.coordinates)
    sums = np.zeros(len(summed), ROW)
    sums["kind"], sums["c"], sums["y"] = KINK, 1.0, parts.totals[summed]
    sums["low"], sums["high"] = -np.inf, np.inf
    place = parts.indptr[summed + 1]
    indptr = parts.indptr.copy()
    indptr[1:] += np.cumsum(~np.isnan(parts.totals))
    return Batch.of(
        np.ascontiguousarray(np.insert(parts.X, place, 1.0, axis=0)),
        np.insert(parts.rows, place, sums),
        indptr,
        parts.coordinates,
    )
