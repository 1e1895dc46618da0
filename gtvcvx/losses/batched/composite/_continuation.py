"""Few nodes whose proximal points cannot be followed to at once get there by degrees.

The method that always ends (`gtvcvx.losses.node._minimize`) takes longer to compile than most
problems take to solve, and what is left to it are a handful of nodes. Any z with subgradients of
the rows is optimal for some argument p: from there the argument moves to the one that is asked for
in steps, halved where following fails and doubled where it does not.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, Records
from gtvcvx._deadline import look
from gtvcvx.losses.node._following import follow_all
from gtvcvx.losses.node._maps import Batch, Points, scratch_of, unmapped
from gtvcvx.losses.node._scalar import KINK, row_slope
from gtvcvx.losses.node._segments import images, owners, sums

# Calls of the kernel at most, and the smallest share of the way that is tried.
MAX_CALLS, SHORTEST = 64, 2.0**-10
# A residual below this share of what cancels in it is guessed to be at its kink.
AT_KINK = 1e-6


def kinks_at(X: FloatArray, rows: Records, z: FloatArray) -> FloatArray:
    """Return multipliers of rows (N,) with which z (N, d) is optimal, at kinks inside their ends.

    Where there is no kink they are zero, or the end next to it.
    """
    parts = X * z
    residual = parts.sum(axis=1) - rows["y"]
    size = np.abs(parts).sum(axis=1) + np.abs(rows["y"])
    finite = _bent(rows)
    near = np.clip(0.0, rows["low"], rows["high"])
    middle = 0.5 * (np.where(finite, rows["low"], 0.0) + np.where(finite, rows["high"], 0.0))
    side = np.where(residual > 0.0, rows["high"], rows["low"])
    return np.where(finite, np.where(np.abs(residual) <= AT_KINK * size, middle, side), near)


def _bent(rows: Records) -> BoolArray:
    """Say which rows (N,) have a kink between two slopes."""
    return np.isfinite(rows["high"]) & np.isfinite(rows["low"]) & (rows["kind"] == KINK)


def go_by_degrees(
    batch: Batch, points: Points, nodes: IntArray, q: FloatArray, p: FloatArray
) -> tuple[BoolArray, int]:
    """Go from the points of some nodes to the optimal ones of `gtvcvx.losses.node._problem`.

    Parameters
    ----------
    batch : Batch
    points : Points
        Points and multipliers of nodes that are reached are written to it; the others stay.
    nodes : numpy.ndarray of int
    q, p : numpy.ndarray, shape (len(nodes), d)

    Returns
    -------
    tuple
        Which of the nodes are reached, and the number of maps that were made.
    """
    rows, piece = _piece(batch, nodes)
    piece.coordinates["mu"] = q
    here = _start(piece, points.z[nodes], points.a[rows])
    first = _balanced(piece, here)
    scratch = scratch_of(p.shape[1], int(np.diff(piece.indptr).max(initial=0)))
    way, step = np.zeros(len(nodes)), np.ones(len(nodes))
    no_term, no_weight = np.zeros_like(p), np.full(len(nodes), np.inf)
    for _ in range(MAX_CALLS):
        trying = (way < 1.0) & (step >= SHORTEST)
        if not trying.any():
            break
        look()
        goal = np.minimum(way + step, 1.0)
        piece.coordinates["linear"] = first + goal[:, None] * (p - first)
        # What is at its goal is p itself, to the last digit.
        piece.coordinates["linear"][goal == 1.0] = p[goal == 1.0]
        left = trying.copy()
        follow_all(piece, here, scratch, no_term, no_weight, left)
        way = np.where(trying & ~left, goal, way)
        step = np.where(trying, np.where(left, 0.5, 2.0) * step, step)
    there = way == 1.0
    points.z[nodes[there]], points.t[nodes[there]] = here.z[there], here.t[there]
    of_those = there[owners(piece.indptr)]
    points.a[rows[of_those]] = here.a[of_those]
    return there, int(scratch.maps[0])


def _piece(batch: Batch, nodes: IntArray) -> tuple[IntArray, Batch]:
    """Return the numbers of some nodes' rows, and a batch of these nodes alone."""
    counts = batch.indptr[nodes + 1] - batch.indptr[nodes]
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(batch.indptr.dtype)
    rows = np.arange(indptr[-1]) + np.repeat(batch.indptr[nodes] - indptr[:-1], counts)
    # As kinked and as curved as all: for each sort of rows functions are compiled anew.
    return rows, batch._replace(
        X=batch.X[rows],
        rows=batch.rows[rows],
        indptr=indptr,
        coordinates=batch.coordinates[nodes],
    )


def _start(batch: Batch, z: FloatArray, a: FloatArray) -> Points:
    """Return feasible points, as far as single coordinates go, with subgradients there.

    Rows that bound more than a value, such as those of sums, keep their multipliers.
    """
    c, rows = batch.coordinates, batch.rows
    z = np.clip(z, c["lower"], c["upper"])
    slopes = row_slope(rows, images(batch.X, batch.indptr, z))
    a = np.where(rows["kind"] == KINK, a, slopes)
    a = np.where(_bent(rows), kinks_at(batch.X, rows, z[owners(batch.indptr)]), a)
    t = np.sign(z) * c["kappa"]  # no bound is pressed against
    return unmapped(z, a, t, z.shape[1])


def _balanced(batch: Batch, at: Points) -> FloatArray:
    """Return the p (k, d) for which points are optimal."""
    return batch.coordinates["mu"] * at.z + at.t + sums(batch.indptr, at.a[:, None] * batch.X)
