"""When iterates are polished, for how long, and what becomes of polished points."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Iteration, Limits, drive
from gtvcvx.solvers.driver._method import ITERATIONS_A_LOOK
from gtvcvx.solvers.driver._schedule import DEFAULTS as SCHEDULE
from gtvcvx.solvers.polishing._policy import DEFAULTS, Polished, PolishedPair
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from verify._compilation import CLOCK


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(CLOCK, "_clock", lambda: self.now)


class Standstill(Iteration):
    """A method that counts iterations of a millisecond, and stays where it is put."""

    weight = 1.0

    def __init__(self, clock, residual=lambda n_iter: 1.0, warm=False):
        self.n_iter, self._clock, self._residual, self.warm = 0, clock, residual, warm
        self.w, self.u = np.zeros((2, 1)), np.zeros((1, 1))
        self.moves = []

    def run(self, n_iter):
        self.n_iter += n_iter
        self._clock.now += 1e-3 * n_iter

    def residual(self):
        return self._residual(self.n_iter)

    def move_to(self, w, u):
        self.moves.append((self.n_iter, w, u))

    def info(self):
        return {}


class Recorder:
    """A polisher that notes when it is called, and returns what it is told at a cost."""

    def __init__(self, method, clock, cost=0.0, answer=None):
        self._method, self._clock, self._cost, self.answer = method, clock, cost, answer
        self.calls = []  # (iterations, cost allowed, seconds left)
        self.enough = []  # residuals

    def polish(self, w, u, allowed, seconds, weight, enough):
        assert weight == self._method.weight
        self.calls.append((self._method.n_iter, allowed, seconds))
        self.enough.append(enough)
        self._clock.now += 1e-3 * self._cost
        return self.answer and self.answer._replace(cost=self._cost)

    @property
    def iterations(self):
        return [n_iter for n_iter, _, _ in self.calls]


@pytest.fixture
def scalar():
    """(w_0)^2 + (w_1 - 2)^2 + |w_0 - w_1| / 2, least at (1/4, 7/4) with the flow -1/2."""
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    return gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [2.0]]), "l2", 0.5)


def polished(problem, method, limits, polisher, settings=DEFAULTS):
    """Drive a method that is polished."""
    return drive(problem, Polished(problem, method, polisher, settings), limits, "STANDSTILL")


W, U = np.array([[0.25], [1.75]]), np.array([[-0.5]])
# Its flow within capacity proves nothing yet.
OPTIMAL = PolishedPair(W, U, 0.0 * U, 0.0)


@pytest.mark.parametrize(("warm", "first"), [(False, DEFAULTS.first), (True, DEFAULTS.warm_first)])
@pytest.mark.parametrize("answer", [None, PolishedPair(0 * W, 0 * U, 0 * U, 1e-2)])
def test_polishes_come_at_growing_intervals(scalar, monkeypatch, warm, first, answer):
    clock = Clock(monkeypatch)
    method = Standstill(clock, warm=warm)
    polisher = Recorder(method, clock, answer=answer)
    solution = polished(scalar, method, Limits(1e-9, 20_000), polisher)
    assert solution.status == "user_limit"
    assert first <= polisher.iterations[0] < first + ITERATIONS_A_LOOK
    for previous, following in itertools.pairwise(polisher.iterations):
        assert following >= int(DEFAULTS.growth * previous)
    assert 5 <= len(polisher.calls) < 30
    assert polisher.iterations[-1] > 5_000
    assert polisher.iterations[-1] < solution.n_iter == 20_000


@pytest.mark.parametrize("cost", [100.0, 1_000.0, 10_000.0])
def test_polishes_are_allowed_and_take_their_share_of_the_run(scalar, monkeypatch, cost):
    clock = Clock(monkeypatch)
    method = Standstill(clock)
    polisher = Recorder(method, clock, cost, answer=PolishedPair(0 * W, 0 * U, 0 * U, 1e-2))
    polished(scalar, method, Limits(1e-9, 20_000), polisher)
    assert polisher.calls
    for k, (n_iter, allowed, seconds) in enumerate(polisher.calls):
        assert allowed == pytest.approx(DEFAULTS.share * n_iter - k * cost)
        assert allowed > 0.0
        assert seconds == np.inf
    if cost == 10_000.0:
        assert len(polisher.calls) == 3  # after 500 iterations, after 5,000, and after 10,000


def test_a_warm_start_is_credited_with_the_wait_for_a_first_polish(scalar, monkeypatch):
    clock = Clock(monkeypatch)
    method = Standstill(clock, warm=True)
    polisher = Recorder(method, clock, 100.0, answer=PolishedPair(0 * W, 0 * U, 0 * U, 1e-2))
    polished(scalar, method, Limits(1e-9, 400), polisher)
    allowed = [allowed for _, allowed, _ in polisher.calls]
    credit = DEFAULTS.share * DEFAULTS.first
    assert allowed == pytest.approx([credit - 100.0 * k for k in range(len(allowed))])
    assert len(allowed) == 1 + int(np.log(400 / DEFAULTS.warm_first) / np.log(DEFAULTS.growth))


def test_polishes_are_told_which_residual_is_enough(scalar, monkeypatch):
    """Nobody knows without a check; each later one must do better than the one before."""
    clock = Clock(monkeypatch)
    for ratio in (np.nan, 0.5):
        # Its gap by the ratio is far from rtol: no check of it comes in between.
        method = Standstill(clock, lambda n_iter: 1e3, warm=True)
        method.gap_ratio = ratio
        polisher = Recorder(method, clock)
        soon = dataclasses.replace(DEFAULTS, warm_first=20)  # three polishes before a first look
        polished(scalar, method, Limits(1e-4, 150), polisher, soon)
        assert len(polisher.enough) >= 3
        share = DEFAULTS.well_below
        told = [share ** (k + 1) * 1e-4 / ratio for k in range(len(polisher.enough))]
        expected = np.zeros(len(told)) if np.isnan(ratio) else told
        np.testing.assert_allclose(polisher.enough, expected, rtol=1e-12)


def test_polishes_see_what_is_left_of_the_time(scalar, monkeypatch):
    clock = Clock(monkeypatch)
    method = Standstill(clock)
    polisher = Recorder(method, clock)
    polished(scalar, method, Limits(1e-9, 20_000, time_limit=3.0), polisher)
    assert polisher.calls
    for n_iter, _, seconds in polisher.calls:
        assert seconds == pytest.approx(3.0 - 1e-3 * n_iter)


def test_the_method_goes_on_from_a_polished_point(scalar, monkeypatch):
    clock = Clock(monkeypatch)
    method = Standstill(clock)
    polisher = Recorder(method, clock, answer=PolishedPair(2 * W, 3 * U, 4 * U, 1e-2))
    polished(scalar, method, Limits(1e-9, 2_000), polisher)
    assert [n_iter for n_iter, _, _ in method.moves] == polisher.iterations
    for _, w, u in method.moves:
        np.testing.assert_array_equal(w, 2 * W)
        np.testing.assert_array_equal(u, 4 * U)


@pytest.mark.parametrize(("ratio", "polishes"), [(1e-3, [1, 4]), (np.nan, [1, 2, 4])])
def test_after_a_fruitless_polish_the_iterate_goes_on_and_the_next_one_waits(
    scalar, monkeypatch, ratio, polishes
):
    """The check of a pair finds a larger gap than is known to be the iterate's, if it is known."""
    clock = Clock(monkeypatch)
    method = Standstill(clock)
    method.gap_ratio = ratio
    polisher = Recorder(method, clock, answer=PolishedPair(3 * W, 0 * U, 0 * U, 0.0))
    solution = polished(scalar, method, Limits(1e-9, 4 * DEFAULTS.first + 100), polisher)
    assert solution.history[0].n_iter == DEFAULTS.first
    assert polisher.iterations == [times * DEFAULTS.first for times in polishes]
    assert (DEFAULTS.first in [n_iter for n_iter, _, _ in method.moves]) == np.isnan(ratio)


@pytest.mark.parametrize("overload", [1.01 * DEFAULTS.credible_overload, np.inf, np.nan])
def test_points_that_are_far_above_capacity_are_left_alone(scalar, monkeypatch, overload):
    clock = Clock(monkeypatch)
    method = Standstill(clock)
    polisher = Recorder(method, clock, answer=PolishedPair(W, U, U, overload))
    solution = polished(scalar, method, Limits(1e-9, 2_000), polisher)
    assert polisher.calls
    assert not method.moves
    assert solution.status == "user_limit"
    assert solution.value > scalar.value(W)


def test_a_polished_point_can_end_the_run(scalar, monkeypatch):
    clock = Clock(monkeypatch)
    method = Standstill(clock)
    polisher = Recorder(method, clock, answer=OPTIMAL)
    solution = polished(scalar, method, Limits(1e-9, 20_000), polisher)
    assert solution.status == "optimal"
    assert len(polisher.calls) == 1
    assert solution.n_iter == solution.history[-1].n_iter == polisher.iterations[0]
    assert not method.moves
    np.testing.assert_array_equal(solution.w, W)
    assert solution.history[-1].value == solution.value == scalar.value(W)


def test_the_callback_sees_polished_points_and_can_stop(scalar, monkeypatch):
    clock, seen = Clock(monkeypatch), []
    method = Standstill(clock)
    polisher = Recorder(method, clock, answer=PolishedPair(W, 0.9 * U, U, 0.0))
    limits = Limits(1e-9, 20_000, callback=lambda p: seen.append(p) or p.value == scalar.value(W))
    solution = polished(scalar, method, limits, polisher)
    assert solution.status == "user_limit"
    assert solution.n_iter == seen[-1].n_iter == polisher.iterations[-1]
    np.testing.assert_array_equal(seen[-1].w, W)
    assert solution.gap >= solution.value - scalar.value(W) == 0.0


def test_nothing_is_polished_just_before_the_first_check(scalar, monkeypatch):
    """The residual has nearly fallen to where a check pays."""
    clock = Clock(monkeypatch)
    near = 0.5 * SCHEDULE.near * 1e-9 / SCHEDULE.first_gap
    method = Standstill(clock, lambda n_iter: 1.0 if n_iter < 500 else near)
    polisher = Recorder(method, clock)
    checks = []
    limits = Limits(1e-9, 3_000, callback=lambda p: checks.append(p.n_iter))
    polished(scalar, method, limits, polisher)
    assert checks[0] == SCHEDULE.first_look
    # Until nobody believes any more that the check will come.
    assert polisher.iterations[0] == SCHEDULE.too_late > DEFAULTS.first


@pytest.mark.parametrize("max_iter", [599, 600, 601, 620])
def test_the_last_iteration_is_checked_and_not_polished(scalar, monkeypatch, max_iter):
    clock = Clock(monkeypatch)
    method = Standstill(clock)
    polisher = Recorder(method, clock, answer=OPTIMAL)
    solution = polished(scalar, method, Limits(1e-9, max_iter), polisher)
    assert all(n_iter < max_iter for n_iter in polisher.iterations)
    if not polisher.calls:
        assert (solution.status, solution.n_iter) == ("user_limit", max_iter)


def test_polishes_that_find_nothing_change_no_iterate():
    """With a real method, and its restarts."""
    rng = np.random.default_rng(0)
    graph = gtv.generators.grid(6, 6)
    losses = gtv.SquaredLoss.stack(
        rng.standard_normal((36, 1, 2)), rng.standard_normal((36, 1)), rng.random(36) < 0.3
    )
    problem = gtv.GTVProblem(graph, losses, "l2", 0.05)
    plain, other = PrimalDual(problem), PrimalDual(problem)
    polisher = Recorder(other, SimpleNamespace(now=0.0))
    drive(problem, plain, Limits(1e-15, 1_500), "PLAIN")
    polished(problem, other, Limits(1e-15, 1_500), polisher)
    assert polisher.calls
    np.testing.assert_array_equal(plain.w, other.w)
    np.testing.assert_array_equal(plain.u, other.u)


def test_polishes_that_take_seconds_have_half_of_the_iterations_time(scalar, monkeypatch):
    """While they take less they may take longer than the iterations; here one is a millisecond."""
    clock = Clock(monkeypatch)
    settings = dataclasses.replace(DEFAULTS, first=100, share=4.0, generous=0.6)

    def allowed(seconds):
        method = Standstill(clock)
        method.seconds = seconds
        recorder = Recorder(method, clock)
        polished(scalar, method, Limits(1e-6, 1700), recorder, settings)
        return dict(call[:2] for call in recorder.calls)

    assert allowed(1e-3) == {100: 400.0, 200: 600.0, 400: 600.0, 800: 600.0, 1600: 800.0}
    assert allowed(np.nan) == {k: 4.0 * k for k in (100, 200, 400, 800, 1600)}
