"""Maximum flow between many sources and many sinks on one part of a graph: compiled push-relabel.

A node with positive excess is a source, one with negative excess a sink; pushing flow along an arc
moves excess. When no path with residual capacity leads from an excess to a deficit any more, the
nodes that the excess reaches are the smallest set S that maximizes

    excess(S) - capacity of the edges that leave S

for the excesses and the flow at the beginning: all edges that leave S are saturated and S holds
all the excess, so no set does better, and a set that does as well holds all the excess and has
saturated edges around it, hence contains S.

Only the first phase of the method is needed for that: excess that cannot reach a deficit stays
where it is. The labels are exact at first and from time to time; the highest node goes first; when
no node is left at some height, all nodes above are cut off from the deficits [2]_.

Excess, flow and capacities are 64-bit integers, so that nothing is ever lost or made up by
rounding. The nodes of a part are given as a list, and arcs out of the part must not be live: many
parts are solved in turn, or on several threads, on the same arrays.

References
----------
.. [1] A. V. Goldberg, R. E. Tarjan, "A new approach to the maximum-flow problem", J. ACM 35, 1988.
.. [2] B. V. Cherkassky, A. V. Goldberg, "On implementing the push-relabel method for the maximum
   flow problem", Algorithmica 19, 1997.
"""

from __future__ import annotations

import numpy as np

from verify._arrays import BoolArray, Int32Array, IntArray
from verify._compiled import compiled
from verify.flows._network import Network, Scratch

# Work of relabeling a node beyond its arcs, and of a node in a sweep [2].
_RELABEL_WORK, _NODE_WORK = 12, 6

#: Numbers that tell where a search is.
SEARCH = 4
#: It has not begun.
BEGIN = -2
#: More work than there will ever be.
ENDLESS = 1 << 62


@compiled(allocates=False, inner=True)
def label_exactly(nodes: Int32Array, network: Network, work: Scratch) -> int:
    """Set the heights to the residual distances to a deficit, ``len(nodes)`` where there is none.

    Returns the number of nodes that reach a deficit; ``work.queue`` lists them by height.
    """
    start, stop, head = network.start, network.stop, network.head
    capacity, residual, excess = network.capacity, network.residual, network.excess
    height, current, queue = work.height, work.current, work.queue
    far = len(nodes)
    last = 0
    for v in nodes:
        current[v] = start[v]
        if excess[v] < 0:
            height[v] = 0
            queue[last] = v
            last += 1
        else:
            height[v] = far
    first = 0
    while first < last:
        v = queue[first]
        first += 1
        above = height[v] + 1
        for arc in range(start[v], stop[v]):
            w = head[arc]
            if height[w] == far and residual[arc] < 2 * capacity[arc]:
                height[w] = above
                queue[last] = w
                last += 1
    return last


@compiled(allocates=False, inner=True)
def _fill_buckets(
    nodes: Int32Array, reached: int, excess: IntArray, work: Scratch
) -> tuple[int, int]:
    """List the nodes that reach a deficit by height, and those with excess once more.

    Returns the largest height of a node with excess (-1 if there is none), and of any node.
    """
    height, next_active, after, before = work.height, work.next_active, work.after, work.before
    active, level = work.active, work.level
    for h in range(len(nodes)):
        active[h] = -1
        level[h] = -1
    top_active = -1
    top = height[work.queue[reached - 1]] if reached else 0
    for k in range(reached):
        v = work.queue[k]
        h = height[v]
        before[v] = -1
        after[v] = level[h]
        if level[h] >= 0:
            before[level[h]] = v
        level[h] = v
        if excess[v] > 0:
            next_active[v] = active[h]
            active[h] = v
            top_active = max(top_active, h)
    return top_active, top


@compiled(allocates=False, inner=True)
def _give_up_above(h: int, top: int, far: int, work: Scratch) -> None:
    """No node is left at height h: those above, up to top, are cut off from all deficits."""
    for g in range(h + 1, top + 1):
        w = work.level[g]
        while w >= 0:
            work.height[w] = far
            w = work.after[w]
        work.level[g] = -1
        work.active[g] = -1


@compiled(nogil=True)
def push_relabel(nodes: Int32Array, network: Network, work: Scratch, interval: int) -> None:
    """Bring as much excess as possible to the deficits, within one part of the graph.

    Parameters
    ----------
    nodes : (k,)
        Nodes of the part; their live arcs stay within it.
    network : Network
        Its residual capacities and excesses are updated in place.
    work : Scratch
        Its second group may be as short as k.
    interval : int
        Labels are made exact again after so many times the work of one sweep over the part.
    """
    search = np.empty(SEARCH, np.int64)
    search[0] = BEGIN
    discharge(nodes, network, work, interval, search, ENDLESS)


@compiled(allocates=False, inner=True)
def discharge(
    nodes: Int32Array,
    network: Network,
    work: Scratch,
    interval: int,
    search: IntArray,
    budget: int,
) -> int:
    """Do what `push_relabel` does, or a piece of it; return what is left of the budget.

    It ends when no excess can be brought to a deficit any more, with ``search[0]`` negative, or
    when as much work is done as the budget says; then another call goes on where this one ended.

    ``search``, (SEARCH,), and ``work`` are what one piece hands on to the next. At first
    ``search[0]`` is BEGIN; later it is the largest height of a node with excess, followed by that
    of any node, the work since labels were exact, and that after which they are made exact again.

    Calls cost more than what is done for one node; so the pushes, the relabeling and the lists
    stand in one loop.
    """
    start, stop, head, mate = network.start, network.stop, network.head, network.mate
    residual, excess = network.residual, network.excess
    height, current, next_active = work.height, work.current, work.next_active
    active, level, after, before = work.active, work.level, work.after, work.before
    far = len(nodes)
    # One place for exact labels: each would be compiled anew.
    stale = search[0] == BEGIN
    top_active, top, done, exact_after = search[0], search[1], search[2], search[3]
    if stale:
        sweep = _NODE_WORK * far
        for v in nodes:
            sweep += stop[v] - start[v]
        done, exact_after = 0, interval * sweep
    pause = min(exact_after, done + budget)
    budget += done
    while stale or top_active >= 0:
        if stale:
            reached = label_exactly(nodes, network, work)
            top_active, top = _fill_buckets(nodes, reached, excess, work)
            stale = False
            if done >= budget:
                break
            continue
        h = top_active
        v = active[h]
        if v < 0:
            top_active -= 1
            continue
        active[h] = next_active[v]
        left = excess[v]
        arc, end = current[v], stop[v]
        while arc < end:  # push down, until nothing is left or all arcs have been tried
            w = head[arc]
            if residual[arc] > 0 and height[w] == h - 1:
                amount = min(left, residual[arc])
                residual[arc] -= amount
                residual[mate[arc]] += amount
                if excess[w] <= 0 and excess[w] + amount > 0:
                    next_active[w] = active[h - 1]
                    active[h - 1] = w
                excess[w] += amount
                left -= amount
                if left == 0:
                    break
            arc += 1
        excess[v] = left
        current[v] = arc
        if left == 0:
            continue
        lowest = far
        for arc in range(start[v], end):  # relabel, and point v at the arc to push along
            if residual[arc] > 0 and height[head[arc]] + 1 < lowest:
                lowest = height[head[arc]] + 1
                current[v] = arc
        done += _RELABEL_WORK + end - start[v]
        if before[v] >= 0:
            after[before[v]] = after[v]
        else:
            level[h] = after[v]
        if after[v] >= 0:
            before[after[v]] = before[v]
        if level[h] < 0:
            height[v] = far
            _give_up_above(h, top, far, work)
            top = h - 1
            top_active = h - 1
        else:
            height[v] = lowest
            if lowest < far:
                before[v] = -1
                after[v] = level[lowest]
                if level[lowest] >= 0:
                    before[level[lowest]] = v
                level[lowest] = v
                next_active[v] = active[lowest]
                active[lowest] = v
                top_active = lowest
                top = max(top, lowest)
        if done > pause:
            if done > exact_after:
                budget -= done + exact_after
                done = 0
                pause = min(exact_after, budget)
                stale = True
            elif done >= budget:
                break
    search[0], search[1], search[2], search[3] = top_active, top, done, exact_after
    return budget - done


@compiled(allocates=False, inner=True)
def reach_from_excess(
    nodes: Int32Array, network: Network, reached: BoolArray, queue: Int32Array
) -> int:
    """Mark in ``reached`` the nodes of a part that some excess reaches; return their number."""
    start, stop, head = network.start, network.stop, network.head
    last = 0
    for v in nodes:
        reached[v] = network.excess[v] > 0
        if reached[v]:
            queue[last] = v
            last += 1
    first = 0
    while first < last:
        v = queue[first]
        first += 1
        for arc in range(start[v], stop[v]):
            w = head[arc]
            if network.residual[arc] > 0 and not reached[w]:
                reached[w] = True
                queue[last] = w
                last += 1
    return last
