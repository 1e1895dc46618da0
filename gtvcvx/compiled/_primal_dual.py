"""Compiled inner loops of the primal-dual method; their NumPy twins are in the tests.

One iteration is a pass over the nodes and a pass over the edges, sorted by head. D^T u is kept
per node and updated in place by the edge pass, so that no other pass over the edges is needed.
What an edge needs of a node, the extrapolated point and the balance, lies side by side in
``nodes``, of shape (threads, n, 2 d): each thread has its copy, in which it alone adds up its
edges' flow, and the node pass adds the copies.

The edge pass is in `gtvcvx.compiled._edges`.

The dimension comes as `gtvcvx.compiled.dims_of` makes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._edge_rows import move_node
from gtvcvx.compiled._edges import EdgeStep, edge_block
from gtvcvx.compiled._team import Share, meet


class Point(NamedTuple):
    """What the iteration changes.

    Attributes
    ----------
    w : ndarray, shape (n, d)
    u : ndarray, shape (m, d)
    nodes : ndarray, shape (threads, n, 2 d)
        Extrapolated points, and each thread's share of the balance D^T u.
    """

    w: FloatArray
    u: FloatArray
    nodes: FloatArray


class NodeStep(NamedTuple):
    """Update of the nodes: an affine prox, ``matrix v + offset``, over-relaxed.

    Attributes
    ----------
    matrix : ndarray, shape (n, d, d)
        Symmetric, as those of proximal maps are; or the diagonals, (n, d), where all are diagonal.
    offset : ndarray, shape (n, d)
    tau : ndarray, shape (n,)
        Step sizes.
    relaxation : float
    """

    matrix: FloatArray
    offset: FloatArray
    tau: FloatArray
    relaxation: float


@compiled(fastmath=FAST, allocates=False, inner=True)
def _row(dims: Dims, matrix: FloatArray, i: int, k: int, v: FloatArray) -> float:
    """Return entry k of ``matrix[i] v``, the matrix being diagonal or not."""
    # The compiler leaves out the branch that is not taken.
    if matrix.ndim == 2:
        return matrix[i, k] * v[k]
    z = 0.0
    for j in range(len(dims)):
        z += matrix[i, k, j] * v[j]
    return z


@compiled(fastmath=FAST, allocates=False, inner=True)
def _narrow_nodes(
    dims: Dims,
    first: int,
    last: int,
    w: FloatArray,
    nodes: FloatArray,
    step: NodeStep,
    measure: bool,
) -> float:
    """Do what `node_block` does where the dimension is known to the compiler."""
    matrix, offset, tau, relaxation = step.matrix, step.offset, step.tau, step.relaxation
    moved = 0.0
    for i in range(first, last):
        square = move_node(dims, w, nodes, np.uint64(i), matrix, offset, tau[i], relaxation)
        if measure:
            moved += square / tau[i]
    return moved


@compiled(fastmath=FAST, allocates=False, inner=True)
def node_block(
    dims: Dims,
    first: int,
    last: int,
    w: FloatArray,
    nodes: FloatArray,
    step: NodeStep,
    measure: bool,
    room: FloatArray,
) -> float:
    """Relaxed update of w (n, d) by an affine prox, and of the extrapolated points 2 prox - w.

    For the nodes first .. last - 1, with one thread's room, as `edge_room` makes it. Returns
    ``sum_i ||prox_i - w_i||^2 / tau_i`` over them, if it is to be measured.
    """
    matrix, offset, tau = step.matrix, step.offset, step.tau
    # The compiler leaves out the branches that are not taken.
    if room.ndim > 1:
        return _narrow_nodes(dims, first, last, w, nodes, step, measure)
    d, v = len(dims), room
    moved = 0.0
    for i in range(first, last):
        for k in range(d):
            balance = nodes[0, i, d + k]
            for thread in range(1, len(nodes)):
                balance += nodes[thread, i, d + k]
            v[k] = w[i, k] - tau[i] * balance
        square = 0.0
        for k in range(d):
            z = offset[i, k] + _row(dims, matrix, i, k, v)
            change = z - w[i, k]
            square += change * change
            nodes[0, i, k] = z + change
            for thread in range(1, len(nodes)):
                nodes[thread, i, k] = z + change
            w[i, k] += step.relaxation * change
        if measure:
            moved += square / tau[i]
    return moved


@compiled(fastmath=FAST, nogil=True, allocates=False)
def iterate(
    share: Share,
    n_iter: int,
    dims: Dims,
    blocks: IntArray,
    point: Point,
    room: FloatArray,
    arcs: Arcs,
    node_step: NodeStep,
    edge_step: EdgeStep,
    moved: FloatArray,
) -> None:
    """Do a share of n_iter iterations in place.

    Block t has the nodes ``blocks[t] .. blocks[t + 1] - 1``, and the edges whose heads they are;
    moved (2, blocks) is what the last iteration moved of w and of u. Room is as `edge_room` makes
    it.
    """
    w, u, nodes = point.w, point.u, point.nodes
    for k in range(n_iter):
        last = k == n_iter - 1
        for t in range(share.first, share.last):
            begin, end = blocks[t], blocks[t + 1]
            change = node_block(dims, begin, end, w, nodes, node_step, last, room[t])
            if last:
                moved[0, t] = change
        meet(share, 2 * k + 1)
        for t in range(share.first, share.last):
            begin, end = blocks[t], blocks[t + 1]
            change = edge_block(dims, begin, end, u, nodes[t], room[t], arcs, edge_step, last)
            if last:
                moved[1, t] = change
        meet(share, 2 * k + 2)
