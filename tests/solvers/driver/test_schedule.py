"""When the gap is checked: by counts of iterations and the residual alone."""

import pytest

from gtvcvx.solvers.driver import Limits
from gtvcvx.solvers.driver._schedule import DEFAULTS, Schedule


def first_check(decade, **settings):
    """Return the expected gap, over rtol, at the first check and at the look before.

    The residual falls by a factor of ten in so many iterations.
    """
    schedule, rtol, before = Schedule(Limits(1e-6, 10**6), **settings), 1e-6, None
    for n in range(10, 10_000, 10):
        residual = 3.0 * 10.0 ** (-n / decade)
        expected = schedule.expected_gap(residual) / rtol
        if schedule.due(n, residual):
            return expected, before
        before = expected
    raise AssertionError("no check")


@pytest.mark.parametrize("decade", [100, 200])
def test_the_first_check_comes_when_the_gap_is_expected_to_do(decade):
    expected, before = first_check(decade)
    assert expected <= 1.0 < before


@pytest.mark.parametrize("decade", [31, 53])
def test_it_waits_a_little_where_the_residual_falls_fast(decade):
    """A check that fails would be as dear as the whole run."""
    expected, before = first_check(decade)
    assert expected <= DEFAULTS.sure < before


def test_later_checks_do_not_wait():
    schedule = Schedule(Limits(1e-6, 10**6))
    for n in range(10, 200, 10):
        schedule.due(n, 10.0 ** (-n / 40))
    schedule.checked(200, 1.5e-6, 1e-5)
    assert not schedule.due(210, 6e-6)  # .9 rtol, but too soon
    assert schedule.due(230, 6e-6)


@pytest.mark.parametrize(("seconds", "look"), [(1e-3, 1500), (0.02, 500), (1.0, 300)])
def test_a_long_run_is_looked_at_early_by_counts(seconds, look):
    """Not by a clock: a busy machine made other checks, and other decisions after them."""
    schedule = Schedule(Limits(1e-6, 10**6), seconds=seconds)
    assert next(n for n in range(10, 2000, 10) if schedule.due(n, 1.0)) == look
