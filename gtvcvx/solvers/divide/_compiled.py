"""Divide clusters at their minimizers, one maximum flow for each: compiled.

The flows are those of `verify.flows._push_relabel`, on parts of one residual network: arcs that
leave a part are retired when it is cut off, so that many parts are divided in turn, or on several
threads, on the same arrays.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, Int32Array, IntArray
from gtvcvx.compiled import compiled
from gtvcvx.solvers.divide._network import Changes, Clusters, Demands, Parts
from verify.flows._network import Network, Scratch
from verify.flows._push_relabel import BEGIN, SEARCH, discharge, reach_from_excess

# Sources and sinks lie close together: labels stay good for long.
_UPDATE_INTERVAL = 4
# Work of all that is done at a node, or a change, but for the flow, in the units of `discharge`.
_NODE_WORK, _CHANGE_WORK = 12, 6
#: What is being routed for a cluster: nothing, what is asked of it at least, or at most.
NOTHING, _LEAST, MOST = 0, 1, 2
#: Numbers that tell how far `divide` is: how many clusters are through, what is being routed for
#: the next, whether demands there have slack, and how far the flow is.
PROGRESS = 3 + SEARCH


@compiled(allocates=False, inner=True)
def _sums(
    nodes: Int32Array, curvature: FloatArray, linear: FloatArray
) -> tuple[float, float, float]:
    """Return the sums of curvatures, and of linear parts and what rounding took from these."""
    slope, total, lost = 0.0, 0.0, 0.0
    for v in nodes:
        slope += curvature[v]
        # Compensated summation: the total may be small beside its terms.
        before = total
        total += linear[v]
        part = total - before
        lost += (before - (total - part)) + (linear[v] - part)
    return slope, total, lost


@compiled(allocates=False, inner=True)
def _minimizer(
    slope: float,
    total: float,
    lost: float,
    changes: Changes,
    begin: int,
    end: int,
    low: float,
    high: float,
) -> float:
    """Return where ``slope t - (total + lost)``, and the changes, come to zero between bounds.

    Curvatures that bend there and back leave rounding: what it makes of them is kept between
    neighbouring changes.
    """
    before = low
    for k in range(begin, end):
        at, bend = changes.position[k], changes.bend[k]
        if slope * at - (total + lost) >= 0.0:
            return min(max((total + lost) / slope, before), at) if slope > 0.0 else at
        slope += bend
        part = bend * at - changes.jump[k]
        last = total
        total += part
        moved = total - last
        lost += (last - (total - moved)) + (part - moved)
        before = at
        if slope * at - (total + lost) >= 0.0:
            return at
    return min(max((total + lost) / slope, before), high) if slope > 0.0 else before


@compiled(allocates=False, inner=True)
def _sum_changes(t: float, data: Demands, changes: Changes, begin: int, end: int) -> None:
    """Add up, node by node, what changes left of t do to slopes at t, and the jumps there."""
    for k in range(begin, end):
        v, at, bend = changes.node[k], changes.position[k], changes.bend[k]
        if at > t:
            break
        if at < t:
            data.slope[v] += bend * (t - at) + changes.jump[k]
            data.bent[v] += bend
        else:
            data.jump[v] += changes.jump[k]


@compiled(allocates=False, inner=True)
def balance(
    c: int, nodes: Int32Array, clusters: Clusters, data: Demands, changes: Changes, excess: IntArray
) -> bool:
    """Find the minimizer t of cluster c if its nodes agree, and move their demands there.

    Excess is demand plus the flow that came in. With the demands b_i - q_i t the excesses add up to
    zero; what rounding leaves over goes to the node with the largest curvature, where it matters
    least. Where slopes jump at t excess is the least that there may be, adds up to at most zero,
    and with all the slack to at least zero. None of this is to be where some demand is cut off:
    such a node splits off anyway, or has more slack than it can use. A cluster without slopes keeps
    the threshold that it inherits.

    Returns whether some demand has slack.
    """
    begin, end = clusters.begin[c], clusters.end[c]
    inflow = 0
    for v in nodes:
        inflow += excess[v] - data.demand[v]
    slope, total, lost = _sums(nodes, data.curvature, data.linear)
    if slope == 0.0 and begin == end:
        return False
    lost += inflow * data.unit
    t = _minimizer(slope, total, lost, changes, begin, end, clusters.low[c], clusters.high[c])
    clusters.threshold[c] = t
    _sum_changes(t, data, changes, begin, end)
    left, room, cut_below, cut_above = 0, 0, False, False
    heaviest, widest, curvature = nodes[0], nodes[0], -1.0
    for v in nodes:
        wish = (data.linear[v] - data.curvature[v] * t - data.slope[v]) / data.unit
        least = wish - data.jump[v] / data.unit
        limit = data.limit[v]
        cut_below = cut_below or abs(least) >= limit
        cut_above = cut_above or abs(wish) >= limit
        demand = round(min(max(least, -limit), limit))
        data.slack[v] = round(min(max(wish, -limit), limit)) - demand
        excess[v] += demand - data.demand[v]
        data.demand[v] = demand
        left += excess[v]
        room += data.slack[v]
        if data.curvature[v] + data.bent[v] > curvature:
            heaviest, curvature = v, data.curvature[v] + data.bent[v]
        if data.slack[v] > data.slack[widest]:
            widest = v
        data.slope[v] = 0.0
        data.bent[v] = 0.0
        data.jump[v] = 0.0
    if room == 0 and not cut_below:
        excess[heaviest] -= left
        data.demand[heaviest] -= left
    elif room > 0 and left > 0 and not cut_below:
        excess[widest] -= left
        data.demand[widest] -= left
        data.slack[widest] += left
    elif room > 0 and left + room < 0 and not cut_above:
        data.slack[widest] -= left + room
    return room > 0


@compiled(allocates=False)
def centres(
    order: Int32Array,
    clusters: Clusters,
    curvature: FloatArray,
    linear: FloatArray,
    changes: Changes,
) -> None:
    """Set thresholds to the minimizers of clusters whose nodes agree; without slopes they stay."""
    for c in range(len(clusters.first)):
        begin, end = clusters.begin[c], clusters.end[c]
        nodes = order[clusters.first[c] : clusters.last[c]]
        slope, total, lost = _sums(nodes, curvature, linear)
        if slope > 0.0 or begin < end:
            clusters.threshold[c] = _minimizer(
                slope, total, lost, changes, begin, end, clusters.low[c], clusters.high[c]
            )


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
    """Retire the arcs between the parts of a cluster: their flow is fixed from now on.

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
    """Bring the upper part of the nodes to the front; both parts keep their order."""
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


@compiled(allocates=False, inner=True)
def _hand_down(
    c: int,
    clusters: Clusters,
    changes: Changes,
    spare: Changes,
    data: Demands,
    upper: BoolArray,
    lower: BoolArray,
    slack: bool,
) -> tuple[int, int]:
    """Give the parts of a cluster the changes that are still to come; return how many.

    Those of the upper part come first. Its slopes begin with what lies behind.
    """
    node, position, bend, jump = changes
    t, front, back = clusters.threshold[c], clusters.begin[c], clusters.begin[c]
    for k in range(clusters.begin[c], clusters.end[c]):
        v, at = node[k], position[k]
        if upper[v]:
            if at > t:
                node[front], position[front] = v, at
                bend[front], jump[front] = bend[k], jump[k]
                front += 1
            else:
                data.curvature[v] += bend[k]
                data.linear[v] += bend[k] * at - jump[k]
        elif at < t and (lower[v] or not slack):
            spare.node[back], spare.position[back] = v, at
            spare.bend[back], spare.jump[back] = bend[k], jump[k]
            back += 1
    above, below = front - clusters.begin[c], back - clusters.begin[c]
    for k in range(clusters.begin[c], back):
        node[front], position[front] = spare.node[k], spare.position[k]
        bend[front], jump[front] = spare.bend[k], spare.jump[k]
        front += 1
    return above, below


@compiled(allocates=False, inner=True)
def _give_slack(nodes: Int32Array, data: Demands, excess: IntArray) -> None:
    """Move demands from the least to the most that they may be."""
    for v in nodes:
        excess[v] += data.slack[v]
        data.demand[v] += data.slack[v]


@compiled(allocates=False, inner=True)
def _take_back(nodes: Int32Array, data: Demands, excess: IntArray) -> None:
    """Let demands be what was routed: what is left of the slack is not needed."""
    for v in nodes:
        data.demand[v] -= excess[v]
        excess[v] = 0


@compiled(nogil=True, allocates=False)
def divide(
    chosen: IntArray,
    clusters: Clusters,
    order: Int32Array,
    data: Demands,
    changes: Changes,
    spare: Changes,
    network: Network,
    work: Scratch,
    upper: BoolArray,
    lower: BoolArray,
    parts: Parts,
    progress: IntArray,
    budget: int,
) -> bool:
    """Split the chosen clusters at their minimizers; other clusters are not touched.

    ``clusters.threshold`` is updated, and ``parts`` says how the cluster has split: the upper part
    comes first in ``order``, and the lower one after it.

    In a lower part the deficits that are left lie together at its upper border, and the shift of
    the threshold has spread excess over all of it. Distances are short from the few to the many,
    so the flow is sent backwards there. The same where demands have slack: when the least that is
    asked for is routed the upper part is known; then the deficits that are left draw on the slack,
    and what they do not reach is left at the threshold.

    Returns whether all is done. If not, as much work is done as the budget says, in the units of
    `discharge`, and another call goes on where this one ended: ``progress``, (PROGRESS,), zero at
    first, knows.
    """
    search = progress[3:]
    routed, slack = progress[1], progress[2] != 0
    for place in range(progress[0], len(chosen)):
        c = chosen[place]
        first, last = clusters.first[c], clusters.last[c]
        begun = routed != NOTHING
        if not begun:
            nodes = order[first:last]
            slack = balance(c, nodes, clusters, data, changes, network.excess)
            parts.upper[c], parts.lower[c], parts.above[c], parts.below[c] = 0, 0, 0, 0
            budget -= _NODE_WORK * len(nodes)
            budget -= _CHANGE_WORK * (clusters.end[c] - clusters.begin[c])
            if len(nodes) == 1:
                _take_back(nodes, data, network.excess)
                continue
            routed = _LEAST
        while True:
            nodes = order[first + parts.upper[c] : last]
            queue = work.queue[first:last]
            room = Scratch(
                work.height,
                work.current,
                work.next_active,
                work.after,
                work.before,
                queue,
                work.active[first:last],
                work.level[first:last],
            )
            backwards = routed == MOST or clusters.lower[c]
            if not begun:
                if backwards:
                    reverse(nodes, network)
                search[0] = BEGIN
            begun = False
            budget = discharge(nodes, network, room, _UPDATE_INTERVAL, search, budget)
            if search[0] >= 0:
                progress[0], progress[1], progress[2] = place, routed, slack
                return False
            if backwards and routed == _LEAST:
                reverse(nodes, network)
            reached = upper if routed == _LEAST else lower
            size = reach_from_excess(nodes, network, reached, queue)
            if routed == MOST:
                reverse(nodes, network)
            if size == last - first:  # by rounding
                size = 0
                for v in nodes:
                    reached[v] = False
            if 0 < size < len(nodes):
                _cut(nodes, reached, network)
                _partition(nodes, reached, queue)
            if routed == MOST:
                parts.lower[c] = size
                _take_back(nodes[size:], data, network.excess)
                break
            parts.upper[c] = size
            if not slack:
                parts.lower[c] = len(nodes) - size if size > 0 else 0
                break
            _give_slack(nodes[size:], data, network.excess)
            routed = MOST
        routed = NOTHING
        progress[1] = NOTHING
        if parts.upper[c] + parts.lower[c] > 0:
            parts.above[c], parts.below[c] = _hand_down(
                c, clusters, changes, spare, data, upper, lower, slack
            )
        if budget <= 0:
            progress[0] = place + 1
            return place + 1 == len(chosen)
    return True
