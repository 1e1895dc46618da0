"""Flows to one sink against NetworkX and against their own witnesses."""

from __future__ import annotations

import os

import networkx as nx
import numpy as np
import pytest
from _flow_graphs import net_outflow, networkx_value
from numpy.typing import NDArray

from verify.flows._single_sink import FlowGraph, SingleSinkFlow

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
Ints = NDArray[np.int64]


def random_edges(rng: np.random.Generator, n: int, m: int) -> Ints:
    edges = rng.integers(0, n, (m, 2))
    edges = np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1)
    return np.unique(edges, axis=0)


def cut_of(edges: Ints, capacities: Ints, inside: NDArray[np.bool_]) -> int:
    return int(capacities[inside[edges[:, 0]] != inside[edges[:, 1]]].sum())


def check_witnesses(
    edges: Ints, capacities: Ints, supplies: Ints, sink: int, found: SingleSinkFlow
) -> None:
    """The set proves that no more can be routed; the flow, when all is routed, that it can."""
    inside = found.source_side
    assert not inside[sink]
    deficit = int(supplies[inside].sum()) - cut_of(edges, capacities, inside)
    assert deficit == found.unrouted
    assert (np.abs(found.flow) <= capacities).all()
    net = net_outflow(edges, found.flow, len(supplies))
    others = np.arange(len(supplies)) != sink
    assert (net[others] <= supplies[others]).all()
    assert (supplies - net)[others].sum() == found.unrouted


def test_value_is_that_of_networkx() -> None:
    rng = np.random.default_rng(3)
    unrouted = 0
    for _ in range(240 * MULTIPLIER):
        n = int(rng.integers(2, 14))
        edges = random_edges(rng, n, int(rng.integers(1, 40)))
        capacities = rng.integers(0, 9, len(edges))
        supplies, sink = rng.integers(0, 9, n), int(rng.integers(n))
        before = supplies.copy()
        found = FlowGraph(n, edges).route(capacities, supplies, sink)
        np.testing.assert_array_equal(supplies, before)
        check_witnesses(edges, capacities, supplies, sink, found)
        excess = supplies.copy()
        excess[sink] = 0
        total = int(excess.sum())
        excess[sink] = -total
        assert found.unrouted == total - networkx_value(edges, capacities, excess)
        unrouted += found.unrouted > 0
    assert 20 * MULTIPLIER < unrouted < 230 * MULTIPLIER


def test_set_is_the_smallest_minimizer() -> None:
    rng = np.random.default_rng(5)
    several = 0
    for _ in range(80 * MULTIPLIER):
        n = int(rng.integers(2, 9))
        edges = random_edges(rng, n, 20)
        capacity, supplies, sink = rng.integers(1, 4, len(edges)), rng.integers(0, 6, n), 0
        values = {}
        for mask in range(0, 1 << n, 2):
            inside = (mask >> np.arange(n) & 1).astype(bool)
            cut = cut_of(edges, capacity, inside)
            values[mask] = cut - int(supplies[inside].sum())
        least = min(values.values())
        minimizers = [mask for mask, value in values.items() if value == least]
        several += len(minimizers) > 1
        smallest = minimizers[0]
        for mask in minimizers:
            smallest &= mask
        found = FlowGraph(n, edges).route(capacity, supplies, sink)
        assert found.unrouted == -least
        assert sum(1 << int(i) for i in np.flatnonzero(found.source_side)) == smallest
    assert several > 5 * MULTIPLIER


@pytest.mark.parametrize("family", ["grid", "random", "path", "lumps"])
def test_large_capacities_and_hard_families(family: str) -> None:
    """Values near 2^60, where floats and 32-bit integers fail; the witnesses prove themselves."""
    rng = np.random.default_rng(11)
    n = 900
    if family == "grid":
        graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30))
        edges = np.array([sorted(e) for e in graph.edges])
    elif family == "path":
        edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    elif family == "random":
        edges = random_edges(rng, n, 4000)
    else:
        halves = [random_edges(rng, n // 2, 3000), random_edges(rng, n // 2, 3000) + n // 2]
        edges = np.unique(np.concatenate([*halves, [[0, n - 1], [3, n - 5]]]), axis=0)
    capacity = rng.integers(1, 1 << 50, len(edges))
    graph_flows = FlowGraph(n, edges)
    outcomes = set()
    for share in (1e-5, 1e-3, 1e-1, 1.0):
        supplies = (rng.random(n) * share * 2.0**50).astype(np.int64) + 1
        found = graph_flows.route(capacity, supplies, n // 3)
        check_witnesses(edges, capacity, supplies, n // 3, found)
        outcomes.add(found.unrouted > 0)
    assert True in outcomes


def test_overflow_is_refused() -> None:
    graph = FlowGraph(2, np.array([[0, 1]]))
    ok = np.array([5])
    with pytest.raises(OverflowError, match="2\\^61"):
        graph.route(np.array([1 << 61]), np.array([1, 1]), 0)
    with pytest.raises(OverflowError, match="2\\^61"):
        graph.route(ok, np.array([0, 1 << 61]), 0)


def test_graph_without_edges() -> None:
    found = FlowGraph(3, np.zeros((0, 2), dtype=np.int64)).route(
        np.zeros(0, dtype=np.int64), np.array([2, 0, 1]), 0
    )
    assert found.unrouted == 1
    assert found.source_side.tolist() == [False, False, True]


def test_a_wrong_number_of_capacities_or_supplies_is_refused():
    graph, two = FlowGraph(3, np.array([[0, 1], [1, 2]])), np.array([1, 1])
    for capacities, supplies in [(two[:1], np.array([1, 0, 0])), (two, two)]:
        with pytest.raises(ValueError, match="one an edge and one a node"):
            graph.route(capacities, supplies, 2)
