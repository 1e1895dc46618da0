"""The compiled engine, step by step and as a whole, against readable twins and NetworkX."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from _flow_graphs import (
    instance,
    larger_instance,
    net_outflow,
    networkx_value,
    smallest_maximizer,
)

from verify._arrays import BoolArray, Int32Array, IntArray
from verify._compiled import compiled
from verify.flows import _push_relabel
from verify.flows._network import (
    Network,
    Scratch,
    arcs_of,
    edge_flow,
    network_without_flow,
    scratch,
)
from verify.flows._push_relabel import push_relabel

# Only compiled functions call these; so that Python can:
_fill_buckets, _give_up_above, label_exactly, reach_from_excess = (
    compiled(function.py_func)
    for function in (
        _push_relabel._fill_buckets,
        _push_relabel._give_up_above,
        _push_relabel.label_exactly,
        _push_relabel.reach_from_excess,
    )
)


def network_of(edges: IntArray, capacities: IntArray, excess: IntArray) -> Network:
    return network_without_flow(arcs_of(len(excess), edges), capacities, excess.copy())


def flow_of(network: Network) -> IntArray:
    flow = np.empty(len(network.directed) // 2, np.int64)
    edge_flow(network, flow)
    return flow


def all_nodes(network: Network) -> Int32Array:
    return np.arange(len(network.start), dtype=np.int32)


def halfway(seed: int) -> tuple[Int32Array, Network, Scratch]:
    """A network with some flow in it: each edge takes a random amount that it can carry."""
    edges, capacities, excess = instance(seed)
    network = network_of(edges, capacities, excess)
    rng = np.random.default_rng(seed)
    flow = rng.integers(-capacities, capacities + 1)
    for arc, (e, back) in enumerate(divmod(d, 2) for d in network.directed.tolist()):
        network.residual[arc] -= -flow[e] if back else flow[e]
    network.excess[:] -= net_outflow(edges, flow, len(excess))
    nodes = all_nodes(network)
    rng.shuffle(nodes)
    return nodes, network, scratch(len(nodes))


def live_arcs(network: Network, v: int) -> range:
    return range(int(network.start[v]), int(network.stop[v]))


def routed(
    edges: IntArray, capacities: IntArray, excess: IntArray, nodes: Int32Array | None = None
) -> tuple[Network, BoolArray]:
    """Run the engine; return the network and the set that the excess reaches."""
    network = network_of(edges, capacities, excess)
    work = scratch(len(excess))
    nodes = all_nodes(network) if nodes is None else nodes
    push_relabel(nodes, network, work, 1)
    reached = np.zeros(len(excess), dtype=bool)
    assert reach_from_excess(nodes, network, reached, work.queue) == reached.sum()
    return network, reached


def assert_is_a_flow(
    edges: IntArray, capacities: IntArray, excess: IntArray, network: Network
) -> None:
    """Antisymmetric, within capacities, and excess is what came in and did not go out."""
    flow = network.capacity - network.residual
    np.testing.assert_array_equal(flow, -flow[network.mate])
    assert (network.residual >= 0).all()
    along = flow_of(network)
    assert (np.abs(along) <= capacities).all()
    out = net_outflow(edges, along, len(excess))
    np.testing.assert_array_equal(network.excess, excess - out)


def naive_heights(nodes: Int32Array, network: Network) -> list[int]:
    """Bellman-Ford on the residual arcs, from the deficits; one height for each node."""
    far = len(nodes)
    height = [0 if network.excess[v] < 0 else far for v in range(far)]
    for _ in nodes:
        for v in nodes:
            for arc in live_arcs(network, v):
                if network.residual[arc] > 0:
                    height[v] = min(height[v], height[network.head[arc]] + 1)
    return height


def bucket(first: int, following: Int32Array) -> list[int]:
    """Nodes of a linked list."""
    members = []
    while first >= 0:
        members.append(first)
        first = int(following[first])
    return members


@pytest.mark.parametrize("seed", range(30))
def test_exact_labels_are_distances_to_a_deficit(seed: int) -> None:
    nodes, network, work = halfway(seed)
    expected = naive_heights(nodes, network)
    reached = label_exactly(nodes, network, work)
    assert work.height.tolist() == expected
    assert reached == sum(h < len(nodes) for h in expected)
    listed = work.queue[:reached].tolist()
    assert sorted(listed) == [v for v, h in enumerate(expected) if h < len(nodes)]
    assert [expected[v] for v in listed] == sorted(expected[v] for v in listed)
    np.testing.assert_array_equal(work.current, network.start)


@pytest.mark.parametrize("seed", range(30))
def test_buckets_hold_the_nodes_by_height_and_are_given_up_from_a_gap_on(seed: int) -> None:
    nodes, network, work = halfway(seed)
    far = len(nodes)
    reached = label_exactly(nodes, network, work)
    top_active, top = _fill_buckets(nodes, reached, network.excess, work)
    levels, active = defaultdict(set), defaultdict(set)
    for v, h in enumerate(work.height.tolist()):
        if h < far:
            levels[h].add(v)
            if network.excess[v] > 0:
                active[h].add(v)
    for h in range(far):
        members = bucket(int(work.level[h]), work.after)
        assert set(members) == levels[h]
        assert [int(work.before[v]) for v in members] == [-1, *members][: len(members)]
        assert set(bucket(int(work.active[h]), work.next_active)) == active[h]
    assert top_active == max((h for h in active if active[h]), default=-1)
    assert top == max((h for h in levels if levels[h]), default=0)
    gap = top // 2
    _give_up_above(gap, top, far, work)
    kept = {v for h in range(gap + 1) for v in levels[h]}
    assert {v for v in range(far) if work.height[v] < far} == kept
    assert (work.level[gap + 1 : top + 1] == -1).all()
    assert (work.active[gap + 1 : top + 1] == -1).all()


@pytest.mark.parametrize("seed", range(30))
def test_what_the_excess_reaches(seed: int) -> None:
    nodes, network, work = halfway(seed)
    expected = network.excess > 0
    for _ in nodes:
        for v in np.flatnonzero(expected):
            for arc in live_arcs(network, v):
                expected[network.head[arc]] |= network.residual[arc] > 0
    reached = np.ones(len(nodes), dtype=bool)
    assert reach_from_excess(nodes, network, reached, work.queue) == expected.sum()
    np.testing.assert_array_equal(reached, expected)


@pytest.mark.parametrize("seed", range(60))
def test_routed_amount_is_that_of_networkx_and_the_set_the_smallest(seed: int) -> None:
    edges, capacities, excess = instance(seed)
    network, reached = routed(edges, capacities, excess)
    assert_is_a_flow(edges, capacities, excess, network)
    stuck = network.excess[network.excess > 0].sum()
    assert excess[excess > 0].sum() - stuck == networkx_value(edges, capacities, excess)
    np.testing.assert_array_equal(reached, smallest_maximizer(edges, capacities, excess))


@pytest.mark.parametrize("seed", range(60))
def test_a_flow_that_is_there_is_gone_on_with(seed: int) -> None:
    """From any flow within the capacities: the same set, since only the sums count."""
    edges, capacities, excess = instance(seed)
    nodes, network, work = halfway(seed)
    push_relabel(nodes, network, work, 1)
    assert_is_a_flow(edges, capacities, excess, network)
    reached = np.zeros(len(nodes), dtype=bool)
    reach_from_excess(nodes, network, reached, work.queue)
    np.testing.assert_array_equal(reached, smallest_maximizer(edges, capacities, excess))


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_larger_graphs_against_networkx(seed: int) -> None:
    edges, capacities, excess = larger_instance(seed)
    network, reached = routed(edges, capacities, excess)
    assert_is_a_flow(edges, capacities, excess, network)
    stuck = network.excess[network.excess > 0].sum()
    total = excess[excess > 0].sum()
    assert total - stuck == networkx_value(edges, capacities, excess)
    assert (network.excess[reached] >= 0).all()
    assert (network.excess[~reached] <= 0).all()
    leaving = reached[edges[:, 0]] != reached[edges[:, 1]]
    assert stuck == excess[reached].sum() - capacities[leaving].sum()


def test_capacities_close_to_the_largest_integers() -> None:
    big = 2**60
    excess = np.array([big, 0, -big])
    network, reached = routed(np.array([[0, 1], [1, 2]]), np.array([big, big - 1]), excess)
    assert network.excess.sum() == 0
    assert network.excess.max() == 1
    np.testing.assert_array_equal(reached, [True, True, False])


def test_a_part_is_solved_alone_and_the_rest_untouched() -> None:
    excess = np.array([3, -3, 5, -5])
    part = np.array([0, 1], dtype=np.int32)
    network, reached = routed(np.array([[0, 1], [2, 3]]), np.array([2, 9]), excess, part)
    np.testing.assert_array_equal(network.excess, [1, -1, 5, -5])
    np.testing.assert_array_equal(reached, [True, False, False, False])


def test_retired_arcs_carry_nothing_more() -> None:
    """Of the path 0 - 1 - 2 the part {0, 1} is left; the deficit beyond is not served."""
    excess = np.array([3, -1, -5])
    network = network_of(np.array([[0, 1], [1, 2]]), np.array([9, 9]), excess)
    network.stop[1] -= 1
    assert network.head[network.stop[1]] == 2
    push_relabel(np.array([0, 1], dtype=np.int32), network, scratch(2), 1)
    np.testing.assert_array_equal(network.excess, [0, 2, -5])
    np.testing.assert_array_equal(flow_of(network), [3, 0])
