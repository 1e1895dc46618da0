"""Dynamic programming over rooted forests, compiled: clipped slopes from the leaves to the roots.

With the parent's value x the least cost of a subtree, its edge to the parent included, is a convex
function of x whose slope lies between -c and c: that of the subtree with its top node at x, clipped
at the capacity [1]_. The slopes are piecewise linear with jumps; what is kept of them is where they
change. Clipping removes changes at either end and puts one there, so that on a chain all passes
together cost a number of steps proportional to n; in a tree the changes of several children come
together in arrays, or in heaps that can be merged [2]_.

The slope of node p alone is ``q[p] x - b[p]`` left of all changes of its own, and
``q[p] x - b[p] + rise[p]`` right of them.

References
----------
.. [1] N. A. Johnson, "A dynamic programming algorithm for the fused lasso and L0-segmentation",
   J. Comput. Graph. Stat. 22, 2013.
.. [2] V. Kolmogorov, T. Pock, M. Rolinek, "Total variation on a tree", SIAM J. Imaging Sci. 9,
   2016.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.compiled import compiled
from gtvcvx.solvers.forest._chain import Queue, begin_chain, chain_bounds
from gtvcvx.solvers.forest._nodes import Bounds, Nodes, Own
from gtvcvx.solvers.forest._runs import Runs, run_bounds

# What rounding makes of a slope, relative to what adds up to it.
ULPS = 4.0 * float(np.finfo(np.float64).eps)


@compiled(nogil=True, allocates=False)
def forest_bounds(
    start: int,
    stop: int,
    tree: int,
    stops: IntArray,
    chain: BoolArray,
    nodes: Nodes,
    indptr: IntArray,
    own: Own,
    queue: Queue,
    runs: Runs,
    bounds: Bounds,
) -> tuple[int, bool]:
    """Clip the slopes of the positions start .. stop - 1, the first of which is in this tree.

    Returns the tree that the next position is in, and whether heaps are to do it, and what follows,
    from its first position on. A tree may be left and gone on with.
    """
    while start < stop:
        end = min(stops[tree], stop)
        begin = 0 if tree == 0 else stops[tree - 1]
        if chain[tree] and indptr[stops[tree]] == indptr[begin]:
            if start == begin:
                begin_chain(queue)
            top = stops[tree] - 1
            chain_bounds(start, end, top, nodes.q, nodes.b, 0.0, nodes.capacity, queue, bounds)
        elif run_bounds(begin, start, end, nodes, indptr, own, runs, bounds):
            return tree, True
        start = end
        if end == stops[tree]:
            tree += 1
    return tree, False


@compiled(nogil=True)
def values(parent: IntArray, bounds: Bounds, x: FloatArray) -> None:
    """Write the minimizer x (n,): from the roots down, the parent's value within the bounds."""
    last = 0.0  # along a chain, what has just been written is not read again
    for p in range(len(parent) - 1, -1, -1):
        above, value = parent[p], bounds.low[p]
        if above >= 0:
            value = min(max(last if above == p + 1 else x[above], value), bounds.high[p])
        x[p] = last = value


@compiled(nogil=True)
def flows(x: FloatArray, nodes: Nodes, indptr: IntArray, own: Own, sent: FloatArray) -> None:
    """Write the flow sent (n,) from each position to its parent.

    Flow is conserved: what the children send and the node's slope add up to what it sends; c where
    the parent has a larger value, -c where it has a smaller one. At jumps slopes are what is
    needed.
    """
    if indptr[-1] == 0:
        _smooth_flows(x, nodes, sent)
        return
    n = len(x)
    low, high = np.zeros(n), np.zeros(n)  # what is sent up, or the sum over the children so far
    least, most = np.empty(n), np.empty(n)  # slopes
    for p in range(n):
        slope, room = nodes.q[p] * x[p] - nodes.b[p], 0.0
        size = abs(nodes.q[p] * x[p]) + abs(nodes.b[p])
        for k in range(indptr[p], indptr[p + 1]):
            if own.position[k] < x[p]:
                added = own.bend[k] * (x[p] - own.position[k]) + own.jump[k]
                slope += added
                size += abs(added) + abs(own.bend[k] * x[p])
            elif own.position[k] == x[p]:
                room += own.jump[k]
        least[p], most[p] = slope - ULPS * size, slope + room + ULPS * size
        if nodes.q[p] == 0.0:  # between the slopes left and right of all changes, and what it has
            least[p] = max(least[p], min(slope, -nodes.b[p]))
            most[p] = min(most[p], max(slope + room, nodes.rise[p] - nodes.b[p]))
        low[p] += least[p]
        high[p] += most[p]
        above, c = nodes.parent[p], nodes.capacity[p]
        if above < 0:
            low[p] = high[p] = 0.0
            continue
        if x[p] > x[above]:
            low[p] = high[p] = -c
        elif x[p] < x[above]:
            low[p] = high[p] = c
        else:
            low[p] = min(max(low[p], -c), c)
            high[p] = max(min(max(high[p], -c), c), low[p])
        low[above] += low[p]
        high[above] += high[p]
    _settle(low, high, least, most, nodes.parent, sent)


@compiled(inner=True)
def _smooth_flows(x: FloatArray, nodes: Nodes, sent: FloatArray) -> None:
    """Write the flow sent (n,) where no slope jumps: sums from the leaves on."""
    sent[:] = 0.0
    last = 0.0  # what the position before has sent to this one
    for p in range(len(x)):
        above, c = nodes.parent[p], nodes.capacity[p]
        slope, last = nodes.q[p] * x[p] - nodes.b[p] + (sent[p] + last), 0.0
        if above < 0:
            sent[p] = 0.0
            continue
        if x[p] > x[above]:
            slope = -c
        elif x[p] < x[above]:
            slope = c
        sent[p] = slope = min(max(slope, -c), c)
        if above == p + 1:
            last = slope
        else:
            sent[above] += slope


@compiled(inner=True)
def _settle(
    low: FloatArray,
    high: FloatArray,
    least: FloatArray,
    most: FloatArray,
    parent: IntArray,
    sent: FloatArray,
) -> None:
    """Choose flows (n,), and slopes, within intervals from the roots down."""
    n = len(low)
    missing = np.zeros(n)  # what a node must still have more than the least of slope and children
    # A node's demand is known before its children's; each takes what it can when it is met.
    needed = np.zeros(n)
    for p in range(n):
        # One by one: to assign an array to another takes two seconds to compile.
        sent[p] = low[p]
        needed[p] -= least[p]
        if parent[p] >= 0:
            needed[parent[p]] -= low[p]
    for p in range(n - 1, -1, -1):
        above = parent[p]
        if above >= 0:
            share = min(max(missing[above], 0.0), high[p] - low[p])
            missing[above] -= share
            sent[p] += share
        missing[p] = sent[p] + needed[p]
        share = min(max(missing[p], 0.0), most[p] - least[p])
        missing[p] -= share
