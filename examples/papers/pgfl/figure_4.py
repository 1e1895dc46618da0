"""Figure 4 of [PGFL]: the NMSD after 200 rounds against tau.

Scheduled clients and privacy noise as in Figure 3. The paper's curve falls from tau = 0 and rises
again: the best tau lies between .1 and .5. Which one is best depends on the noise of the targets,
which is not given.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pgfl._claims import best_inside
from pgfl._compared import MAIN, NOISES
from pgfl._runs import Runs, runs_of
from pgfl._setting import NO_LEARNING, SCHEDULED, VARIANCE, Method, given, setting_of

from gtvcvx.experiments import Curve, Experiment, Outcome, Panel, Row, Study

TAUS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
#: Places of .1 to .5 in TAUS.
INSIDE = slice(2, 6)
ROUNDS = 200


def runs_along_tau(study: Study, noise: float) -> list[Runs]:
    """Run PGFL for every tau."""
    setting = setting_of(study, noise=noise, rounds=ROUNDS)
    method = replace(NO_LEARNING, scheduled=SCHEDULED, variance=VARIANCE)
    return [
        runs_of(study, setting, replace(method, label=f"tau = {tau:g}", tau=tau)) for tau in TAUS
    ]


def claim(noise: float, runs: list[Runs]) -> Row:
    """State where the best tau is."""
    values = np.column_stack([each.last for each in runs])
    best = np.asarray(TAUS)[values.argmin(axis=1)]
    means = values.mean(axis=0)
    text = ", ".join(f"{tau:g}: {mean:.3g}" for tau, mean in zip(TAUS, means, strict=True))
    return Row(
        f"best tau, noise {noise:g}",
        "between .1 and .5",
        best,
        "the same problem for all tau",
        best_inside(values, INSIDE),
        f"mean NMSD by tau: {text}",
    )


def panel(noise: float, runs: list[Runs]) -> Panel:
    """Return the NMSD along tau."""
    values = np.column_stack([each.last for each in runs])
    curve = Curve(f"PGFL after {runs[0].rounds[-1]:g} rounds", TAUS, values, runs[0].final)
    return Panel(f"noise {noise:g}", "tau", "NMSD (53)", [curve], runs[0].levels(), ylog=True)


def run(study: Study) -> Outcome:
    """Run PGFL along tau, in the full setting for all noises of the targets."""
    noises = study.choose(tiny=(MAIN,), default=(MAIN,), paper=NOISES)
    along = {noise: runs_along_tau(study, noise) for noise in noises}
    values = [
        Row(
            f"{each.label}, noise {noise:g}",
            "not given",
            each.last,
            each.optimum,
            None,
            "the paper draws a curve",
        )
        for noise, runs in along.items()
        for each in runs
    ]
    setting = setting_of(study, noise=MAIN, rounds=ROUNDS)
    return Outcome(
        rows=[*(claim(noise, runs) for noise, runs in along.items()), *values],
        panels=[panel(noise, runs) for noise, runs in along.items()],
        setting=given(setting, Method("", scheduled=SCHEDULED, variance=VARIANCE)),
        measure="NMSD (53) after 200 rounds; in rows of the best tau, that tau",
    )


EXPERIMENT = Experiment(
    "pgfl-figure-4",
    "PGFL",
    "Figure 4",
    "NMSD after 200 rounds against tau",
    run,
    seeds=3,
    paper_seeds=10,
)
