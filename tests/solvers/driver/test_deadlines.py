"""Limits and Ctrl-C that strike anywhere: in set-up, repairs and first iterations."""

import os
import signal
import time

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Expired, look
from gtvcvx.duality._bounds import DualBounds
from gtvcvx.solvers import _auto
from gtvcvx.solvers.forest import DynamicProgram
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from verify import _deadline


def instances():
    """Problems of every kind of set-up: repair, division, domains, losses by CVXPY."""
    rng = np.random.default_rng(0)
    n = 60
    path = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    owner = np.repeat(np.arange(n), 3)
    X = rng.standard_normal((3 * n, 2))
    y = X.sum(axis=1) + 3.0 * rng.standard_normal(3 * n)
    by_cvxpy = [
        gtv.CvxpyLoss(lambda w, a=a: cp.norm1(w - a) + cp.sum_squares(w), 2) for a in (1.0, 2.0)
    ]
    rank_one = gtv.SquaredLoss.stack(rng.standard_normal((n, 1, 2)), rng.standard_normal((n, 1)))
    return {
        "squared": gtv.GTVProblem(path, rank_one, "l2", 0.05),
        "scalar": gtv.GTVProblem(path, gtv.PointLoss.stack(rng.standard_normal((n, 1))), "l2", 0.3),
        "kinks": gtv.GTVProblem(
            gtv.generators.grid(6, 10), gtv.AbsoluteLoss.from_rows(X[:, :1], y, owner), "l2", 0.3
        ),
        "logistic": gtv.GTVProblem(path, gtv.LogisticLoss.from_rows(X, (y > 0) * 1.0, owner)),
        "absolute": gtv.GTVProblem(path, gtv.AbsoluteLoss.from_rows(X, y, owner), "l1"),
        "cvxpy": gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), by_cvxpy),
    }


@pytest.fixture(scope="module", params=list(instances()))
def any_problem(request):
    problem = instances()[request.param]
    return problem, problem.solve(rtol=1e-6, max_iter=3000)


def assert_something_to_return(solution, optimum):
    assert solution.status == "user_limit"
    assert np.isfinite(solution.gap)
    assert solution.gap >= solution.value - optimum.value - 1e-9
    assert solution.dual_value <= optimum.value + 1e-9
    assert solution.history[-1].value == solution.value


class Clock:
    """Says that the deadline has passed at the k-th look and ever after."""

    def __init__(self, monkeypatch, looks):
        self.left = looks
        for name in WITH_LOOKS:
            monkeypatch.setattr(f"gtvcvx.{name}.look", self.look)

    def look(self):
        if _deadline._deadline.get() < np.inf:
            self.left -= 1
            if self.left < 0:
                raise Expired


WITH_LOOKS = (
    "_deadline",
    "compiled._conjugate_gradients",
    "conic._function",
    "duality._bounds",
    "duality._conservation",
    "duality._polyhedral",
    "duality._refinement",
    "losses.batched._cvxpy",
    "solvers.interior_point._written",
    "solvers.second_order._second_order",
    "solvers.divide._division",
    "solvers.divide._network",
    "solvers.divide._scalar_division",
    "solvers.forest._split",
    "solvers.scalar._slopes",
)


@pytest.mark.parametrize("looks", [0, 1, 2, 3, 8, 30])
def test_the_deadline_may_strike_anywhere(any_problem, monkeypatch, looks):
    problem, optimum = any_problem
    problem = gtv.GTVProblem(problem.graph, problem.losses, problem.penalty, problem.lam)
    clock = Clock(monkeypatch, looks)
    solution = problem.solve(rtol=1e-12, max_iter=300, time_limit=1e6)
    if clock.left < 0:
        assert_something_to_return(solution, optimum)


@pytest.mark.usefixtures("iterations_alone")
@pytest.mark.parametrize(
    "where",
    ["Ordering", "Split", "missing", "PrimalDual", "Coarsening", "Division"],
)
def test_ctrl_c_in_the_set_up_returns_something(any_problem, monkeypatch, where):
    problem, optimum = any_problem
    asked = []

    def interrupted(*arguments):
        asked.append(where)
        raise KeyboardInterrupt

    monkeypatch.setattr(_auto, "ORDERING_EDGES", 0)
    if where in ("Ordering", "Split"):
        monkeypatch.setattr(getattr(_auto, where), "of", interrupted)
    else:
        monkeypatch.setattr(_auto, where, interrupted)
    solution = problem.solve(rtol=1e-12, max_iter=30)
    if asked:
        assert_something_to_return(solution, optimum)
        assert solution.n_iter == 0


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_in_the_trees_of_a_graph_is_the_end_of_its_rest_too(monkeypatch):
    rng = np.random.default_rng(0)
    n = 400  # 300 of them in a cycle, the others in a path
    edges = [*((i, (i + 1) % 300) for i in range(300)), *((i, i + 1) for i in range(300, n - 1))]
    losses = gtv.AbsoluteLoss.stack(rng.standard_normal((n, 3, 1)), rng.standard_normal((n, 3)))
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), losses, "l2", 0.3)
    optimum, run = problem.solve(rtol=1e-8), DynamicProgram.run

    def interrupted(self, n_iter):
        run(self, n_iter)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(DynamicProgram, "run", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        solution = problem.solve(rtol=1e-12)
    finally:
        signal.signal(signal.SIGINT, before)
    assert_something_to_return(solution, optimum)


def test_the_first_call_is_one_iteration(problem, monkeypatch):
    """Whoever needs seconds for an iteration looks at the clock after the first."""
    asked = []
    run = PrimalDual.run
    monkeypatch.setattr(PrimalDual, "run", lambda self, k: (asked.append(k), run(self, k)))
    problem.solve(rtol=1e-5)
    assert asked[0] == 1


def test_a_check_that_takes_long_begins_in_time(problem, monkeypatch):
    """The gap is that of a repaired flow, although a repair takes longer than what comes last."""
    repair, begun = DualBounds.repaired, []

    def slow(self, u, w=None, enough=0.0):
        begun.append(time.perf_counter())
        time.sleep(0.5)
        look()
        return repair(self, u, w, enough)

    reference = problem.solve(rtol=1e-15, max_iter=2000)
    monkeypatch.setattr(DualBounds, "repaired", slow)
    solution = problem.solve(rtol=1e-15, time_limit=2.0, max_iter=10**9)
    assert len(begun) >= 2
    assert solution.seconds < 3.0
    assert solution.rel_gap < max(reference.rel_gap, 1e-3)


def test_many_losses_of_users_are_not_prepared_for_a_rough_bound(monkeypatch):
    """Where CVXPY's rules say that a loss is not negative, its bound is 0; else none."""
    monkeypatch.setattr("gtvcvx.losses.batched._cvxpy._AFFORDABLE", 1)
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    for of, known in ((cp.sum_squares, True), (lambda x: cp.sum_squares(x) - 1.0, False)):
        losses = [gtv.CvxpyLoss(lambda w, of=of, a=a: of(w - a), 2) for a in (1.0, 2.0, 3.0)]
        problem = gtv.GTVProblem(graph, losses)
        with monkeypatch.context() as patch:
            Clock(patch, 0)
            solution = problem.solve(time_limit=1e6)
        assert solution.status == "user_limit"
        assert solution.value == problem.value(np.zeros((3, 2)))
        assert not any(loss.function(2).prepared for loss in losses)
        assert np.isfinite(solution.gap) == known
        assert solution.gap >= solution.value - problem.solve().dual_value
        assert repr(solution)
