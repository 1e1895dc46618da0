"""Peers from PyPI in virtual environments of their own: never imported, only run as processes.

pycut-pursuit is GPL and needs numpy < 2. No convex-clustering package was found on PyPI that
solves the weighted problem; R's are not run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np

from gtvcvx import GTVProblem

FOLDER = "GTVCVX_BENCHMARK_ENVIRONMENTS"
SCRIPT = Path(__file__).with_name("external_cut_pursuit.py")
REQUIREMENTS = ("pycut-pursuit==0.1.4", "numpy<2")


def prepare(folder: Path) -> None:
    """Create the environment unless it is there, and tell the workers where it is."""
    home = folder.resolve() / "cut-pursuit"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        install = [_python(home), "-m", "pip", "install", "--quiet", *REQUIREMENTS]
        subprocess.run(install, check=True)
        (home / "ready").touch()
    os.environ[FOLDER] = str(folder.resolve())


def _python(home: Path) -> Path:
    return home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def applies(problem: GTVProblem) -> bool:
    """Scalar quadratic losses, or point losses, with l1 or l2: the forms the package solves."""
    if problem.penalty.name not in ("l1", "l2"):
        return False
    kinds = {term["kind"] for term in problem.losses.terms()}
    return kinds <= {"squared", "point"} if problem.dim == 1 else kinds == {"point"}


def cut_pursuit(
    problem: GTVProblem, tolerance: float, time_limit: float
) -> tuple[np.ndarray | None, float, float]:
    """Return w (n, d), the seconds of the solve alone, and the peak memory in MB."""
    if FOLDER not in os.environ:
        raise RuntimeError("cut-pursuit: give --external FOLDER")
    curvature, centre = _quadratics(problem)
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
        command = [_python(Path(os.environ[FOLDER], "cut-pursuit")), SCRIPT, given, answer]
        try:
            subprocess.run(command, check=True, timeout=time_limit + 30, capture_output=True)
        except subprocess.TimeoutExpired:
            return None, time_limit, np.nan
        with np.load(answer) as data:
            return data["w"], float(data["seconds"]), float(data["memory"])


def _quadratics(problem: GTVProblem) -> tuple[np.ndarray, np.ndarray]:
    """Losses as (curvature / 2) ||w||^2 - <centre, w>: shapes (n,) and (n, d)."""
    n = problem.graph.n_nodes
    zero, one = np.zeros((n, problem.dim)), np.ones((n, problem.dim))
    centre = -problem.losses.gradient(zero)
    return (problem.losses.gradient(one) + centre)[:, 0], centre
