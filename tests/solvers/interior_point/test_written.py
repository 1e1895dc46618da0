"""Losses and penalties that are known by CVXPY's rules alone, and p-norms, as conic programs."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Expired, now, until
from gtvcvx.solvers.driver import Limits, missing
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint

PENALTIES = {
    "l1": "l1",
    "squared": "squared",
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
    method = InteriorPoint(problem, 1e-6)
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(1)
    found = method.proposal()
    w = problem.losses.project_domain(found.w)
    reference = problem.solve(solver="CLARABEL").value
    assert problem.value(w) == pytest.approx(reference, abs=1e-6)
    gap, _ = problem.bounds.gap(w, found.u)
    assert 0.0 <= gap.total <= 1e-6


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
