"""Losses and penalties that are known by CVXPY's rules alone, and p-norms, as conic programs."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Expired, now, until
from gtvcvx.solvers.driver import Limits, missing
from gtvcvx.solvers.interior_point import _proof
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._program import Units

PENALTIES = {
    "l1": "l1",
    "squared": "squared",
    "singular": gtv.Quadratic(np.array([[1.0, 2.0], [2.0, 4.0]])),
    "p below 2": gtv.PNorm(1.5),
    "p above 2": gtv.PNorm(3.0),
    "norm": gtv.CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.norm1(v), norm=True),
    "huber": gtv.CvxpyPenalty(lambda v: cp.sum(cp.huber(v, 1.0))),
}


def instance(penalty):
    """Nodes of the library's losses beside those with squares, exponential and PSD cones."""
    rng = np.random.default_rng(0)
    graph = gtv.EmpiricalGraph(6, [(i, i + 1) for i in range(5)] + [(0, 4)])
    X, y = rng.standard_normal((6, 4, 2)), rng.standard_normal((6, 4))
    builds = (
        lambda w: cp.sum_squares(X[0] @ w - y[0]) + 0.1 * cp.norm1(w),
        lambda w: cp.sum(cp.logistic(X[1] @ w)),
        lambda w: (cp.norm(X[2] @ w - y[2]), [w >= -1.0]),
        lambda w: cp.lambda_max(cp.diag(w)) + cp.sum_squares(w),
    )
    each = [gtv.CvxpyLoss(build, 2) for build in builds]
    each += [gtv.AbsoluteLoss(X[4], y[4]), gtv.HuberLoss(X[5], y[5], 0.5)]
    return gtv.GTVProblem(graph, each, PENALTIES[penalty], 0.3)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_solution_and_its_flow_are_those_of_cvxpy(penalty):
    problem = instance(penalty)
    assert missing(problem, InteriorPoint.requires) is None
    method = InteriorPoint(problem, 3e-7)
    method.begin(Limits(3e-7, 1000), np.inf)
    method.run(1)
    found = method.proposal()
    w = problem.losses.project_domain(found.w)
    reference = problem.solve(solver="CLARABEL").value
    assert problem.value(w) == pytest.approx(reference, abs=1e-6)
    gap, _ = problem.bounds.gap(w, found.u)
    assert 0.0 <= gap.total <= 1e-6


@pytest.mark.parametrize(
    ("features", "targets", "penalty"), [(1.0, 1e5, "squared"), (1e-5, 1.0, "squared")]
)
def test_norms_of_residuals_in_any_unit_are_solved(features, targets, penalty):
    """Large targets seemed infeasible; jumps of 1e-7 beside points of 1e5 are no flow."""
    rng, n = np.random.default_rng(2), 20
    graph = gtv.EmpiricalGraph(n, [(0, i) for i in range(1, n)])
    X, noise = features * rng.standard_normal((n, 9, 2)), rng.standard_normal((n, 9))
    y = targets * (X @ [1.0, -1.0] / features + noise)

    def build(i):
        return lambda w: cp.norm(X[i] @ w - y[i])

    each = [gtv.CvxpyLoss(build(i), 2) if i % 3 else gtv.ZeroLoss() for i in range(n)]
    problem = gtv.GTVProblem(graph, each, PENALTIES.get(penalty, penalty), 100.0)
    method = InteriorPoint(problem, 1e-6)
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(1)
    found = method.proposal()
    gap, _ = problem.bounds.gap(found.w, found.u)
    assert 0.0 <= gap.total <= 1e-7 * problem.value(found.w)


def test_the_default_solver_begins_with_it():
    solution = instance("norm").solve()
    assert solution.status == "optimal"
    assert solution.info["method"] == "interior point"
    assert solution.n_iter < 60


def test_the_deadline_strikes_between_conic_forms():
    with until(now() - 1.0), pytest.raises(Expired):
        InteriorPoint(instance("l1"), 1e-6)


def test_iterations_pay_for_every_edge_by_cvxpy():
    """With models of the losses, too: those were taken for a thousand times as fast."""
    rng = np.random.default_rng(1)
    graph = gtv.EmpiricalGraph(9, [(i, i + 1) for i in range(8)])
    losses = gtv.LogisticLoss.stack(
        rng.standard_normal((9, 4, 2)), rng.integers(0, 2, (9, 4)) * 1.0
    )
    written = gtv.CvxpyPenalty(lambda v: cp.sum(cp.huber(v, 1.0)))
    prices = [
        Alternative(gtv.GTVProblem(graph, losses, penalty, 0.3), 1e-6, modelled).iteration
        for penalty in ("l1", gtv.PNorm(3.0), written)
        for modelled in (True, False)
    ]
    assert prices[2] > prices[0]
    assert min(prices[4:]) > 8 * 5e4 > max(prices[:4])
    solution = gtv.GTVProblem(graph, losses, written, 0.3).solve()
    assert solution.status == "optimal"
    assert solution.info["method"] == "interior point"


@pytest.mark.parametrize("seed", [3, 4])
def test_columns_that_are_all_but_dependent_are_regularized_lightly(seed):
    """An intercept beside columns that hardly vary, in losses that no other method knows."""
    rng = np.random.default_rng(seed)
    n, d = 12, 6
    X, y = rng.standard_normal((n, 4, d)) + 1e4, 3.0 * rng.standard_normal((n, 4)) + 5.0
    X[:, :, 0] = 1.0
    losses = [gtv.CvxpyLoss(lambda w, i=i: cp.norm(X[i] @ w - y[i]), dim=d) for i in range(n)]
    edges = [(i, j) for i in range(n) for j in (i + 1, i + 2) if j < n]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), losses, "squared", 0.05)
    solution = problem.solve(rtol=1e-6, max_iter=200)
    assert solution.status == "optimal"
    assert solution.n_iter <= 80


@pytest.mark.parametrize("seed", range(3))
def test_kinked_rows_in_raw_units_take_few_steps(seed):
    """With one side of each row in the cost nearly all of it cancelled: 23 to 35 steps."""
    rng, n = np.random.default_rng(seed), 40
    mean, std = np.array([(1.0, 0.0), (1985.0, 20.0), (3e4, 1e4), (0.05, 0.02), (40.0, 25.0)]).T
    z = rng.standard_normal((n, 2, 5))
    y = 1e5 + 9e4 * (z.sum(axis=2) / 2.0 + 0.3 * rng.standard_t(3, (n, 2)))
    each = [gtv.AbsoluteLoss(mean + std * z[i], y[i]) + gtv.L1(0.1) for i in range(n)]
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 6)
    method = InteriorPoint(gtv.GTVProblem(graph, each, PENALTIES["norm"], 20.0))
    plain = Units(np.ones(method._program.size), 1.0, np.zeros(method._program.size))
    assert method._solver(1e-8, plain).solve().iterations <= 20


@pytest.mark.parametrize("seed", range(2))
def test_multipliers_that_miss_a_little_are_moved(seed, monkeypatch):
    """Nodes agree, in large numbers; the gap was 1 else, and twice as many iterations followed."""
    rng = np.random.default_rng(seed)
    n, rows, d = 24, 6, 9
    X, y = rng.standard_normal((n, rows, d)), 1e5 * rng.standard_normal((n, rows))
    losses = [gtv.AbsoluteLoss(X[i], y[i]) if i % 2 else gtv.ZeroLoss() for i in range(n)]
    graph = gtv.EmpiricalGraph(n, [(0, i) for i in range(1, n)])
    penalty = gtv.CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.norm1(v), norm=True)
    problem = gtv.GTVProblem(graph, losses, penalty, 20.0)
    solution = problem.solve(rtol=1e-6)
    assert solution.status == "optimal"
    monkeypatch.setattr(_proof, "balanced", lambda *_: None)
    longer = problem.solve(rtol=1e-6)
    assert 1.5 * solution.n_iter < longer.n_iter
    assert solution.dual_value <= longer.value
    assert longer.dual_value <= solution.value
