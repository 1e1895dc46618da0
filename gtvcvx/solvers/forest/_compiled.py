"""Dynamic programming over rooted forests, compiled: clipped slopes from the leaves to the roots.

With the parent's value x the least cost of a subtree, its edge to the parent included, is a convex
function of x whose slope lies between -c and c: that of the subtree with its top node at x, clipped
at the capacity [1]_. The slopes are piecewise linear with jumps; what is kept of them is where they
change. Clipping removes changes at either end and puts one there, so that on a chain all passes
together cost a number of steps proportional to n; in a tree the changes of several children come
together in heaps that can be merged [2]_.

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

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, Int32Array, IntArray
from gtvcvx.compiled import compiled


class Nodes(NamedTuple):
    """Slopes of the nodes, and how they meet.

    Attributes
    ----------
    q, b, rise : (n,)
        See above.
    capacity : (n,)
        c of the edge to the parent; at a root it does not count.
    parent : (n,)
        Position of the parent, -1 at a root.
    """

    q: FloatArray
    b: FloatArray
    rise: FloatArray
    capacity: FloatArray
    parent: IntArray


class Bounds(NamedTuple):
    """Between which values a node has its parent's, (n,); at a root both are its own."""

    low: FloatArray
    high: FloatArray


class Changes(NamedTuple):
    """Where slopes change: the nodes' own changes, and room for two of each node's clipping.

    Attributes
    ----------
    position : (K + 2 n,)
    bend : (K + 2 n,)
        By how much the slope's own slope grows there.
    jump : (K + 2 n,)
        By how much the slope itself grows there, >= 0.
    gone : (K + 2 n,) of bool
        Whether the change was removed; the other heap may still have it.
    first, second : (2, K + 2 n) of int32
        Children in the two heaps, -1 where there is none.
    """

    position: FloatArray
    opposite: FloatArray
    bend: FloatArray
    jump: FloatArray
    gone: BoolArray
    first_least: Int32Array
    second_least: Int32Array
    first_largest: Int32Array
    second_largest: Int32Array


class Queue(NamedTuple):
    """Changes of the clipped slope of a chain, in order, with room at both ends.

    Attributes
    ----------
    position, bend : (2 n + 2,)
    state : (2,)
        Where the first and the last of them are.
    limits : (2,)
        The slope left and right of all of them.
    """

    position: FloatArray
    bend: FloatArray
    state: IntArray
    limits: FloatArray


class ChildSlopes(NamedTuple):
    """Clipped slopes of the children, added up where they meet, (n,) each.

    Attributes
    ----------
    top : (2, n) of int32
        Change on top of either heap, -1 where there is none.
    below, above : (n,)
        The slope left and right of all changes.
    """

    least: Int32Array
    largest: Int32Array
    below: FloatArray
    above: FloatArray


@compiled(allocates=False, inner=True)
def chain_bounds(start: int, stop: int, nodes: Nodes, queue: Queue, bounds: Bounds) -> None:
    """Clip the slopes of the positions start .. stop - 1 of a chain without changes of its own."""
    position, bend, state, limits = queue
    first, last = state[0], state[1]
    below, above = limits[0], limits[1]
    for p in range(start, stop):
        qp, bp = nodes.q[p], nodes.b[p]
        root = nodes.parent[p] < 0
        c = 0.0 if root else nodes.capacity[p]
        low, high = -np.inf, np.inf
        if qp > 0.0 or below < -c:
            slope, x = qp, -np.inf
            value = below
            if first <= last:
                x = position[first]
                value = qp * x - bp + below
            if first > last or value >= -c:
                low = min((bp - below - c) / qp, np.inf if first > last else x)
            else:
                slope += bend[first]
                first += 1
                while first <= last:
                    further = value + slope * (position[first] - x)
                    if further >= -c:
                        break
                    value, x = further, position[first]
                    slope += bend[first]
                    first += 1
                if first <= last:
                    low = min(x + (-c - value) / slope, position[first])
                elif qp > 0.0:
                    slope = qp
                    low = max((bp - above - c) / qp, x)
                else:  # rounding alone leads beyond the last change
                    low = x
            first -= 1
            position[first], bend[first] = low, slope
            below = -c
        if root:
            if low == -np.inf:
                low = position[first] if first <= last else 0.0
            bounds.low[p] = bounds.high[p] = low
            continue
        if qp > 0.0 or above > c:
            slope, x = qp, position[last]
            value = qp * x - bp + above
            if value <= c:
                high = max((c + bp - above) / qp, x)
            else:
                slope -= bend[last]
                last -= 1
                while first <= last:
                    further = value - slope * (x - position[last])
                    if further <= c:
                        break
                    value, x = further, position[last]
                    slope -= bend[last]
                    last -= 1
                high = x
                if first <= last:
                    high = max(x - (value - c) / slope, position[last])
            last += 1
            position[last], bend[last] = high, -slope
            above = c
        bounds.low[p], bounds.high[p] = low, high
    state[0], state[1] = first, last
    limits[0], limits[1] = below, above


@compiled(allocates=False, inner=True)
def _merged(a: int, b: int, key: FloatArray, first: Int32Array, second: Int32Array) -> int:
    """Merge two skew heaps, the least key on top; return the top."""
    if a < 0:
        return b
    if b < 0:
        return a
    if key[b] < key[a]:
        a, b = b, a
    top = a
    while True:
        following = second[a]
        second[a] = first[a]
        if following < 0:
            first[a] = b
            return top
        if key[b] < key[following]:
            following, b = b, following
        first[a] = following
        a = following


@compiled(allocates=False, inner=True)
def _least(top: int, changes: Changes) -> int:
    """Remove changes from the top of the heap of least positions that are gone; return the top."""
    while top >= 0 and changes.gone[top]:
        first, second = changes.first_least, changes.second_least
        top = _merged(first[top], second[top], changes.position, first, second)
    return top


@compiled(allocates=False, inner=True)
def _largest(top: int, changes: Changes) -> int:
    """Remove changes from the top of the heap of largest positions that are gone."""
    while top >= 0 and changes.gone[top]:
        first, second = changes.first_largest, changes.second_largest
        top = _merged(first[top], second[top], changes.opposite, first, second)
    return top


@compiled(allocates=False, inner=True)
def _put(k: int, position: float, bend: float, jump: float, changes: Changes) -> None:
    """Write change k, alone in its heaps."""
    changes.position[k], changes.bend[k], changes.jump[k] = position, bend, jump
    changes.gone[k] = False
    changes.opposite[k] = -position
    changes.first_least[k] = changes.second_least[k] = -1
    changes.first_largest[k] = changes.second_largest[k] = -1


@compiled(allocates=False, inner=True)
def _clip_below(
    p: int, k: int, nodes: Nodes, slopes: ChildSlopes, changes: Changes, c: float
) -> float:
    """Clip the slope at position p at -c, with k as the change there; return where that is.

    -inf where it is above everywhere.
    """
    q, b, below = nodes.q[p], nodes.b[p], slopes.below[p]
    above = slopes.above[p] + nodes.rise[p]
    if q == 0.0 and below - b >= -c:
        slopes.below[p] = below - b
        return -np.inf
    slopes.below[p] = -c
    t = slopes.least[p] = _least(slopes.least[p], changes)
    x = changes.position[t] if t >= 0 else np.inf
    value = q * x - b + below if t >= 0 else np.inf
    if value >= -c:
        x = min((b - below - c) / q, x)
        _put(k, x, q, 0.0, changes)
        return x
    slope = q
    while True:
        after = value + changes.jump[t]
        slope += changes.bend[t]
        changes.gone[t] = True
        if after >= -c:
            _put(k, x, slope, after + c, changes)
            return x
        value = after
        t = slopes.least[p] = _least(t, changes)
        if t < 0:
            if q > 0.0:
                x = max((b - above - c) / q, x)
                _put(k, x, q, 0.0, changes)
            else:  # rounding alone leads beyond the last change
                _put(k, x, 0.0, max(above - b + c, 0.0), changes)
            return x
        further = value + slope * (changes.position[t] - x)
        if further >= -c:
            x = min(x + (-c - value) / slope, changes.position[t])
            _put(k, x, slope, 0.0, changes)
            return x
        value, x = further, changes.position[t]


@compiled(allocates=False, inner=True)
def _clip_above(
    p: int, k: int, nodes: Nodes, slopes: ChildSlopes, changes: Changes, c: float
) -> float:
    """Clip the slope at position p at c, after `_clip_below`; return where that is.

    inf where it is below everywhere.
    """
    q, b = nodes.q[p], nodes.b[p]
    above = slopes.above[p] + nodes.rise[p]
    if q == 0.0 and above - b <= c:
        slopes.above[p] = above - b
        return np.inf
    slopes.above[p] = c
    t = slopes.largest[p] = _largest(slopes.largest[p], changes)
    x = changes.position[t]
    value = q * x - b + above
    if value <= c:
        x = max((c + b - above) / q, x)
        _put(k, x, -q, 0.0, changes)
        return x
    slope = q
    while True:
        before = value - changes.jump[t]
        slope -= changes.bend[t]
        changes.gone[t] = True
        if before <= c:
            _put(k, x, -slope, c - before, changes)
            return x
        value = before
        t = slopes.largest[p] = _largest(t, changes)
        if t < 0:  # rounding alone leads beyond the first change
            _put(k, x, 0.0, max(c - slopes.below[p], 0.0), changes)
            return x
        further = value - slope * (x - changes.position[t])
        if further <= c:
            x = max(x - (value - c) / slope, changes.position[t])
            _put(k, x, -slope, 0.0, changes)
            return x
        value, x = further, changes.position[t]


@compiled(allocates=False, inner=True)
def _join(p: int, least: int, largest: int, slopes: ChildSlopes, changes: Changes) -> None:
    """Merge two heaps into those of position p."""
    first, second = changes.first_least, changes.second_least
    slopes.least[p] = _merged(slopes.least[p], least, changes.position, first, second)
    first, second = changes.first_largest, changes.second_largest
    slopes.largest[p] = _merged(slopes.largest[p], largest, changes.opposite, first, second)


@compiled(allocates=False, inner=True)
def _added(k: int, p: int, slopes: ChildSlopes, changes: Changes) -> None:
    """Put change k, alone so far, into the heaps of position p."""
    _join(p, k, k, slopes, changes)


@compiled(allocates=False, inner=True)
def _root_value(p: int, nodes: Nodes, slopes: ChildSlopes, changes: Changes, k: int) -> float:
    """Return a point where the slope at the root p changes its sign."""
    x = _clip_below(p, k, nodes, slopes, changes, 0.0)
    if x > -np.inf:
        return x
    t = _least(slopes.least[p], changes)
    return changes.position[t] if t >= 0 else 0.0


@compiled(allocates=False, inner=True)
def tree_bounds(
    start: int,
    stop: int,
    nodes: Nodes,
    indptr: IntArray,
    changes: Changes,
    slopes: ChildSlopes,
    bounds: Bounds,
) -> None:
    """Clip the slopes of the positions start .. stop - 1; those before them are done.

    The own changes of position p are ``indptr[p] .. indptr[p + 1] - 1``.
    """
    own = indptr[-1]
    for p in range(start, stop):
        for k in range(indptr[p], indptr[p + 1]):
            _added(k, p, slopes, changes)
        k = own + 2 * p
        above = nodes.parent[p]
        if above < 0:
            bounds.low[p] = bounds.high[p] = _root_value(p, nodes, slopes, changes, k)
            continue
        c = nodes.capacity[p]
        bounds.low[p] = low = _clip_below(p, k, nodes, slopes, changes, c)
        if low > -np.inf:
            _added(k, p, slopes, changes)
        bounds.high[p] = high = _clip_above(p, k + 1, nodes, slopes, changes, c)
        if high < np.inf:
            _added(k + 1, p, slopes, changes)
        _join(above, slopes.least[p], slopes.largest[p], slopes, changes)
        slopes.below[above] += slopes.below[p]
        slopes.above[above] += slopes.above[p]


@compiled(nogil=True, allocates=False)
def forest_bounds(
    start: int,
    stop: int,
    tree: int,
    stops: IntArray,
    chain: BoolArray,
    nodes: Nodes,
    queue: Queue,
    indptr: IntArray,
    changes: Changes,
    slopes: ChildSlopes,
    bounds: Bounds,
) -> int:
    """Clip the slopes of the positions start .. stop - 1, the first of which is in this tree.

    Returns the tree that the next position is in. A tree may be left and gone on with.
    """
    while start < stop:
        end = min(stops[tree], stop)
        begin = 0 if tree == 0 else stops[tree - 1]
        if chain[tree] and indptr[stops[tree]] == indptr[begin]:
            if start == begin:
                half = len(queue.position) // 2
                queue.state[0], queue.state[1] = half, half - 1
                queue.limits[0] = queue.limits[1] = 0.0
            chain_bounds(start, end, nodes, queue, bounds)
        else:
            tree_bounds(start, end, nodes, indptr, changes, slopes, bounds)
        start = end
        if end == stops[tree]:
            tree += 1
    return tree


@compiled(nogil=True)
def values(parent: IntArray, bounds: Bounds) -> FloatArray:
    """Return the minimizer (n,): from the roots down, the parent's value within the bounds."""
    x = np.empty(len(parent))
    for p in range(len(parent) - 1, -1, -1):
        above = parent[p]
        x[p] = bounds.low[p]
        if above >= 0:
            x[p] = min(max(x[above], bounds.low[p]), bounds.high[p])
    return x


@compiled(nogil=True)
def flows(x: FloatArray, nodes: Nodes, indptr: IntArray, changes: Changes) -> FloatArray:
    """Return the flow (n,) from each position to its parent.

    Flow is conserved: what the children send and the node's slope add up to what it sends; c where
    the parent has a larger value, -c where it has a smaller one. At jumps slopes are what is
    needed.
    """
    if indptr[-1] == 0:
        return _smooth_flows(x, nodes)
    n = len(x)
    low, high = np.zeros(n), np.zeros(n)  # what is sent up, or the sum over the children so far
    least, most = np.empty(n), np.empty(n)  # slopes
    for p in range(n):
        slope, room = nodes.q[p] * x[p] - nodes.b[p], 0.0
        for k in range(indptr[p], indptr[p + 1]):
            if changes.position[k] < x[p]:
                slope += changes.bend[k] * (x[p] - changes.position[k]) + changes.jump[k]
            elif changes.position[k] == x[p]:
                room += changes.jump[k]
        least[p], most[p] = slope, slope + room
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
    return _settled(low, high, least, most, nodes.parent)


@compiled(inner=True)
def _smooth_flows(x: FloatArray, nodes: Nodes) -> FloatArray:
    """Return the flow (n,) where no slope jumps: sums from the leaves on."""
    sent = np.zeros(len(x))
    for p in range(len(x)):
        above, c = nodes.parent[p], nodes.capacity[p]
        if above < 0:
            sent[p] = 0.0
            continue
        if x[p] > x[above]:
            sent[p] = -c
        elif x[p] < x[above]:
            sent[p] = c
        else:
            sent[p] = min(max(sent[p] + nodes.q[p] * x[p] - nodes.b[p], -c), c)
        sent[above] += sent[p]
    return sent


@compiled(inner=True)
def _settled(
    low: FloatArray,
    high: FloatArray,
    least: FloatArray,
    most: FloatArray,
    parent: IntArray,
) -> FloatArray:
    """Choose flows (n,), and slopes, within intervals from the roots down."""
    n = len(low)
    missing = np.zeros(n)  # what a node must still have more than the least of slope and children
    # A node's demand is known before its children's; each takes what it can when it is met.
    sent = low
    needed = np.zeros(n)
    for p in range(n):
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
    return sent
