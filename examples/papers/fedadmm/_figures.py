"""Cells, curves and rows that Figures 2 and 3 of [FedADMM] have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from fedadmm._estimators import ALPHA, FOLDS, GRID, on_clean_graph, on_corrupted_graph
from fedadmm._setting import (
    CLIQUES,
    FloatArray,
    P,
    global_closed_form,
    local_closed_form,
    oracle_closed_form,
)

from gtvcvx.experiments import Curve, Outcome, Panel, Row, Study, Verdict, gap_text

Place = tuple[int, int, float]  # V, n, varrho

SETTING = {
    "loss": "half the mean square of a device's n rows (given)",
    "features, errors": "N(0, I), N(0, 1) (given)",
    "p": "20 (given)",
    "cliques": f"{CLIQUES} of equal size (given)",
    "theta": "N(0, p^(-1/2) I) for each clique (given)",
    "penalty": "l1 (given)",
    "metric": "squared Frobenius distance to the truth over V (given)",
    "corruption": "each pair's status flips with probability varrho (given)",
    "lambda": f"by {FOLDS}-fold cross-validation (given)",
    "folds": "not given: ours are cut within devices, at random",
    "grid of lambda": f"not given: ours is 0 and {GRID[0]:g} to {GRID[-1]:g}, a factor 2 apart",
    "alpha of the tests": f"not given: ours is {ALPHA:g}",
    "solver": "each estimate solves its problem (5), with a valid relative gap of at most 1e-6; "
    "proved in exact arithmetic for the first seed",
}


def outcome(
    study: Study, rows: Sequence[Row], panels: Sequence[Panel], V: str, n: str, note: str
) -> Outcome:
    """Return what a figure shows, with the V and n that were run, and a note of its own."""
    given = {"replications": f"100 (given): ours are {len(study.seeds)}", "V": V, "n": n}
    notes = (
        "Every estimate on a graph is the certified solution of its problem, so that ours and the "
        "optimum are the same.",
        note,
    )
    return Outcome(rows, panels, {**SETTING, **given}, notes, measure="error, mean over devices")


@dataclass(frozen=True)
class Runs:
    """Arrays (seeds, 3) of error, lambda and gap by method, for each place; shares (seeds,)."""

    of: Mapping[Place, Mapping[str, FloatArray]]

    def errors(self, method: str, place: Place) -> FloatArray:
        """Errors of a method, one a seed."""
        return self.of[place][method][:, 0]

    def share(self, name: str, place: Place) -> FloatArray:
        """Share of edges, one a seed."""
        return self.of[place][name]

    def ratios(self, above: str, below: str, places: Iterable[Place]) -> FloatArray:
        """Mean error of one method over that of another, for each place."""
        return np.array(
            [self.errors(above, p).mean() / self.errors(below, p).mean() for p in places]
        )

    def curve(self, method: str, x: Sequence[float], places: Sequence[Place]) -> Curve:
        """Errors along an axis; its last point is proved, or is in closed form."""
        values = np.stack([self.errors(method, place) for place in places], axis=1)
        closed = {
            "Local": "least squares, solved directly",
            "Global": "least squares, solved directly",
        }
        gaps = self.of[places[-1]][method][:, 2]
        final = closed.get(method) or proofs(gaps)
        return Curve(method, x, values, final)


def collect(study: Study, places: Sequence[Place], local_es: bool = False) -> Runs:
    """Compute all cells, seed by seed, so that an interrupted run has whole replications.

    Gaps of the first replication are proved in exact arithmetic.
    """
    found: dict[Place, list[dict[str, FloatArray]]] = {place: [] for place in places}
    for seed in study.seeds:
        for place in places:
            V, n, varrho = place
            name, first = f"V={V} n={n}", seed == 0
            clean = study.cell(
                f"{name} seed={seed}", partial(on_clean_graph, V, n, seed, local_es, first)
            )
            dirty = study.cell(
                f"{name} varrho={varrho:g} seed={seed}",
                partial(on_corrupted_graph, V, n, varrho, seed, local_es, first),
            )
            found[place].append({**clean, **dirty})
    return Runs({place: _stacked(cells) for place, cells in found.items()})


def proofs(gaps: FloatArray) -> str:
    """Say what is proved of estimates, of which the first has an exact proof."""
    first = gap_text(gaps[:1])
    if len(gaps) == 1:
        return first
    return f"{first} for the first seed; gaps of the others at most {gaps[1:].max():.0e}"


def _stacked(cells: Sequence[Mapping[str, FloatArray]]) -> dict[str, FloatArray]:
    return {name: np.stack([cell[name] for cell in cells]) for name in cells[0]}


def expected(method: str, place: Place) -> float | None:
    """Return the expected error in closed form, None where there is none."""
    V, n, _ = place
    if method == "Local":
        return local_closed_form(n)
    if method == "Global":
        return global_closed_form(V, n)
    # Edges that are right fuse each clique: least squares of its rows.
    return oracle_closed_form(V, n) if method == "Oracle" and n * V / CLIQUES > P + 1 else None


def number_row(runs: Runs, method: str, place: Place, name: str) -> Row:
    """Give a method's errors in one setting: of these the paper only draws curves."""
    errors = runs.errors(method, place)
    known = expected(method, place)
    form = f"expected in closed form: {known:.3g}; " if known is not None else ""
    lams = runs.of[place][method][:, 1]
    chosen = (
        f"lambda from {lams.min():g} to {lams.max():g}" if method not in ("Local", "Global") else ""
    )
    return Row(name, "not given", errors, errors, None, (form + chosen).rstrip("; "))


def worse_than_local(ratios: FloatArray) -> Verdict:
    """Judge "FedADMM on the corrupted graph is worse than Local".

    REPRODUCED if its mean error is above Local's in every setting, else NOT REPRODUCED.
    """
    return Verdict.REPRODUCED if ratios.min() > 1.0 else Verdict.NOT_REPRODUCED


def span(values: FloatArray) -> str:
    """Smallest and largest of some numbers, as text."""
    return f"{values.min():.3g} to {values.max():.3g}"


def values(given: Sequence[int], ours: Sequence[int]) -> str:
    """Say which of the paper's values are run."""
    text = ", ".join(map(str, given)) + " (given)"
    return text if tuple(ours) == tuple(given) else f"{text}: ours are {', '.join(map(str, ours))}"
