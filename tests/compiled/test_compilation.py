"""The clock that stands still while functions are compiled, and what a terminal shows of it."""

import dataclasses
import gc
import io
from contextlib import suppress

import numba as nb
import pytest
from numba.core import event

from gtvcvx import _compiling, _deadline
from gtvcvx._compiling import announced
from gtvcvx.solvers.driver import Options
from verify._compilation import CLOCK, CompilationClock
from verify._compiled import Listener


class Seconds:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def clock(seconds):
    return CompilationClock(seconds)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_clock_stands_still_while_something_is_compiled(seconds, clock):
    seconds.now += 1.0
    with clock.compiling():
        seconds.now += 20.0
        assert clock.now() == 101.0
        with clock.compiling():  # nested: counted once
            seconds.now += 3.0
        assert clock.now() == 101.0
        seconds.now += 1.0
    assert clock.now() == 101.0
    seconds.now += 2.0
    assert clock.now() == 103.0
    with suppress(KeyboardInterrupt), clock.compiling():
        seconds.now += 5.0
        raise KeyboardInterrupt
    seconds.now += 1.0
    assert clock.now() == 104.0


def test_garbage_is_not_collected_meanwhile(clock):
    for collects in (False, True):
        (gc.enable if collects else gc.disable)()
        with clock.compiling(), clock.compiling():
            assert not gc.isenabled()
        assert gc.isenabled() == collects


def _age(value):
    """Return the generation of an object: those of the last are looked at least often."""
    return next(k for k in (2, 1, 0) if any(value is other for other in gc.get_objects(k)))


def test_what_was_made_meanwhile_is_not_gone_through(clock):
    with clock.compiling():
        made = [[]]
        assert _age(made) == 0
    assert _age(made) == 2
    gc.freeze()
    try:
        with clock.compiling():
            pass
        assert gc.get_freeze_count()  # what a user has frozen stays so
    finally:
        gc.unfreeze()


def test_numba_tells_the_clock_what_it_compiles(clock):
    seen = []

    def ours(dispatcher):
        seen.append(dispatcher.py_func.__name__)
        return dispatcher.py_func.__name__ != "foreign"

    listener = Listener(clock, ours)
    stops = []
    clock._clock = lambda: float(len(stops))  # moves on when compilation begins
    clock._watcher = type("", (), {"begun": lambda _: stops.append(1), "ended": lambda _: None})()
    inner = nb.njit(lambda x: x + 1.0)
    foreign = nb.njit(nb_foreign)

    @nb.njit
    def outer(x):
        return inner(x) * 2.0

    event.register("numba:compile", listener)
    try:
        assert outer(1.0) == 4.0
        assert foreign(1.0) == 1.0
        assert outer(2.0) == 6.0
    finally:
        event.unregister("numba:compile", listener)
    assert "outer" in seen
    assert len(stops) == 1
    assert clock._depth == 0


def nb_foreign(x):
    return x


nb_foreign.__name__ = "foreign"


def test_limits_leave_compilation_out_and_seconds_do_not(seconds, monkeypatch):
    monkeypatch.setattr(CLOCK, "_clock", seconds)
    monkeypatch.setattr(CLOCK, "_state", (0.0, None))
    monkeypatch.setattr("gtvcvx.solvers.driver._limits.time.perf_counter", seconds)
    limits = dataclasses.replace(Options(time_limit=10.0).limits(), began=100.0)
    with CLOCK.compiling():
        seconds.now += 20.0
    assert not limits.expired
    assert limits.seconds_left == 10.0
    assert limits.seconds == 20.0
    with _deadline.until(limits.deadline):
        _deadline.look()
        seconds.now += 10.0
        assert limits.expired
        with pytest.raises(_deadline.Expired):
            _deadline.look()


def test_a_terminal_shows_it_and_is_left_clean(clock):
    stream = Terminal()
    with announced(None, stream, clock):
        with announced(None, Terminal(), clock), clock.compiling():
            assert _compiling.TEXT in stream.getvalue()
        assert stream.getvalue().endswith("\r")
        written = stream.getvalue()
    with clock.compiling():
        pass
    assert stream.getvalue() == written


@pytest.mark.parametrize(
    ("stream", "verbose"), [(io.StringIO(), None), (io.StringIO(), True), (Terminal(), False)]
)
def test_nothing_is_shown_elsewhere(clock, stream, verbose):
    with announced(verbose, stream, clock), clock.compiling():
        pass
    assert stream.getvalue() == ""
