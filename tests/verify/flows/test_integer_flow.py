"""Flows of Python integers against NetworkX, enumeration and the compiled engine."""

from __future__ import annotations

import numpy as np
import pytest
from _flow_graphs import (
    instance,
    larger_instance,
    net_outflow,
    networkx_value,
    smallest_maximizer,
)

from verify._arrays import IntArray
from verify.flows._integer_flow import IntegerFlow, IntegerNetwork
from verify.flows._single_sink import FlowGraph


def routed(
    edges: IntArray, capacities: IntArray, supplies: IntArray, start: IntArray | None = None
) -> IntegerFlow:
    network = IntegerNetwork(len(supplies), edges.tolist(), capacities.tolist())
    start = np.zeros(len(edges), dtype=np.int64) if start is None else start
    return network.route(supplies.tolist(), start.tolist())


def assert_is_maximum(
    edges: IntArray, capacities: IntArray, supplies: IntArray, found: IntegerFlow
) -> None:
    """A flow within the capacities, and a set with full edges around it that holds what is left."""
    flow, excess = np.array(found.flow, dtype=np.int64), np.array(found.excess)
    assert (np.abs(flow) <= capacities).all()
    np.testing.assert_array_equal(excess, supplies - net_outflow(edges, flow, len(supplies)))
    inside = np.zeros(len(supplies), dtype=bool)
    inside[list(found.stuck)] = True
    assert (excess[inside] >= 0).all()
    assert (excess[~inside] <= 0).all()
    leaving = inside[edges[:, 0]] != inside[edges[:, 1]]
    assert excess[inside].sum() == supplies[inside].sum() - capacities[leaving].sum()


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_routed_amount_is_that_of_networkx_and_the_set_the_smallest(
    seed: int, started: bool
) -> None:
    """Whatever flow there is at first."""
    edges, capacities, supplies = instance(seed)
    start = np.random.default_rng(seed).integers(-capacities, capacities + 1) * started
    found = routed(edges, capacities, supplies, start)
    assert_is_maximum(edges, capacities, supplies, found)
    left = sum(x for x in found.excess if x > 0)
    value = networkx_value(edges, capacities, supplies)
    assert left == supplies[supplies > 0].sum() - value
    expected = np.flatnonzero(smallest_maximizer(edges, capacities, supplies))
    assert found.stuck == set(expected.tolist())


@pytest.mark.parametrize("seed", range(3))
def test_larger_graphs_against_networkx(seed: int) -> None:
    edges, capacities, supplies = larger_instance(seed)
    found = routed(edges, capacities, supplies)
    assert_is_maximum(edges, capacities, supplies, found)
    left = sum(x for x in found.excess if x > 0)
    assert left == supplies[supplies > 0].sum() - networkx_value(edges, capacities, supplies)


@pytest.mark.parametrize("seed", range(3))
def test_one_sink_is_stuck_where_the_compiled_engine_is(seed: int) -> None:
    edges, capacities, supplies = larger_instance(seed)
    supplies = np.abs(supplies) // 20
    compiled = FlowGraph(len(supplies), edges).route(capacities, supplies, 7)
    supplies[7] -= supplies.sum()
    found = routed(edges, capacities, supplies, compiled.flow)
    assert found.flow == compiled.flow.tolist()
    assert found.stuck == set(np.flatnonzero(compiled.source_side).tolist())
    assert found.stuck
    assert sum(x for x in found.excess if x > 0) == compiled.unrouted


def test_integers_of_any_size_and_a_tie_to_the_last_unit() -> None:
    big = 10**60
    for supply, stuck in [(big, set()), (big + 1, {0, 1})]:
        network = IntegerNetwork(3, [(0, 1), (2, 1)], [2 * big, big])
        found = network.route([supply, 0, -supply], [0, 0])
        assert found.flow == [supply, -big]
        assert found.stuck == stuck
        assert max(found.excess) == supply - big


@pytest.mark.parametrize("everywhere", [True, False])
def test_one_sweep_takes_what_there_is_down_a_long_path(
    everywhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit at every node, or at the far end only."""
    n, sweeps, push_down = 2000, [], IntegerNetwork._push_down
    monkeypatch.setattr(
        IntegerNetwork, "_push_down", lambda *args: (sweeps.append(1), push_down(*args))
    )
    network = IntegerNetwork(n, [(i, i + 1) for i in range(n - 1)], [n] * (n - 1))
    supplies = [1] * (n - 1) if everywhere else [1] + [0] * (n - 2)
    found = network.route([*supplies, -sum(supplies)], [0] * (n - 1))
    assert found.flow == np.cumsum(supplies).tolist()
    assert not found.stuck
    assert len(sweeps) == 1
