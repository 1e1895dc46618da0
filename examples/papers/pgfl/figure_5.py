"""Figure 5 of [PGFL]: clusters that differ more, and inter-cluster learning that fades.

gamma_q ~ U(-.5, .5), scheduled clients and privacy noise as in Figure 3. The paper states that a
constant tau = .4 is fast at first and ends badly, and that ``tau_n = .4 * .98^n`` has both: it is
ahead early and ends where tau = 0 does.
"""

from __future__ import annotations

from dataclasses import replace

from pgfl._claims import near, smaller, value
from pgfl._compared import MAIN, NOISES, few_seeds, panel
from pgfl._runs import Runs, runs_of
from pgfl._setting import stated
from pgfl._systems import (
    FADING,
    LEARNING,
    NO_LEARNING,
    SCHEDULED,
    VARIANCE,
    Setting,
    setting_of,
)

from gtvcvx.experiments import Experiment, Outcome, Row, Study

SPREAD = 0.5
#: Rounds at which values are listed; the first is the early one of the statements.
LISTED = (50, 150, 300)


def three(study: Study, setting: Setting) -> tuple[Runs, ...]:
    """Run tau = 0, .4 and the fading one."""
    seeds = None if setting.noise == MAIN else few_seeds(study)
    return tuple(
        runs_of(study, setting, replace(method, scheduled=SCHEDULED, variance=VARIANCE), seeds)
        for method in (NO_LEARNING, LEARNING, FADING)
    )


def claims(setting: Setting, none: Runs, some: Runs, fading: Runs) -> list[Row]:
    """State who is ahead when."""
    early = min(LISTED[0], setting.rounds // 2)
    where = f", noise {setting.noise:g}"
    return [
        smaller("tau = 0 against 0.4, last" + where, "constant tau ends higher", none, some),
        smaller(
            f"fading tau against 0, round {early}{where}",
            "fading tau is ahead early",
            fading,
            none,
            early,
        ),
        near("fading tau and 0, last" + where, "both end near", fading, none),
    ]


def run(study: Study) -> Outcome:
    """Run the three schedules, in the full setting for all noises of the targets."""
    rows, values, panels = [], [], []
    for noise in study.choose(tiny=(MAIN,), default=(MAIN,), paper=NOISES):
        setting = setting_of(study, noise=noise, spread=SPREAD)
        runs = three(study, setting)
        rows += claims(setting, *runs)
        values += [
            value(f"{each.label}, noise {noise:g}, round {n}", each, n)
            for each in runs
            for n in sorted({min(n, setting.rounds) for n in LISTED})
        ]
        panels.append(panel(f"noise of targets {noise:g}", runs))
    return Outcome(
        rows=[*rows, *values],
        panels=panels,
        setting=stated(setting_of(study, spread=SPREAD), scheduled=True, private=True),
        measure="NMSD (53); where two methods are compared, their ratio",
    )


EXPERIMENT = Experiment(
    "pgfl-figure-5",
    "PGFL",
    "Figure 5",
    "NMSD of clusters that differ more, with fading tau",
    run,
    seeds=4,
    paper_seeds=10,
)
