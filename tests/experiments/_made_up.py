"""An experiment of no paper, which costs nothing."""

from __future__ import annotations

import numpy as np

from gtvcvx.experiments import Curve, Experiment, Level, Outcome, Panel, Row, Verdict


def run(study):
    """Run: a cell a seed, a row with numbers, one in words, and a finding."""
    cells = [study.cell(f"seed={s}", lambda s=s: {"error": 2.0**-s}) for s in study.seeds]
    errors = np.array([float(cell["error"]) for cell in cells])
    rounds = np.arange(1, study.choose(tiny=4, default=400, paper=4000) + 1)
    curve = Curve("ours", rounds, errors[:, None] / rounds, "CERTIFIED 1e-06")
    return Outcome(
        rows=[
            Row("method", 0.5, errors, 0.9 * errors, Verdict.REPRODUCED, "near enough"),
            Row("statement", "it stays below", "it does", None, Verdict.CANNOT_HOLD, "words"),
            Row("finding", "not given", errors, errors, None, ""),
        ],
        panels=[
            Panel(
                "errors",
                "iterations",
                "mean squared error",
                [curve, Curve("limit", [1, 400], [[0.1, 1.0]], kind="limit")],
                [Level("optimum", 1e-4, "optimum")],
                ylog=True,
            )
        ],
        setting={"lam": "given: 0.1"},
        notes=["made up"],
        measure="mean squared error",
    )


EXPERIMENT = Experiment(
    "made-up-table-1", "GTV", "Table 0", "nothing at all", run, ("paper", "notebook"), seeds=3
)
