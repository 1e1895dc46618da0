"""How many threads run, decided by what they take; the clock is made up."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.compiled._team import run_together
from gtvcvx.losses.batched import _thin
from gtvcvx.solvers.primal_dual import _state
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from gtvcvx.solvers.primal_dual._threads import DEFAULTS, Pace


def run(pace, seconds, total):
    """Run `total` iterations that take seconds[threads] each; return the iterations of each way."""
    done = dict.fromkeys(seconds, 0)
    while sum(done.values()) < total:
        threads, steps = pace.choose(10)
        assert 1 <= steps <= 10
        pace.record(threads, seconds[threads] * steps, steps)
        done[threads] += steps
    return done


def test_one_thread_has_no_choice():
    assert run(Pace(1), {1: 1.0}, 100)[1] >= 100


def test_the_faster_way_does_nearly_all():
    for fast, slow in ((1, 2), (2, 1)):
        done = run(Pace(2), {fast: 1.0, slow: 3.0}, 10_000)
        assert done[fast] > 0.95 * sum(done.values())
        assert done[slow] >= DEFAULTS.trial


def test_trials_of_a_stalled_way_take_a_small_share_of_the_run():
    seconds = {1: 1.0, 2: 500.0}
    done = run(Pace(2), seconds, 100_000)
    trials = done[2] * seconds[2] - DEFAULTS.trial * seconds[2]  # the first one is needed to know
    assert done[2] > DEFAULTS.trial
    assert trials <= 1.1 * DEFAULTS.trial_share * done[1] * seconds[1]


def test_a_way_that_has_become_faster_is_found_out():
    pace, seconds = Pace(2), {1: 1.0, 2: 20.0}
    run(pace, seconds, 1000)
    seconds[2] = 0.5
    done = run(pace, seconds, 10_000)
    assert done[2] > 0.8 * sum(done.values())


class Fixed:
    """Lets so many threads run, whatever they take."""

    def __init__(self, threads):
        self._threads = threads

    def choose(self, n_iter):
        return self._threads, n_iter

    def record(self, threads, seconds, n_iter):
        pass


@pytest.mark.usefixtures("iterations_alone")
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_results_do_not_tell_how_many_threads_ran(rows, spread, monkeypatch):
    """The clock decides that, and the same run gives the same result."""
    monkeypatch.setattr(_state, "most_threads", lambda size: 2)
    monkeypatch.setattr(_thin, "SMALL", -1 if rows else 2**60)
    rng, n, d = np.random.default_rng(5), 40, 18
    X = rng.standard_normal((n, 2, d)) * np.geomspace(1.0, spread, d)
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 4)
    losses = gtv.SquaredLoss.stack(X, rng.standard_normal((n, 2)))
    problem = gtv.GTVProblem(graph, losses, "l2", 0.1)
    found, kernels = [], set()

    def run(kernel, *arguments):
        kernels.add(kernel.py_func.__name__)
        run_together(kernel, *arguments)

    monkeypatch.setattr(_state, "run_together", run)
    for threads in (1, 2):
        monkeypatch.setattr(_state, "Pace", lambda most, threads=threads: Fixed(threads))
        method = PrimalDual(problem)
        method.run(60)
        found.append((method.w.tobytes(), method.u.tobytes()))
    assert found[0] == found[1]
    thin, weighted = "_thin" if rows else "", "_weighted" if spread > 1.0 else ""
    assert kernels == {f"iterate{thin}{weighted}"}
