"""The compiled pieces of divide and conquer against readable twins and NetworkX."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.divide import _compiled
from gtvcvx.solvers.divide._network import Clusters, Demands, Skeleton
from gtvcvx.solvers.divide._scalar_division import ScalarDivision
from tests._twins import alone

balance = alone(_compiled.balance)


def test_balance_moves_the_demands_to_the_minimizer_and_leaves_nothing_over():
    rng = np.random.default_rng(4)
    n, unit = 7, 2.0**-20
    curvature = np.array([1.0, 0.0, 2.0, 1e-3, 0.0, 5.0, 1.0])
    linear = np.where(curvature > 0, rng.standard_normal(n), 0.0)
    demand = np.zeros(n, np.int64)
    excess = rng.integers(-1000, 1000, n)  # flow that came in
    inflow = excess.copy()
    data = Demands(curvature, linear, np.full(n, 2.0**40), demand, unit)
    threshold = balance(np.arange(n, dtype=np.int32), data, excess, 99.0)
    assert threshold == pytest.approx((linear.sum() + inflow.sum() * unit) / curvature.sum())
    assert excess.sum() == 0
    np.testing.assert_array_equal(excess, inflow + demand)
    np.testing.assert_allclose(demand * unit, linear - curvature * threshold, atol=4 * unit)
    np.testing.assert_array_equal(demand[curvature == 0], 0)


def test_balance_cuts_demands_off_at_their_limits():
    n = 3
    data = Demands(
        np.ones(n),
        np.array([-9.0, 0.0, 9.0]),
        np.array([2.0, 5.0, 3.0]),
        np.zeros(n, np.int64),
        1.0,
    )
    excess = np.zeros(n, np.int64)
    assert balance(np.arange(n, dtype=np.int32), data, excess, 0.0) == 0.0
    np.testing.assert_array_equal(excess, [-2, 0, 3])


def test_a_cluster_without_data_keeps_its_threshold():
    zero = np.zeros(2)
    data = Demands(zero, zero, np.ones(2), np.zeros(2, np.int64), 1.0)
    excess = np.array([4, -4])
    assert balance(np.arange(2, dtype=np.int32), data, excess, 1.5) == 1.5
    np.testing.assert_array_equal(excess, [4, -4])


def naive_division(graph, capacities, q, b):
    """Divide and conquer in rational numbers, cluster by cluster, with NetworkX's cuts."""
    x = [Fraction(0)] * graph.n_nodes
    edges = list(zip(graph.edges.tolist(), map(Fraction, capacities.tolist()), strict=True))

    def divide(cluster, demand):
        slope = sum(q[v] for v in cluster)
        t = sum(demand[v] for v in cluster) / slope
        G = nx.DiGraph()
        G.add_nodes_from(["source", "sink", *cluster])
        for (i, j), c in edges:
            if i in cluster and j in cluster:
                G.add_edge(i, j, capacity=c)
                G.add_edge(j, i, capacity=c)
        for v in cluster:
            r = demand[v] - q[v] * t
            G.add_edge("source", v, capacity=max(r, 0))
            G.add_edge(v, "sink", capacity=max(-r, 0))
        residual = nx.algorithms.flow.edmonds_karp(G, "source", "sink")
        open_arcs = nx.DiGraph()
        open_arcs.add_nodes_from(residual)
        open_arcs.add_edges_from(
            (i, j) for i, j, a in residual.edges(data=True) if a["flow"] < a["capacity"]
        )
        upper = nx.descendants(open_arcs, "source") & set(cluster)
        if not upper:
            for v in cluster:
                x[v] = t
            return
        for half, sign in ((upper, -1), (set(cluster) - upper, 1)):
            shifted = dict(demand)
            for (i, j), c in edges:
                if (i in upper) != (j in upper) and i in cluster and j in cluster:
                    shifted[i if i in half else j] += sign * c
            divide(half, shifted)

    divide(set(range(graph.n_nodes)), dict(enumerate(b)))
    return x


@pytest.mark.parametrize("seed", range(2000, 2015))
def test_division_is_its_rational_twin(seed):
    rng = np.random.default_rng(seed)
    tree = nx.random_labeled_tree(10, seed=seed)
    edges = list(tree.edges) + [(i, (i + 3) % 10) for i in range(7) if rng.random() < 0.5]
    graph = gtv.EmpiricalGraph(10, edges)
    capacities = rng.integers(1, 5, graph.n_edges) / 4
    q = np.where(rng.random(10) < 0.7, rng.integers(1, 4, 10), 0).astype(float)
    q[0] = 1.0
    b = np.where(q > 0, rng.integers(-5, 6, 10), 0).astype(float)
    expected = naive_division(graph, capacities, [Fraction(v) for v in q], [Fraction(v) for v in b])
    division = ScalarDivision(Skeleton(graph), q, b, capacities)
    while not division.finished:
        for task in division.tasks():
            task()
        division.conclude()
    np.testing.assert_allclose(division.x(), [float(v) for v in expected], rtol=0, atol=1e-13)


def test_every_cluster_is_in_exactly_one_share():
    rng = np.random.default_rng(5)
    graph = gtv.generators.random_geometric(300, 6.0, seed=5)
    division = ScalarDivision(
        Skeleton(graph), np.ones(300), 3.0 * rng.standard_normal(300), np.full(graph.n_edges, 0.3)
    )
    rounds = 0
    while not division.finished:
        tasks = division.tasks()
        chosen = np.concatenate([task.args[0] for task in tasks])
        assert sorted(chosen) == list(range(len(division._clusters.first)))
        for task in reversed(tasks):
            task()
        division.conclude()
        rounds += 1
    assert rounds > 3
    assert isinstance(division._clusters, Clusters)
