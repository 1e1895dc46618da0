"""Gaps of scalar problems on chains numbered from end to end, without changes of slopes.

The formulas are those of `gtvcvx.duality._scalar_gap`. Both edges of a node are at hand when it is
met, so that nothing has to be added up at the nodes first, and both passes are vectorized.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import EPS
from gtvcvx.compiled import compiled
from gtvcvx.duality._scalar_gap import edge_gap, node_gap, widened
from gtvcvx.duality._terms import Gap

# Edges are gone through in blocks, whose sums are added up by NumPy, in pairs: a plain sum of all
# loses digits.
_BLOCK = 256


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
    node, edge = np.empty(len(w)), np.empty(len(u))
    variation = np.empty(-(-len(u) // _BLOCK))
    work = _edge_gaps(capacities, w, u, edge, variation)
    unsure = _node_gaps(q, b, *widened(hull, w), w, u, node)
    return Gap(node, edge, unsure + 4.0 * EPS * work), float(variation.sum())


@compiled(allocates=False, inner=True, fastmath=frozenset({"reassoc"}))
def _added(total: float, more: float) -> float:
    """Return the sum, whatever the order of all that is added: loops of it are vectorized."""
    return total + more


@compiled(nogil=True, allocates=False)
def _edge_gaps(
    capacities: FloatArray, w: FloatArray, u: FloatArray, edge: FloatArray, variation: FloatArray
) -> float:
    """Write gaps of the edges (m,), and sums of variations of blocks; return that of |u D w|."""
    work = 0.0
    for k in range(len(variation)):
        at, to = k * _BLOCK, min((k + 1) * _BLOCK, len(u))
        more, variation[k] = _block_gaps(
            capacities[at:to], w[at:to], w[at + 1 : to + 1], u[at:to], edge[at:to]
        )
        work += more
    return work


@compiled(allocates=False, inner=True)
def _block_gaps(
    capacities: FloatArray, head: FloatArray, tail: FloatArray, u: FloatArray, edge: FloatArray
) -> tuple[float, float]:
    """Write gaps of some edges (k,), and return the sums of |u D w| and of variations."""
    work = variation = 0.0
    for e in range(len(u)):
        jump = head[e] - tail[e]
        edge[e] = edge_gap(capacities[e], u[e], jump)
        work = _added(work, abs(u[e] * jump))
        variation = _added(variation, capacities[e] * abs(jump))
    return work, variation


@compiled(nogil=True, allocates=False)
def _node_gaps(
    q: FloatArray,
    b: FloatArray,
    low: float,
    high: float,
    w: FloatArray,
    u: FloatArray,
    node: FloatArray,
) -> float:
    """Write gaps of the nodes (n,), and return what rounding may add to them."""
    last, unsure, more = len(w) - 1, 0.0, 0.0
    if last == 0:
        node[0], unsure = _node_gap(q[0], b[0], 0.0, 0.0, 0, w[0], low, high)
        return unsure
    node[0], unsure = _node_gap(q[0], b[0], 0.0, u[0], 1, w[0], low, high)
    for i in range(1, last):
        node[i], more = _node_gap(q[i], b[i], u[i - 1], u[i], 2, w[i], low, high)
        unsure = _added(unsure, more)
    node[last], more = _node_gap(q[last], b[last], u[last - 1], 0.0, 1, w[last], low, high)
    return unsure + more


@compiled(allocates=False, inner=True)
def _node_gap(
    q: float, b: float, before: float, after: float, degree: int, x: float, low: float, high: float
) -> tuple[float, float]:
    """Return the gap of a node between two flows, and what rounding may add to it."""
    # As in `gtvcvx.duality._scalar_gap.node_gaps`, there are no changes.
    size = 4.0 * (abs(q * x) + abs(b)) + (1.0 + degree) * (abs(before) + abs(after))
    return node_gap(q, q * x - b, 0.0, before - after, EPS * size, x, low, high)
