"""The classification experiments of [PGFL], Figures 7 to 9: digits on one side against others.

Given: MNIST, logistic regression, the clusters' tasks such as {1|8} and {123|678}, and the number
D_k of samples "composed of" several images; (54) prints log l where l is meant, and divides by D_k
twice. We read a bar as two sides to tell apart, and D_k as images of each side. Without MNIST these
are 8 x 8 digits, of which there are too few for 150 clients: several clients may have the same
image, and no client has one twice. A random half of all images is for tests alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from pgfl._claims import sign_of, verdict_of_order
from pgfl._runs import Runs
from pgfl._systems import Setting, Source, System, clusters_of, given, server_graph

import gtvcvx as gtv
from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.datasets import LabelledImages, load_digits_8x8, load_idx_images
from gtvcvx.experiments import Row, Study

Side = tuple[int, ...]


@dataclass(frozen=True)
class Tasks:
    """What the clusters learn, and how many images of each side their clients have."""

    sides: tuple[tuple[Side, Side], ...]  # of each cluster
    fewest: int
    most: int

    def __str__(self) -> str:
        return ", ".join("{" + "|".join("".join(map(str, s)) for s in p) + "}" for p in self.sides)


PAIRS = Tasks((((1,), (8,)), ((1,), (9,)), ((7,), (8,))), 2, 4)
TRIPLETS = Tasks((((1, 2, 3), (6, 7, 8)), ((1, 2, 3), (7, 8, 9)), ((1, 2, 3), (6, 8, 9))), 6, 12)


@cache
def images_of(folder: Path | None) -> LabelledImages:
    """Return the user's images (their test part has more than enough), or the 8 x 8 digits."""
    return load_digits_8x8() if folder is None else load_idx_images(folder, "test")


def digits(study: Study, tasks: Tasks) -> Source:
    """Return clients with images of the tasks."""
    images = images_of(study.data)
    return Source(f"{images.source} {tasks}: ", partial(draw, images, tasks))


def draw(images: LabelledImages, tasks: Tasks, setting: Setting, seed: int) -> System:
    """Draw clusters, images of each client and those for tests, as seed says."""
    rng = np.random.default_rng([seed, 1])
    labels = clusters_of(setting, rng)
    rows = np.column_stack([images.features(), np.ones(len(images.labels))])
    kept = rng.random(len(rows)) < 0.5
    losses: list[gtv.Loss] = []
    for q in labels:
        count = int(rng.integers(tasks.fewest, tasks.most, endpoint=True))
        own = [of_side(side, count, images.labels, kept, rng) for side in tasks.sides[q]]
        losses.append(gtv.LogisticLoss(rows[np.concatenate(own)], np.repeat([0.0, 1.0], count)))
    score = partial(
        accuracy, labels, [held_out(p, images.labels, ~kept, rows) for p in tasks.sides]
    )
    # Grey values are at most 1, whatever the images: no row is longer than this.
    bounds = {"row_bound": math.sqrt(rows.shape[1])}
    return System(losses, labels, server_graph(setting, rng), score, bounds)


def of_side(
    side: Side, count: int, labels: IntArray, kept: np.ndarray, rng: np.random.Generator
) -> IntArray:
    """Draw images of the digits of a side, as many of each as possible, none twice."""
    share = np.bincount(np.arange(count) % len(side), minlength=len(side))
    drawn = [
        rng.choice(np.flatnonzero(kept & (labels == digit)), n, replace=False)
        for digit, n in zip(rng.permutation(side), share, strict=True)
    ]
    return np.concatenate(drawn)


def held_out(
    sides: tuple[Side, Side], labels: IntArray, kept: np.ndarray, rows: FloatArray
) -> tuple[FloatArray, np.ndarray]:
    """Return the rows of a task's test images, and which are of the second side."""
    chosen = np.flatnonzero(kept & np.isin(labels, sides[0] + sides[1]))
    return rows[chosen], np.isin(labels[chosen], sides[1])


def accuracy(
    labels: IntArray, tests: list[tuple[FloatArray, np.ndarray]], models: FloatArray
) -> FloatArray:
    """Return the share of test images of its cluster's task that each client gets right, (n,)."""
    out = np.empty(len(models))
    for q, (rows, second) in enumerate(tests):
        own = labels == q
        out[own] = ((rows @ models[own].T > 0.0) == second[:, None]).mean(axis=0)
    return out


def ahead(name: str, printed: str, ours: Runs, other: Runs, round_: int | None = None) -> Row:
    """State that one method is more accurate than another; the row shows the difference.

    REPRODUCED if the mean difference over the seeds is positive by more than two standard errors,
    NOT REPRODUCED if it is less, or negative; no verdict where nothing is printed.
    """
    a, b = (r.last if round_ is None else r.at(round_) for r in (ours, other))
    sign = sign_of(a - b)
    said = {1: "higher", 0: "no clear difference", -1: "reversed: lower"}[sign]
    reason = f"{said}; {a.mean():.2%} against {b.mean():.2%}; both aim at the same pooled optimum"
    verdict = None if printed == "not given" else verdict_of_order(-sign)
    return Row(name, printed, a - b, ours.optimum - other.optimum, verdict, reason)


def stated(
    study: Study, tasks: Tasks, setting: Setting, *, scheduled: bool, private: bool
) -> dict[str, str]:
    """Say what the paper gives, and what is ours."""
    source = images_of(study.data).source
    return {
        **given(setting, scheduled=scheduled, private=private),
        "clusters": f"{tasks}, given; {source}",
        "D_k": f"{tasks.fewest} to {tasks.most} images of each side, as we read it; given",
        "images of clients": "not given: ours are drawn anew for each client, none twice in one",
        "test images": "not given: ours are a random half",
        "features": "not given: ours are grey values from 0 to 1, and a constant",
    }


def data_text(study: Study) -> str:
    """Say which images were used, where that depends on the user."""
    return "" if study.data is None else images_of(study.data).source
