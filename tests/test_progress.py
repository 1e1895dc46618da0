"""The progress display, on a fake stream with a fake clock."""

from __future__ import annotations

import io
import os
import re

import pytest

from gtvcvx import _progress
from gtvcvx._progress import ProgressDisplay, format_seconds


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(autouse=True)
def width(monkeypatch):
    monkeypatch.setattr(_progress.shutil, "get_terminal_size", lambda: os.terminal_size((200, 24)))


def shown(stream):
    """What a terminal shows in its last line: a carriage return lets text overwrite."""
    line = ""
    for part in stream.getvalue().split("\n")[-1].split("\r"):
        line = part + line[len(part) :]
    return line


def run(stream, clock, steps, **options):
    progress = ProgressDisplay("solve", stream=stream, clock=clock, interval=1.0, **options)
    for seconds, iteration, gap in steps:
        clock.now += seconds
        progress.update(iteration, gap)
    return progress


STEPS = [(2.0, 10, 1e-1), (2.0, 20, 1e-2)]


@pytest.mark.parametrize(
    ("stream", "verbose", "writes"),
    [
        (Terminal, None, True),
        (Terminal, True, True),
        (Terminal, False, False),
        (io.StringIO, None, False),
        (io.StringIO, True, True),
        (io.StringIO, False, False),
    ],
)
def test_who_sees_something(clock, stream, verbose, writes):
    out = stream()
    run(out, clock, STEPS, verbose=verbose).close()
    assert bool(out.getvalue()) is writes


def test_line_is_rewritten_in_place_with_iteration_gap_elapsed(clock):
    out = Terminal()
    run(out, clock, STEPS)
    assert out.getvalue().count("\r") == 2
    assert "\n" not in out.getvalue()
    assert shown(out).rstrip() == "solve: iteration 20, gap 1.00e-02, 4.0 s elapsed"


def test_shorter_line_covers_the_longer_one(clock):
    out = Terminal()
    run(out, clock, [(2.0, 123456789, 1e-3), (2.0, 2, None)])
    assert shown(out).rstrip() == "solve: iteration 2, 4.0 s elapsed"


def test_reports_are_throttled(clock):
    out = Terminal()
    run(out, clock, [(0.01, k, None) for k in range(1000)])
    assert 8 <= out.getvalue().count("\r") <= 10


def test_quick_work_shows_nothing(clock):
    out = Terminal()
    run(out, clock, [(0.9, 5, 1.0)]).close()
    assert out.getvalue() == ""


def test_close_removes_the_line_in_automatic_mode(clock):
    out = Terminal()
    run(out, clock, STEPS).close()
    assert shown(out).strip() == ""
    assert "\n" not in out.getvalue()
    assert out.getvalue().endswith("\r")


def test_close_keeps_the_last_state_if_verbose(clock):
    out = Terminal()
    run(out, clock, [*STEPS, (0.1, 21, 5e-3)], verbose=True).close()
    assert out.getvalue().endswith("\n")
    assert "iteration 21, gap 5.00e-03" in out.getvalue().split("\r")[-1]


def test_without_terminal_each_report_is_a_line(clock):
    out = io.StringIO()
    run(out, clock, [(11.0, 1, None), (5.0, 2, None), (6.0, 3, None)], verbose=True).close()
    lines = out.getvalue().splitlines()
    assert [re.search(r"iteration (\d+)", line)[1] for line in lines] == ["1", "3"]
    assert "\r" not in out.getvalue()


def test_time_left_from_total(clock):
    out = Terminal()
    run(out, clock, [(10.0, 25, None)], total=100)
    assert "iteration 25/100" in shown(out)
    assert "about 30 s left" in shown(out)


def test_time_left_from_the_gap(clock):
    # One digit in ten seconds, three digits to go.
    out = Terminal()
    run(out, clock, [(1.0, 1, 1e-1), (10.0, 2, 1e-2)], gap_goal=1e-5)
    assert "about 30 s left" in shown(out)


def test_total_caps_the_time_left_from_the_gap(clock):
    out = Terminal()
    run(out, clock, [(1.0, 1, 1e-1), (10.0, 11, 1e-2)], gap_goal=1e-5, total=22)
    assert "about 11 s left" in shown(out)


@pytest.mark.parametrize("gap", [None, float("nan"), float("inf"), 0.5, 0.1])
def test_no_time_left_where_it_cannot_be_told(clock, gap):
    out = Terminal()
    run(out, clock, [(1.0, 1, 0.1), (10.0, 2, gap)], gap_goal=1e-5, total=1000)
    assert "left" not in shown(out)
    assert ("gap" in shown(out)) is (gap in (0.5, 0.1))


@pytest.mark.parametrize("gap", [1e-6, 0.0, -1e-12])
def test_goal_reached(clock, gap):
    out = Terminal()
    run(out, clock, [(1.0, 1, 0.1), (10.0, 2, gap)], gap_goal=1e-5)
    assert "about 0.0 s left" in shown(out)


def test_line_never_fills_a_narrow_terminal(clock, monkeypatch):
    monkeypatch.setattr(_progress.shutil, "get_terminal_size", lambda: os.terminal_size((20, 24)))
    out = Terminal()
    run(out, clock, STEPS)
    assert max(map(len, out.getvalue().split("\r"))) == 19


def test_broken_stream_does_not_stop_the_work(clock):
    class Broken(Terminal):
        def write(self, text):
            raise BrokenPipeError

    progress = run(Broken(), clock, STEPS)
    progress.update(30, 1e-3)
    progress.close()
    assert progress._active is False


def test_no_standard_error(clock, monkeypatch):
    monkeypatch.setattr(_progress.sys, "stderr", None)
    progress = run(None, clock, STEPS, verbose=True)
    progress.close()
    assert progress._active is False


def test_default_stream_is_standard_error_of_the_moment(clock, monkeypatch):
    out = Terminal()
    monkeypatch.setattr(_progress.sys, "stderr", out)
    run(None, clock, STEPS)
    assert "iteration 20" in out.getvalue()


def test_context_manager_cleans_up_after_an_error(clock):
    out = Terminal()
    with pytest.raises(KeyboardInterrupt), run(out, clock, STEPS):
        raise KeyboardInterrupt
    assert shown(out).strip() == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1.0, "0.0 s"),
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185.0, "3 min 05 s"),
        (3599.7, "1 h 00 min"),
        (7800.0, "2 h 10 min"),
    ],
)
def test_durations(seconds, text):
    assert format_seconds(seconds) == text
