"""The default solver switches where iterations stall, and nowhere else; counts decide."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits, Proposal
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._stalling import Stalling


def raw_units(n=100, lam=0.1, penalty="linf"):
    """One row a node: intercept, year, income, a rate, and an age."""
    rng = np.random.default_rng(1)
    columns = (
        np.ones(n),
        1960.0 + rng.integers(0, 50, n),
        3e4 * np.exp(0.4 * rng.standard_normal(n)),
        0.05 + 0.03 * rng.random(n),
        20.0 + 10.0 * rng.random(n),
    )
    X = np.stack(columns, axis=1)
    w = np.array([[1.0, 0.01, 1e-4, 3.0, 0.2], [2.0, -0.01, 2e-4, -3.0, 0.1]])
    y = np.einsum("nk,nk->n", X, w[(np.arange(n) >= n // 2).astype(int)])
    y += 0.1 * rng.standard_normal(n)
    edges = sorted({(i, (i + k) % n) for i in range(n) for k in (1, 2, 7) if i + k < n})
    graph = gtv.EmpiricalGraph(n, edges)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X[:, None], y[:, None]), penalty, lam)


class Falling:
    """An iteration whose gap falls by a given factor from check to check."""

    stride, finished = 10, False

    def __init__(self):
        self.n_iter = 0

    def begin(self, limits, rel_gap):
        pass

    def run(self, n_iter):
        self.n_iter += n_iter

    def due(self):
        return True

    def proposal(self, final=False):
        return Proposal(np.zeros((1, 1)), np.zeros((0, 1)), 1.0)

    def learn(self, rel_gap):
        pass

    def info(self):
        return {}


def checked(cost, gaps):
    """Return an iteration with a check every thousand iterations, after some of them."""
    method = Stalling(Falling(), lambda: cost)
    method.begin(Limits(1e-6, 10**6), np.inf)
    for gap in gaps:
        method.run(1000)
        method.learn(gap)
        if method.finished:
            break
    return method


@pytest.mark.parametrize("penalty", ["l1", "linf"])
def test_a_table_in_raw_units_is_solved(penalty):
    problem = raw_units(penalty=penalty)
    solution = problem.solve()
    assert solution.status == "optimal"
    assert solution.rel_gap <= 1e-6
    assert solution.info["switched"] is True
    assert solution.info["method"] == "primal-dual, interior point"
    assert solution.n_iter < 20_000
    assert solution.value == pytest.approx(problem.solve(solver="CLARABEL").value, rel=1e-5)
    counts = [record.n_iter for record in solution.history]
    assert counts == sorted(set(counts))


def test_the_same_run_gives_the_same_result():
    first, second = raw_units().solve(), raw_units().solve()
    assert first.n_iter == second.n_iter
    np.testing.assert_array_equal(first.w, second.w)
    np.testing.assert_array_equal(first.u, second.u)


@pytest.mark.parametrize("limit", [{"max_iter": 2000}, {"max_iter": 100}])
def test_limits_before_the_switch_end_the_run(limit):
    solution = raw_units().solve(**limit)
    assert solution.status == "user_limit"
    assert solution.n_iter == limit["max_iter"]
    assert solution.info["switched"] is False
    assert solution.info["method"] == "primal-dual"


def test_where_the_interior_point_method_fails_iterations_go_on(monkeypatch):
    monkeypatch.setattr(InteriorPoint, "proposal", lambda self, final=False: None)
    solution = raw_units().solve(max_iter=15_000)
    assert solution.n_iter == 15_000
    assert solution.status == "user_limit"
    assert solution.info["switched"] is True
    assert np.isfinite(solution.gap)


def test_ctrl_c_during_the_interior_point_method_returns_the_incumbent(monkeypatch):
    def interrupted(self, n_iter):
        raise KeyboardInterrupt

    monkeypatch.setattr(InteriorPoint, "run", interrupted)
    solution = raw_units().solve()
    assert solution.status == "user_limit"
    assert solution.info["switched"] is True
    assert solution.gap == pytest.approx(solution.value - solution.dual_value)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_runs_that_converge_do_not_switch(penalty):
    rng = np.random.default_rng(0)
    graph = gtv.EmpiricalGraph(60, [(i, i + 1) for i in range(59)])
    X = rng.standard_normal((60, 4, 2))
    losses = gtv.SquaredLoss.stack(X, X.sum(axis=2))
    solution = gtv.GTVProblem(graph, losses, penalty, 0.1).solve()
    assert solution.status == "optimal"
    assert solution.info["switched"] is False


def test_other_stopping_rules_never_switch():
    solution = raw_units().solve(stop="iterations", max_iter=9000)
    assert solution.n_iter == 9000
    assert solution.info["switched"] is False


def test_scalar_problems_say_that_nothing_was_switched():
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [1.0], [3.0]]), "l1", 0.1)
    assert problem.solve().info == {"method": "divide and conquer", "switched": False}


def test_an_iteration_stalls_when_what_is_left_costs_more_than_the_alternative():
    slow = [0.1 * 0.9**k for k in range(40)]
    assert checked(2000.0, slow).n_iter == 3000
    assert checked(10_000.0, slow).n_iter == 10_000
    assert not checked(1e5, slow).finished
    assert not checked(np.inf, slow).finished


def test_an_iteration_that_will_be_done_soon_goes_on():
    assert not checked(100.0, [0.1 * 0.05**k for k in range(6)]).finished


def test_no_iteration_stalls_at_the_rounding_of_bounds():
    method = Stalling(Falling(), lambda: 100.0)
    method.begin(Limits(1e-15, 10**6), np.inf)
    for _ in range(10):
        method.run(1000)
        method.learn(5e-11)
    assert not method.finished


def test_what_cannot_be_solved_costs_infinitely_much():
    problem = raw_units()
    assert 1e3 < Alternative(problem).cost() < 1e5
    other = gtv.GTVProblem(problem.graph, problem.losses, gtv.PNorm(3), 0.1)
    assert Alternative(other).cost() == np.inf
