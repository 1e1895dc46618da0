"""Figures 1 to 3 of [PGFL] have the same four curves: all rows and panels that they share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pgfl._claims import smaller, value
from pgfl._runs import Runs, runs_of
from pgfl._systems import ALONE, LEARNING, NO_LEARNING, ONE_MODEL, Method, Setting, setting_of

from gtvcvx.experiments import Panel, Row, Study

#: Deviations of the targets' noise, which the paper does not give and on which findings depend.
NOISES = (0.1, 1.0, 3.0)
#: The one that stands for the figure.
MAIN = 1.0


@dataclass(frozen=True)
class Compared:
    """The four methods at the main noise, and three of them at all."""

    none: Runs  # tau = 0
    some: Runs  # tau = 0.4
    alone: Runs
    one: Runs
    others: dict[float, tuple[Runs, Runs, Runs]]  # none, some, one

    def value_rows(self) -> list[Row]:
        """Return what each method ends at."""
        four = (self.none, self.some, self.alone, self.one)
        rows = [value(f"{runs.label}, noise {MAIN:g}", runs) for runs in four]
        for noise, three in self.others.items():
            rows += [value(f"{runs.label}, noise {noise:g}", runs) for runs in three]
        return rows

    def claims(self) -> list[Row]:
        """Return the statements that the figures have in common."""
        everywhere = sorted({MAIN: (self.none, self.some, self.one), **self.others}.items())
        rows = [
            smaller(
                f"tau = 0.4 against 0, noise {noise:g}", "tau = 0.4 ends lower than 0", some, none
            )
            for noise, (none, some, _) in everywhere
        ]
        rows.append(
            smaller(
                "linked servers against E empty",
                "without links between servers errors stay large",
                self.none,
                self.alone,
            )
        )
        return rows + [
            smaller(
                f"PGFL (tau = 0) against FedAvg, noise {noise:g}",
                "a model a cluster ends lower than one model",
                none,
                one,
            )
            for noise, (none, _, one) in everywhere
        ]

    def panels(self, *beside: Runs) -> list[Panel]:
        """Return a pair of axes for each noise."""
        four = (self.none, self.some, self.alone, self.one)
        return [
            panel(f"noise of targets {MAIN:g}", (*four, *beside)),
            *(panel(f"noise of targets {noise:g}", three) for noise, three in self.others.items()),
        ]


def panel(title: str, runs: tuple[Runs, ...]) -> Panel:
    """Return curves over rounds, with the pooled optimum of the first one."""
    curves = [each.curve() for each in runs]
    levels = runs[0].levels()
    return Panel(title, "rounds n", "NMSD (53)", curves, levels, ylog=True)


def few_seeds(study: Study) -> int:
    """Return how many seeds noises of the targets beside the main one have."""
    return study.choose(tiny=1, default=1, paper=4)


def compared(study: Study, **changes: Any) -> Compared:
    """Run the four methods, with scheduling or noise as the figure has it.

    Other noises of the targets are run for the first seeds alone: factors of 2 show in a few.
    """

    def of(method: Method, setting: Setting, seeds: int | None = None) -> Runs:
        return runs_of(study, setting, replace(method, **changes), seeds)

    base = setting_of(study, noise=MAIN)
    few = few_seeds(study)
    others = {
        noise: tuple(of(m, base.at(noise=noise), few) for m in (NO_LEARNING, LEARNING, ONE_MODEL))
        for noise in NOISES
        if noise != MAIN
    }
    four = (of(method, base) for method in (NO_LEARNING, LEARNING, ALONE, ONE_MODEL))
    return Compared(*four, others)
