"""Objectives far below 1: what the tolerance is relative to, and the warning."""

import warnings

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import SmallObjectiveWarning
from gtvcvx._deadline import Unaffordable
from gtvcvx.solvers.driver import Incumbent, Limits

SMALL = 2e-9


def path_problem(scale, penalty="l2", noise=1.0, lam=0.05):
    """Squared losses whose objective is scale times that of scale 1."""
    rng = np.random.default_rng(3)
    n = 20
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    X = rng.standard_normal((n, 2, 2))
    y = X.sum(axis=2) + noise * rng.standard_normal((n, 2))
    return gtv.GTVProblem(
        graph, gtv.SquaredLoss.stack(X, np.sqrt(scale) * y), penalty, lam * np.sqrt(scale)
    )


@pytest.fixture(scope="module")
def small():
    problem = path_problem(SMALL)
    return problem, problem.solve(solver="CLARABEL", rtol=1e-9, atol=0.0)


def test_what_the_gap_is_relative_to():
    by_default = Limits(1e-6, 1)
    assert by_default.relative(2.0, 0.5) == 2.0
    assert by_default.relative(2.0, -4.0) == 0.5
    assert Limits(1e-6, 1, atol=1e-6).relative(2.0, 0.5) == 2.0
    assert Limits(1e-6, 1, atol=1e-8).relative(2e-5, 1e-3) == pytest.approx(2e-3)
    pure = Limits(1e-6, 1, atol=0.0)
    assert pure.relative(2e-9, -4e-9) == 0.5
    assert pure.relative(0.0, 0.0) == 0.0
    assert pure.relative(1e-300, 0.0) == np.inf
    assert pure.relative(np.inf, 1.0) == np.inf


def test_a_small_objective_is_warned_of_once_it_decides(small):
    problem, optimum = small
    assert optimum.value < 1e-6
    with pytest.warns(SmallObjectiveWarning, match="atol") as seen:
        problem.solve(max_iter=1)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem.solve(atol=1e-6)
        path_problem(1.0).solve()
        path_problem(1e-3).solve()  # small, but the tolerance is small beside it


@pytest.mark.parametrize("solver", ["AUTO", "PDHG"])
def test_a_purely_relative_tolerance_is_met(small, solver):
    problem, optimum = small
    solution = problem.solve(solver=solver, rtol=1e-4, atol=0.0, max_iter=20_000)
    assert solution.status == "optimal"
    assert solution.gap <= 1e-4 * solution.value
    assert solution.value <= (1.0 + 1e-4) * optimum.value


def test_an_objective_of_zero_ends_where_bounds_are_rounding():
    """All nodes fit exactly with the same parameters."""
    problem = path_problem(1.0, noise=0.0)
    solution = problem.solve(atol=0.0, max_iter=20_000)
    assert solution.value < 1e-12
    assert solution.status in ("optimal", "optimal_inaccurate")
    assert solution.n_iter < 20_000
    assert np.isfinite(solution.gap)


def test_a_tolerance_that_is_not_stricter_than_by_default_never_ends_by_rounding(small):
    assert not Limits(1e-6, 1, atol=1e-3).stricter
    assert not Limits(1e-6, 1).stricter
    problem, _ = small
    assert problem.solve(rtol=1e-6, atol=1.0).status == "optimal"


def test_the_losses_bounds_are_enough_where_repairs_are_not_afforded(monkeypatch):
    """The objective is as small as the gap that is asked for; else others see to it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 2, 3)), 1e-9 * rng.standard_normal((6, 2))
    graph = gtv.EmpiricalGraph(6, [(i, i + 1) for i in range(5)])
    problem = gtv.GTVProblem(graph, gtv.AbsoluteLoss.stack(X, y), "l2", 0.1)

    def repaired(self, *arguments):
        raise Unaffordable

    monkeypatch.setattr(type(problem.bounds), "repaired", repaired)
    incumbent, w, u = Incumbent(problem), np.zeros((6, 3)), np.full((5, 3), 0.01)
    incumbent.update(w, u, enough=1e-6)
    assert 0.0 < incumbent.gap <= 1e-6
    assert incumbent.dual_value >= -1e-20
    with pytest.raises(Unaffordable):
        Incumbent(problem).update(w, u, enough=1e-12)
