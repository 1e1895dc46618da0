"""[GTV] Table II: accuracies at the end of Figure 7's runs, on five clusters of digits.

Its numbers are of images of MNIST; on others they cannot be compared, and they are not at hand. Its
statement can be put to the test: Algorithm 1 has the best accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping

from gtv_minimization._digits import (
    GIVEN,
    NOT_CONVEX,
    Array,
    beats,
    chosen,
    curves_of,
    images,
    wrong_edges,
)
from gtv_minimization.figure_6 import OURS, spread
from gtv_minimization.figure_7 import CLUSTERS, compared

from gtvcvx.experiments import Experiment, Outcome, Row, Study


def rows(found: Mapping[str, Array], tests: int) -> list[Row]:
    """Fill the table: last accuracies, and Algorithm 1 less the best of the others."""
    last = {name: values[:, -1] for name, values in found.items()}
    table = [
        Row(f"{name}, accuracy", "not given", values, None, None, NOT_CONVEX)
        for name, values in last.items()
    ]
    best = max((name for name in last if name != OURS), key=lambda name: float(last[name].mean()))
    ours = last[OURS] - last[best]
    reason = f"the best of the others is {best}; {NOT_CONVEX}"
    statement = "Algorithm 1 has the best accuracy"
    verdict = beats(ours, tests)
    return [*table, Row(f"{OURS} less the best other", statement, ours, None, verdict, reason)]


def run(study: Study) -> Outcome:
    """Train by all methods, and keep where they end."""
    found, nets = curves_of(study, CLUSTERS, compared())
    return Outcome(
        rows=rows(found, nets[0].test[1].size),
        panels=[],
        setting=GIVEN | chosen(study, CLUSTERS),
        notes=[wrong_edges(nets), spread(found)],
        measure="accuracy on test images",
        data=images(study).source,
    )


EXPERIMENT = Experiment(
    name="gtv-table-2",
    paper="GTV",
    item="Table II",
    title="Digits: accuracies on five clusters",
    run=run,
    seeds=2,
    paper_seeds=3,
    data="8x8 digits (scikit-learn), or a user's MNIST",
)
