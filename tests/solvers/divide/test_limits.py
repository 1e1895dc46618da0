"""Limits, callbacks, history, warm starts and Ctrl-C of divide and conquer."""

import copy
import itertools
from contextlib import suppress

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Expired
from gtvcvx.duality._bounds import DualBounds
from gtvcvx.solvers.divide._division import Division
from gtvcvx.solvers.divide._network import Skeleton
from gtvcvx.solvers.divide._scalar_division import ScalarDivision
from gtvcvx.solvers.scalar._problems import slopes_in
from gtvcvx.solvers.scalar._slopes import quadratic_slopes


@pytest.fixture(scope="module")
def problem():
    """A grid with few labels in two coordinates, that takes several rounds."""
    rng = np.random.default_rng(0)
    n = 400
    known = rng.random(n) < 0.3
    X = np.broadcast_to(np.eye(2), (n, 2, 2))
    losses = gtv.SquaredLoss.stack(X, 3.0 * rng.standard_normal((n, 2)), known)
    return gtv.GTVProblem(gtv.generators.grid(20, 20), losses, "l1", 0.3)


@pytest.fixture(scope="module")
def kinked():
    """The same with absolute losses: demands have slack."""
    rng = np.random.default_rng(0)
    n = 400
    X, y = rng.choice([1.0, 2.0], (n, 2, 1)), np.round(3.0 * rng.standard_normal((n, 2)), 1)
    losses = gtv.AbsoluteLoss.stack(X, y, rng.random(n) < 0.6)
    return gtv.GTVProblem(gtv.generators.grid(20, 20), losses, "l2", 0.3)


@pytest.fixture(scope="module")
def optimum(problem):
    solution = problem.solve(rtol=1e-11)
    assert solution.info["method"] == "divide and conquer"
    assert solution.n_iter > 4
    return solution


def assert_true_gap(solution, optimum):
    assert np.isfinite(solution.gap)
    assert solution.gap >= solution.value - optimum.value
    assert solution.dual_value <= optimum.value + 1e-9


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_max_iter_counts_rounds(problem, optimum, rounds):
    solution = problem.solve(rtol=1e-9, max_iter=rounds)
    assert solution.status == "user_limit"
    assert solution.n_iter == rounds
    assert_true_gap(solution, optimum)
    assert solution.value > optimum.value


class Looks:
    """Counts looks at the clock, and raises an exception at the k-th."""

    def __init__(self, monkeypatch, k=np.inf, error=Expired):
        monkeypatch.setattr("gtvcvx.solvers.divide._division.look", self)
        self.left, self.error, self.count = k, error, 0

    def __call__(self):
        self.count += 1
        self.left -= 1
        if self.left < 0:
            raise self.error


@pytest.mark.parametrize("threads", [1, 2])
def test_a_round_in_pieces_is_the_same(problem, optimum, monkeypatch, threads):
    looks = Looks(monkeypatch)
    monkeypatch.setattr("gtvcvx.solvers.divide._division.nb.get_num_threads", lambda: threads)
    monkeypatch.setattr("gtvcvx.solvers.divide._division._PARALLEL_NODES", 0)
    monkeypatch.setattr("gtvcvx.solvers.divide._scalar_division._BUDGET", 7)
    solution = problem.solve(rtol=1e-11)
    assert looks.count > 20 * optimum.n_iter
    np.testing.assert_array_equal(solution.w, optimum.w)
    np.testing.assert_array_equal(solution.u, optimum.u)


@pytest.mark.parametrize("error", [Expired, KeyboardInterrupt])
@pytest.mark.parametrize("k", [0, 1, 2, 5, 20, 60, 100])
@pytest.mark.parametrize("parallel_nodes", [0, 10**9])
def test_a_round_may_be_left_anywhere(problem, optimum, monkeypatch, error, k, parallel_nodes):
    Looks(monkeypatch, k, error)
    monkeypatch.setattr("gtvcvx.solvers.divide._division._PARALLEL_NODES", parallel_nodes)
    monkeypatch.setattr("gtvcvx.solvers.divide._scalar_division._BUDGET", 50)
    solution = problem.solve(rtol=1e-11)
    assert solution.status == "user_limit"
    assert solution.n_iter < optimum.n_iter
    assert_true_gap(solution, optimum)


@pytest.mark.parametrize("parallel_nodes", [0, 10**9])
def test_a_round_of_losses_with_kinks_may_be_left_anywhere(kinked, monkeypatch, parallel_nodes):
    """Also between the two flows of a cluster; in pieces it is the same."""
    optimum = kinked.solve(rtol=1e-11)
    assert optimum.info["method"] == "divide and conquer"
    monkeypatch.setattr("gtvcvx.solvers.divide._division._PARALLEL_NODES", parallel_nodes)
    monkeypatch.setattr("gtvcvx.solvers.divide._scalar_division._BUDGET", 50)
    for k in (0, 1, 3, 9, 27, 81):
        with monkeypatch.context() as patched:
            Looks(patched, k)
            solution = kinked.solve(rtol=1e-11)
        assert solution.status == "user_limit"
        assert_true_gap(solution, optimum)
    whole = kinked.solve(rtol=1e-11)
    np.testing.assert_array_equal(whole.w, optimum.w)
    np.testing.assert_array_equal(whole.u, optimum.u)


def test_no_proximal_points_are_made_for_flows(kinked):
    """To forget what was never there would take as long as to make it."""
    problem = copy.deepcopy(kinked)  # copies begin without any
    assert problem.solve().status == "optimal"
    rows = [batch for _, batch in problem.losses.parts if hasattr(batch, "_followed")]
    assert rows
    assert all(batch._followed.made is None for batch in rows)


def test_only_the_point_is_offered_where_demands_have_slack(kinked, monkeypatch):
    """A flow that is being routed proves nothing there, and its repair would be waited for."""

    def refused(*_):
        raise AssertionError("a flow is repaired")

    optimum = kinked.solve(rtol=1e-11)
    Looks(monkeypatch, 30)
    monkeypatch.setattr("gtvcvx.solvers.divide._scalar_division._BUDGET", 50)
    monkeypatch.setattr(DualBounds, "repaired", refused)
    assert_true_gap(kinked.solve(rtol=1e-11), optimum)


def left_at(looks, graph, slopes, capacities):
    """Return a division that was left at one of the looks, if it was not over before."""
    division = ScalarDivision(Skeleton(graph), slopes, capacities)
    with suppress(Expired):
        while not division.finished:
            for task in division.tasks(looks):
                task()
            division.conclude()
    return division


def assert_keeps_to_the_capacities(division, graph, capacities):
    flow = division.flow()
    assert (np.abs(flow) <= capacities).all()
    np.testing.assert_array_equal(division.flow(), flow)
    kept = division._network.excess - division._data.demand
    out = graph.divergence @ flow
    nodes = division._skeleton.nodes
    np.testing.assert_allclose(kept * division._data.unit, -out[nodes], atol=1e-9)


def test_a_flow_that_is_left_where_demands_have_slack_keeps_to_the_capacities(kinked, monkeypatch):
    monkeypatch.setattr("gtvcvx.solvers.divide._scalar_division._BUDGET", 2_000)
    slopes, capacities, seen = slopes_in(kinked, 0), kinked.capacities, set()
    for k in range(0, 120, 3):
        division = left_at(Looks(monkeypatch, k), kinked.graph, slopes, capacities)
        seen |= {int(progress[1]) for _, progress in division._shares}
        assert_keeps_to_the_capacities(division, kinked.graph, capacities)
    assert seen >= {1, 2}


def test_a_flow_that_is_left_keeps_to_the_capacities(problem, monkeypatch):
    """Also where it was being sent backwards: the bound is better than that of no flow."""
    b = 3.0 * np.random.default_rng(1).standard_normal(400)
    slopes = quadratic_slopes(np.ones(400), b)
    capacities = problem.graph.weights * 0.3
    monkeypatch.setattr("gtvcvx.solvers.divide._scalar_division._BUDGET", 25)
    reversed_once = False
    for k in range(0, 200, 9):
        division = left_at(Looks(monkeypatch, k), problem.graph, slopes, capacities)
        lower = [bool(division._clusters.lower[c[p[0]]]) for c, p in division._shares if p[1]]
        reversed_once = reversed_once or any(lower)
        assert_keeps_to_the_capacities(division, problem.graph, capacities)
    assert reversed_once


def test_a_time_limit_that_is_over_leaves_the_bound_of_no_flow(problem, optimum):
    solution = problem.solve(rtol=1e-9, time_limit=1e-9)
    assert solution.status == "user_limit"
    assert solution.n_iter == 0
    assert_true_gap(solution, optimum)


def test_callback_is_called_after_every_round(problem, optimum):
    seen = []
    solution = problem.solve(rtol=1e-9, callback=lambda progress: seen.append(progress) and None)
    assert [progress.n_iter for progress in seen] == list(range(1, optimum.n_iter + 1))
    assert [record.n_iter for record in solution.history] == [p.n_iter for p in seen]
    assert all(progress.gap >= progress.value - optimum.value for progress in seen)
    assert seen[-1].rel_gap == solution.rel_gap
    np.testing.assert_array_equal(seen[-1].w, solution.w)


def test_callback_stops(problem, optimum):
    solution = problem.solve(rtol=1e-9, callback=lambda progress: progress.n_iter == 2)
    assert solution.status == "user_limit"
    assert solution.n_iter == 2
    assert_true_gap(solution, optimum)


def test_a_callback_that_stops_at_the_end_is_not_overruled(problem, optimum):
    rtol = 1e-300  # more than rounding allows: the primal-dual method would go on
    solution = problem.solve(rtol=rtol, callback=lambda progress: progress.rel_gap < 1e-9)
    assert solution.info["method"] == "divide and conquer"
    assert solution.status == "user_limit"
    assert solution.rel_gap < 1e-9


def test_history_improves_and_ends_with_the_solution(problem):
    solution = problem.solve(rtol=1e-9, callback=lambda progress: None)
    values = [record.value for record in solution.history]
    bounds = [record.dual_value for record in solution.history]
    assert values == sorted(values, reverse=True)
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(bounds))
    assert values[-1] == solution.value
    assert solution.history[-1].gap == pytest.approx(solution.gap, abs=1e-12)
    silent = problem.solve(rtol=1e-9)
    assert silent.history
    assert silent.history[-1].n_iter == silent.n_iter


@pytest.mark.parametrize("last", [1, 3])
def test_ctrl_c_returns_the_incumbent(problem, optimum, monkeypatch, last):
    run = Division.run

    def interrupted(self, n_iter):
        run(self, n_iter)
        if self.n_iter == last:
            raise KeyboardInterrupt

    monkeypatch.setattr(Division, "run", interrupted)
    solution = problem.solve(rtol=1e-9)
    assert solution.status == "user_limit"
    assert solution.n_iter == last
    assert_true_gap(solution, optimum)


def test_warm_start_at_the_solution_needs_no_round(problem, optimum):
    warm = problem.solve(rtol=1e-9, warm_start=optimum)
    assert warm.status == "optimal"
    assert warm.n_iter == 0
    assert len(warm.history) == 1
    neighbour = problem.with_lam(0.31).solve(rtol=1e-9, warm_start=optimum)
    assert neighbour.status == "optimal"
    assert neighbour.n_iter > 0
    assert neighbour.history[0].n_iter == 0


def test_a_better_warm_start_is_kept_when_a_limit_comes_first(problem, optimum):
    kept = problem.with_lam(0.3001).solve(rtol=1e-12, warm_start=optimum, max_iter=1)
    cold = problem.with_lam(0.3001).solve(rtol=1e-12, max_iter=1)
    assert kept.gap < 1e-2 * cold.gap


def test_other_stopping_rules_are_for_the_primal_dual_method(problem):
    solution = problem.solve(stop="iterations", max_iter=30)
    assert solution.info["method"] == "primal-dual"
    assert solution.n_iter == 30


def test_solution_file_keeps_the_method(problem, optimum, tmp_path):
    optimum.save(tmp_path / "s.npz")
    assert gtv.Solution.load(tmp_path / "s.npz").info["method"] == "divide and conquer"


def test_verbose_writes_progress_and_quiet_does_not(problem, capsys):
    problem.solve(verbose=False)
    assert capsys.readouterr().err == ""
    problem.solve(verbose=True)
    assert "gap" in capsys.readouterr().err


def test_ctrl_c_keeps_the_flow_of_what_is_finished(problem, monkeypatch):
    """With one coordinate after the other, half of the dual value is proved half way."""
    monkeypatch.setattr("gtvcvx.solvers.divide._division.nb.get_num_threads", lambda: 1)
    run, rounds = Division.run, problem.solve(rtol=1e-9).n_iter

    def interrupted(self, n_iter):
        run(self, n_iter)
        if self.n_iter == rounds - 1:
            raise KeyboardInterrupt

    limited = problem.solve(rtol=1e-9, max_iter=rounds - 1)
    monkeypatch.setattr(Division, "run", interrupted)
    stopped = problem.solve(rtol=1e-9)
    assert stopped.n_iter == limited.n_iter == rounds - 1
    assert stopped.gap == limited.gap
    assert np.any(stopped.u)
