"""Figure 9 of [PGFL]: the accuracy after 100 rounds against tau, in the setting of Figure 8.

The paper draws a curve and prints no values; what is tested is its general claim, that some
inter-cluster learning is better than none and too much is worse. With and without privacy noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pgfl._claims import best_inside
from pgfl._digits import TRIPLETS, data_text, digits, stated
from pgfl._runs import Runs, runs_of
from pgfl._systems import NO_LEARNING, SCHEDULED, VARIANCE, setting_of

from gtvcvx.experiments import Curve, Experiment, Outcome, Panel, Row, Study

TAUS = {
    "tiny": (0.0, 0.4, 0.9),
    "default": (0.0, 0.2, 0.4, 0.6, 0.9),
    "paper": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9),
}
ROUNDS = 100
_DRAWN = "the paper draws a curve"
HOW = {"with privacy noise": VARIANCE, "without privacy noise": None}


def along_tau(study: Study, variance: float | None) -> list[Runs]:
    """Run PGFL for every tau."""
    setting, source = setting_of(study, rounds=ROUNDS), digits(study, TRIPLETS)
    method = replace(NO_LEARNING, scheduled=SCHEDULED, variance=variance)
    return [
        runs_of(study, setting, replace(method, label=f"tau = {tau:g}", tau=tau), None, source)
        for tau in TAUS[study.size]
    ]


def claim(how: str, taus: tuple[float, ...], accuracies: np.ndarray) -> Row:
    """State that the best tau is neither of the ends, by the shares of errors."""
    means = accuracies.mean(axis=0)
    text = ", ".join(f"{tau:g}: {mean:.2%}" for tau, mean in zip(taus, means, strict=True))
    return Row(
        f"best tau, {how}",
        "some is best (its general claim)",
        np.asarray(taus)[accuracies.argmax(axis=1)],
        "the same problem for all tau",
        best_inside(1.0 - accuracies, range(1, len(taus) - 1)),
        f"mean accuracy by tau: {text}",
    )


def run(study: Study) -> Outcome:
    """Run PGFL along tau, with noise and without."""
    taus = TAUS[study.size]
    claims, values, panels = [], [], []
    for how, variance in HOW.items():
        runs = along_tau(study, variance)
        accuracies = np.column_stack([each.last for each in runs])
        claims.append(claim(how, taus, accuracies))
        values += [
            Row(f"{each.label}, {how}", "not given", each.last, each.optimum, None, _DRAWN)
            for each in runs
        ]
        label = f"PGFL after {runs[0].rounds[-1]:g} rounds"
        curve = Curve(label, taus, accuracies, runs[0].final)
        panels.append(Panel(how, "tau", "accuracy", [curve], runs[0].levels()))
    setting = setting_of(study, rounds=ROUNDS)
    return Outcome(
        rows=[*claims, *values],
        panels=panels,
        setting=stated(study, TRIPLETS, setting, scheduled=True, private=True),
        notes=["Images are drawn anew for each client: several clients may have the same image."],
        measure="accuracy on test images after 100 rounds; in rows of the best tau, that tau",
        data=data_text(study),
    )


EXPERIMENT = Experiment(
    "pgfl-figure-9",
    "PGFL",
    "Figure 9",
    "Accuracy after 100 rounds against tau",
    run,
    seeds=3,
    paper_seeds=10,
    data="8x8 digits",
    remark="MNIST has twelve times as many pixels as the 8x8 digits, and may be another matter.",
)
