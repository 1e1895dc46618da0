"""The primal-dual iteration where Hessians are diagonals and few rows; twins are in the tests.

``(I + tau Q)^-1`` for ``Q = diag(h) + R^T R`` is ``diag(s) - A^T A`` with ``s = 1 / (1 + tau h)``
and as many rows A as R has: with ``B = sqrt(tau) R diag(s)^(1/2)`` and the Cholesky factor L of
``I + B B^T``, A is ``L^-1 B diag(s)^(1/2)`` (Woodbury). It takes ``tau R^T t`` to
``sqrt(tau) A^T L^-1 t``: rounded as a point, tau times its rounding would be left in directions
without rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._edges import EdgeStep, edge_block
from gtvcvx.compiled._primal_dual import Point
from gtvcvx.compiled._team import Share, meet
from gtvcvx.compiled._weighted_primal_dual import WeightedEdgeStep, weighted_edge_block


class ThinStep(NamedTuple):
    """Update of the nodes: ``s_i v - A_i^T A_i v`` and an offset, over-relaxed.

    Attributes
    ----------
    shrink : ndarray, shape (n, d)
        The diagonals s.
    rows : ndarray, shape (N, d)
        A: those of node i are ``indptr[i] .. indptr[i + 1] - 1``.
    indptr : ndarray of int64, shape (n + 1,)
    offset : ndarray, shape (n, d)
    tau : ndarray, shape (n,)
        Step sizes.
    relaxation : float
    """

    shrink: FloatArray
    rows: FloatArray
    indptr: IntArray
    offset: FloatArray
    tau: FloatArray
    relaxation: float


@compiled(fastmath=FAST, allocates=False)
def thin_resolvents(
    diagonal: FloatArray,
    tau: FloatArray,
    indptr: IntArray,
    rows: FloatArray,
    targets: FloatArray,
    shrink: FloatArray,
    L: FloatArray,
) -> None:
    """Write s (n, d) to shrink, A over the rows R (N, d), and sqrt(tau) L^-1 t over t (N,).

    With room L (r, r) for the node of most rows.
    """
    n, d = diagonal.shape
    for i in range(n):
        first, r = indptr[i], indptr[i + 1] - indptr[i]
        for k in range(d):
            shrink[i, k] = 1.0 / (1.0 + tau[i] * diagonal[i, k])
        for p in range(r):
            for k in range(d):
                rows[first + p, k] *= np.sqrt(tau[i] * shrink[i, k])
        for p in range(r):
            for q in range(p + 1):
                total = 0.0
                for k in range(d):
                    total += rows[first + p, k] * rows[first + q, k]
                for j in range(q):
                    total -= L[p, j] * L[q, j]
                if q < p:
                    L[p, q] = total / L[q, q]
                else:
                    # Pivots of I and a positive semidefinite matrix are at least 1.
                    L[p, p] = np.sqrt(1.0 + max(total, 0.0))
        for p in range(r):
            for q in range(p):
                for k in range(d):
                    rows[first + p, k] -= L[p, q] * rows[first + q, k]
                targets[first + p] -= L[p, q] * targets[first + q]
            for k in range(d):
                rows[first + p, k] /= L[p, p]
            targets[first + p] /= L[p, p]
        for p in range(r):
            for k in range(d):
                rows[first + p, k] *= np.sqrt(shrink[i, k])
            targets[first + p] *= np.sqrt(tau[i])


@compiled(fastmath=FAST, allocates=False, inner=True)
def _apply(
    i: int,
    dims: Dims,
    shrink: FloatArray,
    rows: FloatArray,
    indptr: IntArray,
    v: FloatArray,
    z: FloatArray,
) -> None:
    """Write ``s_i v - A_i^T A_i v`` to z (d,)."""
    d = len(dims)
    for k in range(d):
        z[k] = shrink[i, k] * v[k]
    for r in range(indptr[i], indptr[i + 1]):
        along = 0.0
        for k in range(d):
            along += rows[r, k] * v[k]
        for k in range(d):
            z[k] -= along * rows[r, k]


@compiled(fastmath=FAST, small=True, allocates=False)
def thin_images(
    dims: Dims,
    shrink: FloatArray,
    rows: FloatArray,
    indptr: IntArray,
    v: FloatArray,
    out: FloatArray,
) -> None:
    """Write ``s_i v_i - A_i^T A_i v_i`` of v (n, d) to out (n, d)."""
    for i in range(len(v)):
        _apply(i, dims, shrink, rows, indptr, v[i], out[i])


@compiled(fastmath=FAST, inner=True)
def thin_node_block(
    dims: Dims, first: int, last: int, w: FloatArray, nodes: FloatArray, step: ThinStep
) -> float:
    """Relaxed update of w (n, d), as `node_block` does it with matrices."""
    shrink, rows, indptr, tau = step.shrink, step.rows, step.indptr, step.tau
    d = len(dims)
    v, z = np.empty(d), np.empty(d)
    moved = 0.0
    for i in range(first, last):
        for k in range(d):
            balance = 0.0
            for thread in range(len(nodes)):
                balance += nodes[thread, i, d + k]
            v[k] = w[i, k] - tau[i] * balance
        _apply(i, dims, shrink, rows, indptr, v, z)
        square = 0.0
        for k in range(d):
            prox = z[k] + step.offset[i, k]
            change = prox - w[i, k]
            square += change * change
            for thread in range(len(nodes)):
                nodes[thread, i, k] = prox + change
            w[i, k] += step.relaxation * change
        moved += square / tau[i]
    return moved


@compiled(fastmath=FAST, nogil=True)
def iterate_thin(
    share: Share,
    n_iter: int,
    dims: Dims,
    blocks: IntArray,
    point: Point,
    room: FloatArray,
    arcs: Arcs,
    node_step: ThinStep,
    edge_step: EdgeStep,
    moved: FloatArray,
) -> None:
    """Do what `iterate` does, with rows instead of matrices."""
    w, u, nodes = point.w, point.u, point.nodes
    for k in range(n_iter):
        last = k == n_iter - 1
        for t in range(share.first, share.last):
            begin, end = blocks[t], blocks[t + 1]
            change = thin_node_block(dims, begin, end, w, nodes, node_step)
            if last:
                moved[0, t] = change
        meet(share, 2 * k + 1)
        for t in range(share.first, share.last):
            begin, end = blocks[t], blocks[t + 1]
            change = edge_block(dims, begin, end, u, nodes[t], room[t], arcs, edge_step, last)
            if last:
                moved[1, t] = change
        meet(share, 2 * k + 2)


@compiled(fastmath=FAST, nogil=True)
def iterate_thin_weighted(
    share: Share,
    n_iter: int,
    dims: Dims,
    blocks: IntArray,
    point: Point,
    room: FloatArray,
    arcs: Arcs,
    node_step: ThinStep,
    edge_step: WeightedEdgeStep,
    moved: FloatArray,
) -> None:
    """Do what `iterate_weighted` does, with rows instead of matrices."""
    w, u, nodes = point.w, point.u, point.nodes
    for k in range(n_iter):
        last = k == n_iter - 1
        for t in range(share.first, share.last):
            begin, end = blocks[t], blocks[t + 1]
            change = thin_node_block(dims, begin, end, w, nodes, node_step)
            if last:
                moved[0, t] = change
        meet(share, 2 * k + 1)
        for t in range(share.first, share.last):
            begin, end = blocks[t], blocks[t + 1]
            change = weighted_edge_block(dims, begin, end, u, nodes[t], arcs, edge_step, last)
            if last:
                moved[1, t] = change
        meet(share, 2 * k + 2)
