"""Real tables in raw units, from the packages that ship them, with losses that fit them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from fuzz_instance import Extra, Instance, Rows
from sklearn import datasets as samples

from gtvcvx import generators
from gtvcvx.datasets import load_us_income

# Of the smallest lambda that makes the solution constant.
FRACTIONS = (0.5, 0.05, 0.005)


@dataclass(frozen=True)
class Table:
    """Data points of nodes, and the graph that joins them."""

    n: int
    edges: np.ndarray
    node: np.ndarray
    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Posed:
    """A table with a loss and a penalty, at one fraction of lambda_max."""

    name: str
    table: str
    loss: str
    penalty: str
    fraction: float

    def instance(self) -> Instance:
        base = _base(self.table, self.loss, self.penalty)
        place = TABLES[self.table].losses.index((self.loss, self.penalty))
        critical = LAMBDA_MAX[self.table][place]
        return replace(base, name=self.name, lam=self.fraction * critical)

    def tiny(self) -> Posed:
        """Return itself: no table is large."""
        return self


def posed() -> list[Posed]:
    """Return the instances of all tables whose package is installed: T0, T1, ..."""
    every = (
        (table, loss, penalty, fraction)
        for table, source in TABLES.items()
        for loss, penalty in source.losses
        for fraction in FRACTIONS
    )
    # Named before any is left out, so that a name means the same everywhere.
    named = [Posed(f"T{k}", *rest) for k, rest in enumerate(every)]
    return [instance for instance in named if instance.table not in absent()]


def absent() -> list[str]:
    """Return the tables whose package is not installed."""
    return [name for name, source in TABLES.items() if find_spec(source.package) is None]


def _base(table_name: str, loss: str, penalty: str) -> Instance:
    table = TABLES[table_name].read()
    rows, extras = _loss(loss, table)
    return Instance(
        name=table_name,
        loss=loss,
        shape=table_name,
        scale="table",
        n=table.n,
        dim=table.y.shape[1] if loss == "point" else table.X.shape[1],
        edges=table.edges,
        weights=np.ones(len(table.edges)),
        penalty=penalty,
        lam=1.0,
        rows=[rows],
        extras=extras,
    )


def _loss(loss: str, table: Table) -> tuple[Rows, list[Extra]]:
    kind, _, extra = loss.partition(" + ")
    y = table.y
    if kind == "hinge":
        y = 2.0 * y - 1.0
    spread = float(np.median(np.abs(y - np.median(y))))
    rows = Rows(kind, table.node, table.X, y, spread if kind == "huber" else np.nan)
    return rows, [Extra(extra, np.arange(table.n), (1e-2,))] if extra else []


def _neighbours(places: np.ndarray, k: int = 5) -> np.ndarray:
    return generators.nearest_neighbours(places, k).edges


def _standardized(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _one_row_each(edges: np.ndarray, features: np.ndarray, y: np.ndarray) -> Table:
    """Return a table with an intercept and one data point a node."""
    n = len(y)
    X = np.column_stack([np.ones(n), features])
    return Table(n, edges, np.arange(n), X, np.asarray(y, dtype=float))


@cache
def _us_income(logarithm: bool) -> Table:
    """Income of a state by an intercept and the year, 81 years each."""
    data = load_us_income()
    n, years = data.income.shape
    X = np.column_stack([np.ones(n * years), np.tile(data.years, n)])
    y = data.income.ravel()
    y = np.log(y) if logarithm else y
    return Table(n, data.edges, np.repeat(np.arange(n), years), X.astype(float), y)


def _dbf(folder: str, file: str, *columns: str) -> np.ndarray:
    """Read columns of a table among the examples of libpysal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import libpysal  # an extra, and slow to import

        table = libpysal.io.open(f"{_folder(folder)}/{file}")
        return np.column_stack([np.array(table.by_col(name), dtype=float) for name in columns])


def _folder(name: str) -> str:
    # Its list of examples asks the network for more: the files that it ships are beside it.
    spec = find_spec("libpysal")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return f"{spec.submodule_search_locations[0]}/examples/{name}"


def _contiguity(folder: str, file: str) -> np.ndarray:
    """Read the pairs of neighbours of a GAL file, nodes in the order in which they come."""
    with open(f"{_folder(folder)}/{file}", encoding="utf-8") as lines:
        tokens = iter(" ".join(list(lines)[1:]).split())
    neighbours: dict[str, list[str]] = {}
    for label in tokens:
        count = int(next(tokens))
        neighbours[label] = [next(tokens) for _ in range(count)]
    number = {label: k for k, label in enumerate(neighbours)}
    pairs = [sorted((number[i], number[j])) for i, near in neighbours.items() for j in near]
    return np.unique(np.array(pairs), axis=0)


@cache
def _columbus() -> Table:
    """Crime in 49 neighbourhoods by income and the value of homes."""
    crime, *features = _dbf("columbus", "columbus.dbf", "CRIME", "INC", "HOVAL").T
    edges = _contiguity("columbus", "columbus.gal")
    return _one_row_each(edges, np.column_stack(features), crime)


@cache
def _baltimore() -> Table:
    """Prices of 211 houses by what they have."""
    columns = ("PRICE", "NROOM", "NBATH", "AGE", "LOTSZ", "SQFT", "X", "Y")
    data = _dbf("baltim", "baltim.dbf", *columns)
    return _one_row_each(_neighbours(data[:, 6:]), data[:, 1:6], data[:, 0])


@cache
def _georgia() -> Table:
    """Share of 159 counties' inhabitants with a degree, by population and percentages."""
    columns = ("PctBach", "TotPop90", "PctRural", "PctEld", "PctFB", "PctPov", "X", "Y")
    data = _dbf("georgia", "G_utm.dbf", *columns)
    return _one_row_each(_neighbours(data[:, 6:]), data[:, 1:6], data[:, 0])


@cache
def _infant_deaths() -> Table:
    """Deaths in 100 counties of North Carolina by numbers of births."""
    deaths, *births = _dbf("sids2", "sids2.dbf", "SID74", "BIR74", "NWBIR74").T
    return _one_row_each(_contiguity("sids2", "sids2.gal"), np.column_stack(births), deaths)


@cache
def _homicides() -> Table:
    """Homicides in 78 counties around St. Louis by population, deprivation and police."""
    count, *features = _dbf("stl", "stl_hom.dbf", "HC7984", "PO7984", "RDAC80", "PE77").T
    return _one_row_each(_contiguity("stl", "stl.gal"), np.column_stack(features), count)


@cache
def _diabetes() -> Table:
    """Progression of 442 patients by ten measurements, as they were taken."""
    X, y = samples.load_diabetes(return_X_y=True, scaled=False)
    return _one_row_each(_neighbours(_standardized(X)), X, y)


@cache
def _wine() -> Table:
    """The first of three cultivars or not, 178 wines, 13 measurements."""
    X, y = samples.load_wine(return_X_y=True)
    return _one_row_each(_neighbours(_standardized(X)), X, y == 0)


@cache
def _wine_points() -> Table:
    X, _ = samples.load_wine(return_X_y=True)
    n = len(X)
    return Table(n, _neighbours(_standardized(X)), np.arange(n), np.empty((n, 0)), X)


def _pictures(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pixels, digit = samples.load_digits(return_X_y=True)
    return pixels[:n], digit[:n], _neighbours(pixels[:n])


@cache
def _digits() -> Table:
    """Whether a digit is even, 400 pictures, by the ink in each of eight lines."""
    pixels, digit, edges = _pictures(400)
    return _one_row_each(edges, pixels.reshape(-1, 8, 8).sum(axis=2), digit % 2 == 0)


@cache
def _digit_counts() -> Table:
    """Dark pixels of 400 pictures by ink and its height."""
    pixels, _, edges = _pictures(400)
    ink = pixels.sum(axis=1)
    height = pixels.reshape(-1, 8, 8).sum(axis=2) @ np.arange(8) / ink
    return _one_row_each(edges, np.column_stack([ink, height]), (pixels > 12).sum(axis=1))


@cache
def _digit_points() -> Table:
    pixels, _, edges = _pictures(200)
    return Table(200, edges, np.arange(200), np.empty((200, 0)), pixels)


@dataclass(frozen=True)
class Source:
    """Where a table comes from, and the losses with penalties that are tried on it."""

    package: str
    read: Callable[[], Table]
    losses: list[tuple[str, str]]


def _posed(losses: str) -> list[tuple[str, str]]:
    """Read "loss penalty, loss penalty": the last word is the penalty."""
    pairs: Iterator[Any] = (text.strip().rpartition(" ") for text in losses.split(","))
    return [(loss, penalty) for loss, _, penalty in pairs]


_REGRESSION = _posed("squared l2, squared l1, absolute l2, huber l2, squared + ridge linf")
_CLASSES = _posed("logistic l2, logistic + ridge l1, hinge l2, hinge + ridge l1")
_COUNTS = _posed("poisson l2, poisson + ridge l1, squared l2")
TABLES: dict[str, Source] = {
    "US income": Source("gtvcvx", lambda: _us_income(False), _REGRESSION),
    "US log income": Source("gtvcvx", lambda: _us_income(True), _REGRESSION),
    "diabetes": Source("sklearn", _diabetes, _REGRESSION),
    "wine": Source("sklearn", _wine, _CLASSES),
    "wine, points": Source("sklearn", _wine_points, _posed("point l2, point l1")),
    "digits": Source("sklearn", _digits, _CLASSES),
    "digits, counts": Source("sklearn", _digit_counts, _COUNTS),
    "digits, points": Source("sklearn", _digit_points, _posed("point l2, point l1")),
    "columbus": Source("libpysal", _columbus, _REGRESSION),
    "baltimore": Source("libpysal", _baltimore, _REGRESSION),
    "georgia": Source("libpysal", _georgia, _REGRESSION),
    "infant deaths": Source("libpysal", _infant_deaths, _COUNTS),
    "homicides": Source("libpysal", _homicides, _COUNTS),
}
# About the smallest lambda that makes the solution constant, in the order of the losses: as
# gtvcvx.lambda_max finds it, to one digit, because instances must not depend on what they measure.
# For losses with kinks it takes minutes, and where a plane separates classes there is none: those
# are estimates from the losses beside them.
LAMBDA_MAX: dict[str, tuple[float, ...]] = {
    "US income": (2e7, 2e7, 2000, 4e6, 2e7),
    "US log income": (2000, 2000, 2000, 2000, 2000),
    "diabetes": (20000, 10000, 200, 10000, 40000),
    "wine": (10, 100, 10, 100),
    "wine, points": (2000, 2000),
    "digits": (300, 100, 200, 100),
    "digits, counts": (2000, 1000, 3000),
    "digits, points": (2000, 600),
    "columbus": (4000, 4000, 200, 4000, 6000),
    "baltimore": (8000, 8000, 200, 4000, 10000),
    "georgia": (700000, 700000, 300000, 400000, 900000),
    "infant deaths": (80000, 80000, 80000),
    "homicides": (9e7, 1e8, 1e9),
}
