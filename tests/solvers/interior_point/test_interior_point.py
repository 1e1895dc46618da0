"""The interior-point method agrees with Clarabel behind CVXPY, for every block it is made of."""

import os
import signal

import cvxpy as cp
import numpy as np
import pytest
from _instances import cases, reference

import gtvcvx as gtv
from gtvcvx.losses.batched._cvxpy import BatchedCvxpy
from gtvcvx.solvers.driver import Limits, Run, missing
from gtvcvx.solvers.interior_point import _interior_point
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._losses import reduced_rows

EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4))
PENALTIES = ("l1", "l2", "linf", "squared", "quadratic")


def solved(problem, **limits):
    run = Run(problem, Limits(1e-9, limits.pop("max_iter", 200), **limits), "TEST")
    run.drive(InteriorPoint(problem))
    return run


def rows(kind, rng, d, m=4):
    X = rng.standard_normal((m, d))
    z = X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(m)
    signs = np.where(z > 0.0, 1.0, -1.0)
    return {
        "squared": lambda: gtv.SquaredLoss(X, z),
        "point": lambda: gtv.PointLoss(X[0]),
        "ridge": lambda: gtv.PointLoss(X[0]) + gtv.Ridge(np.arange(1.0, d + 1.0)),
        "l1": lambda: gtv.SquaredLoss(X, z) + gtv.L1(0.2),
        "box": lambda: gtv.SquaredLoss(X, z) + gtv.Box(-0.2, 0.4),
        "simplex": lambda: gtv.SquaredLoss(X, z) + gtv.Simplex(1.5),
        "absolute": lambda: gtv.AbsoluteLoss(X, z),
        "quantile": lambda: gtv.QuantileLoss(X, z, 0.8),
        "hinge": lambda: gtv.HingeLoss(X, signs) + gtv.Ridge(0.1),
        "huber": lambda: gtv.HuberLoss(X, z, 0.4),
        "pseudohuber": lambda: gtv.PseudoHuberLoss(X, z, 0.4),
        "logistic": lambda: gtv.LogisticLoss(X, (signs + 1.0) / 2.0, 0.1),
        "poisson": lambda: gtv.PoissonLoss(X, np.round(np.exp(np.clip(z, -2, 1)))) + gtv.Ridge(0.1),
    }[kind]()


KINDS = [
    "squared",
    "point",
    "ridge",
    "l1",
    "box",
    "simplex",
    "absolute",
    "quantile",
    "hinge",
    "huber",
    "pseudohuber",
    "logistic",
    "poisson",
]


# Any two of kind, penalty and d together; which third comes with them is the business of the fuzz.
PAIRS = [
    (kind, penalty, 1 + (i + j) % 3)
    for i, kind in enumerate(KINDS)
    for j, penalty in enumerate(PENALTIES)
]


def instance(kind, penalty, d, lam=0.1):
    """Six nodes in a ring with a chord; two of them have no data."""
    rng = np.random.default_rng([KINDS.index(kind), d])
    graph = gtv.EmpiricalGraph(6, EDGES, rng.uniform(0.5, 2.0, len(EDGES)))
    losses = [rows(kind, rng, d) if i not in (2, 4) else gtv.ZeroLoss() for i in range(6)]
    if penalty == "quadratic":
        root = rng.standard_normal((d, d))
        return gtv.GTVProblem(graph, losses, gtv.Quadratic(root @ root.T), lam)
    return gtv.GTVProblem(graph, losses, penalty, lam)


@pytest.mark.parametrize(("kind", "penalty", "d"), PAIRS)
def test_it_agrees_with_clarabel_behind_cvxpy(kind, penalty, d):
    problem = instance(kind, penalty, d)
    value = problem.solve(solver="CLARABEL").value
    method = InteriorPoint(problem)
    method.begin(Limits(1e-9, 200), np.inf)
    method.run(1)
    w, u, *_ = method.proposal()
    assert problem.value(problem.losses.project_domain(w)) == pytest.approx(value, abs=1e-6)
    # The flow has the sign of `Solution.u`: it proves the optimum.
    assert problem.lower_bound(u)[0] == pytest.approx(value, abs=1e-6)


CASES = cases(penalties=["l1", "l2", "linf", "squared", "quadratic"])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gaps_are_small_on_every_shape_of_graph(case):
    problem = case.problem()
    run = solved(problem)
    assert run.incumbent.rel_gap <= 1e-7
    assert run.incumbent.value == pytest.approx(reference(case).value, abs=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES[:4])
@pytest.mark.parametrize("n", [1, 4])
def test_graphs_without_edges(n, penalty):
    rng = np.random.default_rng(0)
    losses = [rows("squared", rng, 2) for _ in range(n)]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, []), losses, penalty, 0.1)
    run = solved(problem)
    assert run.satisfied
    assert run.incumbent.u.shape == (0, 2)


@pytest.mark.parametrize("penalty", PENALTIES[:4])
def test_losses_that_are_all_zero(penalty):
    graph = gtv.EmpiricalGraph(3, [(0, 1)])
    problem = gtv.GTVProblem(graph, gtv.StackedLoss([], 2), penalty, 0.1)
    assert solved(problem).satisfied


def test_rows_of_a_node_are_reduced_to_as_many_as_it_has_coordinates():
    rng = np.random.default_rng(1)
    node = np.repeat([0, 2, 3, 5], [7, 2, 4, 9])
    X, y, w = rng.standard_normal((22, 3)), rng.standard_normal(22), rng.standard_normal((2, 6, 3))
    Z, t, at = reduced_rows(X, y, node)
    assert np.bincount(at).tolist() == [3, 0, 2, 3, 0, 3]

    def squares(X, y, node, w):
        residual = np.einsum("rk,rk->r", X, w[node]) - y
        return np.bincount(node, residual**2)

    for_both = [squares(X, y, node, v) - squares(Z, t, at, v) for v in w]
    np.testing.assert_allclose(*for_both, atol=1e-10)


def test_the_time_limit_and_the_largest_number_of_iterations_leave_the_incumbent():
    problem = instance("logistic", "l2", 2)
    few = solved(problem, max_iter=2)
    assert few.n_iter == 2
    assert few.stopped
    run = Run(problem, Limits(1e-9, 200), "TEST")
    start = problem.solve()
    run.consider(start.w, start.u)
    before = run.incumbent.gap
    method = InteriorPoint(problem)
    method.begin(Limits(1e-9, 200, time_limit=1e-9), np.inf)
    method.run(1)
    assert method.finished
    assert method.proposal() is None
    assert run.incumbent.gap == before


def test_failures_propose_nothing(monkeypatch):
    monkeypatch.setattr(_interior_point, "USEFUL", ())
    run = solved(instance("squared", "l2", 2))
    assert not run.satisfied
    assert np.isinf(run.incumbent.gap)


def test_ctrl_c_ends_clarabel_and_the_run(monkeypatch):
    class Interrupting:
        def __init__(self, solver):
            self.solver = solver

        def set_termination_callback(self, callback):
            def with_ctrl_c(info):
                os.kill(os.getpid(), signal.SIGINT)
                return callback(info)

            self.solver.set_termination_callback(with_ctrl_c)

        def solve(self):
            return self.solver.solve()

    make = InteriorPoint._solver
    monkeypatch.setattr(InteriorPoint, "_solver", lambda *arguments: Interrupting(make(*arguments)))
    problem = instance("squared", "l2", 2)
    run = Run(problem, Limits(1e-9, 200), "TEST")
    run.consider(np.zeros((6, 2)), np.zeros((7, 2)))
    before = run.incumbent.gap
    run.drive(InteriorPoint(problem))
    assert run.stopped
    assert run.incumbent.gap == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_it_cannot_solve_is_declared(monkeypatch):
    problem = instance("squared", "l2", 2)
    graph, losses = problem.graph, problem.losses
    assert missing(problem, InteriorPoint.requires) is None
    by_cvxpy = gtv.CvxpyPenalty(cp.norm, norm=True, dim=2)
    penalty = gtv.GTVProblem(graph, losses, by_cvxpy, 0.1)
    opaque = gtv.GTVProblem(graph, {0: gtv.CvxpyLoss(cp.sum_squares, dim=2)}, "l2", 0.1)
    for known in (penalty, opaque):
        assert missing(known, InteriorPoint.requires) is None
    # As somebody's own, which says nothing about itself.
    monkeypatch.setattr(gtv.CvxpyPenalty, "written", lambda self, dim: None)
    assert "a norm or a quadratic" in missing(penalty, InteriorPoint.requires)
    monkeypatch.setattr(BatchedCvxpy, "written", lambda self: None)
    assert "known by their data" in missing(opaque, InteriorPoint.requires)
    n = 20_000
    chain = gtv.EmpiricalGraph(n, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1))
    large = gtv.GTVProblem(chain, gtv.PointLoss.stack(np.zeros((n, 2))), "l2", 0.1)
    assert "at most" in missing(large, InteriorPoint.requires)
