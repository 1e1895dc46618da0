"""Clipped slopes along a tree: changes of each subtree in order, in arrays side by side.

Positions below a node are contiguous, so that what is still to be met lies on a stack: the changes
of one subtree after those of another, each in order, with room at either end. Those of several
children are merged when their parent is met, the shorter into the longer one, from the end where
fewer have to move. Arrays move fast and lie near in memory; where too many moves are needed, heaps
take over (`gtvcvx.solvers.forest._tree`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import compiled
from gtvcvx.solvers.forest._nodes import Bounds, Nodes, Own

# Moves a node, from where on heaps are faster: one takes about 2 ns, a node in heaps 300 to 600.
MOST_MOVES = 200


class Runs(NamedTuple):
    """Changes of clipped slopes of the subtrees that are still to be met.

    Attributes
    ----------
    position, bend, jump : (S,)
        Of all runs.
    spare_position, spare_bend, spare_jump : (S,)
        For the shorter one of two that are merged.
    begin, end : (n,)
        Where each run is.
    parent : (n,)
        The position at which it is met.
    below, above : (n,)
        The slope left and right of all its changes.
    state : (3,)
        The number of runs; what was moved so far, and may be.
    """

    position: FloatArray
    bend: FloatArray
    jump: FloatArray
    spare_position: FloatArray
    spare_bend: FloatArray
    spare_jump: FloatArray
    begin: IntArray
    end: IntArray
    parent: IntArray
    below: FloatArray
    above: FloatArray
    state: IntArray

    @staticmethod
    def of(n: int, own: int) -> Runs:
        """Return room for a tree with n nodes that have so many changes of their own."""
        # Each node adds two changes; room at the fronts is half of that, and leaves have one more.
        size = 2 * (own + 2 * n) + 2
        return Runs(
            np.empty(size),
            np.empty(size),
            np.empty(size),
            np.empty(size),
            np.empty(size),
            np.empty(size),
            np.empty(n, np.int64),
            np.empty(n, np.int64),
            np.empty(n, np.int64),
            np.empty(n),
            np.empty(n),
            np.zeros(3, np.int64),
        )


@compiled(allocates=False, inner=True)
def _merge(r: int, s: int, runs: Runs) -> int:
    """Merge run s, the next one on the stack, into run r; return how many changes have moved."""
    position, bend, jump = runs.position, runs.bend, runs.jump
    spare, spare_bend, spare_jump = runs.spare_position, runs.spare_bend, runs.spare_jump
    first, middle, start, stop = runs.begin[r], runs.end[r], runs.begin[s], runs.end[s]
    left, right = middle - first, stop - start
    if right <= left:
        for j in range(right):
            k = start + j
            spare[j], spare_bend[j], spare_jump[j] = position[k], bend[k], jump[k]
        i, j, to = middle - 1, right - 1, middle + right - 1
        runs.end[r] = to + 1
        while j >= 0:
            if i >= first and position[i] > spare[j]:
                position[to], bend[to], jump[to] = position[i], bend[i], jump[i]
                i -= 1
            else:
                position[to], bend[to], jump[to] = spare[j], spare_bend[j], spare_jump[j]
                j -= 1
            to -= 1
        return right + middle + right - 1 - to
    for j in range(left):
        k = first + j
        spare[j], spare_bend[j], spare_jump[j] = position[k], bend[k], jump[k]
    i, j, to = start, 0, start - left
    runs.begin[r], runs.end[r] = to, stop
    while j < left:
        if i < stop and position[i] < spare[j]:
            position[to], bend[to], jump[to] = position[i], bend[i], jump[i]
            i += 1
        else:
            position[to], bend[to], jump[to] = spare[j], spare_bend[j], spare_jump[j]
            j += 1
        to += 1
    return left + to - (start - left)


@compiled(allocates=False, inner=True)
def _met(low: int, count: int, runs: Runs) -> int:
    """Merge so many runs from run low on into that one, in pairs; return how many have moved."""
    moves = 0
    while count > 1:
        pairs = 0
        for t in range(0, count, 2):
            r = low + t
            if t + 1 < count:
                moves += _merge(r, r + 1, runs)
            runs.begin[low + pairs], runs.end[low + pairs] = runs.begin[r], runs.end[r]
            pairs += 1
        count = pairs
    return moves


@compiled(allocates=False, inner=True)
def _insert(k: int, own: Own, base: int, r: int, runs: Runs) -> int:
    """Put change k of a node into run r, which begins at base or later; return the moves."""
    position, bend, jump = runs.position, runs.bend, runs.jump
    x, first, last = own.position[k], runs.begin[r], runs.end[r]
    if first > base and last > first and x < position[(first + last) // 2]:
        to = first - 1
        while to + 1 < last and position[to + 1] < x:
            position[to], bend[to], jump[to] = position[to + 1], bend[to + 1], jump[to + 1]
            to += 1
        runs.begin[r] = first - 1
        moves = to - (first - 1)
    else:
        to = last
        while to > first and position[to - 1] > x:
            position[to], bend[to], jump[to] = position[to - 1], bend[to - 1], jump[to - 1]
            to -= 1
        runs.end[r] = last + 1
        moves = last - to
    position[to], bend[to], jump[to] = x, own.bend[k], own.jump[k]
    return moves


@compiled(allocates=False, inner=True)
def _clip_below(p: int, r: int, nodes: Nodes, runs: Runs, c: float) -> float:
    """Clip the slope at position p at -c; return where that is, -inf where it is above it.

    There is room for a change before the run.
    """
    position, bend, jump = runs.position, runs.bend, runs.jump
    q, b, below = nodes.q[p], nodes.b[p], runs.below[r]
    above = runs.above[r] + nodes.rise[p]
    first, last = runs.begin[r], runs.end[r]
    if q == 0.0 and (below - b >= -c or first == last):
        runs.below[r] = below - b
        return -np.inf
    runs.below[r] = -c
    slope, step = q, 0.0
    x = position[first] if first < last else np.inf
    value = q * x - b + below if first < last else np.inf
    if value >= -c:
        x = min((b - below - c) / q, x)
    else:
        while True:
            after = value + jump[first]
            slope += bend[first]
            first += 1
            if after >= -c:
                step = after + c
                break
            value = after
            if first == last:
                if q > 0.0:
                    slope = q
                    x = max((b - above - c) / q, x)
                else:  # rounding alone leads beyond the last change
                    slope, step = 0.0, max(above - b + c, 0.0)
                break
            further = value + slope * (position[first] - x)
            if further >= -c:
                x = min(x + (-c - value) / slope, position[first])
                break
            value, x = further, position[first]
    first -= 1
    position[first], bend[first], jump[first] = x, slope, step
    runs.begin[r] = first
    return x


@compiled(allocates=False, inner=True)
def _clip_above(p: int, r: int, nodes: Nodes, runs: Runs, c: float) -> float:
    """Clip the slope at position p at c, after `_clip_below`; inf where it is below it."""
    position, bend, jump = runs.position, runs.bend, runs.jump
    q, b = nodes.q[p], nodes.b[p]
    above = runs.above[r] + nodes.rise[p]
    first, last = runs.begin[r], runs.end[r] - 1
    if q == 0.0 and (above - b <= c or last < first):
        runs.above[r] = above - b
        return np.inf
    runs.above[r] = c
    slope, step, x = q, 0.0, position[last]
    value = q * x - b + above
    if value <= c:
        x = max((c + b - above) / q, x)
    else:
        while True:
            before = value - jump[last]
            slope -= bend[last]
            last -= 1
            if before <= c:
                step = c - before
                break
            value = before
            if last < first:  # rounding alone leads beyond the first change
                slope, step = 0.0, max(c - runs.below[r], 0.0)
                break
            further = value - slope * (x - position[last])
            if further <= c:
                x = max(x - (value - c) / slope, position[last])
                break
            value, x = further, position[last]
    last += 1
    position[last], bend[last], jump[last] = x, -slope, step
    runs.end[r] = last + 1
    return x


@compiled(allocates=False, inner=True)
def _room(base: int, r: int, runs: Runs) -> int:
    """Move run r away from base if there is no room between; return how many have moved."""
    position, bend, jump = runs.position, runs.bend, runs.jump
    first, last = runs.begin[r], runs.end[r]
    if first == last:
        runs.begin[r] = runs.end[r] = base + 1
        return 0
    if first > base:
        return 0
    # Half of its length: the moves of all times together are as many as what was put there, twice.
    by = 1 + (last - first) // 2
    for k in range(last - 1, first - 1, -1):
        position[k + by], bend[k + by], jump[k + by] = position[k], bend[k], jump[k]
    runs.begin[r], runs.end[r] = first + by, last + by
    return last - first


@compiled(nogil=True, allocates=False)
def run_bounds(
    begin: int,
    start: int,
    stop: int,
    nodes: Nodes,
    indptr: IntArray,
    own: Own,
    runs: Runs,
    bounds: Bounds,
) -> bool:
    """Clip the slopes of the positions start .. stop - 1 of a tree whose first one is begin.

    The own changes of position p are ``indptr[p] .. indptr[p + 1] - 1``. Returns whether heaps are
    to do all of the tree instead.
    """
    if start == begin:
        runs.state[0] = runs.state[1] = 0
    count, moves = runs.state[0], runs.state[1]
    size = len(runs.position)
    for p in range(start, stop):
        r, below, above = count, 0.0, 0.0
        while r > 0 and runs.parent[r - 1] == p:
            r -= 1
            below += runs.below[r]
            above += runs.above[r]
        base = runs.end[r - 1] if r > 0 else 0
        if r == count:
            runs.begin[r] = runs.end[r] = base
        else:
            moves += _met(r, count - r, runs)
        runs.below[r], runs.above[r] = below, above
        added = indptr[p + 1] - indptr[p]
        # Beside what is added, a run may move by half of its length.
        most = runs.end[r] + added + (runs.end[r] - runs.begin[r] + added) // 2 + 2
        if most > size or moves > MOST_MOVES * (p + 1 - begin):
            return True
        for k in range(indptr[p], indptr[p + 1]):
            moves += _insert(k, own, base, r, runs)
        moves += _room(base, r, runs)
        if nodes.parent[p] < 0:
            x = _clip_below(p, r, nodes, runs, 0.0)
            if x == -np.inf:
                x = runs.position[runs.begin[r]] if runs.begin[r] < runs.end[r] else 0.0
            bounds.low[p] = bounds.high[p] = x
            count = r
            continue
        c = nodes.capacity[p]
        bounds.low[p] = _clip_below(p, r, nodes, runs, c)
        bounds.high[p] = _clip_above(p, r, nodes, runs, c)
        runs.parent[r] = nodes.parent[p]
        count = r + 1
    runs.state[0], runs.state[1] = count, moves
    return False
