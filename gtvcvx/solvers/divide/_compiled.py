"""Divide clusters at their minimizers, one maximum flow for each: compiled.

The flows are those of `verify.flows._push_relabel`, on parts of one residual network: arcs that
leave a part are retired when it is cut off, so that many parts are divided in turn, or on several
threads, on the same arrays.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, Int32Array, IntArray
from gtvcvx.compiled import compiled
from gtvcvx.solvers.divide._network import Clusters, Demands
from verify.flows._network import Network, Scratch
from verify.flows._push_relabel import BEGIN, SEARCH, discharge, reach_from_excess

# Sources and sinks lie close together: labels stay good for long.
_UPDATE_INTERVAL = 4
# Work of all that is done at a node but for the flow, in the units of `discharge`.
_NODE_WORK = 12
#: Numbers that tell how far `divide` is: how many clusters are through, whether the flow of the
#: next is being routed, and how far that is.
PROGRESS = 2 + SEARCH


@compiled(allocates=False, inner=True)
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


@compiled(allocates=False, inner=True)
def reverse(nodes: Int32Array, network: Network) -> None:
    """Exchange excess and deficits, and the directions of all flows, within a part."""
    for v in nodes:
        network.excess[v] = -network.excess[v]
        for arc in range(network.start[v], network.stop[v]):
            network.residual[arc] = 2 * network.capacity[arc] - network.residual[arc]


@compiled(nogil=True, allocates=False)
def reverse_part(nodes: Int32Array, network: Network) -> None:
    """Do what `reverse` does, for Python."""
    reverse(nodes, network)


@compiled(allocates=False, inner=True)
def _cut(nodes: Int32Array, upper: BoolArray, network: Network) -> None:
    """Retire the arcs between the halves of a cluster: their flow is fixed from now on.

    They change places with the last live ones of their node.
    """
    head, mate, directed = network.head, network.mate, network.directed
    capacity, residual = network.capacity, network.residual
    for v in nodes:
        arc, stop = np.int64(network.start[v]), np.int64(network.stop[v])
        while arc < stop:
            if upper[head[arc]] == upper[v]:
                arc += 1
                continue
            stop -= 1
            if arc < stop:
                mate[mate[arc]], mate[mate[stop]] = stop, arc
                head[arc], head[stop] = head[stop], head[arc]
                mate[arc], mate[stop] = mate[stop], mate[arc]
                directed[arc], directed[stop] = directed[stop], directed[arc]
                capacity[arc], capacity[stop] = capacity[stop], capacity[arc]
                residual[arc], residual[stop] = residual[stop], residual[arc]
        network.stop[v] = stop


@compiled(allocates=False, inner=True)
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
    for k in range(back):  # of whole arrays it would be made sure that they do not overlap
        nodes[front + k] = spare[k]


@compiled(nogil=True, allocates=False)
def divide(
    chosen: IntArray,
    clusters: Clusters,
    order: Int32Array,
    data: Demands,
    network: Network,
    work: Scratch,
    upper: BoolArray,
    sizes: IntArray,
    progress: IntArray,
    budget: int,
) -> bool:
    """Split the chosen clusters at their minimizers; other clusters are not touched.

    ``clusters.threshold`` is updated, ``sizes[c]`` becomes the number of nodes in the upper half of
    cluster c, 0 if it does not split, and the upper half comes first in ``order``.

    In a lower half the deficits that are left lie together at its upper border, and the shift of
    the threshold has spread excess over all of it. Distances are short from the few to the many,
    so the flow is sent backwards there.

    Returns whether all is done. If not, as much work is done as the budget says, in the units of
    `discharge`, and another call goes on where this one ended: ``progress``, (PROGRESS,), zero at
    first, knows.
    """
    search = progress[2:]
    routing = progress[1] != 0
    for place in range(progress[0], len(chosen)):
        c = chosen[place]
        first, last = clusters.first[c], clusters.last[c]
        nodes = order[first:last]
        if not routing:
            clusters.threshold[c] = balance(nodes, data, network.excess, clusters.threshold[c])
            sizes[c] = 0
            budget -= _NODE_WORK * len(nodes)
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
        if not routing:
            if clusters.lower[c]:
                reverse(nodes, network)
            search[0] = BEGIN
        budget = discharge(nodes, network, part, _UPDATE_INTERVAL, search, budget)
        if search[0] >= 0:
            progress[0], progress[1] = place, 1
            return False
        routing = False
        progress[1] = 0
        if clusters.lower[c]:
            reverse(nodes, network)
        size = reach_from_excess(nodes, network, upper, part.queue)
        if 0 < size < len(nodes):
            sizes[c] = size
            _cut(nodes, upper, network)
            _partition(nodes, upper, part.queue)
        if budget <= 0:
            progress[0] = place + 1
            return place + 1 == len(chosen)
    return True
