"""The program as a whole: usage, version, entry point, interrupts, progress."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import warnings

import pytest

import gtvcvx as gtv
from gtvcvx.cli import _report, main

COMMANDS = ["demo", "fit", "predict", "path", "cluster", "federate"]
COMMANDS += ["certify", "check", "well-connected", "report", "shard", "solve-shards"]


def test_version(run):
    outcome = run("--version")
    assert (outcome.status, outcome.out) == (0, f"gtvcvx {gtv.__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(run, command):
    outcome = run(command, "--help")
    assert outcome.status == 0
    assert outcome.out.startswith(f"usage: gtvcvx {command}")
    assert "--json" in outcome.out
    assert "--quiet" in outcome.out
    assert "Exit status" in outcome.out
    assert command in run("--help").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["COMMAND"]),
        (["solve"], ["solve", "demo", "fit"]),
        (["fit"], ["--edges", "--node", "gtvcvx fit --help"]),
        (["certify", "p.npz"], ["SOLUTION"]),
        (["check"], ["CERTIFICATE"]),
        (["well-connected", "p.npz"], ["--partition"]),
        (["demo", "--seed", "1"], ["--seed", "gtvcvx demo --help"]),
    ],
)
def test_usage_errors_take_one_line(run, arguments, words):
    outcome = run(*arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert all(word in outcome.err for word in words)


def test_entry_point_fits_and_certifies(fitted):
    def call(*arguments):
        command = [sys.executable, "-m", "gtvcvx", *arguments]
        return subprocess.run(
            command, cwd=fitted.folder, capture_output=True, text=True, timeout=60
        )

    good = call("certify", "s.problem.npz", "s.npz", "-o", "c.json", "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["certificate"]["status"] == "CERTIFIED"
    assert (fitted.folder / "c.json").exists()
    bad = call("check", "nothing.json")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("gtvcvx check: error: nothing.json: ")


def test_reader_that_goes_away_changes_nothing(fitted):
    problem, labels = str(fitted.folder / "s.problem.npz"), str(fitted.folder / "labels.csv")
    arguments = ["well-connected", problem, "--partition", labels]
    expected = main([*arguments, "--quiet"])
    process = subprocess.Popen(
        [sys.executable, "-m", "gtvcvx", *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (expected, b"")


def test_interrupt_outside_the_iteration(fitted, run, monkeypatch):
    def interrupted(*args, **options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("gtvcvx.problem.GTVProblem.load", interrupted)
    before = fitted.content()
    outcome = run("certify", fitted.folder / "p", fitted.folder / "s", "-o", fitted.folder / "c")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == "gtvcvx certify: error: interrupted\n"
    assert fitted.content() == before


def test_interrupt_during_certification_keeps_the_solution(files, run, monkeypatch):
    def interrupted(*args, **options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("verify.certify", interrupted)
    outcome = run(*files.fit())
    assert outcome.status == 1
    assert "the solution is in" in outcome.err
    assert gtv.Solution.load(files.folder / "s.npz").status == "optimal"


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self):
        return True


def test_progress_only_on_a_terminal(files, monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    assert main(files.fit()) == 0
    assert "certifying ..." in shown.getvalue()
    assert shown.getvalue().endswith("\r")
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    assert main(files.fit("--quiet")) == 0
    assert quiet.getvalue() == ""


def test_label_that_the_terminal_cannot_show(files, run, monkeypatch):
    for path in (files.edges, files.data):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("\na,", "\nÅland,"), encoding="utf-8")
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", ascii_only)
    assert main(files.fit()) == 0
    ascii_only.seek(0)
    assert "\\xc5land" in ascii_only.read()


def test_warnings_take_one_line(files, run, monkeypatch):
    def warned(path, *args, **options):
        warnings.warn("an edge is\n  named twice", UserWarning, stacklevel=1)
        raise ValueError("enough")

    monkeypatch.setattr("gtvcvx.cli._design.read_edges", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        outcome = run(*files.fit())
    assert outcome.err.splitlines() == [
        "gtvcvx fit: warning: an edge is named twice",
        "gtvcvx fit: error: enough",
    ]


def test_plain_values_of_json():
    value = {"a": float("inf"), 1: (float("nan"), None), "n": {"b": True}}
    assert _report.plain(value) == {"a": "inf", "1": ["nan", None], "n": {"b": True}}


def test_tables_are_aligned():
    lines = _report.table(["c", "members"], [["10", "a"], ["2", "b, c"]])
    assert lines == ["   c  members", "  10  a", "   2  b, c"]
