"""[GTV] IX-B1, features whose covariance differs between the clusters.

As Figure 9 with p_out 0.01 and 40% of the nodes accessible, without noise, but features with the
covariances [[2.54, .41], [.41, .51]] and [[2.21, -.81], [-.81, .97]]. Printed are errors of 4.53e-6
for Algorithm 1 and 0.133 for MOCHA. Not given: the penalty, lambda and R.

Ours are lambda 1e-2 for l1 and l2 and 0.05 for MOCHA, as the authors' notebook says, and R = 2,000.
Both readings are run for each draw: means of squares with (39), and sums with label errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from gtv_minimization._setting import (
    CLAIM,
    MEASURES,
    READINGS,
    Array,
    Instance,
    Method,
    algorithm1,
    near,
    optimum,
    places,
    proved,
    reproduced,
    stack,
    two_blocks,
)

from gtvcvx.experiments import (
    Curve,
    Experiment,
    Level,
    Outcome,
    Panel,
    Row,
    Study,
    Verdict,
    gap_text,
)

PRINTED = {"Algorithm 1": 4.53e-6, "MOCHA": 0.133}
COVARIANCES = np.array([[[2.54, 0.41], [0.41, 0.51]], [[2.21, -0.81], [-0.81, 0.97]]])
METHODS = (Method("l1", 1e-2), Method("l2", 1e-2), Method("MOCHA", 0.05))
P_OUT, RHO = 0.01, 0.4
# Errors of single draws differ by a factor of two here.
FACTOR = 2.0

SETTING = {
    "graph": "given: two clusters of 100 nodes, p_in 0.5, p_out 0.01",
    "data": "given: rho 0.4, sigma 0, the covariances; m_i = 5, d = 2, w_bar (2, 2) and (-2, 2) as "
    "in Figure 9",
    "penalty": "not given: l1 and l2",
    "lambda": "not given: 1e-2, MOCHA 0.05, as in the authors' notebook",
    "R": "not given: ours is 2,000",
}


def draw(seed: int, half: int) -> Instance:
    """Draw an instance with these covariances of the features."""
    plain = two_blocks(seed, P_OUT, RHO, sizes=(half, half))
    roots = np.repeat(np.linalg.cholesky(COVARIANCES), half, axis=0)
    X = np.einsum("nij,nmj->nmi", roots, plain.data.X)
    y = np.einsum("nmd,nd->nm", X, plain.true_w)
    return replace(plain, data=plain.data._replace(X=X, y=y))


def cell(instance: Instance, method: Method, at: list[int]) -> dict[str, Any]:
    """Errors of a method on its way and at its optimum, in both readings."""
    found: dict[str, Any] = {}
    for reading in READINGS:
        problem = instance.problem(method, reading)
        points, solved = algorithm1(problem, at), optimum(problem)
        found |= {
            f"{reading} errors": [instance.error(points[k], reading) for k in at],
            f"{reading} optimum": instance.error(solved.w, reading),
            f"{reading} gap": proved(problem, points[at[-1]], solved),
            f"{reading} least": instance.least_mse(method, at),
        }
    return found


def verdict(printed: float, errors: Mapping[str, Array], reading: str) -> Verdict:
    """Reproduced where the mean of a reading is the printed number up to a factor of two."""
    if near(printed, errors[reading], FACTOR):
        return reproduced(reading)
    other = any(near(printed, values, FACTOR) for values in errors.values())
    return Verdict.OTHER_READING if other else Verdict.NOT_REPRODUCED


def run(study: Study) -> Outcome:
    """Run the three penalties."""
    half = study.choose(tiny=10, default=100, paper=100)
    at = places(study.choose(tiny=100, default=1_000, paper=2_000))
    cells = {
        method: [
            study.cell(
                f"{method.penalty} {method.lam:g}, half {half}, seed {seed}, R {at[-1]}",
                lambda method=method, seed=seed: cell(draw(seed, half), method, at),
            )
            for seed in study.seeds
        ]
        for method in METHODS
    }
    rows = [_row(method, cells[method], study.reading) for method in METHODS]
    notes = [
        "Speed limit: lambda R leaves room for all nodes; the limit after each iteration is drawn."
    ]
    return Outcome(
        rows, [_panel(cells, at, study.reading)], SETTING, notes, MEASURES[study.reading]
    )


def _row(method: Method, cells: list[dict[str, Array]], reading: str) -> Row:
    printed = PRINTED["MOCHA" if method.penalty == "MOCHA" else "Algorithm 1"]
    errors = {r: stack(cells, f"{r} errors")[:, -1] for r in READINGS}
    reason = "; ".join(f"{MEASURES[r]}, reading {r!r}: {errors[r].mean():.3g}" for r in READINGS)
    found = verdict(printed, errors, reading)
    return Row(
        method.label, printed, errors[reading], stack(cells, f"{reading} optimum"), found, reason
    )


def _panel(cells: Mapping[Method, list[dict[str, Array]]], at: list[int], reading: str) -> Panel:
    curves, levels = [], []
    for method, found in cells.items():
        final = gap_text(stack(found, f"{reading} gap"), CLAIM)
        curves.append(Curve(method.label, at, stack(found, f"{reading} errors"), final))
        solved = stack(found, f"{reading} optimum").mean()
        levels.append(Level(f"certified optimum, {method.label}", solved, "optimum"))
    if reading == "paper":
        least = stack(cells[METHODS[1]], "paper least")
        label = "speed limit of all runs, l2"
        curves.append(Curve(label, at, np.where(least > 0, least, np.nan), "proved", kind="limit"))
    levels += [Level(f"printed, {name}", value, "printed") for name, value in PRINTED.items()]
    return Panel("Features of two covariances", "iterations", MEASURES[reading], curves, levels,
                 ylog=True)  # fmt: skip


EXPERIMENT = Experiment(
    "gtv-covariance",
    "GTV",
    "IX-B1, covariances",
    "features whose covariance differs between the clusters",
    run,
    readings=READINGS,
    seeds=3,
    paper_seeds=5,
    remark="4.53e-6 belongs to a loss that is a sum of squares; with the mean of (38), the error "
    "is some 25 times as large, m_i^2.",
)
