"""The section of ``gtvcvx report`` about federated runs on the same nodes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from gtvcvx.cli import _html as html
from gtvcvx.federated import SavedRun
from gtvcvx.plotting import plot_activity, plot_rounds
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

_NONE = "none"
_NOTE = (
    "Value and gap are those of the problem that the algorithm solves, at its last record; the gap "
    "is certified: the value less a lower bound from the algorithm's own flow. The objective is "
    "that of the problem of this page, at the clients' models, and the distance the largest of a "
    "client's model from its vector in the solution of this page. Bytes are all that clients have "
    "sent and got, headers included; activity is a mean over the recorded rounds."
)
_RUNS = ("run", "algorithm", "status", "rounds", "active clients")
_RESULTS = ("run", "value", "certified gap", "objective", "distance", "bytes up", "bytes down")


def federated_section(runs: Mapping[str, SavedRun], problem: GTVProblem, solution: Solution) -> str:
    """Return a table of runs, by their files, and pictures; "" where there are no runs."""
    if not runs:
        return ""
    names = short_names(runs)
    course = [[names[path], *_course(run)] for path, run in runs.items()]
    results = [[names[path], *_results(run, problem, solution)] for path, run in runs.items()]
    drawn = {names[path]: run for path, run in runs.items() if run.history.n_records}
    return html.section(
        "Federated runs",
        html.table("Who took part", _RUNS, course),
        html.table("How far the runs came, and what was sent", _RESULTS, results),
        html.paragraph(_NOTE, "note"),
        *(_pictures(drawn) if drawn else []),
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


def _pictures(runs: Mapping[str, SavedRun]) -> list[str]:
    found = []
    if any("gap" in run.history for run in runs.values()):
        for over, what in (("rounds", "rounds"), ("bytes", "bytes that clients have sent and got")):
            caption = f"The certified gap against {what}."
            found.append(html.picture(plot_rounds(runs, over=over), caption))
    caption = "How many clients took part in the recorded rounds."
    return [*found, html.picture(plot_activity(runs), caption)]
