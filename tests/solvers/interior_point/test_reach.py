"""Capacities far beyond what can flow are not what an interior-point method goes by."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.conic._function import CvxpyFunction
from gtvcvx.solvers.interior_point._reach import within_flow, within_reach


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


def written(lam):
    """Norms of two residuals each, on a complete graph, with tiny features."""
    rng = np.random.default_rng(1)
    n = 16
    graph = gtv.EmpiricalGraph(n, np.column_stack(np.triu_indices(n, 1)))
    X, y = 4e-6 * rng.standard_normal((n, 2, 5)), rng.standard_normal((n, 2))

    def loss(i):
        return gtv.CvxpyLoss(lambda w: cp.norm(X[i] @ w - y[i]), 5)

    return gtv.GTVProblem(graph, [loss(i) for i in range(n)], "l1", lam)


def test_slopes_of_losses_by_cvxpy_bound_capacities_too():
    problem = written(50.0)
    assert 1e-5 < within_reach(problem).capacities.max() < 1e-2
    plain = written(1e-6)
    assert within_reach(plain) is plain


def test_capacities_far_beyond_the_flow_that_was_found_are_lowered():
    problem, flow = instance(gtv.AbsoluteLoss, 1.0, 1e3), np.full((19, 3), 0.01)
    within = within_flow(problem, flow)
    np.testing.assert_allclose(within.capacities, 4.0 * np.sqrt(3.0) * 0.01)
    assert within_flow(problem, 1e3 * flow) is problem


def test_losses_by_cvxpy_that_agree_are_proved_to_agree():
    solution = written(50.0).solve(rtol=1e-6)
    assert solution.status == "optimal"
    assert solution.n_iter <= 100


def test_no_more_slopes_are_estimated_than_it_takes(monkeypatch):
    asked = []
    plain = CvxpyFunction.slope_far_out

    def slope_far_out(self, direction):
        asked.append(self)
        return plain(self, direction)

    monkeypatch.setattr(CvxpyFunction, "slope_far_out", slope_far_out)
    problem = written(1e-8)
    assert within_reach(problem) is problem
    assert len(set(map(id, asked))) == 1
    asked.clear()
    assert within_reach(written(1e3)).capacities.max() < 1e3
    assert len(set(map(id, asked))) == 16
