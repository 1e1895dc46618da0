"""The rest of a primal-dual iteration, compiled, where proximal points come from elsewhere.

Its NumPy twin is in the tests.
"""

from __future__ import annotations

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._primal_dual import EdgeStep, Point, edge_block


@compiled(fastmath=FAST)
def complete_iteration(
    dims: Dims,
    prox: FloatArray,
    tau: FloatArray,
    point: Point,
    room: FloatArray,
    arcs: Arcs,
    edge_step: EdgeStep,
    measure: bool,
) -> tuple[float, float]:
    """Relaxed updates of w by proximal points (n, d), and then of u, on one thread.

    Returns ``sum_i ||prox_i - w_i||^2 / tau_i`` and the same of the edges, if it is measured.
    """
    n, d = len(tau), len(dims)
    moved = 0.0
    for i in range(n):
        square = 0.0
        for k in range(d):
            change = prox[i, k] - point.w[i, k]
            square += change * change
            point.nodes[0, i, k] = prox[i, k] + change
            point.w[i, k] += edge_step.relaxation * change
        moved += square / tau[i]
    nodes, u = point.nodes[0], point.u
    return moved, edge_block(dims, 0, n, u, nodes, room[0], arcs, edge_step, measure)
