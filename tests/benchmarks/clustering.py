"""Points to be clustered, F9: scikit-learn's digits, generated ones, and a user's own .mat files.

Points are scaled so that the median squared distance of neighbours is 1 / PHI: weights are then
exp(-PHI ||x_i - x_j||^2) for everybody, also for peers that make them themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.io

import gtvcvx as gtv
from gtvcvx import generators

FOLDER = "GTVCVX_BENCHMARK_DATA"
# As in the literature on semismooth Newton methods for convex clustering, and its programs.
NEIGHBOURS, PHI = 10, 0.5


class Data(NamedTuple):
    """A data set of a user: nothing is downloaded."""

    file: str
    n_points: int


#: By variant. COIL20 and LIBRAS as their archives name them, MNIST's 10,000 test pictures.
FILES = {
    "libras": Data("movement_libras.mat", 360),
    "coil20": Data("COIL20.mat", 1_440),
    "mnist": Data("MNIST_test.mat", 10_000),
}


def find_data(folder: Path) -> list[str]:
    """Tell the workers where a user's files are; return what there is to say about missing ones.

    Raises
    ------
    ValueError
        There is no such folder.
    """
    if not folder.is_dir():
        raise ValueError(f"--data: there is no folder {folder}")
    os.environ[FOLDER] = str(folder.resolve())
    return [
        f"F9 {name}: no {data.file} in {folder}; left out"
        for name, data in FILES.items()
        if not (folder / data.file).is_file()
    ]


def available(variant: str) -> bool:
    """Say whether the points of a variant can be had."""
    return variant not in FILES or _path(variant).is_file()


def _path(variant: str) -> Path:
    return Path(os.environ.get(FOLDER, os.devnull), FILES[variant].file)


def points_of(variant: str, n: int) -> np.ndarray:
    """Return n points (n, d), or as many as there are."""
    if variant in FILES:
        return _chosen(_read(_path(variant), FILES[variant].n_points), n)
    return MAKERS[variant](n)


def _read(path: Path, n_points: int) -> np.ndarray:
    """Return the points of a .mat file: of its matrices the one with n_points rows or columns."""
    if not path.is_file():
        raise ValueError(f"F9: no file {path}; give its folder as --data DIR")
    try:
        found = scipy.io.loadmat(path)
    except NotImplementedError as error:
        raise ValueError(f"{path}: save it in MATLAB's format 7 or older ({error})") from error
    tables = [np.asarray(t) for t in found.values() if getattr(t, "ndim", 0) == 2 and t.size > 1]
    numbers = [t.astype(float) for t in tables if t.dtype.kind in "biuf" and min(t.shape) > 1]
    for table in sorted(numbers, key=np.size, reverse=True):
        if n_points in table.shape:
            return table if table.shape[0] == n_points else table.T
    shapes = ", ".join(str(t.shape) for t in tables) or "none"
    raise ValueError(f"{path}: a matrix of {n_points} points is expected, found {shapes}")


def _chosen(points: np.ndarray, n: int) -> np.ndarray:
    """Return n of the points, those of all classes: files are often sorted by them."""
    if n >= len(points):
        return points
    return points[np.sort(np.random.default_rng(0).choice(len(points), n, replace=False))]


def _digits(n: int) -> np.ndarray:
    from sklearn.datasets import load_digits  # an extra: the other families do without

    return _chosen(load_digits(return_X_y=True)[0], n)


def _moons(n: int) -> np.ndarray:
    """Two half circles that reach into each other, noise .1."""
    rng = np.random.default_rng(9)
    angle, upper = np.pi * rng.random(n), rng.random(n) < 0.5
    x = np.where(upper, np.cos(angle), 1.0 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.column_stack([x, y]) + 0.1 * rng.standard_normal((n, 2))


def _mixture(n: int) -> np.ndarray:
    """Ten Gaussian clusters in R^7."""
    rng = np.random.default_rng(10)
    centres = 2.5 * rng.standard_normal((10, 7))
    return centres[rng.integers(10, size=n)] + rng.standard_normal((n, 7))


MAKERS: dict[str, Callable[[int], np.ndarray]] = {
    "digits": _digits,
    "moons": _moons,
    "mixture": _mixture,
}


def clustering(variant: str, n: int) -> tuple[gtv.EmpiricalGraph, gtv.StackedLoss]:
    """Nearest neighbours and point losses of digits, half moons, a mixture or a user's data."""
    points = points_of(variant, n)
    graph = generators.nearest_neighbours(points, min(NEIGHBOURS, len(points) - 1))
    squared = _squared(points, graph.edges)
    points = points / np.sqrt(PHI * np.median(squared))
    weights = np.exp(-PHI * _squared(points, graph.edges))
    return gtv.EmpiricalGraph(len(points), graph.edges, weights), gtv.PointLoss.stack(points)


def _squared(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.sum((points[edges[:, 0]] - points[edges[:, 1]]) ** 2, axis=1)
