"""Compiled inner loops of the primal-dual method; their NumPy twins are in the tests.

One iteration is a pass over the nodes and a pass over the edges, sorted by head. D^T u is kept
per node and updated in place by the edge pass, so that no other pass over the edges is needed.
What an edge needs of a node, the extrapolated point and the balance, lies side by side in
``nodes``, of shape (threads, n, 2 d): each thread has its copy, in which it alone adds up its
edges' flow, and the node pass adds the copies.

The dimension comes as a tuple of length d, whose length is a constant to the compiler: loops over
it are unrolled, and the function is compiled, and cached, once for each d.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, UInt32Array
from gtvcvx.compiled import FAST, compiled
from gtvcvx.compiled._projections import l1_threshold
from gtvcvx.penalties import KernelCode

_L2 = int(KernelCode.L2)
_L1 = int(KernelCode.L1)
_LINF = int(KernelCode.LINF)
_SQUARED = int(KernelCode.SQUARED)


@compiled(fastmath=FAST, error_model="python")
def node_block(
    dims: tuple[int, ...],
    first: int,
    last: int,
    w: FloatArray,
    nodes: FloatArray,
    matrix: FloatArray,
    offset: FloatArray,
    tau: FloatArray,
    relaxation: float,
) -> float:
    """Relaxed update of w (n, d) by an affine prox, and of the extrapolated points 2 prox - w.

    Returns ``sum_i ||prox_i - w_i||^2 / tau_i`` over the nodes first .. last - 1.
    """
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
            z = offset[i, k]
            for j in range(d):
                z += matrix[i, k, j] * v[j]
            step = z - w[i, k]
            square += step * step
            for thread in range(len(nodes)):
                nodes[thread, i, k] = z + step
            w[i, k] += relaxation * step
        moved += square / tau[i]
    return moved


@compiled(fastmath=FAST, error_model="python")
def edge_block(
    dims: tuple[int, ...],
    first: int,
    last: int,
    u: FloatArray,
    nodes: FloatArray,
    starts: IntArray,
    tails: UInt32Array,
    capacities: FloatArray,
    sigma: float,
    relaxation: float,
    code: int,
    crowded: bool,
    measure: bool,
) -> float:
    """Relaxed update of u (m, d) by the prox of the conjugate, and of D^T u along with it.

    Edges ``starts[i] .. starts[i + 1] - 1`` have node i as their head. Returns
    ``sum_e ||prox_e - u_e||^2 / sigma`` over the edges with heads first .. last - 1, if it is to be
    measured. Where many flows are at capacity, the network is `crowded`, a branch on it would be
    predicted badly.
    """
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
            elif crowded:
                scale = cap / max(cap, np.sqrt(square))
            elif square > cap * cap:
                scale = cap / np.sqrt(square)
            if measure:
                change = 0.0
                for k in range(d):
                    change += (scale * z[k] - u[e, k]) ** 2
                moved += change
            for k in range(d):
                step = relaxation * (scale * z[k] - u[e, k])
                u[e, k] += step
                gathered[k] += step
                nodes[j, d + k] -= step
        for k in range(d):
            nodes[i, d + k] += gathered[k]
    return moved / sigma


@compiled(fastmath=FAST, error_model="python")
def iterate(
    n_iter: int,
    dims: tuple[int, ...],
    blocks: IntArray,
    w: FloatArray,
    u: FloatArray,
    nodes: FloatArray,
    starts: IntArray,
    tails: UInt32Array,
    capacities: FloatArray,
    matrix: FloatArray,
    offset: FloatArray,
    tau: FloatArray,
    sigma: float,
    relaxation: float,
    code: int,
    crowded: bool,
) -> tuple[float, float]:
    """Run n_iter iterations in place, on one thread; returns what the last one moved."""
    primal, dual, n = 0.0, 0.0, len(w)
    for k in range(n_iter):
        primal = node_block(dims, 0, n, w, nodes, matrix, offset, tau, relaxation)
        dual = edge_block(
            dims,
            0,
            n,
            u,
            nodes[0],
            starts,
            tails,
            capacities,
            sigma,
            relaxation,
            code,
            crowded,
            k == n_iter - 1,
        )
    return primal, dual


@compiled(fastmath=FAST, error_model="python", parallel=True)
def iterate_parallel(
    n_iter: int,
    dims: tuple[int, ...],
    blocks: IntArray,
    w: FloatArray,
    u: FloatArray,
    nodes: FloatArray,
    starts: IntArray,
    tails: UInt32Array,
    capacities: FloatArray,
    matrix: FloatArray,
    offset: FloatArray,
    tau: FloatArray,
    sigma: float,
    relaxation: float,
    code: int,
    crowded: bool,
) -> tuple[float, float]:
    """Run the same iterations with one thread for each of the blocks of nodes."""
    threads = len(nodes)
    primal, dual = np.zeros(threads), np.zeros(threads)
    for k in range(n_iter):
        for t in nb.prange(threads):
            primal[t] = node_block(
                dims, blocks[t], blocks[t + 1], w, nodes, matrix, offset, tau, relaxation
            )
        for t in nb.prange(threads):
            dual[t] = edge_block(
                dims,
                blocks[t],
                blocks[t + 1],
                u,
                nodes[t],
                starts,
                tails,
                capacities,
                sigma,
                relaxation,
                code,
                crowded,
                k == n_iter - 1,
            )
    return primal.sum(), dual.sum()
