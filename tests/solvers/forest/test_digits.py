"""Digits where numbers of very different sizes meet: the method needs no other one after it."""

from fractions import Fraction

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality._scalar_gap import extent
from gtvcvx.solvers.forest import rooted_forest
from gtvcvx.solvers.forest._capacities import effective
from gtvcvx.solvers.scalar._problems import slopes_in

METHOD = "dynamic programming"


def tree(n, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(i)), i) for i in range(1, n)]
    return gtv.EmpiricalGraph(n, rng.permutation(n)[np.array(edges)], weights)


def solved(problem):
    solution = problem.solve(rtol=1e-9)
    assert solution.info["method"] == METHOD
    assert solution.status == "optimal"
    assert solution.gap >= 0.0
    return solution


@pytest.mark.parametrize("cls", [gtv.QuantileLoss, gtv.AbsoluteLoss, gtv.HuberLoss])
def test_factors_of_very_different_sizes(cls):
    """Kinks of a million beside kinks of one: the flow is optimal, and is left alone."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = 30
        parameters = {gtv.QuantileLoss: {"level": 0.001}, gtv.HuberLoss: {"delta": 0.1}}
        losses = cls.stack(rng.standard_normal((n, 2, 1)), rng.standard_normal((n, 2)),
                           **parameters.get(cls, {}))  # fmt: skip
        factors = rng.choice([1e-6, 1.0, 1e6], n)
        problem = gtv.GTVProblem(tree(n, seed), factors * losses, "l1", 0.1)
        solution = solved(problem)
        if cls is gtv.HuberLoss:
            reference = problem.solve(rtol=1e-9, solver="CLARABEL").value
            assert solution.value <= reference + 1e-6 * abs(reference)


@pytest.mark.parametrize("lam", [1e6, 1e12])
def test_huge_capacities_are_consensus(lam):
    """The minimizer of the sum, although curvatures differ by a factor of a million."""
    rng = np.random.default_rng(1)
    n, factors = 40, np.random.default_rng(2).choice([1e-6, 1.0], 40)
    a = rng.standard_normal((n, 1))
    problem = gtv.GTVProblem(tree(n), factors * gtv.PointLoss.stack(a), "l1", lam)
    exact = sum(Fraction(f) * Fraction(x) for f, x in zip(factors, a[:, 0], strict=True))
    mean = float(exact / sum(Fraction(f) for f in factors))
    np.testing.assert_allclose(solved(problem).w, mean, rtol=1e-9)


def test_capacities_that_flows_may_reach_stay():
    """Those beyond are smaller, and beyond still."""
    rng = np.random.default_rng(3)
    n = 20
    graph = tree(n, weights=10.0 ** rng.uniform(-6, 12, n - 1))
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.standard_normal((n, 1))), "l1", 1.0)
    forest, slopes = rooted_forest(graph), slopes_in(problem, 0)
    given = np.append(problem.capacities, 0.0)[forest.edge]
    limited = effective(forest, slopes, extent(slopes), problem.capacities)
    sent = np.abs(slopes.b).sum()
    assert (limited <= given).all()
    assert limited.max() <= 100.0 * sent
    assert (limited == given)[given < 1e-3].all()
    u = np.abs(solved(problem).u[forest.edge, 0])
    assert (u <= 0.51 * limited)[limited < given].all()


@pytest.mark.parametrize("delta", [1e3, 1e9, 1e15])
def test_huber_that_bends_far_away_is_squared(delta):
    rng = np.random.default_rng(4)
    X, y = rng.choice([1.0, -2.0], (25, 2, 1)), rng.standard_normal((25, 2))
    graph = tree(25)
    huber = solved(gtv.GTVProblem(graph, gtv.HuberLoss.stack(X, y, delta=delta), "l1", 0.3))
    squared = solved(gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), "l1", 0.3))
    np.testing.assert_allclose(huber.w, squared.w, rtol=1e-12, atol=1e-12)


def test_bounded_slopes_beside_flat_quadratics_do_not_move_the_origin():
    """The mean of quadratics alone, some steep slopes among them, is far from all solutions."""
    losses = [1e6 * gtv.HuberLoss(None, [-0.5], delta=0.5), gtv.PointLoss([1.0])]
    losses += [gtv.ZeroLoss(), gtv.QuantileLoss(None, [0.25], level=0.999)]
    graph = gtv.EmpiricalGraph(4, [(0, 2), (1, 2), (2, 3)])
    solution = solved(gtv.GTVProblem(graph, losses, "l1", 0.25))
    # What 0 and 1 pull with is the capacity; 3 pulls with .001 to the left at most.
    low = Fraction(-1, 2) + Fraction(1, 8) / 10**6
    np.testing.assert_allclose(solution.w[0, 0], float(low), rtol=1e-15)
    np.testing.assert_allclose(solution.w[1, 0], 0.875, rtol=1e-14)
