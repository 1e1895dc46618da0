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

from numba import njit

from gtvcvx._arrays import BoolArray, Int32Array, IntArray
from gtvcvx.solvers.divide._network import Clusters, Demands, Network, Scratch

# Labels are made exact again after so many times the work of one sweep over the part.
UPDATE_INTERVAL = 4
# Work of relabeling a node beyond its arcs, and of a node in a sweep [2].
_RELABEL_WORK, _NODE_WORK = 12, 6


@njit(cache=True, nogil=True)
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
        for arc in range(start[v], stop[v]):
            w = head[arc]
            if height[w] == far and residual[arc] < 2 * capacity[arc]:
                height[w] = height[v] + 1
                queue[last] = w
                last += 1
    return last


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _give_up_above(h: int, top: int, far: int, work: Scratch) -> None:
    """No node is left at height h: those above, up to top, are cut off from all deficits."""
    for g in range(h + 1, top + 1):
        w = work.level[g]
        while w >= 0:
            work.height[w] = far
            w = work.after[w]
        work.level[g] = -1
        work.active[g] = -1


@njit(cache=True, nogil=True)
def push_relabel(nodes: Int32Array, network: Network, work: Scratch) -> None:
    """Bring as much excess as possible to the deficits, within one part of the graph.

    Calls cost more than what is done for one node; so the pushes, the relabeling and the lists
    stand in one loop.

    Parameters
    ----------
    nodes : (k,)
        Nodes of the part; their live arcs stay within it.
    network : Network
        Its residual capacities and excesses are updated in place.
    work : Scratch
        Its second group may be as short as k.
    """
    start, stop, head, mate = network.start, network.stop, network.head, network.mate
    residual, excess = network.residual, network.excess
    height, current, next_active = work.height, work.current, work.next_active
    active, level, after, before = work.active, work.level, work.after, work.before
    far = len(nodes)
    sweep = _NODE_WORK * far
    for v in nodes:
        sweep += stop[v] - start[v]
    done = 0
    reached = label_exactly(nodes, network, work)
    top_active, top = _fill_buckets(nodes, reached, excess, work)
    while top_active >= 0:
        h = top_active
        v = active[h]
        if v < 0:
            top_active -= 1
            continue
        active[h] = next_active[v]
        left = excess[v]
        arc = current[v]
        while arc < stop[v]:  # push down, until nothing is left or all arcs have been tried
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
        for arc in range(start[v], stop[v]):  # relabel, and point v at the arc to push along
            if residual[arc] > 0 and height[head[arc]] + 1 < lowest:
                lowest = height[head[arc]] + 1
                current[v] = arc
        done += _RELABEL_WORK + stop[v] - start[v]
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
        if done > UPDATE_INTERVAL * sweep:
            done = 0
            reached = label_exactly(nodes, network, work)
            top_active, top = _fill_buckets(nodes, reached, excess, work)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def balance(nodes: Int32Array, data: Demands, excess: IntArray, inherited: float) -> float:
    """Return the minimizer t of a cluster whose nodes agree, and move its demands there.

    Excess is demand plus the flow that came in. With the demands b_i - q_i t the excesses add up to
    zero; what rounding leaves over goes to the node with the largest q_i, where it matters least.
    That is not to be done if some demand is beyond its limit: such a node splits off anyway. A
    cluster without q_i > 0 keeps the threshold that it inherits.
    """
    inflow = 0
    total, lost, slope = 0.0, 0.0, 0.0
    for v in nodes:
        inflow += excess[v] - data.demand[v]
        slope += data.curvature[v]
        # Compensated summation: the total may be small beside its terms.
        before = total
        total += data.linear[v]
        part = total - before
        lost += (before - (total - part)) + (data.linear[v] - part)
    if slope == 0.0:
        return inherited
    threshold = (total + lost + inflow * data.unit) / slope
    left, limited, heaviest = 0, False, nodes[0]
    for v in nodes:
        if data.curvature[v] > 0.0:
            wish = (data.linear[v] - data.curvature[v] * threshold) / data.unit
            limited = limited or abs(wish) >= data.limit[v]
            demand = round(min(max(wish, -data.limit[v]), data.limit[v]))
            excess[v] += demand - data.demand[v]
            data.demand[v] = demand
            if data.curvature[v] > data.curvature[heaviest]:
                heaviest = v
        left += excess[v]
    if not limited:
        excess[heaviest] -= left
        data.demand[heaviest] -= left
    return threshold


@njit(cache=True, nogil=True)
def _reverse(nodes: Int32Array, network: Network) -> None:
    """Exchange excess and deficits, and the directions of all flows, within a part."""
    for v in nodes:
        network.excess[v] = -network.excess[v]
        for arc in range(network.start[v], network.stop[v]):
            network.residual[arc] = 2 * network.capacity[arc] - network.residual[arc]


@njit(cache=True, nogil=True)
def _exchange_arcs(a: int, b: int, network: Network) -> None:
    """Exchange the places of two arcs out of one node."""
    if a == b:
        return
    head, mate, edge = network.head, network.mate, network.edge
    capacity, residual = network.capacity, network.residual
    mate[mate[a]], mate[mate[b]] = b, a
    head[a], head[b] = head[b], head[a]
    mate[a], mate[b] = mate[b], mate[a]
    edge[a], edge[b] = edge[b], edge[a]
    capacity[a], capacity[b] = capacity[b], capacity[a]
    residual[a], residual[b] = residual[b], residual[a]


@njit(cache=True, nogil=True)
def _cut(nodes: Int32Array, upper: BoolArray, network: Network) -> None:
    """Retire the arcs between the halves of a cluster: their flow is fixed from now on."""
    for v in nodes:
        arc, stop = network.start[v], network.stop[v]
        while arc < stop:
            if upper[network.head[arc]] == upper[v]:
                arc += 1
            else:
                stop -= 1
                _exchange_arcs(arc, stop, network)
        network.stop[v] = stop


@njit(cache=True, nogil=True)
def _partition(nodes: Int32Array, upper: BoolArray, spare: Int32Array) -> None:
    """Bring the upper half of the nodes to the front; both halves keep their order."""
    front, back = 0, 0
    for v in nodes:
        if upper[v]:
            nodes[front] = v
            front += 1
        else:
            spare[back] = v
            back += 1
    nodes[front:] = spare[:back]


@njit(cache=True, nogil=True)
def divide(
    chosen: IntArray,
    clusters: Clusters,
    order: Int32Array,
    data: Demands,
    network: Network,
    work: Scratch,
    upper: BoolArray,
    sizes: IntArray,
) -> None:
    """Split the chosen clusters at their minimizers; other clusters are not touched.

    ``clusters.threshold`` is updated, ``sizes[c]`` becomes the number of nodes in the upper half of
    cluster c, 0 if it does not split, and the upper half comes first in ``order``.

    In a lower half the deficits that are left lie together at its upper border, and the shift of
    the threshold has spread excess over all of it. Distances are short from the few to the many,
    so the flow is sent backwards there.
    """
    for c in chosen:
        first, last = clusters.first[c], clusters.last[c]
        nodes = order[first:last]
        clusters.threshold[c] = balance(nodes, data, network.excess, clusters.threshold[c])
        sizes[c] = 0
        if len(nodes) == 1:
            continue
        part = Scratch(
            work.height,
            work.current,
            work.next_active,
            work.after,
            work.before,
            work.queue[first:last],
            work.active[first:last],
            work.level[first:last],
        )
        if clusters.lower[c]:
            _reverse(nodes, network)
        push_relabel(nodes, network, part)
        if clusters.lower[c]:
            _reverse(nodes, network)
        size = reach_from_excess(nodes, network, upper, part.queue)
        if 0 < size < len(nodes):
            sizes[c] = size
            _cut(nodes, upper, network)
            _partition(nodes, upper, part.queue)
