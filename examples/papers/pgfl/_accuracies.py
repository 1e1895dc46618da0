"""Figures 7 and 8 of [PGFL]: accuracy against rounds without and with inter-cluster learning."""

from __future__ import annotations

from dataclasses import replace

from pgfl._claims import eps_text
from pgfl._compared import few_seeds
from pgfl._digits import Tasks, ahead, data_text, digits, stated
from pgfl._runs import Runs, runs_of
from pgfl._systems import (
    EXACT,
    LEARNING,
    NO_LEARNING,
    SCHEDULED,
    VARIANCE,
    Setting,
    Source,
    setting_of,
)

from gtvcvx.experiments import Outcome, Panel, Row, Study

#: A round in which curves still rise.
EARLY = 20


def of_tasks(study: Study, tasks: Tasks) -> Outcome:
    """Run tau = 0 and .4 with scheduling, with and without noise, and `PGFLExact`.

    The paper's figures have noise. Without it they show what inter-cluster learning itself does.
    """
    setting, source = setting_of(study), digits(study, tasks)
    noisy = pair(study, setting, source, VARIANCE)
    quiet = pair(study, setting, source, None)
    exact = runs_of(study, setting, EXACT, few_seeds(study), source)
    rows = [*claims("with noise", *noisy), *claims("without noise", *quiet)]
    named = [("with noise", noisy), ("without noise", quiet), ("all clients", (exact,))]
    rows += [values(each, how) for how, several in named for each in several]
    panels = [panel("with privacy noise", noisy), panel("without privacy noise", (*quiet, exact))]
    return Outcome(
        rows=rows,
        panels=panels,
        setting=stated(study, tasks, setting, scheduled=True, private=True),
        notes=[
            "Images are drawn anew for each client: several clients may have the same image.",
            "The noise comes from a fixed seed, so that the run can be repeated; that protects "
            "nothing, and eps is that of the same run with fresh noise.",
        ],
        measure="accuracy on test images after the last round; differences between two methods",
        data=data_text(study),
    )


def pair(
    study: Study, setting: Setting, source: Source, variance: float | None
) -> tuple[Runs, Runs]:
    """Run tau = 0 and .4."""
    none, some = (
        runs_of(study, setting, replace(m, scheduled=SCHEDULED, variance=variance), None, source)
        for m in (NO_LEARNING, LEARNING)
    )
    return none, some


def claims(how: str, none: Runs, some: Runs) -> list[Row]:
    """State that inter-cluster learning raises accuracy; and, as a finding of ours, see early."""
    early = int(min(EARLY, none.rounds[-1] // 2))
    last, soon = (f"tau = 0.4 less 0, {when}, {how}" for when in ("last", f"round {early}"))
    claim = "clusters gain from each other (its general claim)"
    return [ahead(last, claim, some, none), ahead(soon, "not given", some, none, early)]


def values(runs: Runs, how: str) -> Row:
    """Return what a method ends at."""
    noisy = bool(runs.assumed_eps.min() >= 0.0)
    reason = eps_text(runs) if noisy else "the paper draws a curve"
    return Row(f"{runs.label}, {how}", "not given", runs.last, runs.optimum, None, reason)


def panel(title: str, runs: tuple[Runs, ...]) -> Panel:
    """Return accuracy against rounds."""
    curves = [each.curve() for each in runs]
    return Panel(title, "rounds n", "accuracy", curves, runs[0].levels())
