"""What EXACT refuses, where it stops, what it answers then, and what is saved."""

from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Expired
from gtvcvx.solvers.driver import Options
from gtvcvx.solvers.exact import _solve as _exact


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    n = 12
    edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.4]
    losses = gtv.SquaredLoss.stack(rng.standard_normal((n, 3, 2)), rng.standard_normal((n, 3)))
    return gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), losses, "l1", 0.05)


@pytest.fixture(scope="module")
def exact(problem):
    return problem.solve("EXACT")


@pytest.fixture(scope="module")
def useless(problem):
    """Start from which one round is not enough."""
    start = problem.solve(max_iter=1)
    return replace(start, w=np.zeros_like(start.w), u=np.zeros_like(start.u))


class Cubic(gtv.PointLoss):
    """A loss that calls itself by another kind in the plain data."""

    @classmethod
    def batch(cls, losses, dim):
        batch = super().batch(losses, dim)
        terms = batch.terms
        batch.terms = lambda nodes: [{**term, "kind": "cubic"} for term in terms(nodes)]
        return batch


@pytest.mark.parametrize(
    ("penalty", "name"),
    [
        ("l2", "'l2'"),
        ("linf", "'linf'"),
        ("squared", "'squared'"),
        (gtv.PNorm(3), "'pnorm'"),
        (gtv.Quadratic(np.eye(2)), "'quadratic'"),
    ],
)
def test_penalties_without_rational_solutions_are_refused(penalty, name):
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.eye(2)), penalty)
    with pytest.raises(ValueError, match=rf"penalty {name} in dimension d = 2.*CLARABEL"):
        problem.solve("EXACT")


def test_a_quadratic_penalty_in_one_dimension_is_no_norm():
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [1.0]]), "squared")
    with pytest.raises(ValueError, match="not a norm"):
        problem.solve("EXACT")


def test_other_losses_are_refused_with_their_node():
    losses = [gtv.PointLoss(0.0), gtv.ZeroLoss(), Cubic(1.0)]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(3, [(0, 1), (1, 2)]), losses, "l1")
    with pytest.raises(ValueError, match=r"'cubic' at node 2.*CLARABEL"):
        problem.solve("EXACT")


@pytest.mark.parametrize("options", [{"rtol": 1e-6}, {"callback": print}, {"gamma": 2.0}])
def test_options_that_mean_nothing_here_are_refused(problem, options):
    with pytest.raises((ValueError, TypeError), match=f"{next(iter(options))}: EXACT"):
        problem.solve("EXACT", **options)


def true_gap(solution, exact):
    return solution.value - float(exact.exact.value)


@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 1e-9}])
def test_limits_return_the_incumbent_with_a_true_gap(problem, exact, useless, limit):
    solution = problem.solve("EXACT", warm_start=useless, **limit)
    assert solution.status == "user_limit"
    assert solution.n_iter == 1
    assert solution.exact is None
    assert solution.gap >= true_gap(solution, exact) > 0


def test_the_method_ends_by_itself_and_says_so(problem, exact, useless):
    """Out of rounds: the best solution in double precision, and no claim."""
    one = replace(_exact.DEFAULTS, rounds=1)
    solution = _exact.solve_exact(problem, Options(warm_start=useless), one)
    assert solution.status == "optimal_inaccurate"
    assert solution.exact is None
    assert solution.gap > 0
    assert -1e-14 <= true_gap(solution, exact) <= solution.gap < 1e-8


def test_ctrl_c_returns_the_incumbent(problem, exact, useless, monkeypatch):
    advance = _exact.Search.advance

    def interrupted(search):
        if search.n_iter:
            raise KeyboardInterrupt
        return advance(search)

    monkeypatch.setattr(_exact.Search, "advance", interrupted)
    solution = problem.solve("EXACT", warm_start=useless)
    assert solution.status == "user_limit"
    assert solution.gap >= true_gap(solution, exact) > 0


def test_it_does_not_need_clarabel(problem, exact, monkeypatch):

    def failing(solver, problem, options):
        assert solver == "CLARABEL"
        raise cp.SolverError("no")

    monkeypatch.setattr(_exact, "solve_reference", failing)
    assert problem.solve("EXACT").exact.value == exact.exact.value


def test_saved_and_loaded_it_is_still_exact(exact, tmp_path):
    exact.save(tmp_path / "solution.npz")
    loaded = gtv.Solution.load(tmp_path / "solution.npz")
    assert loaded.exact == exact.exact
    assert isinstance(loaded.exact.w[0][0], Fraction)
    assert (loaded.w == exact.w).all()
    assert loaded.gap == 0.0


def test_other_solutions_carry_no_exact_one(problem, tmp_path):
    solution = problem.solve()
    assert solution.exact is None
    solution.save(tmp_path / "solution.npz")
    assert gtv.Solution.load(tmp_path / "solution.npz").exact is None


def test_progress_is_shown_when_asked_for(problem, capsys):
    problem.solve("EXACT", verbose=True)
    assert "EXACT" in capsys.readouterr().err
    problem.solve("EXACT", verbose=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("looks", [0, 1, 5, 20])
@pytest.mark.parametrize("error", [Expired, KeyboardInterrupt])
def test_the_search_may_be_left_anywhere(problem, exact, useless, monkeypatch, looks, error):
    left = [looks]

    def look():
        left[0] -= 1
        if left[0] < 0:
            raise error

    for name in ("_faces", "_cluster_flows", "_linear", "_proof"):
        monkeypatch.setattr(f"gtvcvx.solvers.exact.{name}.look", look)
    solution = problem.solve("EXACT", warm_start=useless)
    assert left[0] < 0
    assert solution.status == "user_limit"
    assert solution.exact is None
    assert solution.gap >= solution.value - exact.value >= -1e-12


def test_ctrl_c_in_the_start_or_the_set_up_returns_something(problem, exact, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("gtvcvx.solvers._reference._solve", interrupted)
    solutions = [problem.solve("EXACT"), problem.solve("CLARABEL")]
    monkeypatch.setattr(_exact, "exact_data", interrupted)
    solutions.append(problem.solve("EXACT"))
    for solution in solutions:
        assert solution.status == "user_limit"
        assert np.isfinite(solution.gap)
        assert solution.gap >= solution.value - exact.value
