"""Compiled inner loops of the primal-dual method; their NumPy twins are in the tests.

One iteration is a pass over the nodes and a pass over the edges, sorted by head. D^T u is kept
per node and updated in place by the edge pass, so that no other pass over the edges is needed.
What an edge needs of a node, the extrapolated point and the balance, lies side by side in
``nodes``, of shape (threads, n, 2 d): each thread has its copy, in which it alone adds up its
edges' flow, and the node pass adds the copies.

The edge pass goes through blocks of edges: what it needs of the nodes is gathered for a block, the
projection on capacities is vectorized over its edges, without branches, and the ends are told. So
no loop is as short as a node's list of edges, whose end no processor predicts.

The dimension comes as `gtvcvx.compiled.dims_of` makes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._edge_rows import begin_edge, end_edge
from gtvcvx.compiled._projections import l1_threshold
from gtvcvx.compiled._team import Share, meet
from gtvcvx.penalties import CompiledForm

_L2 = int(CompiledForm.L2)
_L1 = int(CompiledForm.L1)
_LINF = int(CompiledForm.LINF)
_SQUARED = int(CompiledForm.SQUARED)

# Edges in a block: enough for what begins and ends it to cost nothing, and few enough for two or
# four coordinates of them to stay in the nearest cache. 64 took a tenth longer, 512 no less.
_BLOCK = 256


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
        Or the diagonals, (n, d), where all are diagonal.
    offset : ndarray, shape (n, d)
    tau : ndarray, shape (n,)
        Step sizes.
    relaxation : float
    """

    matrix: FloatArray
    offset: FloatArray
    tau: FloatArray
    relaxation: float


class EdgeStep(NamedTuple):
    """Update of the edges: the prox of the penalty's conjugate, over-relaxed.

    Attributes
    ----------
    capacities : ndarray, shape (m,)
    sigma : float
        Step size.
    relaxation : float
    code : int
        The penalty.
    """

    capacities: FloatArray
    sigma: float
    relaxation: float
    code: int


def edge_room(dims: Dims, threads: int) -> FloatArray:
    """Return room for the edge passes of so many threads.

    For rows of a block of edges, and one more; in high dimension for three vectors of one edge.
    """
    d = len(dims)
    return np.empty((threads, d + 1, _BLOCK) if isinstance(dims, tuple) else (threads, 3 * d))


@compiled(fastmath=FAST, allocates=False, inner=True)
def _row(matrix: FloatArray, i: int, k: int, v: FloatArray) -> float:
    """Return entry k of ``matrix[i] v``, the matrix being diagonal or not."""
    # The compiler leaves out the branch that is not taken.
    if matrix.ndim == 2:
        return matrix[i, k] * v[k]
    z = 0.0
    for j in range(len(v)):
        z += matrix[i, k, j] * v[j]
    return z


@compiled(fastmath=FAST, inner=True)
def node_block(
    dims: Dims,
    first: int,
    last: int,
    w: FloatArray,
    nodes: FloatArray,
    step: NodeStep,
    measure: bool,
) -> float:
    """Relaxed update of w (n, d) by an affine prox, and of the extrapolated points 2 prox - w.

    For the nodes first .. last - 1. Returns ``sum_i ||prox_i - w_i||^2 / tau_i`` over them, if it
    is to be measured.
    """
    matrix, offset, tau = step.matrix, step.offset, step.tau
    d = len(dims)
    v = np.empty(d)
    moved = 0.0
    for i in range(first, last):
        for k in range(d):
            balance = nodes[0, i, d + k]
            for thread in range(1, len(nodes)):
                balance += nodes[thread, i, d + k]
            v[k] = w[i, k] - tau[i] * balance
        square = 0.0
        for k in range(d):
            z = offset[i, k] + _row(matrix, i, k, v)
            change = z - w[i, k]
            square += change * change
            nodes[0, i, k] = z + change
            for thread in range(1, len(nodes)):
                nodes[thread, i, k] = z + change
            w[i, k] += step.relaxation * change
        if measure:
            moved += square / tau[i]
    return moved


@compiled(fastmath=FAST, allocates=False, inner=True)
def _project_l2(dims: Dims, z: FloatArray, capacities: FloatArray) -> None:
    """Project columns of z on Euclidean balls; the compiler vectorizes over edges."""
    for c in range(len(capacities)):
        square = 0.0
        for k in range(len(dims)):
            square += z[k, c] * z[k, c]
        scale = capacities[c] / max(capacities[c], np.sqrt(square))
        for k in range(len(dims)):
            z[k, c] *= scale


@compiled(fastmath=FAST, allocates=False, inner=True)
def _project_linf(dims: Dims, z: FloatArray, capacities: FloatArray) -> None:
    """Project columns of z on balls of the l1 norm, by soft thresholds in the row below.

    A threshold rises until no entry falls below it: each time one does, or it stays.
    """
    d = len(dims)
    thresholds = z[d]
    thresholds[:] = 0.0
    for _ in range(d):
        for c in range(len(capacities)):
            total, count = -capacities[c], 0.0
            for k in range(d):
                above = abs(z[k, c]) > thresholds[c]
                total += abs(z[k, c]) if above else 0.0
                count += 1.0 if above else 0.0
            thresholds[c] = max(thresholds[c], total / max(count, 1.0))
    for k in range(d):
        for c in range(len(capacities)):
            low = thresholds[c]
            z[k, c] = max(z[k, c] - low, 0.0) + min(z[k, c] + low, 0.0)


@compiled(fastmath=FAST, allocates=False, inner=True)
def _conjugate_prox(
    dims: Dims, z: FloatArray, capacities: FloatArray, sigma: float, code: int
) -> None:
    """Apply the prox of the penalty's conjugate to the first columns of z (d + 1, edges)."""
    if code == _L2:
        _project_l2(dims, z, capacities)
    elif code == _LINF:
        _project_linf(dims, z, capacities)
    elif code == _L1:
        for k in range(len(dims)):
            for c in range(len(capacities)):
                z[k, c] = min(capacities[c], max(-capacities[c], z[k, c]))
    else:
        for k in range(len(dims)):
            for c in range(len(capacities)):
                z[k, c] *= 1.0 / (1.0 + sigma / capacities[c])


@compiled(fastmath=FAST, inner=True)
def _narrow_edges(
    dims: Dims,
    first: int,
    last: int,
    u: FloatArray,
    nodes: FloatArray,
    z: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
    measure: bool,
) -> float:
    """Do what `edge_block` does where the dimension is known to the compiler."""
    sigma, d = step.sigma, len(dims)
    moved = 0.0
    begin, end = arcs.starts[first], arcs.starts[last]
    for at in range(begin, end, _BLOCK):
        capacities = step.capacities[at : min(at + _BLOCK, end)]
        heads, tails = arcs.heads[at:end], arcs.tails[at:end]
        for c in range(len(capacities)):
            e, i, j = np.uint64(at + c), np.uint64(heads[c]), np.uint64(tails[c])
            begin_edge(dims, z, c, u, e, nodes, i, j, sigma)
        _conjugate_prox(dims, z, capacities, sigma, step.code)
        if measure:
            for c in range(len(capacities)):
                for k in range(d):
                    moved += (z[k, c] - u[at + c, k]) ** 2
        for c in range(len(capacities)):
            e, i, j = np.uint64(at + c), np.uint64(heads[c]), np.uint64(tails[c])
            end_edge(dims, z, c, u, e, nodes, i, j, step.relaxation)
    return moved / sigma


@compiled(fastmath=FAST, inner=True)
def _wide_edges(
    dims: Dims,
    first: int,
    last: int,
    u: FloatArray,
    nodes: FloatArray,
    room: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
    measure: bool,
) -> float:
    """Do what `edge_block` does in high dimension: loops over coordinates are long enough."""
    starts, tails, capacities = arcs.starts, arcs.tails, step.capacities
    sigma, relaxation, code = step.sigma, step.relaxation, step.code
    d = len(dims)
    own, gathered, z = room[:d], room[d : 2 * d], room[2 * d :]
    moved = 0.0
    for i in range(first, last):
        for k in range(d):
            own[k], gathered[k] = nodes[i, k], 0.0
        for e in range(starts[i], starts[i + 1]):
            j, cap = tails[e], capacities[e]
            square, scale = 0.0, 1.0
            for k in range(d):
                z[k] = u[e, k] + sigma * (own[k] - nodes[j, k])
                square += z[k] * z[k]
            if code == _L1:
                for k in range(d):
                    z[k] = min(cap, max(-cap, z[k]))
            elif code == _LINF:
                threshold = l1_threshold(z, cap)
                for k in range(d):
                    z[k] = max(z[k] - threshold, 0.0) + min(z[k] + threshold, 0.0)
            elif code == _SQUARED:
                scale = 1.0 / (1.0 + sigma / cap)
            else:
                scale = cap / max(cap, np.sqrt(square))
            if measure:
                change = 0.0
                for k in range(d):
                    change += (scale * z[k] - u[e, k]) ** 2
                moved += change
            for k in range(d):
                update = relaxation * (scale * z[k] - u[e, k])
                u[e, k] += update
                gathered[k] += update
                nodes[j, d + k] -= update
        for k in range(d):
            nodes[i, d + k] += gathered[k]
    return moved / sigma


@compiled(fastmath=FAST, inner=True)
def edge_block(
    dims: Dims,
    first: int,
    last: int,
    u: FloatArray,
    nodes: FloatArray,
    room: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
    measure: bool,
) -> float:
    """Relaxed update of u (m, d) by the prox of the conjugate, and of D^T u along with it.

    For the edges with heads first .. last - 1. Returns ``sum_e ||prox_e - u_e||^2 / sigma`` over
    them, if it is to be measured.
    """
    # The compiler leaves out the branch that is not taken.
    if room.ndim == 2:
        return _narrow_edges(dims, first, last, u, nodes, room, arcs, step, measure)
    return _wide_edges(dims, first, last, u, nodes, room, arcs, step, measure)


@compiled(fastmath=FAST, nogil=True)
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
            moved[0, t] = node_block(dims, begin, end, w, nodes, node_step, last)
        meet(share, 2 * k + 1)
        for t in range(share.first, share.last):
            begin, end = blocks[t], blocks[t + 1]
            moved[1, t] = edge_block(dims, begin, end, u, nodes[t], room[t], arcs, edge_step, last)
        meet(share, 2 * k + 2)
