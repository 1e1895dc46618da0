"""How many threads run, decided by what they take; the clock is made up."""

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
