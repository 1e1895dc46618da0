"""`python -m verify conformance module:callable`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import verify
from verify.__main__ import main

FOLDER = Path(verify.__file__).parent
MODULE = """\
import numpy as np

import gtvcvx as gtv

number = 3

def sound(data):
    return gtv.GTVProblem.from_data(data).solve(rtol=1e-7)

def zeros(data):
    return np.zeros((data["n_nodes"], data["dim"]))

class Solvers:
    @staticmethod
    def zeros(data):
        return zeros(data)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with modules of somebody's solvers."""
    (tmp_path / "somebody.py").write_text(MODULE)
    (tmp_path / "damaged.py").write_text("raise KeyError('key')\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("somebody", "damaged", "exits"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_sound_solver_passes_with_exit_status_0(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", "somebody:sound", "--seed", "3"]) == 0
    table = capsys.readouterr().out
    assert table.startswith("instance")
    assert "PASSED (seed 3;" in table


@pytest.mark.parametrize("name", ["somebody:zeros", "somebody:Solvers.zeros"])
def test_broken_solver_fails_with_exit_status_1(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", name, "--rtol", "1e-5", "--seed", "7", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["passed"], report["rtol"], report["seed"]) == (False, 1e-5, 7)
    assert len(report["rows"]) == report["planned"]
    assert report["counts"]["REFUTED"] > 0


def test_time_limit_ends_the_run_and_is_no_pass(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", "somebody:sound", "--time-limit", "1e-9", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["stopped"], report["rows"]) == ("time limit", [])


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("somebody", "expected module:callable"),
        ("somebody:", "expected module:callable"),
        (":zeros", "expected module:callable"),
        ("nobody:zeros", "No module named 'nobody'"),
        ("somebody:nothing", "no attribute 'nothing'"),
        ("somebody:number", "'number' is not callable, it is of type int"),
        ("damaged:solver", "key"),
        ("exits:solver", "it ends the program"),
    ],
)
def test_bad_names_are_usage_errors(
    folder: Path, name: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"verify: cannot use {name!r}: ")
    assert word in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["conformance"],
        *(["conformance", "somebody:zeros", "--rtol", value] for value in ("0", "nan", "x")),
        *(["conformance", "somebody:zeros", "--seed", value] for value in ("-1", "0.5")),
        ["conformance", "somebody:zeros", "--time-limit", "-1"],
    ],
)
def test_bad_options_are_usage_errors(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


def _run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the package from the folder of somebody's modules."""
    shutil.copytree(FOLDER, folder / "verify", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "plain.py").write_text("def solver(data):\n    raise RuntimeError('no idea')\n")
    return subprocess.run(
        [sys.executable, *options, "conformance", "plain:solver"],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_modules_of_the_current_folder_are_found(folder: Path) -> None:
    done = _run(folder, "-m", "verify")
    assert done.returncode == 1, done.stderr
    assert "RuntimeError: no idea" in done.stdout
    assert "FAILED" in done.stdout


def test_without_numpy_it_says_so(folder: Path) -> None:
    done = _run(folder, "-S", "-m", "verify")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("verify: cannot use 'plain:solver': No module named ")
