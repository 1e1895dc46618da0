"""Figure 4 of [PGFL]: the NMSD after 200 rounds against tau.

Scheduled clients and privacy noise as in Figure 3. The paper's curve falls from tau = 0 and rises
again: the best tau lies between .1 and .5. Which one is best depends on the noise of the targets,
which is not given.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pgfl._claims import best_inside
from pgfl._compared import MAIN, NOISES, few_seeds
from pgfl._runs import Runs, runs_of
from pgfl._setting import stated
from pgfl._systems import NO_LEARNING, SCHEDULED, VARIANCE, setting_of

from gtvcvx._arrays import FloatArray
from gtvcvx.experiments import Curve, Experiment, Outcome, Panel, Row, Study

ALL = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
TAUS = {"tiny": (0.0, 0.3, 0.9), "default": ALL, "paper": ALL}
#: Where the best tau is said to be.
INSIDE = (0.1, 0.5)
ROUNDS = 200


def runs_along_tau(study: Study, noise: float) -> list[Runs]:
    """Run PGFL for every tau."""
    setting = setting_of(study, noise=noise, rounds=ROUNDS)
    method = replace(NO_LEARNING, scheduled=SCHEDULED, variance=VARIANCE)
    seeds = None if noise == MAIN else few_seeds(study)
    return [
        runs_of(study, setting, replace(method, label=f"tau = {tau:g}", tau=tau), seeds)
        for tau in TAUS[study.size]
    ]


def errors(runs: list[Runs]) -> FloatArray:
    """Return the NMSD (seeds, k) after the last round."""
    return np.column_stack([each.last for each in runs])


def claim(noise: float, taus: tuple[float, ...], values: FloatArray) -> Row:
    """State where the best tau is, by errors (seeds, k)."""
    best = np.asarray(taus)[values.argmin(axis=1)]
    means = values.mean(axis=0)
    text = ", ".join(f"{tau:g}: {mean:.3g}" for tau, mean in zip(taus, means, strict=True))
    inside = [k for k, tau in enumerate(taus) if INSIDE[0] <= tau <= INSIDE[1]]
    return Row(
        f"best tau, noise {noise:g}",
        "between .1 and .5",
        best,
        "the same problem for all tau",
        best_inside(values, inside),
        f"mean NMSD by tau: {text}",
    )


def panel(noise: float, taus: tuple[float, ...], runs: list[Runs]) -> Panel:
    """Return the NMSD along tau."""
    label = f"PGFL after {runs[0].rounds[-1]:g} rounds"
    curve = Curve(label, taus, errors(runs), runs[0].final)
    return Panel(
        f"noise of targets {noise:g}", "tau", "NMSD (53)", [curve], runs[0].levels(), ylog=True
    )


def run(study: Study) -> Outcome:
    """Run PGFL along tau, in the full setting for all noises of the targets."""
    taus = TAUS[study.size]
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
        rows=[*(claim(noise, taus, errors(runs)) for noise, runs in along.items()), *values],
        panels=[panel(noise, taus, runs) for noise, runs in along.items()],
        setting=stated(setting, scheduled=True, private=True),
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
