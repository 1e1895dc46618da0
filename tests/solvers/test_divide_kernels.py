"""The compiled pieces of divide and conquer against readable twins and NetworkX."""

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.divide._compiled import balance, push_relabel, reach_from_excess
from gtvcvx.solvers.divide._network import Clusters, Demands, Skeleton, scratch
from gtvcvx.solvers.divide._scalar_division import ScalarDivision


def instance(seed, n=None, largest=6):
    """A graph with integer capacities and excesses; ties are frequent."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9)) if n is None else n
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.5]
    graph = gtv.EmpiricalGraph(n, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    capacities = rng.integers(0, largest, graph.n_edges)
    return graph, capacities, rng.integers(-2 * largest, 2 * largest + 1, n)


def routed(graph, capacities, excess, nodes=None):
    """Run the compiled engine; return the network and the set that the excess reaches."""
    n = graph.n_nodes
    network = Skeleton(graph).network(capacities, excess.copy())
    work = scratch(n)
    nodes = np.arange(n, dtype=np.int32) if nodes is None else nodes
    push_relabel(nodes, network, work)
    reached = np.zeros(n, dtype=bool)
    size = reach_from_excess(nodes, network, reached, work.queue)
    assert size == reached.sum()
    return network, reached


def assert_is_a_flow(graph, capacities, excess, network):
    """Antisymmetric, within capacities, and excess is what came in and did not go out."""
    np.testing.assert_array_equal(network.mate[network.mate], np.arange(2 * graph.n_edges))
    flow = network.capacity - network.residual
    np.testing.assert_array_equal(flow, -flow[network.mate])
    assert (network.residual >= 0).all()
    along = Skeleton(graph).flow(network)
    assert (np.abs(along) <= capacities).all()
    out = graph.divergence @ along.astype(float)
    np.testing.assert_array_equal(network.excess, excess - out)


def networkx_flow(graph, capacities, excess):
    """Value of a maximum flow from all excess to all deficits."""
    G = nx.DiGraph()
    G.add_nodes_from(["source", "sink"])
    for (i, j), c in zip(graph.edges.tolist(), capacities.tolist(), strict=True):
        G.add_edge(i, j, capacity=c)
        G.add_edge(j, i, capacity=c)
    for v, e in enumerate(excess.tolist()):
        if e > 0:
            G.add_edge("source", v, capacity=e)
        elif e < 0:
            G.add_edge(v, "sink", capacity=-e)
    return nx.maximum_flow_value(G, "source", "sink")


def smallest_maximizer(graph, capacities, excess):
    """By enumeration: intersection of all sets with the largest excess(S) - capacity out of S."""
    best, sets = None, []
    for members in itertools.product([False, True], repeat=graph.n_nodes):
        inside = np.array(members)
        ends = inside[graph.edges]
        gain = excess[inside].sum() - capacities[ends[:, 0] != ends[:, 1]].sum()
        if best is None or gain > best:
            best, sets = gain, []
        if gain == best:
            sets.append(inside)
    return np.logical_and.reduce(sets)


@pytest.mark.parametrize("seed", range(60))
def test_routed_amount_is_that_of_networkx_and_the_set_the_smallest(seed):
    graph, capacities, excess = instance(seed)
    network, reached = routed(graph, capacities, excess)
    assert_is_a_flow(graph, capacities, excess, network)
    stuck = network.excess[network.excess > 0].sum()
    routed_amount = excess[excess > 0].sum() - stuck
    assert routed_amount == networkx_flow(graph, capacities, excess)
    np.testing.assert_array_equal(reached, smallest_maximizer(graph, capacities, excess))


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_larger_graphs_against_networkx(seed):
    graph = gtv.generators.random_geometric(250, 7.0, seed)
    rng = np.random.default_rng(seed)
    capacities = rng.integers(1, 1000, graph.n_edges)
    excess = rng.integers(-2000, 2000, 250)
    network, reached = routed(graph, capacities, excess)
    assert_is_a_flow(graph, capacities, excess, network)
    stuck = network.excess[network.excess > 0].sum()
    total = excess[excess > 0].sum()
    assert total - stuck == networkx_flow(graph, capacities, excess)
    assert (network.excess[reached] >= 0).all()
    assert (network.excess[~reached] <= 0).all()
    leaving = reached[graph.edges[:, 0]] != reached[graph.edges[:, 1]]
    assert stuck == excess[reached].sum() - capacities[leaving].sum()


def test_capacities_close_to_the_largest_integers():
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    big = 2**60
    excess = np.array([big, 0, -big])
    network, reached = routed(graph, np.array([big, big - 1]), excess)
    np.testing.assert_array_equal(network.excess.sum(), 0)
    assert network.excess.max() == 1
    np.testing.assert_array_equal(reached, [True, True, False])


def test_a_part_is_solved_alone_and_the_rest_untouched():
    graph = gtv.EmpiricalGraph(4, [(0, 1), (2, 3)])
    excess = np.array([3, -3, 5, -5])
    network, reached = routed(graph, np.array([2, 9]), excess, np.array([0, 1], dtype=np.int32))
    np.testing.assert_array_equal(network.excess, [1, -1, 5, -5])
    np.testing.assert_array_equal(reached, [True, False, False, False])


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
