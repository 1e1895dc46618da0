"""Clipped slopes along a tree: changes of several children meet in two heaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, Int32Array, IntArray
from gtvcvx.compiled import compiled
from gtvcvx.solvers.forest._nodes import Bounds, Nodes, Own


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

    @staticmethod
    def of(n: int, own: Own) -> Changes:
        """Return the changes of n nodes, and room for those that clipping makes."""
        given = len(own.position)
        size = given + 2 * n
        position, opposite, bend, jump = (np.empty(size) for _ in range(4))
        position[:given], bend[:given], jump[:given] = own
        np.negative(position[:given], out=opposite[:given])
        links = [np.full(size, -1, np.int32) for _ in range(4)]
        return Changes(position, opposite, bend, jump, np.zeros(size, np.bool_), *links)


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

    @staticmethod
    def of(n: int) -> ChildSlopes:
        """Return those of n nodes before anything is known."""
        return ChildSlopes(
            np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.zeros(n), np.zeros(n)
        )


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


@compiled(nogil=True, allocates=False)
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
