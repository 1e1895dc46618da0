"""Compiled inner loops of the primal-dual method; their NumPy twin is in the tests.

One iteration is a pass over the nodes and a pass over the edges. D^T u is kept per node and
updated in place by the edge pass, so that no other pass over the edges is needed.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from gtvcvx.penalties import KernelCode

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

_L2 = int(KernelCode.L2)
_L1 = int(KernelCode.L1)
_LINF = int(KernelCode.LINF)
_SQUARED = int(KernelCode.SQUARED)

# NaN and infinity keep their meaning: only reordering and contraction are allowed.
_FAST = {"contract", "reassoc", "nsz", "arcp"}


@nb.njit(cache=True, fastmath=_FAST)
def node_pass(
    w: FloatArray,
    bar: FloatArray,
    balance: FloatArray,
    matrix: FloatArray,
    offset: FloatArray,
    tau: FloatArray,
    relaxation: float,
) -> float:
    """Relaxed update of w (n, d) by an affine prox; bar = 2 prox - w.

    Returns ``sum_i ||prox_i - w_i||^2 / tau_i``.
    """
    n, d = w.shape
    v = np.empty(d)
    moved = 0.0
    for i in range(n):
        t = tau[i]
        for k in range(d):
            v[k] = w[i, k] - t * balance[i, k]
        square = 0.0
        for k in range(d):
            z = offset[i, k]
            for j in range(d):
                z += matrix[i, k, j] * v[j]
            step = z - w[i, k]
            square += step * step
            bar[i, k] = z + step
            w[i, k] += relaxation * step
        moved += square / t
    return moved


@nb.njit(cache=True, fastmath=_FAST)
def _project(z: FloatArray, cap: float, sigma: float, code: int) -> None:
    """Proximal step of the edge cost in place: projection on the dual ball, or a shrinkage."""
    d = len(z)
    if code == _L2:
        square = 0.0
        for k in range(d):
            square += z[k] * z[k]
        if square > cap * cap:
            scale = cap / np.sqrt(square)
            for k in range(d):
                z[k] *= scale
    elif code == _L1:
        for k in range(d):
            z[k] = min(cap, max(-cap, z[k]))
    elif code == _SQUARED:
        scale = 1.0 / (1.0 + sigma / cap)
        for k in range(d):
            z[k] *= scale
    else:
        _project_l1_ball(z, cap)


@nb.njit(cache=True, fastmath=_FAST)
def _project_l1_ball(z: FloatArray, cap: float) -> None:
    """Project on the l1 ball: the threshold rises until no entry falls below it any more."""
    d = len(z)
    total = 0.0
    for k in range(d):
        total += abs(z[k])
    if total <= cap:
        return
    threshold, active = (total - cap) / d, d
    while True:
        total, count = 0.0, 0
        for k in range(d):
            if abs(z[k]) > threshold:
                total += abs(z[k])
                count += 1
        if count == active or count == 0:
            break
        threshold, active = (total - cap) / count, count
    for k in range(d):
        size = max(abs(z[k]) - threshold, 0.0)
        z[k] = size if z[k] > 0 else -size


@nb.njit(cache=True, fastmath=_FAST)
def edge_pass(
    u: FloatArray,
    bar: FloatArray,
    balance: FloatArray,
    edges: IntArray,
    capacities: FloatArray,
    sigma: float,
    relaxation: float,
    code: int,
) -> float:
    """Relaxed update of u (m, d), and of balance = D^T u (n, d) along with it.

    Returns ``sum_e ||prox_e - u_e||^2 / sigma``.
    """
    m, d = u.shape
    z = np.empty(d)
    moved = 0.0
    for e in range(m):
        i, j = edges[e, 0], edges[e, 1]
        for k in range(d):
            z[k] = u[e, k] + sigma * (bar[i, k] - bar[j, k])
        _project(z, capacities[e], sigma, code)
        for k in range(d):
            step = z[k] - u[e, k]
            moved += step * step
            step *= relaxation
            u[e, k] += step
            balance[i, k] += step
            balance[j, k] -= step
    return moved / sigma


@nb.njit(cache=True, fastmath=_FAST)
def iterate(
    n_iter: int,
    w: FloatArray,
    u: FloatArray,
    bar: FloatArray,
    balance: FloatArray,
    edges: IntArray,
    capacities: FloatArray,
    matrix: FloatArray,
    offset: FloatArray,
    tau: FloatArray,
    sigma: float,
    relaxation: float,
    code: int,
) -> tuple[float, float]:
    """Run n_iter iterations in place; returns what the last one moved, primal and dual."""
    primal, dual = 0.0, 0.0
    for _ in range(n_iter):
        primal = node_pass(w, bar, balance, matrix, offset, tau, relaxation)
        dual = edge_pass(u, bar, balance, edges, capacities, sigma, relaxation, code)
    return primal, dual
