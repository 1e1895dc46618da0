"""The battery of `verify.conformance`: small seeded instances of many shapes, as plain data.

Most families draw a graph and data of clusters that share parameters, with noise. The family
"planted" goes the other way: it chooses w and a flow u first, and then the data that make the pair
optimal (`verify.battery._planted`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.battery._planted import planted
from verify.battery._shapes import (
    Shape,
    chain,
    components,
    connected,
    grid,
    isolated,
    sbm,
    silent_component,
    star,
    two_cliques,
)

PENALTIES = ("l2", "l1", "linf", "squared")
LOSSES = ("squared", "point", "mixed")


@dataclass(frozen=True)
class Family:
    """A shape of graph and data.

    Attributes
    ----------
    shape : callable
        Draws the graph and its clusters.
    dim : int
        Number d of dimensions.
    rows : (int, int)
        Least and largest number of data points m_i of a node with squared error.
    labelled : float
        Share of the nodes that have data, among those that may.
    lam : float
        The regularization parameter.
    decades : float
        Weights are 10^x with x uniform in [-decades, decades]; 0: uniform in [0.5, 2].
    ties : bool
        Small integers for all data and weights, so that exact ties occur.
    losses : tuple of str
        Kinds of losses that make sense here.
    names : bool
        Nodes have labels.
    planted : bool
        w and u are chosen first.
    """

    shape: Callable[[np.random.Generator], Shape]
    dim: int = 2
    rows: tuple[int, int] = (3, 6)
    labelled: float = 1.0
    lam: float = 0.2
    decades: float = 0.0
    ties: bool = False
    losses: tuple[str, ...] = LOSSES
    names: bool = False
    planted: bool = False


FAMILIES: dict[str, Family] = {
    "connected": Family(connected),
    "disconnected": Family(components),
    "isolated": Family(isolated, names=True),
    "unlabelled": Family(silent_component, labelled=0.6),
    "few-rows": Family(connected, dim=4, rows=(1, 3), labelled=0.8, losses=("squared", "mixed")),
    "d=1": Family(connected, dim=1, labelled=0.8),
    "d=6": Family(connected, dim=6, rows=(7, 9), labelled=0.8),
    "chain": Family(chain, labelled=0.5),
    "star": Family(star),
    "sbm": Family(sbm, rows=(5, 5), labelled=0.6, lam=0.05),
    "grid": Family(grid),
    "ties": Family(two_cliques, lam=0.5, ties=True),
    "large-lambda": Family(connected, lam=1e4),
    "small-lambda": Family(connected, labelled=0.6, lam=1e-4),
    "weights": Family(connected, labelled=0.8, decades=3.0),
    "planted": Family(sbm, planted=True),
}


@dataclass(frozen=True)
class Case:
    """One instance.

    Attributes
    ----------
    name : str
        Family, penalty and losses.
    losses : str
        "squared", "point" or "mixed".
    data : dict
        Plain data of the problem.
    solution : (ndarray, ndarray) or None
        The planted (w, u), else None.
    """

    name: str
    losses: str
    data: dict[str, Any]
    solution: tuple[FloatArray, FloatArray] | None


def battery(
    seed: int,
    penalties: Sequence[str] = PENALTIES,
    losses: Sequence[str] = LOSSES,
) -> list[Callable[[], Case]]:
    """Return what makes the instances: every family with every penalty, the losses in turn.

    An instance depends on the seed and on its own name, not on which others are asked for.
    """
    return [partial(case, seed, *names) for names in _names(penalties, losses)]


def _names(penalties: Sequence[str], losses: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for f, (family, shape) in enumerate(FAMILIES.items()):
        kinds = [kind for kind in shape.losses if kind in losses]
        for p, penalty in enumerate(penalties):
            if kinds:
                yield family, penalty, kinds[(f + p) % len(kinds)]


def case(seed: int, family_name: str, penalty: str, losses: str) -> Case:
    """Draw one instance."""
    name = f"{family_name}-{penalty}-{losses}"
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    family = FAMILIES[family_name]
    shape = family.shape(rng)
    data: dict[str, Any] = {
        "schema": "gtv-problem/1",
        "n_nodes": shape.n,
        "dim": family.dim,
        "edges": shape.edges,
        "weights": _weights(family, len(shape.edges), rng),
        "lam": family.lam,
        "penalty": {"kind": penalty},
    }
    if family.names:
        data["nodes"] = [f"node {i}" for i in range(shape.n)]
    points, rows = _labelled(family, shape, losses, rng)
    solution = None
    if family.planted:
        a, x, y, solution = planted(data, shape.cluster, points, rows, rng)
    else:
        a, x, y = _noisy(family, shape, points, rows, rng)
    squared = {"kind": "squared", "node": rows, "X": x, "y": y}
    point = {"kind": "point", "node": points, "a": a}
    data["terms"] = [term for term in (squared, point) if len(term["node"])]
    return Case(name, losses, data, solution)


def _weights(family: Family, m: int, rng: np.random.Generator) -> FloatArray:
    if family.ties:
        return np.ones(m)
    if family.decades:
        return np.asarray(10 ** rng.uniform(-family.decades, family.decades, m))
    return rng.uniform(0.5, 2.0, m)


def _labelled(
    family: Family, shape: Shape, losses: str, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return (nodes with a point loss, node of each data point of the squared error)."""
    may = rng.permutation(np.flatnonzero(~shape.silent))
    labelled = np.sort(may[: max(1, round(family.labelled * len(may)))])
    points = {"squared": labelled[:0], "point": labelled, "mixed": labelled[::2]}[losses]
    rest = np.setdiff1d(labelled, points)
    counts = rng.integers(family.rows[0], family.rows[1] + 1, len(rest))
    return points, np.repeat(rest, counts)


def _noisy(
    family: Family, shape: Shape, points: IntArray, rows: IntArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (a, X, y) drawn around parameters that each cluster shares."""
    d = family.dim
    count = int(shape.cluster.max()) + 1
    centres = 2.0 * rng.integers(-2, 3, (count, d)) + 1
    centres[:, 0] = 3 * rng.permutation(count) - 2  # no two clusters alike
    truth = centres[shape.cluster]
    x = rng.standard_normal((len(rows), d))
    errors = 0.4 * rng.standard_normal((len(points), d)), 0.4 * rng.standard_normal(len(rows))
    if family.ties:
        x = np.sign(x) * (np.abs(x) > 0.5)
        errors = np.round(3 * errors[0]), np.round(3 * errors[1])
    return truth[points] + errors[0], x, np.einsum("rj,rj->r", x, truth[rows]) + errors[1]
