"""Random graphs with integer capacities, for tests of flows."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np

from verify._arrays import BoolArray, IntArray


def instance(seed: int, n: int | None = None, largest: int = 6) -> tuple[IntArray, ...]:
    """Edges (m, 2), capacities (m,) and excesses (n,) of a small graph; ties are frequent."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9)) if n is None else n
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.5]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    flipped = rng.random(len(edges)) < 0.5
    edges[flipped] = edges[flipped, ::-1]
    capacities = rng.integers(0, largest, len(edges))
    return edges, capacities, rng.integers(-2 * largest, 2 * largest + 1, n)


def larger_instance(seed: int) -> tuple[IntArray, ...]:
    """Like `instance`, with 250 nodes in the plane, near ones joined."""
    rng = np.random.default_rng(seed)
    places = rng.random((250, 2))
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    edges = np.argwhere(np.triu(distances < 0.095, 1))
    return edges, rng.integers(1, 1000, len(edges)), rng.integers(-2000, 2000, 250)


def networkx_value(edges: IntArray, capacities: IntArray, excess: IntArray) -> int:
    """Value of a maximum flow from all excess to all deficits."""
    G = nx.DiGraph()
    G.add_nodes_from(["source", "sink"])
    for (i, j), c in zip(edges.tolist(), capacities.tolist(), strict=True):
        G.add_edge(i, j, capacity=c)
        G.add_edge(j, i, capacity=c)
    for v, x in enumerate(excess.tolist()):
        if x > 0:
            G.add_edge("source", v, capacity=x)
        elif x < 0:
            G.add_edge(v, "sink", capacity=-x)
    return int(nx.maximum_flow_value(G, "source", "sink"))


def smallest_maximizer(edges: IntArray, capacities: IntArray, excess: IntArray) -> BoolArray:
    """By enumeration: intersection of all sets with the largest excess(S) - capacity out of S."""
    best, sets = None, []
    for members in itertools.product([False, True], repeat=len(excess)):
        inside = np.array(members)
        ends = inside[edges]
        gain = int(excess[inside].sum() - capacities[ends[:, 0] != ends[:, 1]].sum())
        if best is None or gain > best:
            best, sets = gain, []
        if gain == best:
            sets.append(inside)
    return np.asarray(np.logical_and.reduce(sets))


def net_outflow(edges: IntArray, flow: IntArray, n_nodes: int) -> IntArray:
    """Flow that leaves each node, less what comes in, (n,)."""
    out = np.zeros(n_nodes, dtype=np.int64)
    np.add.at(out, edges[:, 0], flow)
    np.subtract.at(out, edges[:, 1], flow)
    return out
