"""Maximum flow with exact integer capacities: highest-label push-relabel, compiled.

Only the first phase is run. Supplies are injected at the nodes, everything that can reach the sink
is brought there, and what cannot stays where it is as excess. If nothing stays, the preflow is a
flow; in any case the nodes that the excess can still reach form the smallest minimizing set

    A in argmin { cut(A) - supply(A) : A does not contain the sink }.

Why smallest: the set R reached by the excess has all its leaving arcs saturated, so
cut(R) - supply(R) = -(total excess), which no set can go below; and any set B that attains this
value must hold all the excess and have saturated leaving arcs, hence contains R.

All arithmetic is in 64-bit integers, so the answer is exact for the integers it is given. Nobody
has to believe it: a flow and a set are both witnesses that `verify.kernel.partitions` checks.

References
----------
.. [1] A. V. Goldberg and R. E. Tarjan, "A new approach to the maximum-flow problem", J. ACM 35
   (1988).
.. [2] B. V. Cherkassky and A. V. Goldberg, "On implementing the push-relabel method for the maximum
   flow problem", Algorithmica 19 (1997): gap and global relabeling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from verify._arrays import BoolArray, IntArray

__all__ = ["FlowGraph", "Routing"]

#: Total supply and every capacity stay below this, so that no residual capacity overflows.
LARGEST = 1 << 61


@dataclass(frozen=True)
class Routing:
    """Result of :meth:`FlowGraph.route`.

    Attributes
    ----------
    unrouted
        Supply that cannot reach the sink: minus the least value of cut(A) - supply(A).
    flow
        (m,) net flow along each edge from its first to its second end. A valid flow of all supply
        exactly when ``unrouted`` is 0.
    source_side
        (n,) the smallest set attaining that least value; empty when all supply is routed.
    """

    unrouted: int
    flow: IntArray
    source_side: BoolArray


class FlowGraph:
    """Arc structure of a graph, built once and used for many flows.

    Parameters
    ----------
    n_nodes
        Number of nodes n.
    edges
        (m, 2) ends of the edges, integers in 0..n-1.
    """

    def __init__(self, n_nodes: int, edges: IntArray) -> None:
        self.n_nodes = int(n_nodes)
        self.edges = np.ascontiguousarray(edges, dtype=np.int64).reshape(-1, 2)
        self._start, self._head, self._arc = _build_arcs(self.n_nodes, self.edges)
        self._mate = self._arc[np.arange(2 * len(self.edges)) ^ 1][_inverse(self._arc)]

    def route(
        self,
        capacities: IntArray,
        supplies: IntArray,
        sink: int,
        reverse: IntArray | None = None,
    ) -> Routing:
        """Bring as much supply as possible to the sink.

        Parameters
        ----------
        capacities
            (m,) nonnegative capacities from the first to the second end of each edge.
        supplies
            (n,) nonnegative supplies; the one of the sink is ignored.
        sink
            Index of the sink.
        reverse
            (m,) capacities from the second to the first end; default: the same as ``capacities``.

        Returns
        -------
        Routing

        Raises
        ------
        OverflowError
            If the supplies add up to 2^61 or more, or a capacity is that large.
        """
        backward = capacities if reverse is None else reverse
        excess = np.array(supplies, dtype=np.int64)
        excess[sink] = 0
        if float(excess.sum(dtype=np.float64)) >= LARGEST or any(
            c.size and int(c.max()) >= LARGEST for c in (capacities, backward)
        ):
            raise OverflowError("supplies and capacities must stay below 2^61")
        residual = np.empty(2 * len(self.edges), dtype=np.int64)
        residual[self._arc[0::2]] = capacities
        residual[self._arc[1::2]] = backward
        _push_relabel(self._start, self._head, self._mate, residual, excess, sink)
        unrouted = int(excess.sum()) - int(excess[sink])
        excess[sink] = 0
        side = _reached(self._start, self._head, residual, excess)
        return Routing(unrouted, capacities - residual[self._arc[0::2]], side)


def _inverse(permutation: IntArray) -> IntArray:
    inverse = np.empty_like(permutation)
    inverse[permutation] = np.arange(len(permutation))
    return inverse


@njit(cache=True)
def _build_arcs(n: int, edges: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Arcs grouped by tail: start (n+1,), head (2m,), and where arcs 2e, 2e+1 of edge e went."""
    m = len(edges)
    start = np.zeros(n + 1, np.int64)
    for e in range(m):
        start[edges[e, 0] + 1] += 1
        start[edges[e, 1] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    head = np.empty(2 * m, np.int64)
    place = np.empty(2 * m, np.int64)
    for e in range(m):
        for side in range(2):
            v = edges[e, side]
            place[2 * e + side] = fill[v]
            head[fill[v]] = edges[e, 1 - side]
            fill[v] += 1
    return start, head, place


@njit(cache=True)
def _distances(
    start: IntArray,
    head: IntArray,
    mate: IntArray,
    residual: IntArray,
    sink: int,
    height: IntArray,
    queue: IntArray,
) -> None:
    """Residual distance of every node to the sink; n where there is no path."""
    n = len(height)
    height[:] = n
    height[sink] = 0
    queue[0] = sink
    first, last = 0, 1
    while first < last:
        v = queue[first]
        first += 1
        for arc in range(start[v], start[v + 1]):
            w = head[arc]
            if height[w] == n and residual[mate[arc]] > 0:
                height[w] = height[v] + 1
                queue[last] = w
                last += 1


@njit(cache=True)
def _rebuild_buckets(
    height: IntArray,
    excess: IntArray,
    sink: int,
    active: IntArray,
    next_active: IntArray,
    level: IntArray,
    after: IntArray,
    before: IntArray,
) -> tuple[int, int]:
    """Refill the lists of active nodes and of all nodes by height; return the two top heights."""
    n = len(height)
    active[:] = -1
    level[:] = -1
    top_active, top = -1, 0
    for v in range(n):
        h = height[v]
        if v == sink or h >= n:
            continue
        before[v] = -1
        after[v] = level[h]
        if level[h] >= 0:
            before[level[h]] = v
        level[h] = v
        top = max(top, h)
        if excess[v] > 0:
            next_active[v] = active[h]
            active[h] = v
            top_active = max(top_active, h)
    return top_active, top


@njit(cache=True)
def _push_relabel(
    start: IntArray,
    head: IntArray,
    mate: IntArray,
    residual: IntArray,
    excess: IntArray,
    sink: int,
) -> None:
    """First phase, in place on ``residual`` and ``excess``; nodes at height n are given up."""
    n = len(excess)
    height = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    current = start[:-1].copy()
    active, next_active = np.empty(n, np.int64), np.empty(n, np.int64)
    level, after, before = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    _distances(start, head, mate, residual, sink, height, queue)
    lists = (active, next_active, level, after, before)
    top_active, top = _rebuild_buckets(height, excess, sink, *lists)
    work, limit = 0, 6 * n + len(head)
    while top_active >= 0:
        v = active[top_active]
        if v < 0:
            top_active -= 1
            continue
        active[top_active] = next_active[v]
        h = height[v]
        lowest = n
        for arc in range(current[v], start[v + 1]):  # push along admissible arcs
            if residual[arc] > 0 and height[head[arc]] == h - 1:
                w = head[arc]
                amount = min(excess[v], residual[arc])
                residual[arc] -= amount
                residual[mate[arc]] += amount
                if excess[w] == 0 and w != sink:
                    next_active[w] = active[h - 1]
                    active[h - 1] = w
                excess[w] += amount
                excess[v] -= amount
                if excess[v] == 0:
                    current[v] = arc
                    break
        if excess[v] == 0:
            continue
        for arc in range(start[v], start[v + 1]):  # relabel
            if residual[arc] > 0 and height[head[arc]] + 1 < lowest:
                lowest = height[head[arc]] + 1
                current[v] = arc
        work += 12 + start[v + 1] - start[v]
        if before[v] >= 0:
            after[before[v]] = after[v]
        else:
            level[h] = after[v]
        if after[v] >= 0:
            before[after[v]] = before[v]
        if level[h] < 0:  # gap: nothing at h or above can reach the sink any more
            height[v] = n
            for g in range(h + 1, top + 1):
                w = level[g]
                while w >= 0:
                    height[w] = n
                    w = after[w]
                level[g] = -1
                active[g] = -1
            top = h - 1
            top_active = min(top_active, h - 1)
        else:
            height[v] = lowest
            if lowest < n:
                before[v] = -1
                after[v] = level[lowest]
                if level[lowest] >= 0:
                    before[level[lowest]] = v
                level[lowest] = v
                next_active[v] = active[lowest]
                active[lowest] = v
                top_active = lowest
                top = max(top, lowest)
        if work > limit:
            work = 0
            _distances(start, head, mate, residual, sink, height, queue)
            current[:] = start[:-1]
            top_active, top = _rebuild_buckets(height, excess, sink, *lists)


@njit(cache=True)
def _reached(
    start: IntArray,
    head: IntArray,
    residual: IntArray,
    excess: IntArray,
) -> BoolArray:
    """Nodes that some excess can reach along arcs with residual capacity."""
    n = len(excess)
    seen = np.zeros(n, np.bool_)
    stack = np.empty(n, np.int64)
    size = 0
    for v in range(n):
        if excess[v] > 0:
            seen[v] = True
            stack[size] = v
            size += 1
    while size > 0:
        size -= 1
        v = stack[size]
        for arc in range(start[v], start[v + 1]):
            w = head[arc]
            if residual[arc] > 0 and not seen[w]:
                seen[w] = True
                stack[size] = w
                size += 1
    return seen
