"""Arcs and residual networks against what their texts say."""

from __future__ import annotations

import numpy as np
import pytest
from _flow_graphs import instance

from verify.flows._network import arcs_of, edge_flow, network_without_flow, scratch


@pytest.mark.parametrize("seed", range(20))
def test_arcs_are_those_of_the_edges_grouped_by_tail(seed: int) -> None:
    edges, _, excess = instance(seed)
    arcs = arcs_of(len(excess), edges)
    expected = [
        (v, int(edges[e, 1 - side]), 2 * e + side)
        for v in range(len(excess))
        for e in range(len(edges))
        for side in (0, 1)
        if edges[e, side] == v
    ]
    found = [
        (v, int(arcs.head[arc]), int(arcs.directed[arc]))
        for v in range(len(excess))
        for arc in range(arcs.start[v], arcs.stop[v])
    ]
    assert found == expected
    np.testing.assert_array_equal(arcs.directed[arcs.mate], arcs.directed ^ 1)
    np.testing.assert_array_equal(arcs.mate[arcs.mate], np.arange(2 * len(edges)))


@pytest.mark.parametrize("seed", range(20))
def test_a_network_without_flow_and_one_with_flow(seed: int) -> None:
    edges, capacities, excess = instance(seed)
    network = network_without_flow(arcs_of(len(excess), edges), capacities, excess)
    np.testing.assert_array_equal(network.capacity, capacities[network.directed // 2])
    np.testing.assert_array_equal(network.residual, network.capacity)
    assert not np.shares_memory(network.residual, network.capacity)
    found = np.ones(len(edges), np.int64)
    edge_flow(network, found)
    assert not found.any()
    flow = np.random.default_rng(seed).integers(-capacities, capacities + 1)
    sign = 1 - 2 * (network.directed % 2)
    network.residual[:] -= sign * flow[network.directed // 2]
    edge_flow(network, found)
    np.testing.assert_array_equal(found, flow)


def test_working_memory_is_not_shared() -> None:
    work = scratch(3)
    for value, array in enumerate(work):
        array[:] = value
    assert [array.tolist() for array in work] == [[value] * 3 for value in range(8)]
