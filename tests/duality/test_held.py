"""No solution is larger than what ridges, l1 terms, points, boxes and the penalty allow."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality._bounds import DualBounds
from gtvcvx.duality._held import HeldSizes
from gtvcvx.losses import stacked_from_terms

N, D = 9, 3
ROWS = ("squared", "poisson", "absolute")
HOLDING = ("ridge", "l1", "point", "box", "simplex")


def problem(rows, holding, penalty, seed):
    """A path with weak edges and a lonely node; data at every second node."""
    rng = np.random.default_rng(seed)
    own = np.array([0, 2, 4, 6, 8])
    node = np.repeat(own, 2)
    X = rng.standard_normal((len(node), D)) * [1.0, 30.0, 0.1]
    y = 10.0 * rng.standard_normal(len(node))
    if rows == "poisson":
        X, y = X / 30.0, np.floor(np.abs(y))
    fields = {
        "ridge": {"mu": rng.uniform(0.01, 1.0, 5)},
        "l1": {"kappa": rng.uniform(0.01, 1.0, 5)},
        "point": {"a": 5.0 * rng.standard_normal((5, D))},
        "box": {"lower": np.full((5, D), -2.0), "upper": np.full((5, D), 3.0)},
        "simplex": {"total": np.full(5, 2.0)},
    }
    terms = [
        {"kind": rows, "node": node, "X": X, "y": y},
        {"kind": holding, "node": own, **fields[holding]},
    ]
    edges = np.array([[i, i + 1] for i in range(7)])
    graph = gtv.EmpiricalGraph(N, edges, 10.0 ** rng.uniform(-2, 1, 7))
    return gtv.GTVProblem(graph, stacked_from_terms(terms, D), penalty, 0.3)


def held(problem):
    return HeldSizes(
        problem.losses.plain, problem.graph, problem.penalty, problem.capacities, problem.dim
    )


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared"])
@pytest.mark.parametrize("holding", HOLDING)
@pytest.mark.parametrize("rows", ROWS)
def test_solutions_are_no_larger(rows, holding, penalty):
    for seed in range(3):
        p = problem(rows, holding, penalty, seed)
        found = p.solve(rtol=1e-8)
        sizes = held(p).of(found.value)
        assert (np.abs(found.w) <= sizes * (1.0 + 1e-6)).all()
        # Whatever is worse allows more.
        assert (held(p).of(found.value + 1.0) >= sizes).all()
        # Every node with a way to one that is held is held, but for quadratic penalties.
        linked = np.ones(N, bool) if penalty != "squared" else np.arange(N) % 2 == 0
        np.testing.assert_array_equal(np.isfinite(sizes).all(axis=1), linked)


def test_it_is_what_the_level_allows():
    graph = gtv.EmpiricalGraph(3, [[0, 1], [1, 2]], [2.0, 0.5])
    terms = [{"kind": "ridge", "node": np.array([0]), "mu": np.array([8.0])}]
    p = gtv.GTVProblem(graph, stacked_from_terms(terms, 1), "l2", 1.0)
    # 4 w^2 <= 16; beyond the edges of 2 and 1/2 coordinates are off by 16 / 0.5.
    np.testing.assert_allclose(held(p).of(16.0)[:, 0], [2.0, 34.0, 34.0], rtol=1e-6)


def test_the_stronger_of_two_ways_counts():
    graph = gtv.EmpiricalGraph(3, [[0, 1], [1, 2], [0, 2]], [2.0, 4.0, 1e-9])
    terms = [{"kind": "l1", "node": np.array([0]), "kappa": np.array([4.0])}]
    p = gtv.GTVProblem(graph, stacked_from_terms(terms, 1), "l1", 1.0)
    np.testing.assert_allclose(held(p).of(16.0)[:, 0], [4.0, 12.0, 12.0], rtol=1e-6)


@pytest.mark.parametrize("objective", [0.0, 16.0])
def test_nothing_is_held_across_edges_that_cost_nothing(objective):
    graph = gtv.EmpiricalGraph(3, [[0, 1], [1, 2]])
    terms = [{"kind": "ridge", "node": np.array([0]), "mu": np.array([8.0])}]
    capacities = np.array([2.0, 0.0])
    sizes = HeldSizes(terms, graph, gtv.L2Norm(), capacities, 1).of(objective)
    assert sizes[0, 0] == pytest.approx(np.sqrt(objective) / 2.0)
    assert np.isinf(sizes[2, 0])


def test_values_below_zero_count_from_the_least_one():
    """``exp(z) - 9 z`` is 9 - 9 log 9 at least, about -10.8."""
    graph = gtv.EmpiricalGraph(2, [[0, 1]])
    node, one = np.array([0]), np.ones(1)
    terms = [
        {"kind": "poisson", "node": node, "X": np.ones((1, 1)), "y": 9.0 * one},
        {"kind": "ridge", "node": node, "mu": 2e-3 * one},
    ]
    p = gtv.GTVProblem(graph, stacked_from_terms(terms, 1), "l2", 1.0)
    least = 9.0 - 9.0 * np.log(9.0)
    np.testing.assert_allclose(held(p).of(-9.0)[0], np.sqrt((-9.0 - least) / 1e-3), rtol=1e-6)


def test_factors_of_zero_hold_nothing():
    graph = gtv.EmpiricalGraph(2, [[0, 1]])
    terms = [
        {"kind": "ridge", "node": np.array([0]), "mu": np.zeros(1)},
        {"kind": "l1", "node": np.array([0]), "kappa": np.zeros(1)},
    ]
    p = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.zeros((2, 1))), "l2", 1.0)
    assert np.isinf(HeldSizes(terms, graph, p.penalty, p.capacities, 1).of(0.0)).all()


def test_rows_alone_hold_nothing():
    graph = gtv.EmpiricalGraph(2, [[0, 1]])
    losses = {0: gtv.SquaredLoss(np.ones((1, 1)), np.ones(1))}
    assert held(gtv.GTVProblem(graph, losses, "l2", 1.0)).of(1.0) is None


def test_leaks_pair_with_no_more_than_that():
    """An intercept beside nearly equal columns far from zero: data ask for solutions of 1e7."""
    rng = np.random.default_rng(4)
    n, d, own = 12, 4, np.array([3, 7, 9])
    X = 1e4 + 1e-3 * rng.standard_normal((3, d))
    X[:, 0] = 1.0
    terms = [
        {"kind": "squared", "node": own, "X": X, "y": 3e3 + rng.standard_normal(3)},
        {"kind": "ridge", "node": own, "mu": np.full(3, 0.1)},
    ]
    edges = [[i, (i + k) % n] for i in range(n) for k in (1, 2)]
    p = gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), stacked_from_terms(terms, d), "l2", 10.0)
    found = p.solve(rtol=1e-8)
    bounds = DualBounds(p.graph, p.losses, p.penalty, p.capacities)
    w = found.w
    far = bounds._as_far(np.abs(w).max(axis=0), w, p.losses.value(w))
    assert (far >= np.abs(w)).all()
    largest = np.sqrt(2.0 * found.value / 0.1) + found.value / 10.0
    assert far.max() <= 1.01 * largest < 1e-3 * bounds._terms.alone.max()
