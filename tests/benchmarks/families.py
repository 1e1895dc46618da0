"""The families of instances F1 to F7, F9 and F10, each drawn from fixed seeds.

[GTV] SarcheshmehPour, Tian, Zhang, Jung, "Clustered Federated Learning via Generalized Total
Variation Minimization", sections VI-A, VI-B and IX-B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import isqrt
from typing import NamedTuple

import clustering
import numpy as np
from scipy.spatial import cKDTree

import gtvcvx as gtv
from gtvcvx import generators

Built = tuple[gtv.EmpiricalGraph, gtv.StackedLoss]


@dataclass(frozen=True)
class Case:
    """One instance by its names; building it anywhere gives the same instance."""

    family: str
    size: int
    variant: str
    penalty: str
    lam: float

    @property
    def series(self) -> str:
        """Name without the size."""
        return " ".join(filter(None, [self.family, self.variant, self.penalty, f"λ={self.lam:g}"]))

    def __str__(self) -> str:
        return f"{self.series} n={self.size}"

    def problem(self) -> gtv.GTVProblem:
        graph, losses = FAMILIES[self.family].build(self)
        return gtv.GTVProblem(graph, losses, self.penalty, self.lam)


class Series(NamedTuple):
    variant: str
    penalty: str
    lam: float
    # Of data that have no others; quick runs take some of them.
    n_nodes: int | None = None


@dataclass(frozen=True)
class Family:
    build: Callable[[Case], Built]
    sizes: list[int]
    quick_size: int
    series: list[Series]
    # Above this size only the first series runs, unless sizes are asked for.
    all_series_up_to: float = np.inf


def cases(family: str, sizes: list[int] | None = None, quick: bool = False) -> list[Case]:
    """All cases of a family, small ones first."""
    chosen = FAMILIES[family]
    largest = np.inf if sizes else chosen.all_series_up_to
    sizes = sizes or ([chosen.quick_size] if quick else chosen.sizes)
    every = [
        Case(family, size, *series[:3])
        for size in sorted(sizes)
        for series in (chosen.series if size <= largest else chosen.series[:1])
        if series.n_nodes is None or quick
    ]
    every += [
        Case(family, series.n_nodes, *series[:3])
        for series in chosen.series
        if series.n_nodes is not None and not quick
    ]
    return [case for case in every if family != "F9" or clustering.available(case.variant)]


def _paper_sbm(case: Case) -> Built:
    """SBM ([GTV] VI-A). F1: d = 2, 5 points, 60% labelled. F2, Table I: d = 100, 10 points."""
    half = case.size // 2
    graph = generators.sbm([half, case.size - half], 0.5, 0.01, seed=0)
    rng = np.random.default_rng(1)
    means, rows, noise, share = np.array([[2.0, 2.0], [-2.0, 2.0]]), 5, 0.01, 0.6
    if case.family == "F2":
        means, rows, noise, share = rng.choice([0.0, 0.5], size=(2, 100)), 10, 1e-3, 1.0
    true_w = np.repeat(means, [half, case.size - half], axis=0)
    data = generators.regression_data(true_w, rows, noise, share, rng)
    return graph, gtv.SquaredLoss.stack(*data)


def _chain_or_star(case: Case) -> Built:
    """Chain ([GTV] VI-B, boundary .5, 60% labelled, noise .1) or star (IX-B3, one w a node)."""
    rng = np.random.default_rng(2)
    half = case.size // 2
    if case.variant == "chain":
        true_w = np.repeat([[2.0, 2.0], [-2.0, 2.0]], half, axis=0)
        data = generators.regression_data(true_w, 5, 0.1, 0.6, rng)
        return generators.chain(half, 0.5), gtv.SquaredLoss.stack(*data)
    data = generators.regression_data(rng.standard_normal((case.size, 2)), 5, 0.0, 1.0, rng)
    return generators.star(case.size - 1), gtv.SquaredLoss.stack(*data)


def _geometric(case: Case) -> Built:
    """Geometric graph, mean degree 12, d = 2, 3 points, 40% labelled, four clusters, noise .3."""
    places = np.random.default_rng(0).random((case.size, 2))
    pairs = cKDTree(places).query_pairs(np.sqrt(12 / (np.pi * case.size)), output_type="ndarray")
    ends = np.sort(pairs, axis=1)
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    weights = np.exp(-np.random.default_rng(3).random(len(ends)))
    rng = np.random.default_rng(1)
    means = 2.0 * rng.standard_normal((4, 2))
    data = generators.regression_data(means[_quadrant(places)], 3, 0.3, 0.4, rng)
    graph = gtv.EmpiricalGraph(case.size, ends, weights)
    return graph, gtv.SquaredLoss.stack(*data)


def _quadrant(places: np.ndarray) -> np.ndarray:
    return (places[:, 0] > 0.5) + 2 * (places[:, 1] > 0.5)


def _image(rows: int, cols: int, channels: int) -> np.ndarray:
    """A disc before a two-coloured ground, one colour for each of three regions."""
    y, x = np.mgrid[0 : 1 : 1j * rows, 0 : 1 : 1j * cols]
    region = np.where((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.09, 2, (x + y > 1).astype(int))
    colours = np.random.default_rng(4).random((3, channels))
    return colours[region].reshape(-1, channels)


def _grid(case: Case) -> Built:
    """Denoising of a picture with point losses: noise .2, grey (d = 1) or coloured (d = 3)."""
    side = isqrt(case.size)
    clean = _image(side, case.size // side, 1 if case.variant == "grey" else 3)
    noisy = clean + 0.2 * np.random.default_rng(5).standard_normal(clean.shape)
    return generators.grid(side, case.size // side), gtv.PointLoss.stack(noisy)


def _convex_clustering(case: Case) -> Built:
    """Ten Gaussian clusters in R^10, ten nearest neighbours, weights exp(-dist^2 / median)."""
    rng = np.random.default_rng(6)
    centres = 2.0 * rng.standard_normal((10, 10))
    points = centres[rng.integers(10, size=case.size)] + rng.standard_normal((case.size, 10))
    graph = generators.nearest_neighbours(points, min(10, case.size - 1))
    squared = np.sum((points[graph.edges[:, 0]] - points[graph.edges[:, 1]]) ** 2, axis=1)
    weights = np.exp(-squared / np.median(squared))
    return gtv.EmpiricalGraph(case.size, graph.edges, weights), gtv.PointLoss.stack(points)


def _scalar(case: Case) -> Built:
    """Signals of d = 1 with noise 1, all or 10% of the nodes labelled, few clusters or many."""
    kind, share = case.variant.split()
    rng, n = np.random.default_rng(7), case.size
    if kind == "sbm":
        sizes = [n // 4 + (k < n % 4) for k in range(4)]
        graph = generators.sbm(sizes, min(80 / n, 1.0), min(8 / (3 * n), 1.0), seed=8)
        region = np.repeat(np.arange(4), sizes)
    elif kind == "grid":
        side = isqrt(n)
        graph = generators.grid(side, n // side)
        row, column = np.divmod(np.arange(graph.n_nodes), n // side)
        region = _quadrant(np.column_stack([row / side, column / (n // side)]))
    else:
        places = rng.random((n, 2))
        graph, region = generators.geometric(places, min(12, n - 1)), _quadrant(places)
    y = np.array([-2.0, 0.0, 1.0, 3.0])[region] + rng.standard_normal(graph.n_nodes)
    labelled = rng.random(graph.n_nodes) < (1.0 if share == "all" else 0.1)
    ones = np.ones((graph.n_nodes, 1, 1))
    return graph, gtv.SquaredLoss.stack(ones, y[:, None], labelled)


def _convex_clusters(case: Case) -> Built:
    """Clustering of digits, half moons, a mixture or a user's .mat files, ten neighbours."""
    return clustering.clustering(case.variant, case.size)


def _forest(case: Case) -> Built:
    """A signal with a jump every hundred nodes, noise .3, on a chain or a random recursive tree."""
    shape, loss = case.variant.split()
    rng, n = np.random.default_rng(0), case.size
    y = np.cumsum(rng.standard_normal(n) * (rng.random(n) < 0.01)) + 0.3 * rng.standard_normal(n)
    child = np.arange(1, n)
    parent = child - 1 if shape == "chain" else (rng.random(n - 1) * child).astype(np.int64)
    graph = gtv.EmpiricalGraph(n, np.column_stack([parent, child]))
    return graph, FOREST_LOSSES[loss](y)


#: Losses of the nodes, by their noisy signal (n,).
FOREST_LOSSES: dict[str, Callable[[np.ndarray], gtv.StackedLoss]] = {
    "points": lambda y: gtv.PointLoss.stack(y[:, None]),
    "absolute": lambda y: gtv.AbsoluteLoss.stack(None, y),
}


# Few clusters, then many.
_F7 = {
    **{"sbm all": (0.3, 0.05), "sbm 10%": (0.1, 0.01)},
    **{"grid all": (1.0, 0.2), "grid 10%": (0.5, 0.05)},
    **{"geometric all": (0.3, 0.05), "geometric 10%": (0.1, 0.01)},
}


def _series(variants: str, penalties: str, *lams: float) -> list[Series]:
    return [Series(*names) for names in product(variants.split(","), penalties.split(), lams)]


FAMILIES = {
    "F1": Family(_paper_sbm, [200], 40, _series("", "l2 l1 squared linf", 0.01)),
    "F2": Family(_paper_sbm, [200], 12, _series("", "l2 l1", 0.01)),
    "F3": Family(
        _chain_or_star,
        [50, 2_000],
        30,
        _series("chain", "l2 l1", 0.1) + _series("star", "l2 l1", 0.4, 0.5, 5.0),
    ),
    "F4": Family(
        _geometric,
        [2_000, 8_000, 30_000, 100_000, 1_000_000],
        300,
        _series("", "l2 l1", 0.3, 0.05, 1.0) + _series("", "linf squared", 0.3),
        all_series_up_to=100_000,
    ),
    "F5": Family(
        _grid,
        [300 * 300, 1000 * 1000],
        400,
        _series("grey", "l1", 0.2) + _series("colour", "l2 l1", 0.2),
    ),
    "F6": Family(_convex_clustering, [10_000], 120, _series("", "l2 l1", 0.1, 0.5)),
    "F7": Family(
        _scalar,
        [10_000, 100_000],
        400,
        [s for variant, lams in _F7.items() for s in _series(variant, "l1", *lams)],
    ),
    "F9": Family(
        _convex_clusters,
        [10_000],
        120,
        [
            *(Series("digits", "l2", lam, 1_797) for lam in (10.0, 3.0)),
            *_series("moons,mixture", "l2", 30.0, 3.0),
            *(
                Series(name, "l2", lam, data.n_points)
                for name, data in clustering.FILES.items()
                for lam in (10.0, 3.0)
            ),
        ],
    ),
    "F10": Family(
        _forest,
        [10_000, 100_000, 1_000_000],
        200,
        _series("chain points,chain absolute,tree points,tree absolute", "l1", 0.5),
        all_series_up_to=100_000,
    ),
}
