"""The section about federated runs on the same nodes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx.cli.report._page import Table
from gtvcvx.cli.report._svg import Picture, new_axes, picture
from gtvcvx.federated import SavedRun
from gtvcvx.plotting import plot_activity, plot_rounds
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

_NONE = "none"
_HEIGHT = 3.2  # inches of a picture
_RUNS = ("run", "algorithm", "status", "rounds", "active clients")
_RESULTS = ("run", "value", "certified gap", "objective", "distance", "bytes up", "bytes down")


@dataclass(frozen=True)
class Federated:
    """Tables of runs, and pictures."""

    course: Table
    results: Table
    pictures: list[Picture]


def federated(
    runs: Mapping[str, SavedRun], problem: GTVProblem, solution: Solution
) -> Federated | None:
    """Compare runs, by their files; None where there are none."""
    if not runs:
        return None
    names = short_names(runs)
    course = [[names[path], *_course(run)] for path, run in runs.items()]
    results = [[names[path], *_results(run, problem, solution)] for path, run in runs.items()]
    drawn = {names[path]: run for path, run in runs.items() if run.history.n_records}
    return Federated(
        Table("Who took part", _RUNS, course),
        Table("How far the runs came, and what was sent", _RESULTS, results),
        _pictures(drawn) if drawn else [],
    )


def short_names(runs: Mapping[str, SavedRun]) -> dict[str, str]:
    """Return how tables call each run: its algorithm, its file, or the path; none twice."""
    files = {path: os.path.basename(path).removesuffix(".npz") for path in runs}
    for names in ({path: run.name for path, run in runs.items()}, files):
        if max(Counter(names.values()).values()) == 1:
            return names
    return {path: path for path in runs}


def _course(run: SavedRun) -> list[Any]:
    active = run.history.mean_active
    part = _NONE if active is None else f"{active:.3g} of {len(run.nodes)}"
    return [run.algorithm, run.status.replace("_", " "), run.rounds, part]


def _results(run: SavedRun, problem: GTVProblem, solution: Solution) -> list[Any]:
    last = run.history.last()
    value, gap = last.get("value", _NONE), last.get("gap", _NONE)
    sent = [last.get(name, _NONE) for name in ("bytes_up", "bytes_down")]
    return [value, gap, *_here(run, problem, solution), *sent]


def _here(run: SavedRun, problem: GTVProblem, solution: Solution) -> tuple[Any, Any]:
    """Return objective of the models, and their largest distance from the solution."""
    if not len(run.models):
        return _NONE, _NONE
    distances = np.linalg.norm(run.models - solution.w, axis=1)
    return float(problem.value(run.models)), float(distances.max())


def _pictures(runs: Mapping[str, SavedRun]) -> list[Picture]:
    found = []
    if any("gap" in run.history for run in runs.values()):
        for over, what in (("rounds", "rounds"), ("bytes", "bytes that clients have sent and got")):
            caption = f"The certified gap against {what}."
            found.append(picture(plot_rounds(runs, over=over, ax=new_axes(_HEIGHT)), caption))
    caption = "How many clients took part in the recorded rounds."
    return [*found, picture(plot_activity(runs, ax=new_axes(_HEIGHT)), caption)]
