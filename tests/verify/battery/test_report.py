"""`verify.conformance`: limits, Ctrl-C, the report and its forms, progress, bad arguments."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

import gtvcvx as gtv
import verify


def auto(data, rtol=1e-7):
    return gtv.GTVProblem.from_data(data).solve(rtol=rtol)


def family(row):
    return row.instance.removesuffix(f"-{row.penalty}-{row.losses}")


def raising(data):
    raise RuntimeError("out of\nluck")


def test_interrupt_returns_what_ran():
    count = 0

    def solver(data):
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return auto(data)

    report = verify.conformance(solver)
    assert len(report.rows) == 3
    assert (report.stopped, report.planned, report.passed) == ("interrupted", 64, False)
    assert "3 of 64 instances" in str(report)
    assert "FAILED" in str(report)


def test_time_limit_starts_no_further_instance():
    def solver(data):
        time.sleep(0.3)
        return auto(data)

    report = verify.conformance(solver, time_limit=0.2)
    assert (len(report.rows), report.stopped, report.passed) == (1, "time limit", False)
    assert report.rows[0].status == "CERTIFIED"
    assert report.rows[0].seconds >= 0.3


def test_a_fault_of_the_builder_does_not_pass(monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("verify.battery._run.certify", broken)
    report = verify.conformance(auto, penalties=["l2"], losses=["point"])
    assert report.counts["UNPROVED"] == len(report.rows)
    assert "verify.certify failed: oops" in report.rows[0].reason


def test_report_as_table_and_as_plain_data():
    def solver(data):
        return auto(data) if data["n_nodes"] != 13 else np.zeros((13, data["dim"]))

    report = verify.conformance(solver, penalties=["l2"], losses=["point"])
    lines = str(report).splitlines()
    assert lines[0].split() == ["instance", "n", "m", "d", "status", "rel.", "gap", "seconds"]
    table = [line.split() for line in lines[1 : len(report.rows) + 1]]
    for cells, row in zip(table, report.rows, strict=True):
        sizes = [str(row.n), str(row.m), str(row.d)]
        assert cells[:5] == [row.instance, *sizes, row.status]
        assert float(cells[5]) == pytest.approx(row.rel_gap, rel=0.05)
    assert {family(row) for row in report.failures} == {"disconnected", "star"}
    assert "  star-l2-point: REFUTED: " in str(report)
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain == report.to_dict()
    assert plain["counts"] == {"CERTIFIED": 13, "REFUTED": 2, "UNPROVED": 0, "ERROR": 0}
    assert (plain["passed"], plain["planned"], plain["rtol"]) == (False, 15, 1e-6)
    assert plain["rows"][0]["instance"] == "connected-l2-point"


def test_same_reasons_are_told_once():
    report = verify.conformance(raising, penalties=["l2"])
    assert str(report).count("out of luck") == 1
    assert "and 12 more: ERROR: RuntimeError" in str(report)


@pytest.mark.parametrize("verbose", [True, False, None])
def test_progress_goes_to_standard_error_where_asked(verbose, capsys):
    verify.conformance(auto, penalties=["l2"], losses=["point"], verbose=verbose)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("CERTIFIED") == (15 if verbose else 0)
    assert (printed.err == "") == (verbose is not True)  # no terminal here


def test_a_terminal_shows_one_line_that_goes_away(monkeypatch):
    written = []
    terminal = SimpleNamespace(write=written.append, flush=lambda: None, isatty=lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    verify.conformance(auto, penalties=["l2"], losses=["point"])
    assert written[0].startswith("\rconformance 1/15: connected-l2-point")
    assert written[-1].strip() == ""
    assert not any("\n" in text for text in written)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"solver": 3}, TypeError, "solver: a callable"),
        ({"rtol": 0.0}, ValueError, "rtol: a positive finite"),
        ({"rtol": np.nan}, ValueError, "rtol: a positive finite"),
        ({"seed": 1.5}, TypeError, "seed: an integer"),
        ({"seed": -1}, ValueError, "seed: an integer >= 0"),
        ({"time_limit": -1.0}, ValueError, "time_limit: a positive finite"),
        ({"penalties": ["l3"]}, ValueError, "penalties: a sequence of names among"),
        ({"penalties": "l2"}, ValueError, "penalties: a sequence of names among"),
        ({"losses": []}, ValueError, "losses: a sequence of names among"),
    ],
)
def test_bad_arguments_are_named(arguments, error, words):
    solver = arguments.pop("solver", auto)
    with pytest.raises(error, match=words):
        verify.conformance(solver, **arguments)
