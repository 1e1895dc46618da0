"""Peers in virtual environments of their own: never imported, only run as processes.

Some come from PyPI; some their users install, from where their authors publish them. One problem
goes in as an npz file, one w comes out: see the scripts ``external_*.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import clustering
import numpy as np

from gtvcvx import GTVProblem

FOLDER = "GTVCVX_BENCHMARK_ENVIRONMENTS"


@dataclass(frozen=True)
class Program:
    """A peer as a program.

    Attributes
    ----------
    script : str
        What runs in its environment, ``--external DIR/NAME``.
    applies : callable
        Whether it can solve a problem.
    requirements : tuple of str
        On PyPI; empty where a user installs it.
    hint : str
        What to do where that fails, or is nobody's business but the user's.
    """

    script: str
    applies: Callable[[GTVProblem], bool]
    requirements: tuple[str, ...] = ()
    hint: str = ""


def prepare(folder: Path, names: Iterable[str]) -> list[str]:
    """Make the environments that are not there, and tell the workers where they are.

    Returns a line for each program that has to be left out.
    """
    missing = []
    for name in names:
        program, home = PROGRAMS[name], folder.resolve() / name
        if (home / "ready").exists() or (not program.requirements and python(home).exists()):
            continue
        if not program.requirements:
            missing.append(f"{name}: no environment {home}; {program.hint}")
            continue
        venv.create(home, with_pip=True, clear=True)
        install = [python(home), "-m", "pip", "install", "--quiet", *program.requirements]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:]
            missing.append(f"{name}: cannot be installed ({' '.join(last)}) {program.hint}".strip())
            continue
        (home / "ready").touch()
    os.environ[FOLDER] = str(folder.resolve())
    return missing


def python(home: Path) -> Path:
    return home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def run(
    name: str, problem: GTVProblem, tolerance: float, time_limit: float
) -> tuple[np.ndarray | None, float, float]:
    """Return w (n, d), the seconds of the solve alone, and the peak memory in MB."""
    if FOLDER not in os.environ:
        raise RuntimeError(f"{name}: give --external FOLDER")
    curvature, centre = quadratics(problem)
    with tempfile.TemporaryDirectory() as scratch:
        given, answer = Path(scratch, "problem.npz"), Path(scratch, "answer.npz")
        np.savez(
            given,
            n_nodes=problem.graph.n_nodes,
            edges=problem.graph.edges,
            capacities=problem.capacities,
            curvature=curvature,
            centre=centre,
            norm=2 if problem.penalty.name == "l2" else 1,
            tolerance=tolerance,
        )
        script = Path(__file__).with_name(PROGRAMS[name].script)
        command = [python(Path(os.environ[FOLDER], name)), script, given, answer]
        try:
            done = subprocess.run(command, timeout=time_limit + 30, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            return None, time_limit, np.nan
        if done.returncode:
            raise RuntimeError(f"{name}: {' '.join(done.stderr.strip().splitlines()[-1:])}")
        with np.load(answer) as data:
            return data["w"], float(data["seconds"]), float(data["memory"])


def quadratics(problem: GTVProblem) -> tuple[np.ndarray, np.ndarray]:
    """Losses as (curvature / 2) ||w||^2 - <centre, w>: shapes (n,) and (n, d)."""
    form = problem.losses.scalar(problem.graph.n_nodes)
    assert form is not None  # as it applies
    return form.curvature[:, 0], form.linear


def _kinds(problem: GTVProblem) -> set[str]:
    return {term["kind"] for term in problem.losses.terms()}


def _scalar_or_points(problem: GTVProblem) -> bool:
    """Scalar quadratic losses, or point losses, with l1 or l2: the forms cut pursuit solves."""
    if problem.penalty.name not in ("l1", "l2"):
        return False
    return _kinds(problem) <= {"squared", "point"} if problem.dim == 1 else is_points(problem)


def is_points(problem: GTVProblem) -> bool:
    """Say whether each node has a point loss, all of one weight: convex clustering."""
    if _kinds(problem) != {"point"}:
        return False
    curvature = quadratics(problem)[0]
    return bool(curvature[0] > 0.0 and np.all(curvature == curvature[0]))


def _clustering(problem: GTVProblem) -> bool:
    """Convex clustering with Euclidean norms."""
    return (problem.penalty.name == "l2" or problem.dim == 1) and is_points(problem)


def _gaussian(problem: GTVProblem) -> bool:
    """Convex clustering with the weights of F9."""
    if problem.penalty.name != "l2" or not is_points(problem):
        return False
    curvature, centre = quadratics(problem)
    jumps = problem.differences(centre / curvature[:, None])
    weights = np.exp(-clustering.PHI * np.sum(jumps**2, axis=1))
    return bool(np.allclose(problem.graph.weights, weights, rtol=1e-6, atol=0.0))


def _signal(problem: GTVProblem) -> bool:
    """A chain of points in one dimension, in order, all edges of one weight."""
    n, edges = problem.graph.n_nodes, problem.graph.edges
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    alike = len(edges) > 0 and np.ptp(problem.graph.weights) == 0.0
    return bool(problem.dim == 1 and alike and np.array_equal(edges, chain) and is_points(problem))


PROGRAMS = {
    "cut-pursuit": Program(
        "external_cut_pursuit.py", _scalar_or_points, ("pycut-pursuit==0.1.4", "numpy<2")
    ),
    "prox-tv": Program(
        "external_prox_tv.py",
        _signal,
        ("prox-tv==3.3.0",),
        "it needs a C++ compiler and the headers of LAPACKE, such as Debian's liblapacke-dev",
    ),
    "CCMM": Program(
        "external_ccmm.py",
        _clustering,
        hint="CCMMPy (GPL) is not on PyPI: make this environment and install it there from "
        "github.com/djwtouw/CCMMPy",
    ),
    "SSNAL": Program(
        "external_ssnal.py",
        _gaussian,
        hint="PyClustrPath is not on PyPI: make this environment and install it there from "
        "github.com/D3IntOpt/PyClustrPath",
    ),
}
