"""Feasible flows inside a cluster, and the cuts that show that there is none, against NetworkX."""

from itertools import combinations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from gtvcvx.solvers.exact._feasible_flow import ClusterNetwork, Cut


@st.composite
def clusters(draw):
    """Connected graph, capacities, and supplies that add up to zero."""
    n = draw(st.integers(2, 6))
    pairs = {(draw(st.integers(0, i - 1)), i) for i in range(1, n)}
    everything = list(combinations(range(n), 2))
    pairs |= set(draw(st.lists(st.sampled_from(everything), unique=True)))
    ends = sorted(pairs)
    number = st.lists(st.integers(1, 4), min_size=len(ends), max_size=len(ends))
    supplies = draw(st.lists(st.integers(-4, 4), min_size=n - 1, max_size=n - 1))
    guess = draw(st.lists(st.integers(-6, 6), min_size=len(ends), max_size=len(ends)))
    return ends, draw(number), [*supplies, -sum(supplies)], guess


def feasible(ends, capacities, supplies):
    """Say whether a flow exists, by networkx."""
    G = nx.DiGraph()
    G.add_nodes_from(["source", "sink"])
    for (head, tail), capacity in zip(ends, capacities, strict=True):
        G.add_edge(head, tail, capacity=capacity)
        G.add_edge(tail, head, capacity=capacity)
    for i, supply in enumerate(supplies):
        if supply > 0:
            G.add_edge("source", i, capacity=supply)
        elif supply < 0:
            G.add_edge(i, "sink", capacity=-supply)
    return nx.maximum_flow_value(G, "source", "sink") == sum(x for x in supplies if x > 0)


@given(clusters())
def test_flows_and_cuts(cluster):
    ends, capacities, supplies, guess = cluster
    found = ClusterNetwork(ends, capacities, supplies).feasible_flow(guess)
    assert isinstance(found, Cut) != feasible(ends, capacities, supplies)
    if isinstance(found, Cut):
        leaving = [(h in found.inside) != (t in found.inside) for h, t in ends]
        around = sum(c for c, leaves in zip(capacities, leaving, strict=True) if leaves)
        assert sum(supplies[i] for i in found.inside) > around
        G = nx.Graph(ends)
        assert nx.is_connected(G.subgraph(found.inside))
        assert nx.is_connected(G.subgraph(set(G) - found.inside))
        return
    assert all(abs(v) <= c for v, c in zip(found, capacities, strict=True))
    sums = [0] * len(supplies)
    for (head, tail), value in zip(ends, found, strict=True):
        sums[head] += value
        sums[tail] -= value
    assert sums == supplies


def test_cuts_are_connected_on_both_sides():
    """Two leaves with a supply around a hub, and a middle with a supply between two others."""
    leaves = ClusterNetwork([(0, 1), (0, 2)], [1, 1], [-6, 3, 3]).feasible_flow([0, 0])
    assert isinstance(leaves, Cut)
    assert leaves.inside in ({1}, {2}, {0, 1}, {0, 2})
    middle = ClusterNetwork([(0, 1), (1, 2)], [1, 1], [-3, 6, -3]).feasible_flow([0, 0])
    assert isinstance(middle, Cut)
    assert middle.inside in ({0, 1}, {1, 2})
