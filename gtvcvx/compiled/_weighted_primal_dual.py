"""Compiled inner loops of the primal-dual method with a primal weight for each coordinate.

In the coordinates x_k = w_k / s_k and y_k = s_k u_k, where s_k is the root of coordinate k's primal
weight, all weights are one: the node pass is that of one weight, and the edge pass has to bring
flows into the ball of ``u = y / s``, which is an ellipsoid for l2. Twins are in the tests.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._primal_dual import NodeStep, Point, node_block
from gtvcvx.compiled._team import Share, meet
from gtvcvx.penalties import CompiledForm

_L2 = int(CompiledForm.L2)
_L1 = int(CompiledForm.L1)
_LINF = int(CompiledForm.LINF)

#: Steps of Newton's method on the secular equation; they converge quadratically, so that the one
#: after a step of this relative length would be rounding.
_STEPS = 60
_LAST_STEP = 1e-8


class WeightedEdgeStep(NamedTuple):
    """Update of the edges: the prox of the penalty's conjugate, over-relaxed.

    Attributes
    ----------
    capacities : ndarray, shape (m,)
    scales : ndarray, shape (d,)
        Roots s of the primal weights.
    sigma : float
        Step size.
    relaxation : float
    code : int
        The penalty.
    """

    capacities: FloatArray
    scales: FloatArray
    sigma: float
    relaxation: float
    code: int


@compiled(fastmath=FAST, allocates=False, inner=True)
def ellipsoid_multiplier(z: FloatArray, scales: FloatArray, cap: float) -> float:
    """Return the mu >= 0 for which ``y_k = z_k / (1 + mu / s_k^2)`` has ``||y / s|| = cap``.

    That y is the projection of z on ``||y / s|| <= cap``; mu is zero inside. The inverse of the
    norm is a concave function of mu: Newton's method on it rises to the root, and never passes it.
    """
    length, least, alone = 0.0, np.inf, 0.0
    for k in range(len(z)):
        weight = scales[k] * scales[k]
        length += z[k] * z[k] / weight
        least = min(least, weight)
        alone = max(alone, abs(z[k]) * scales[k] / cap - weight)
    length = np.sqrt(length)
    if length <= cap:
        return 0.0
    # Each coordinate alone is within the ball at the root, and all are if they shrink as the
    # one with the least scale does: whichever says more is close to the root, and below it.
    mu = max(alone, least * (length / cap - 1.0))
    for _ in range(_STEPS):
        square, slope = 0.0, 0.0
        for k in range(len(z)):
            weight = scales[k] * scales[k]
            part = (z[k] * scales[k] / (weight + mu)) ** 2
            square += part
            slope += part / (weight + mu)
        step = (np.sqrt(square) / cap - 1.0) * square / slope
        mu += step
        if step <= _LAST_STEP * mu:
            break
    return mu


@compiled(fastmath=FAST, allocates=False, inner=True)
def weighted_l1_threshold(z: FloatArray, scales: FloatArray, cap: float) -> float:
    """Return the t >= 0 with which ``y_k = soft(z_k, t / s_k)`` has ``||y / s||_1 = cap``.

    Zero where ``||z / s||_1 <= cap``. It rises until no entry falls below it.
    """
    total, squares = 0.0, 0.0
    for k in range(len(z)):
        total += abs(z[k]) / scales[k]
        squares += 1.0 / (scales[k] * scales[k])
    if total <= cap:
        return 0.0
    threshold, active = (total - cap) / squares, len(z)
    while True:
        total, squares, count = 0.0, 0.0, 0
        for k in range(len(z)):
            if abs(z[k]) * scales[k] > threshold:
                total += abs(z[k]) / scales[k]
                squares += 1.0 / (scales[k] * scales[k])
                count += 1
        if count >= active or count == 0:  # more: a tie, and rounding
            return threshold
        threshold, active = (total - cap) / squares, count


@compiled(fastmath=FAST, inner=True)
def weighted_edge_block(
    dims: Dims,
    first: int,
    last: int,
    y: FloatArray,
    nodes: FloatArray,
    arcs: Arcs,
    step: WeightedEdgeStep,
    measure: bool,
) -> float:
    """Relaxed update of y (m, d) by the prox of the conjugate, and of D^T y along with it.

    As `edge_block` does it with one weight.
    """
    starts, tails, capacities = arcs.starts, arcs.tails, step.capacities
    scales, sigma, relaxation, code = step.scales, step.sigma, step.relaxation, step.code
    d = len(dims)
    own, gathered, z = np.empty(d), np.empty(d), np.empty(d)
    moved = 0.0
    for i in range(first, last):
        for k in range(d):
            own[k], gathered[k] = nodes[i, k], 0.0
        for e in range(starts[i], starts[i + 1]):
            j, cap = tails[e], capacities[e]
            for k in range(d):
                z[k] = y[e, k] + sigma * (own[k] - nodes[j, k])
            if code == _L1:
                for k in range(d):
                    most = cap * scales[k]
                    z[k] = min(most, max(-most, z[k]))
            elif code == _LINF:
                threshold = weighted_l1_threshold(z, scales, cap)
                for k in range(d):
                    low = threshold / scales[k]
                    z[k] = max(z[k] - low, 0.0) + min(z[k] + low, 0.0)
            else:
                mu = ellipsoid_multiplier(z, scales, cap) if code == _L2 else sigma / cap
                for k in range(d):
                    weight = scales[k] * scales[k]
                    z[k] *= weight / (weight + mu)
            if measure:
                for k in range(d):
                    moved += (z[k] - y[e, k]) ** 2
            for k in range(d):
                update = relaxation * (z[k] - y[e, k])
                y[e, k] += update
                gathered[k] += update
                nodes[j, d + k] -= update
        for k in range(d):
            nodes[i, d + k] += gathered[k]
    return moved / sigma


@compiled(fastmath=FAST, nogil=True)
def iterate_weighted(
    share: Share,
    n_iter: int,
    dims: Dims,
    blocks: IntArray,
    point: Point,
    room: FloatArray,
    arcs: Arcs,
    node_step: NodeStep,
    edge_step: WeightedEdgeStep,
    moved: FloatArray,
) -> None:
    """Do what `iterate` does, with a primal weight for each coordinate."""
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
            change = weighted_edge_block(dims, begin, end, u, nodes[t], arcs, edge_step, last)
            if last:
                moved[1, t] = change
        meet(share, 2 * k + 2)
