"""Capacities far beyond what can flow are not what an interior-point method goes by."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.interior_point._reach import within_reach


def instance(kind, features, lam):
    rng = np.random.default_rng(2)
    n = 20
    graph = gtv.EmpiricalGraph(n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))
    X = features * rng.standard_normal((n, 4, 3))
    y = rng.standard_normal((n, 4))
    return gtv.GTVProblem(graph, [kind(X[i], y[i]) for i in range(n)], "l2", lam)


@pytest.mark.parametrize("lam", [1e-3, 1e3])
def test_tiny_features_and_any_lambda_are_solved(lam):
    problem = instance(gtv.AbsoluteLoss, 1e-5, lam)
    solution = problem.solve(rtol=1e-7)
    assert solution.status == "optimal"
    assert solution.n_iter <= 100
    # All nodes are fused: one model for all.
    one = gtv.GTVProblem(
        gtv.EmpiricalGraph(1, []),
        [gtv.AbsoluteLoss(*(_all(problem, name) for name in ("X", "y")))],
        "l2",
        1.0,
    )
    assert solution.value == pytest.approx(20 * one.solve(rtol=1e-9).value, rel=1e-6)


def _all(problem, name):
    return problem.losses.terms()[0][name]


def test_capacities_are_smaller_only_where_they_are_far_too_large():
    problem = instance(gtv.AbsoluteLoss, 1e-5, 1e3)
    within = within_reach(problem)
    features = np.abs(problem.losses.terms()[0]["X"]).sum() / 4
    np.testing.assert_allclose(within.capacities, 4.0 * features)
    squared, with_zeros = instance(gtv.SquaredLoss, 1e-5, 1e3), instance(gtv.SquaredLoss, 0.0, 1e3)
    for other in (instance(gtv.AbsoluteLoss, 1.0, 1.0), squared, with_zeros):
        assert within_reach(other) is other
