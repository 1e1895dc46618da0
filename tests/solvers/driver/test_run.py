"""Limits, callbacks, history, warm starts and interruptions, for every iterative method."""

import dataclasses
import itertools
import time

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver._options import PAPER_ITERATIONS
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual

METHODS = ["AUTO", "PDHG"]


@pytest.fixture(scope="module")
def optimum(problem):
    return problem.solve(solver="CLARABEL", rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_max_iter_returns_the_incumbent_with_a_true_gap(problem, optimum, method):
    solution = problem.solve(solver=method, rtol=1e-12, max_iter=50)
    assert solution.status == "user_limit"
    assert solution.n_iter == 50
    assert solution.gap >= solution.value - optimum.value > 0
    assert solution.dual_value <= optimum.value


@pytest.mark.parametrize("method", METHODS)
def test_time_limit(problem, optimum, method):
    solution = problem.solve(solver=method, rtol=1e-15, time_limit=0.2, max_iter=10**9)
    assert solution.status == "user_limit"
    assert 0.2 <= solution.seconds < 5.0
    assert np.isfinite(solution.gap)
    assert solution.gap >= solution.value - optimum.value


@pytest.mark.parametrize("method", METHODS)
def test_callback_sees_the_incumbent_and_can_stop(problem, method):
    seen = []

    def stop_at_third(progress):
        seen.append(progress)
        return len(seen) == 3

    solution = problem.solve(solver=method, rtol=1e-15, callback=stop_at_third)
    assert len(seen) == len(solution.history) == 3
    assert solution.gap <= min(p.gap for p in seen)
    assert solution.value == min(p.value for p in seen)
    assert seen[-1].rel_gap == seen[-1].gap / max(1.0, abs(seen[-1].value))


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_returns_the_incumbent(problem, optimum, method):
    calls = []

    def interrupt(progress):
        calls.append(progress.gap)
        if len(calls) == 2:
            raise KeyboardInterrupt

    solution = problem.solve(solver=method, rtol=1e-15, callback=interrupt)
    assert solution.status == "user_limit"
    assert solution.gap <= calls[-1]
    assert solution.gap >= solution.value - optimum.value


@pytest.mark.parametrize("method", METHODS)
def test_history_improves_and_ends_with_the_solution(problem, method):
    solution = problem.solve(solver=method, rtol=1e-5)
    assert solution.history
    values = [record.value for record in solution.history]
    bounds = [record.dual_value for record in solution.history]
    # Bounds are recomputed for the pair that is kept, hence the last bit of room.
    assert values == sorted(values, reverse=True)
    assert all(b >= a - 1e-12 for a, b in itertools.pairwise(bounds))
    assert solution.history[-1].value == solution.value
    assert solution.history[-1].gap == pytest.approx(solution.gap, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_warm_start_takes_primal_and_dual(problem, method):
    cold = problem.solve(solver=method, rtol=1e-6)
    warm = problem.solve(solver=method, rtol=1e-6, warm_start=cold)
    assert warm.status == "optimal"
    assert warm.n_iter < cold.n_iter / 2
    neighbour = problem.with_lam(0.0505)
    assert neighbour.solve(solver=method, warm_start=cold, rtol=1e-4).status == "optimal"


@pytest.mark.parametrize("chunk", [1, 3, 7, 50])
def test_iterates_do_not_depend_on_how_many_are_run_at_a_time(problem, chunk):
    """Restarts and averages count iterations, not calls: slow iterations come a few a call."""
    whole, parts = PrimalDual(problem), PrimalDual(problem)
    whole.run(350)
    while parts.n_iter < 350:
        parts.run(min(chunk, 350 - parts.n_iter))
    assert whole.info() == parts.info()
    assert whole.info()["primal_weight"] != 1.0
    np.testing.assert_array_equal(whole.w, parts.w)
    np.testing.assert_array_equal(whole.u, parts.u)


def test_a_moved_method_goes_on_from_the_point_like_a_warm_started_one(problem):
    first = PrimalDual(problem)
    first.run(230)
    restarted = PrimalDual(problem)
    restarted.run(70)
    weight = restarted.info()["primal_weight"]
    restarted.move_to(first.w, first.u)
    start = problem.solve(max_iter=1, rtol=1e-15)
    start = dataclasses.replace(start, w=first.w, u=first.u, info={"primal_weight": weight})
    warm = PrimalDual(problem, start)
    restarted.run(200)
    warm.run(200)
    assert restarted.n_iter == 270
    np.testing.assert_allclose(restarted.w, warm.w, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(restarted.u, warm.u, rtol=1e-9, atol=1e-9)


def test_consensus_is_exact_at_a_huge_lambda():
    """Rounding in w costs lambda times itself: fused nodes must agree to the last bit."""
    rng = np.random.default_rng(2)
    a = rng.standard_normal((12, 2))
    graph = gtv.generators.random_geometric(12, 4.0, seed=1)
    for lam in (1e3, 1e12, 1e200):
        solution = gtv.GTVProblem(graph, gtv.PointLoss.stack(a), "l2", lam).solve(rtol=1e-9)
        assert solution.status == "optimal"
        for part in np.unique(graph.components):
            rows = solution.w[graph.components == part]
            assert (rows == rows[0]).all()
        np.testing.assert_array_equal(solution.clusters(), graph.components)


def test_data_that_overflow_are_refused():
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[1e200], [-1e200]]), "l2", 1.0)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="overflow"):
        problem.solve()


def test_the_parts_of_the_gap_add_up(problem):
    solution = problem.solve(rtol=1e-4)
    parts = solution.node_gaps.sum() + solution.edge_gaps.sum()
    assert (solution.node_gaps >= 0).all()
    assert (solution.edge_gaps >= 0).all()
    assert parts == pytest.approx(solution.gap, rel=1e-6)
    assert solution.value - solution.dual_value == pytest.approx(solution.gap, rel=1e-9)


def test_verbose_writes_progress_and_quiet_does_not(problem, capsys):
    problem.solve(rtol=1e-5, verbose=False)
    assert capsys.readouterr().err == ""
    problem.solve(rtol=1e-5, verbose=True)
    assert "gap" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rtol": 0.0}, "rtol"),
        ({"rtol": float("nan")}, "rtol"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 2.5}, "max_iter"),
        ({"stop": "never"}, "stop"),
        ({"solver": "NO_SUCH"}, "NO_SUCH"),
        ({"solver": "CLARABEL", "callback": print}, "callback"),
        ({"solver": "HIGHS", "max_iter": 1}, "max_iter"),
        ({"atol": -1.0}, "atol"),
        ({"atol": float("nan")}, "atol"),
    ],
)
def test_bad_options_are_named(problem, arguments, message):
    with pytest.raises(ValueError, match=message):
        problem.solve(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rtol": "1e-6"}, "^rtol: a number is expected, got '1e-6'"),
        ({"atol": "0"}, "^atol: a number is expected, got '0'"),
        ({"time_limit": [1.0]}, "^time_limit: a number is expected"),
        ({"callback": 3}, "^callback: a callable is expected, got int"),
    ],
)
def test_options_of_another_type_are_named(problem, arguments, message):
    with pytest.raises(TypeError, match=message):
        problem.solve(**arguments)


def test_a_limit_may_be_an_integer_of_numpy(problem):
    assert problem.solve(max_iter=np.int64(20), rtol=1e-12).status == "user_limit"


def test_unknown_options_and_foreign_warm_starts_are_named(problem, optimum):
    with pytest.raises(TypeError, match="gamma"):
        problem.solve(gamma=2.0)
    with pytest.raises(TypeError, match="warm_start"):
        problem.solve(warm_start=optimum.w)
    small = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), gtv.PointLoss.stack([[0.0], [1.0]]))
    with pytest.raises(ValueError, match=r"warm_start\.w"):
        small.solve(warm_start=optimum)


def test_a_number_of_iterations_is_the_paper_s_unless_it_is_given(problem):
    assert problem.solve(stop="iterations").n_iter == PAPER_ITERATIONS
    assert problem.solve(solver="PDHG").n_iter == PAPER_ITERATIONS
    assert problem.solve(stop="iterations", max_iter=30).n_iter == 30


@pytest.mark.parametrize("method", METHODS)
def test_a_limit_that_passes_during_a_callback_is_seen(problem, method):
    seen = []

    def slow(progress):
        seen.append(progress.n_iter)
        time.sleep(0.5)

    problem.solve(solver=method, rtol=1e-15, time_limit=0.4, callback=slow)
    assert len(seen) == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_warm_start_is_no_check_that_the_objective_is_compared_with(problem, method):
    start = problem.solve(solver=method, rtol=1e-3)
    solution = problem.solve(solver=method, rtol=1e-9, stop="objective", warm_start=start)
    checks = [record for record in solution.history if record.n_iter > 0]
    assert len(checks) >= 2


def test_overflow_in_a_run_is_no_warning_but_in_a_callback_it_is(problem, monkeypatch):
    """Points that run away overflow; what NumPy has to say of that tells users nothing."""
    run, seen = PrimalDual.run, []

    def overflowing(self, n_iter):
        assert np.isnan(np.float64(1e300) * np.float64(1e300) * np.float64(0.0))
        run(self, n_iter)

    def callback(progress):
        seen.append(np.geterr())

    monkeypatch.setattr(PrimalDual, "run", overflowing)
    with np.errstate(over="raise"):
        solution = problem.solve(rtol=1e-6, callback=callback)
        assert np.geterr() == seen[0]
    assert solution.status == "optimal"


def test_what_the_program_takes_to_write_is_no_time_for_the_backend(problem, monkeypatch):
    """CVXPY's canonicalization of 20,000 nodes took most of a limit, and then came all of that."""
    given, solve, write = [], cp.Problem.solve, cp.Problem.get_problem_data

    def written(self, *arguments, **options):
        if not given:
            time.sleep(0.2)
        return write(self, *arguments, **options)

    def solved(self, *arguments, **options):
        given.append(options["time_limit"])
        return solve(self, *arguments, **options)

    monkeypatch.setattr(cp.Problem, "get_problem_data", written)
    monkeypatch.setattr(cp.Problem, "solve", solved)
    problem.solve(solver="CLARABEL", time_limit=60.0)
    assert given[0] < 59.8
