"""[GTV] Figure 6: Algorithm 1 beside IFCA, pFedMe and a direct optimizer, on the nodes of Figure 5.

The paper draws accuracies against iterations, with Algorithm 1 above the others; values are not
printed. IFCA has as many models as there are clusters, pFedMe the lambda of Algorithm 1, and
"PyTorch optimizer for (16)" is Adam on the objective of all nodes at once, which has as many
gradients as Algorithm 1. Their steps, starts and numbers of local steps are not given.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from gtv_minimization._digits import (
    ADAM,
    GIVEN,
    LAM,
    NOT_CONVEX,
    STEP,
    Array,
    Federation,
    Method,
    accuracy_panel,
    adam,
    algorithm1,
    beats,
    chosen,
    curves_of,
    ifca,
    images,
    pfedme,
    sizes,
    wrong_edges,
)

from gtvcvx.experiments import Experiment, Outcome, Row, Study

CLUSTERS = 2
OURS = "Algorithm 1"


def methods() -> dict[str, Method]:
    """Name the methods; Algorithm 1 comes first."""
    return {
        OURS: lambda of: algorithm1(of, LAM),
        "IFCA": ifca,
        "pFedMe": pfedme,
        "Adam on (16)": adam,
    }


def comparisons(found: Mapping[str, Array], tests: int) -> list[Row]:
    """Compare the last accuracies of Algorithm 1 with those of each other method."""
    first = found[OURS][:, -1]
    rows = []
    for name, values in list(found.items())[1:]:
        ours = first - values[:, -1]
        reason = f"{first.mean():.3f} against {values[:, -1].mean():.3f}; {NOT_CONVEX}"
        statement = "Algorithm 1 is above it (curves)"
        verdict = beats(ours, tests)
        rows.append(Row(f"{OURS} less {name}", statement, ours, None, verdict, reason))
    return rows


def outcome(study: Study, found: Mapping[str, Array], nets: list[Federation]) -> Outcome:
    """Draw the curves, and compare where they end."""
    clusters = int(nets[0].cluster.max()) + 1
    return Outcome(
        rows=comparisons(found, nets[0].test[1].size),
        panels=[accuracy_panel(dict(found), sizes(study))],
        setting=GIVEN
        | chosen(study, clusters)
        | {
            "lambda": f"given: {LAM:g}",
            "IFCA": f"not given: ours has {clusters} models, {sizes(study).steps} local steps of "
            f"{STEP:g}, one start",
            "direct optimizer": f"not given: ours is Adam, steps of {ADAM['step']:g}",
        },
        notes=[wrong_edges(nets), spread(found)],
        measure="difference of accuracies on test images",
        data=images(study).source,
    )


def spread(found: Mapping[str, Array]) -> str:
    """Say what single seeds end at, which tells a bad start from a bad method."""
    parts = [
        f"{name} {', '.join(f'{value:.3f}' for value in np.sort(values[:, -1]))}"
        for name, values in found.items()
    ]
    return f"Accuracies of the seeds, sorted: {'; '.join(parts)}."


def run(study: Study) -> Outcome:
    """Train by all methods."""
    return outcome(study, *curves_of(study, CLUSTERS, methods()))


EXPERIMENT = Experiment(
    name="gtv-figure-6",
    paper="GTV",
    item="Figure 6",
    title="Digits: Algorithm 1 beside IFCA, pFedMe and a direct optimizer",
    run=run,
    seeds=2,
    paper_seeds=3,
    data="8x8 digits (scikit-learn), or a user's MNIST",
)
