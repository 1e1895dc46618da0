"""The compiled pieces of divide and conquer against readable twins and NetworkX."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality._scalar_gap import Slopes, extent, scalar_gap
from gtvcvx.solvers.divide import _compiled
from gtvcvx.solvers.divide._network import Changes, Clusters, Demands, Skeleton
from gtvcvx.solvers.divide._scalar_division import ScalarDivision
from gtvcvx.solvers.scalar._slopes import quadratic_slopes
from tests._twins import alone

balance = alone(_compiled.balance)
NONE = Changes(np.empty(0, np.int64), *(np.empty(0) for _ in range(3)))


def one_cluster(n, n_changes=0, threshold=0.0):
    ends = (np.array([end]) for end in (0, n, 0, n_changes))
    bounds = (np.array([bound]) for bound in (-np.inf, np.inf, threshold))
    return Clusters(*ends, *bounds, np.array([False]))


def balanced(data, excess, changes=NONE, threshold=0.0):
    """Balance one cluster of all nodes; return its threshold, and whether demands have slack."""
    n = len(excess)
    cluster = one_cluster(n, len(changes.node), threshold)
    slack = balance(0, np.arange(n, dtype=np.int32), cluster, data, changes, excess)
    return cluster.threshold[0], slack


def test_balance_moves_the_demands_to_the_minimizer_and_leaves_nothing_over():
    rng = np.random.default_rng(4)
    n, unit = 7, 2.0**-20
    curvature = np.array([1.0, 0.0, 2.0, 1e-3, 0.0, 5.0, 1.0])
    linear = np.where(curvature > 0, rng.standard_normal(n), 0.0)
    excess = rng.integers(-1000, 1000, n)  # flow that came in
    inflow = excess.copy()
    data = Demands.of(curvature, linear, np.full(n, 2.0**40), unit)
    threshold, slack = balanced(data, excess, threshold=99.0)
    assert threshold == pytest.approx((linear.sum() + inflow.sum() * unit) / curvature.sum())
    assert not slack
    assert excess.sum() == 0
    np.testing.assert_array_equal(excess, inflow + data.demand)
    np.testing.assert_allclose(data.demand * unit, linear - curvature * threshold, atol=4 * unit)
    np.testing.assert_array_equal(data.demand[curvature == 0], 0)


def test_balance_cuts_demands_off_at_their_limits():
    linear, limit = np.array([-9.0, 0.0, 9.0]), np.array([2.0, 5.0, 3.0])
    data, excess = Demands.of(np.ones(3), linear, limit, 1.0), np.zeros(3, np.int64)
    assert balanced(data, excess) == (0.0, False)
    np.testing.assert_array_equal(excess, [-2, 0, 3])


def test_a_cluster_without_data_keeps_its_threshold():
    data = Demands.of(np.zeros(2), np.zeros(2), np.ones(2), 1.0)
    excess = np.array([4, -4])
    assert balanced(data, excess, threshold=1.5) == (1.5, False)
    np.testing.assert_array_equal(excess, [4, -4])


def test_balance_at_a_kink_leaves_room_around_zero():
    """Two absolute losses, 2 |x - 1| and |x - 5|, and an inflow of 1/2: the best is x = 1."""
    unit = 2.0**-10
    changes = Changes(
        np.array([0, 1]), np.array([1.0, 5.0]), np.zeros(2), jump=np.array([4.0, 2.0])
    )
    linear = np.array([2.0, 1.0])  # slopes are -2 and -1 left of the kinks
    data = Demands.of(np.zeros(2), linear, np.full(2, 2.0**40), unit)
    excess = np.array([0, 512])
    threshold, slack = balanced(data, excess, changes)
    assert threshold == 1.0
    assert slack
    np.testing.assert_array_equal(data.demand * unit, [-2.0, 1.0])
    np.testing.assert_array_equal(data.slack * unit, [4.0, 0.0])
    np.testing.assert_array_equal(excess * unit, [-2.0, 1.5])
    for room in (data.slope, data.bent, data.jump):
        np.testing.assert_array_equal(room, 0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rounding_at_a_kink_is_taken_from_the_slack(sign):
    """In such units three slopes of 0.6 are 3, and -2.4 is -2: more than the least is asked for."""
    jump = 4.8
    changes = Changes(np.array([0]), np.zeros(1), np.zeros(1), np.array([jump]))
    linear = np.array([0.5 * jump, *[sign * 0.6] * 3])
    data = Demands.of(np.zeros(4), linear, np.full(4, 2.0**40), 1.0)
    excess = np.zeros(4, np.int64)
    threshold, slack = balanced(data, excess, changes)
    assert threshold == 0.0
    assert slack
    assert excess.sum() <= 0 <= excess.sum() + data.slack.sum()
    np.testing.assert_array_equal(excess, data.demand)
    np.testing.assert_array_equal(excess[1:], sign)
    assert abs(data.slack[0] - jump) < 1.5


def test_balance_between_bends_takes_what_is_curved_there():
    """Huber losses around 0 and 4 with delta 1, weight 3 and 1: the first stays in its parabola."""
    changes = Changes(
        np.array([0, 0, 1, 1]),
        np.array([-1.0, 1.0, 3.0, 5.0]),
        np.array([3.0, -3.0, 1.0, -1.0]),
        np.zeros(4),
    )
    data = Demands.of(np.zeros(2), np.array([3.0, 1.0]), np.full(2, 2.0**40), 2.0**-20)
    excess = np.zeros(2, np.int64)
    threshold, slack = balanced(data, excess, changes)
    assert threshold == pytest.approx(1.0 / 3.0, rel=1e-15)
    assert not slack
    assert excess.sum() == 0
    np.testing.assert_allclose(data.demand * data.unit, [-1.0, 1.0], atol=1e-5)


def cut(cluster, edges, excess):
    """Return the nodes of a cluster where excess gets stuck."""
    G = nx.DiGraph()
    G.add_nodes_from(["source", "sink", *cluster])
    for (i, j), c in edges:
        if i in cluster and j in cluster:
            G.add_edge(i, j, capacity=c)
            G.add_edge(j, i, capacity=c)
    for v in cluster:
        G.add_edge("source", v, capacity=max(excess[v], 0))
        G.add_edge(v, "sink", capacity=max(-excess[v], 0))
    residual = nx.algorithms.flow.edmonds_karp(G, "source", "sink")
    open_arcs = nx.DiGraph()
    open_arcs.add_nodes_from(residual)
    open_arcs.add_edges_from(
        (i, j) for i, j, a in residual.edges(data=True) if a["flow"] < a["capacity"]
    )
    return nx.descendants(open_arcs, "source") & set(cluster)


def naive_division(graph, capacities, q, b):
    """Divide and conquer in rational numbers, cluster by cluster, with NetworkX's cuts."""
    x = [Fraction(0)] * graph.n_nodes
    edges = list(zip(graph.edges.tolist(), map(Fraction, capacities.tolist()), strict=True))

    def divide(cluster, demand):
        slope = sum(q[v] for v in cluster)
        t = sum(demand[v] for v in cluster) / slope
        upper = cut(cluster, edges, {v: demand[v] - q[v] * t for v in cluster})
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
    division = ScalarDivision(Skeleton(graph), quadratic_slopes(q, b), capacities)
    while not division.finished:
        for task in division.tasks():
            task()
        division.conclude()
    np.testing.assert_allclose(division.x(), [float(v) for v in expected], rtol=0, atol=1e-13)


def kinked(rng, n, quarters):
    """Slopes of random sums of kinks, bends and parabolas; some nodes have none."""
    q = np.where(rng.random(n) < 0.3, rng.integers(1, 4, n), 0).astype(float)
    b = np.where(q > 0, rng.integers(-5, 6, n), 0).astype(float)
    rise, records = np.zeros(n), []
    for v in range(n):
        for _ in range(int(rng.integers(0, 4))):
            at, size = rng.integers(-8, 9) / quarters, float(rng.integers(1, 4))
            if rng.random() < 0.6:  # size |x - at|
                b[v] += size
                rise[v] += 2.0 * size
                records.append((v, at, 0.0, 2.0 * size))
            else:  # a Huber loss: slopes go from -size to size within one unit on either side
                b[v] += size
                rise[v] += 2.0 * size
                records += [(v, at - 1.0, size, 0.0), (v, at + 1.0, -size, 0.0)]
    node, *rest = zip(*records, strict=True)
    return Slopes(q, b, rise, np.array(node), *(np.array(part) for part in rest))


def naive_kinked_division(graph, capacities, slopes):
    """Divide and conquer in rational numbers with demands between two slopes."""
    q, b = ([Fraction(x) for x in part] for part in (slopes.q, slopes.b))
    changes = [tuple(map(Fraction, record)) for record in zip(*slopes[3:], strict=True)]
    edges = list(zip(graph.edges.tolist(), map(Fraction, capacities.tolist()), strict=True))
    x = [Fraction(0)] * graph.n_nodes

    def slope(v, t, right):
        """The slope of node v at t, on one side of it."""
        passed = [c for c in changes if c[0] == v and (c[1] < t or (right and c[1] == t))]
        return q[v] * t - b[v] + sum(bend * (t - at) + jump for _, at, bend, jump in passed)

    def minimizer(cluster, inflow):
        ends = sorted({c[1] for c in changes if c[0] in cluster})
        low = None
        for end in [*ends, None]:
            if end is not None and sum(slope(v, end, False) for v in cluster) < inflow:
                if sum(slope(v, end, True) for v in cluster) >= inflow:
                    return end
                low = end
                continue
            # Between low and end the sum is linear.
            probe = low if low is not None else (end - 1 if end is not None else Fraction(0))
            now = sum(slope(v, probe, True) for v in cluster)
            rate = sum(slope(v, probe + Fraction(1, 1000), True) for v in cluster) - now
            if rate == 0:
                return end if end is not None else low
            return probe + (inflow - now) / (1000 * rate)
        raise AssertionError("some slope is 0 in every component")

    def divide(cluster, inflow):
        if not any(q[v] for v in cluster) and not any(c[0] in cluster for c in changes):
            return
        t = minimizer(cluster, sum(inflow[v] for v in cluster))
        upper = cut(cluster, edges, {v: inflow[v] - slope(v, t, True) for v in cluster})
        lower = cut(cluster, edges, {v: slope(v, t, False) - inflow[v] for v in cluster})
        assert not upper & lower
        for v in set(cluster) - upper - lower:
            x[v] = t
        for part, others in ((upper, set(cluster) - upper), (lower, set(cluster) - lower)):
            sign = -1 if part == upper else 1
            shifted = dict(inflow)
            for (i, j), c in edges:
                for v, other in ((i, j), (j, i)):
                    if v in part and other in others:
                        shifted[v] += sign * c
            if part:
                divide(part, shifted)

    for part in nx.connected_components(nx.Graph([*graph.edges.tolist()])):
        divide(part, dict.fromkeys(part, Fraction(0)))
    return x


@pytest.mark.parametrize("quarters", [4, 1])  # and ties
@pytest.mark.parametrize("seed", range(2100, 2115))
def test_kinked_division_is_its_rational_twin(seed, quarters):
    """Minimizers are not unique: the flow proves both."""
    rng = np.random.default_rng(seed)
    tree = nx.random_labeled_tree(10, seed=seed)
    edges = list(tree.edges) + [(i, (i + 3) % 10) for i in range(7) if rng.random() < 0.5]
    graph = gtv.EmpiricalGraph(10, edges)
    capacities = rng.integers(1, 7, graph.n_edges) / 4
    slopes = kinked(rng, 10, quarters)
    expected = naive_kinked_division(graph, capacities, slopes)
    division = ScalarDivision(Skeleton(graph), slopes, capacities)
    while not division.finished:
        for task in division.tasks():
            task()
        division.conclude()
    hull, flow = extent(slopes)[:2], division.flow()
    for x in (division.x(), np.array([float(v) for v in expected])):
        gap, _ = scalar_gap(slopes, hull, graph.edges, capacities, x, flow)
        assert gap.total < 1e-11


def test_every_cluster_is_in_exactly_one_share():
    rng = np.random.default_rng(5)
    graph = gtv.generators.random_geometric(300, 6.0, seed=5)
    slopes = quadratic_slopes(np.ones(300), 3.0 * rng.standard_normal(300))
    division = ScalarDivision(Skeleton(graph), slopes, np.full(graph.n_edges, 0.3))
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
