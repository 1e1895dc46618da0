"""Errors at the end of runs, along an axis such as p_out: Figures 3, 4, 9, 10 and 11 of [GTV]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from gtv_minimization._setting import (
    CLAIM,
    MEASURES,
    Array,
    Instance,
    Method,
    fit,
    reproduced,
    stack,
)

from gtvcvx.experiments import Curve, Panel, Row, Study, Verdict, gap_text

NOT_GIVEN = "not given"
# An axis is met where errors come within a factor of ten of both of its ends: one of its ticks.
TICK = 10.0
# Nodes are told apart where the error is below this part of ||w_bar_1 - w_bar_2||^2 / 4 = 4, the
# error of one model for all.
APART = 0.01 * 4.0


@dataclass(frozen=True)
class Sweep:
    """What is varied: an axis, lines such as values of rho, and methods.

    ``draw(x, line, seed)`` gives an instance.
    """

    xlabel: str
    xs: Sequence[float]
    lines: Mapping[str, float]
    methods: Sequence[Method]
    iterations: int
    draw: Callable[[float, float, int], Instance]

    def run(self, study: Study, reading: str | None = None) -> Results:
        """Run all methods on all draws, a cell for each draw; default the study's reading."""
        used = reading or study.reading
        found = {
            (line, x): [self._cell(study, line, x, seed, used) for seed in study.seeds]
            for line in self.lines
            for x in self.xs
        }
        return Results(self, used, found)

    def axis_rows(self, study: Study, results: Results, printed: tuple[float, float]) -> list[Row]:
        """Say whether the errors fit the printed axis, if not in the text's reading, in the other.

        The other reading is run only where it is needed for that.
        """
        rows = results.axis_rows(printed)
        if results.reading != "paper" or all(r.verdict is Verdict.REPRODUCED for r in rows):
            return rows
        others = self.run(study, "notebook").axis_rows(printed)
        return [_better(row, other) for row, other in zip(rows, others, strict=True)]

    def _cell(self, study: Study, line: str, x: float, seed: int, reading: str) -> dict[str, Array]:
        proof = x == self.xs[-1]  # the last point of a curve

        def compute() -> dict[str, float]:
            instance = self.draw(x, self.lines[line], seed)
            return {
                f"{method.penalty} {name}": value
                for method in self.methods
                for name, value in fit(
                    instance, method, self.iterations, reading, proof=proof
                ).items()
            }

        used = ", ".join(f"{method.penalty} {method.lam:g}" for method in self.methods)
        key = f"{line}, {self.xlabel} {x:g}, seed {seed}, R {self.iterations}, {used}"
        key += ", proved" if proof else ""
        key += "" if reading == study.reading else f", reading {reading}"
        return study.cell(key, compute)


@dataclass(frozen=True)
class Results:
    """What a sweep found."""

    sweep: Sweep
    reading: str
    cells: Mapping[tuple[str, float], Sequence[Mapping[str, Array]]]

    def of(self, method: Method, line: str, name: str) -> Array:
        """One number of all runs, (seeds, places)."""
        entry = f"{method.penalty} {name}"
        return np.stack([stack(self.cells[line, x], entry) for x in self.sweep.xs], axis=1)

    def means(self, method: Method, name: str = "error") -> Array:
        """Means over the seeds, (lines, places)."""
        return np.array([self.of(method, line, name).mean(axis=0) for line in self.sweep.lines])

    def panels(self, printed: tuple[float, float]) -> list[Panel]:
        """Draw a panel a method, with the printed axis; what is below it is shown at its end."""
        low = printed[0]
        return [
            Panel(
                f"{method.label}, lambda {method.lam:g}, R = {self.sweep.iterations}",
                self.sweep.xlabel,
                MEASURES[self.reading],
                [curve for line in self.sweep.lines for curve in self._curves(method, line, low)],
                ylog=True,
                ylim=(0.3 * low, TICK * printed[1]),
            )
            for method in self.sweep.methods
        ]

    def _curves(self, method: Method, line: str, low: float) -> list[Curve]:
        error, solved = (self.of(method, line, name).clip(low) for name in ("error", "optimum"))
        last = gap_text(self.of(method, line, "gap")[:, -1], CLAIM)
        proved = gap_text(self.of(method, line, "optimum gap")[:, -1], CLAIM)
        curves = [
            Curve(line, self.sweep.xs, error, last),
            Curve(f"{line}: optimum", self.sweep.xs, solved, proved, kind="optimum"),
        ]
        least = self.of(method, line, "least")
        if self.reading == "paper" and (least > low).all():
            label = f"{line}: speed limit"
            curves.append(Curve(label, self.sweep.xs, least, "proved", kind="limit"))
        return curves

    def axis_rows(self, printed: tuple[float, float]) -> list[Row]:
        """Whether the least and the largest error of all curves fit the printed axis."""
        means = np.array([self.means(method) for method in self.sweep.methods])
        return [
            self._end("least", np.argmin(means), printed[0]),
            self._end("largest", np.argmax(means), printed[1]),
        ]

    def _end(self, name: str, place: np.intp, end: float) -> Row:
        sweep, least = self.sweep, name == "least"
        shape = len(sweep.methods), len(sweep.lines), len(sweep.xs)
        m, k, x = (int(i) for i in np.unravel_index(place, shape))
        method, line = sweep.methods[m], list(sweep.lines)[k]
        ours = self.of(method, line, "error")[:, x]
        return Row(
            f"{name} error of all curves",
            f"the axis {'begins' if least else 'ends'} at {end:g}",
            ours,
            self.of(method, line, "optimum")[:, x],
            axis_verdict(end, float(ours.mean()), least, self.reading),
            f"{method.label}, {line}, {sweep.xlabel} {sweep.xs[x]:g}; met within a factor of ten",
        )

    def place_row(self, method: Method, line: str, x: float, remark: str = "") -> Row:
        """Errors of a method at one place."""
        k = list(self.sweep.xs).index(x)
        return Row(
            f"{method.label}, {line}, {self.sweep.xlabel} {x:g}",
            NOT_GIVEN,
            self.of(method, line, "error")[:, k],
            self.of(method, line, "optimum")[:, k],
            None,
            remark,
        )

    def noise_row(self, method: Method) -> Row:
        """Whether noise adds no more than its own variance; the lines are values of sigma."""
        sigmas = np.array(list(self.sweep.lines.values()))
        means = self.means(method)
        excess = np.max((means - 2.0 * means[np.argmin(sigmas)]) / sigmas[:, None] ** 2)
        return Row(
            f"{method.label}: robust to noise",
            "robust to noise, in the words of the authors' notebooks",
            f"noise adds at most {max(excess, 0.0):.2g} sigma^2",
            None,
            robust(means, sigmas, self.reading),
            "mean error less twice that with the least noise, at its largest over the axis; robust "
            "where that is at most sigma^2. A comparison of errors has no optimum of its own",
        )

    def apart_rows(self, line: str) -> list[Row]:
        """Up to which place the clusters are told apart."""
        xs = self.sweep.xs
        return [
            Row(
                f"{method.label}, {line}: {self.sweep.xlabel} up to which the error is below "
                f"{APART:g}",
                NOT_GIVEN,
                last_apart(xs, self.of(method, line, "error")),
                last_apart(xs, self.of(method, line, "optimum")),
                None,
                "of the values tried; one model for all nodes has the error 4",
            )
            for method in self.sweep.methods
        ]

    def gap_row(self) -> Row:
        """How far the runs are from what they minimize."""
        sweep = self.sweep
        worst = {
            method.label: max(self.of(method, line, "gap").max() for line in sweep.lines)
            for method in sweep.methods
        }
        return Row(
            f"largest gap after R = {sweep.iterations}",
            NOT_GIVEN,
            "; ".join(f"{label}: {gap:.1e}" for label, gap in worst.items()),
            None,
            None,
            "relative; where it is large, the state of an iteration is seen, and not a solution",
        )


def _better(row: Row, other: Row) -> Row:
    """Take the other reading's verdict where the text's does not fit."""
    if row.verdict is not Verdict.NOT_REPRODUCED or other.verdict is Verdict.NOT_REPRODUCED:
        return row
    reason = f"{row.reason}; reading 'notebook': {other.mean:.3g} ({other.reason})"
    return replace(row, verdict=other.verdict, reason=reason)


def axis_verdict(end: float, error: float, least: bool, reading: str) -> Verdict:
    """Reproduced where the least (largest) mean error is at most ten times the end of the axis.

    The largest must also be at least a tenth of it: an axis is not much longer than its curves.
    Errors below the axis are not seen in the paper's picture, and no contradiction.
    """
    fits = error <= TICK * end and (least or error >= end / TICK)
    return reproduced(reading) if fits else Verdict.NOT_REPRODUCED


def robust(means: Array, sigmas: Array, reading: str) -> Verdict:
    """Reproduced where no mean error (lines, places) exceeds sigma^2 + twice the least noise's."""
    holds = (means <= sigmas[:, None] ** 2 + 2.0 * means[np.argmin(sigmas)]).all()
    return reproduced(reading) if holds else Verdict.NOT_REPRODUCED


def oracle_error(sigma: float, rows: int, dim: int = 2) -> float:
    """Return the expected (39) of least squares on all so many points of a cluster."""
    return sigma**2 * dim / (rows - dim - 1)


def last_apart(xs: Sequence[float], errors: Array) -> Array:
    """For each seed the last place before its error first exceeds `APART`; -1 without one."""
    places = np.concatenate([[-1.0], np.asarray(xs, dtype=float)])
    first = np.argmax(np.column_stack([errors > APART, np.ones(len(errors), dtype=bool)]), axis=1)
    return np.asarray(places[first])
