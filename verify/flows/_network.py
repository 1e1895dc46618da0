"""Residual networks of undirected graphs, for maximum flows in 64-bit integers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from verify._arrays import Int32Array, IntArray
from verify._compiled import compiled


class Arcs(NamedTuple):
    """Arcs of an undirected graph with n nodes and m edges, grouped by tail: two for each edge.

    Attributes
    ----------
    start, stop : (n,)
        The arcs of node v are start[v] .. stop[v] - 1.
    head, mate : (2m,)
        Node where an arc ends, and the arc in the other direction.
    directed : (2m,)
        2e for the arc from the first to the second end of edge e, 2e + 1 for the one back.
    """

    start: Int32Array
    stop: Int32Array
    head: Int32Array
    mate: Int32Array
    directed: Int32Array


class Network(NamedTuple):
    """Residual network of an undirected graph with n nodes and m edges.

    Attributes
    ----------
    start, stop : (n,)
        The live arcs of node v are start[v] .. stop[v] - 1; dead ones follow up to the next start.
    head, mate, directed : (2m,)
        As in `Arcs`.
    capacity, residual : (2m,)
        Capacity of the edge in either direction, and what is left of it along the arc: the flow
        along an arc is ``capacity - residual``, and ``2 capacity - residual`` is left for the mate.
    excess : (n,)
        Flow that came in, or was there at first, and has not gone out.
    """

    start: Int32Array
    stop: Int32Array
    head: Int32Array
    mate: Int32Array
    directed: Int32Array
    capacity: IntArray
    residual: IntArray
    excess: IntArray


class Scratch(NamedTuple):
    """Working memory for n nodes, (n,) each.

    The first group is indexed by node, the second by a place in the list of nodes or by a height,
    which stays below the number of nodes: a part uses as much of it as it has nodes.
    """

    height: Int32Array
    current: Int32Array
    next_active: Int32Array
    after: Int32Array
    before: Int32Array
    queue: Int32Array
    active: Int32Array
    level: Int32Array


def scratch(n_nodes: int) -> Scratch:
    """Allocate working memory."""
    return Scratch(*(np.empty(n_nodes, np.int32) for _ in Scratch._fields))


def arcs_of(n_nodes: int, edges: IntArray) -> Arcs:
    """Return the arcs of a graph with the edges (m, 2)."""
    start = np.zeros(n_nodes + 1, np.int32)
    head, mate, directed = (np.empty(2 * len(edges), np.int32) for _ in range(3))
    _group(edges, start, np.empty(n_nodes, np.int32), head, mate, directed)
    return Arcs(start[:-1].copy(), start[1:].copy(), head, mate, directed)


@compiled(nogil=True, allocates=False, small=True)
def _group(
    edges: IntArray,
    start: Int32Array,
    fill: Int32Array,
    head: Int32Array,
    mate: Int32Array,
    directed: Int32Array,
) -> None:
    """Fill in arcs; the start (n + 1,) is zero before, fill (n,) is room to work in."""
    n_nodes = len(start) - 1
    for e in range(len(edges)):
        start[edges[e, 0] + 1] += 1
        start[edges[e, 1] + 1] += 1
    for v in range(n_nodes):
        fill[v] = start[v]
        start[v + 1] += start[v]
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        there, back = fill[i], fill[j]
        fill[i] += 1
        fill[j] += 1
        head[there], head[back] = j, i
        mate[there], mate[back] = back, there
        directed[there], directed[back] = 2 * e, 2 * e + 1


def network_without_flow(arcs: Arcs, capacities: IntArray, excess: IntArray) -> Network:
    """Return a network with capacities (m,) and excess (n,); it shares the arcs and the excess."""
    capacity = capacities[arcs.directed >> 1]
    return Network(*arcs, capacity, capacity.copy(), excess)


@compiled(nogil=True, allocates=False, small=True)
def edge_flow(network: Network, flow: IntArray) -> None:
    """Write the flow (m,) along the edges from their first to their second end."""
    for arc in range(len(network.directed)):
        if network.directed[arc] & 1 == 0:
            flow[network.directed[arc] >> 1] = network.capacity[arc] - network.residual[arc]
