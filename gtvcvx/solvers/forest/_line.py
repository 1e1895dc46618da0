"""Chains numbered from end to end whose slopes have no changes: in few passes, and few arrays.

What is general about forests costs more than the solution there: positions, parents and copies of
what is in order already. Values and flows are written over the bounds that they come from.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx.compiled import compiled
from gtvcvx.duality._scalar_gap import Extent, Slopes
from gtvcvx.solvers.forest._capacities import as_given
from gtvcvx.solvers.forest._chain import Queue, begin_chain, chain_bounds
from gtvcvx.solvers.forest._nodes import Bounds

# Nodes between two looks at the clock: some milliseconds.
PIECE = 100_000


def line_solution(
    slopes: Slopes, capacities: FloatArray, found: Extent
) -> tuple[FloatArray, FloatArray] | None:
    """Return the minimizer (n,) and the optimal flow (m,) of the scalar problem on a chain.

    None where slopes have changes, or capacities are beyond what flows reach: others know how.

    Parameters
    ----------
    slopes : Slopes
        Of the n nodes of the chain 0 - 1 - ... - n-1.
    capacities : (n - 1,)
    found : Extent
        Of the slopes.
    """
    if len(slopes.node) or not as_given(found, capacities):
        return None
    n = len(slopes.q)
    queue, bounds = Queue.of(n), Bounds(np.empty(n), np.empty(n))
    shift = found.centre
    for start in range(0, n, PIECE):
        look()
        _line_bounds(
            start, min(start + PIECE, n), slopes.q, slopes.b, shift, capacities, queue, bounds
        )
    look()
    w, u = bounds
    _line_values(w, u)
    _line_flows(slopes.q, slopes.b, shift, capacities, w, u)
    return w, u[:-1]


@compiled(nogil=True, allocates=False)
def _line_bounds(
    start: int,
    stop: int,
    q: FloatArray,
    b: FloatArray,
    shift: float,
    capacities: FloatArray,
    queue: Queue,
    bounds: Bounds,
) -> None:
    """Clip the slopes of the nodes start .. stop - 1; the last node of all is the root."""
    if start == 0:
        begin_chain(queue)
    chain_bounds(start, stop, len(q) - 1, q, b, shift, capacities, queue, bounds)


@compiled(nogil=True, allocates=False)
def _line_values(low: FloatArray, high: FloatArray) -> None:
    """Write the minimizer (n,) over the lower bounds: the next node's value within the bounds."""
    last = low[len(low) - 1]
    for p in range(len(low) - 2, -1, -1):
        last = min(max(last, low[p]), high[p])
        low[p] = last


@compiled(nogil=True, allocates=False)
def _line_flows(
    q: FloatArray,
    b: FloatArray,
    shift: float,
    capacities: FloatArray,
    x: FloatArray,
    u: FloatArray,
) -> None:
    """Write the flow to the next node, with its sign on the edge; values are counted from 0 again.

    Flow is conserved: what came and the node's slope are sent on, c where the next node has a
    larger value, -c where it has a smaller one.
    """
    sent = 0.0
    for p in range(len(x) - 1):
        c, value = capacities[p], x[p]
        sent += q[p] * value - (b[p] - q[p] * shift)
        sent = min(max(sent, -c), c)
        if value > x[p + 1]:
            sent = -c
        if value < x[p + 1]:
            sent = c
        u[p] = -sent
        x[p] = value + shift
    x[len(x) - 1] += shift
