"""Compiled inner loops of the primal-dual method; their NumPy twins are in the tests.

One iteration is a pass over the nodes and a pass over the edges, sorted by head. D^T u is kept
per node and updated in place by the edge pass, so that no other pass over the edges is needed.
What an edge needs of a node, the extrapolated point and the balance, lies side by side in
``nodes``, of shape (threads, n, 2 d): each thread has its copy, in which it alone adds up its
edges' flow, and the node pass adds the copies.

The dimension comes as `gtvcvx.compiled.dims_of` makes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._projections import l1_threshold
from gtvcvx.penalties import CompiledForm

_L2 = int(CompiledForm.L2)
_L1 = int(CompiledForm.L1)
_LINF = int(CompiledForm.LINF)
_SQUARED = int(CompiledForm.SQUARED)


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
    saturated : bool
        Whether so many flows are at capacity that a branch on it would be predicted badly.
    """

    capacities: FloatArray
    sigma: float
    relaxation: float
    code: int
    saturated: bool


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
) -> float:
    """Relaxed update of w (n, d) by an affine prox, and of the extrapolated points 2 prox - w.

    Returns ``sum_i ||prox_i - w_i||^2 / tau_i`` over the nodes first .. last - 1.
    """
    matrix, offset, tau = step.matrix, step.offset, step.tau
    d = len(dims)
    v = np.empty(d)
    moved = 0.0
    for i in range(first, last):
        for k in range(d):
            balance = 0.0
            for thread in range(len(nodes)):
                balance += nodes[thread, i, d + k]
            v[k] = w[i, k] - tau[i] * balance
        square = 0.0
        for k in range(d):
            z = offset[i, k] + _row(matrix, i, k, v)
            change = z - w[i, k]
            square += change * change
            for thread in range(len(nodes)):
                nodes[thread, i, k] = z + change
            w[i, k] += step.relaxation * change
        moved += square / tau[i]
    return moved


@compiled(fastmath=FAST, inner=True)
def edge_block(
    dims: Dims,
    first: int,
    last: int,
    u: FloatArray,
    nodes: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
    measure: bool,
) -> float:
    """Relaxed update of u (m, d) by the prox of the conjugate, and of D^T u along with it.

    For the edges with heads first .. last - 1. Returns ``sum_e ||prox_e - u_e||^2 / sigma`` over
    them, if it is to be measured.
    """
    starts, tails, capacities = arcs.starts, arcs.tails, step.capacities
    sigma, relaxation, code, saturated = step.sigma, step.relaxation, step.code, step.saturated
    d = len(dims)
    own, gathered, z = np.empty(d), np.empty(d), np.empty(d)
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
            elif saturated:
                scale = cap / max(cap, np.sqrt(square))
            elif square > cap * cap:
                scale = cap / np.sqrt(square)
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


@compiled(fastmath=FAST)
def iterate(
    n_iter: int,
    dims: Dims,
    point: Point,
    arcs: Arcs,
    node_step: NodeStep,
    edge_step: EdgeStep,
) -> tuple[float, float]:
    """Run n_iter iterations in place, on one thread; returns what the last one moved."""
    w, u, nodes = point.w, point.u, point.nodes
    primal, dual, n = 0.0, 0.0, len(w)
    for k in range(n_iter):
        last = k == n_iter - 1
        primal = node_block(dims, 0, n, w, nodes, node_step)
        dual = edge_block(dims, 0, n, u, nodes[0], arcs, edge_step, last)
    return primal, dual


@compiled(fastmath=FAST, parallel=True)
def iterate_parallel(
    n_iter: int,
    dims: Dims,
    blocks: IntArray,
    point: Point,
    arcs: Arcs,
    node_step: NodeStep,
    edge_step: EdgeStep,
) -> tuple[float, float]:
    """Run the same iterations with one thread for each of the blocks of nodes.

    Thread t has the nodes ``blocks[t] .. blocks[t + 1] - 1``, and the edges whose heads they are.
    """
    w, u, nodes = point.w, point.u, point.nodes
    threads = len(nodes)
    primal, dual = np.zeros(threads), np.zeros(threads)
    for k in range(n_iter):
        last = k == n_iter - 1
        for t in nb.prange(threads):
            primal[t] = node_block(dims, blocks[t], blocks[t + 1], w, nodes, node_step)
        for t in nb.prange(threads):
            dual[t] = edge_block(dims, blocks[t], blocks[t + 1], u, nodes[t], arcs, edge_step, last)
    return primal.sum(), dual.sum()
