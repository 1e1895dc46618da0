"""Gaps of scalar problems on chains numbered from end to end, without changes of slopes.

The formulas are those of `gtvcvx.duality._scalar_gap`, in one pass: both edges of a node are at
hand when it is met, so that nothing has to be added up at the nodes first.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import EPS
from gtvcvx.compiled import compiled
from gtvcvx.duality._scalar_gap import edge_gap, node_gap, widened
from gtvcvx.duality._terms import Gap

# Sums of so many terms are added up by NumPy, in pairs: a plain sum of all loses digits.
_BLOCK = 16


def line_gap(
    q: FloatArray,
    b: FloatArray,
    hull: tuple[float, float],
    capacities: FloatArray,
    w: FloatArray,
    u: FloatArray,
) -> tuple[Gap, float]:
    """Return the gap of w (n,) against a flow u (n - 1,), and the total variation of w.

    See `gtvcvx.duality._scalar_gap.scalar_gap`.

    Parameters
    ----------
    q, b : (n,)
        Slopes are ``q_i x - b_i``.
    hull : (low, high)
        Every loss has a minimizer between them.
    capacities : (n - 1,)
    w, u : (n,), (n - 1,)
    """
    node, edge, variation = np.empty(len(w)), np.empty(len(u)), np.zeros(len(u) // _BLOCK + 1)
    work, unsure = _line_gaps(q, b, *widened(hull, w), capacities, w, u, node, edge, variation)
    return Gap(node, edge, unsure + 4.0 * EPS * work), float(variation.sum())


@compiled(nogil=True, allocates=False)
def _line_gaps(
    q: FloatArray,
    b: FloatArray,
    low: float,
    high: float,
    capacities: FloatArray,
    w: FloatArray,
    u: FloatArray,
    node: FloatArray,
    edge: FloatArray,
    variation: FloatArray,
) -> tuple[float, float]:
    """Write gaps of the nodes (n,) and edges (m,), and sums of variations of blocks of edges.

    Returns the sum of |u D w|, and what rounding may add to the gaps of the nodes.
    """
    n, work, unsure, before = len(w), 0.0, 0.0, 0.0
    for i in range(n):
        flow, degree, x = 0.0, 2.0 if i else 1.0, w[i]
        if i < n - 1:
            flow, jump = u[i], x - w[i + 1]
            edge[i] = edge_gap(capacities[i], flow, jump)
            work += abs(flow * jump)
            variation[i // _BLOCK] += capacities[i] * abs(jump)
        else:
            degree -= 1.0
        left, through = q[i] * x - b[i], abs(before) + abs(flow)
        # As in `gtvcvx.duality._scalar_gap.node_gaps`, there are no changes.
        size = EPS * (4.0 * (abs(q[i] * x) + abs(b[i])) + (1.0 + degree) * through)
        node[i], more = node_gap(q[i], left, 0.0, before - flow, size, x, low, high)
        unsure += more
        before = flow
    return work, unsure
