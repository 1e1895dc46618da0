"""Per-capita income of the 48 contiguous US states, 1929-2009, and which of them adjoin."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._geometry import flattened
from gtvcvx.files._tables import read_edges
from gtvcvx.graph import EmpiricalGraph
from verify._display import fields_text

FOLDER = Path(__file__).parent / "data"
_MIDDLE_YEAR, _HALF_SPAN = 1969, 40


class USIncomePaths(NamedTuple):
    """Files of the embedded regression, ready for ``gtvcvx fit``.

    Attributes
    ----------
    edges : pathlib.Path
        Pairs of adjoining states.
    data : pathlib.Path
        One row a state and year, with the columns of ``USIncome.trend_regression``: ``state``
        (node), ``constant`` and ``trend`` (features), ``log_relative_income`` (target).
    """

    edges: Path
    data: Path

    def __repr__(self) -> str:
        return fields_text(self)


@dataclass(frozen=True)
class USIncome:
    """Yearly personal income per inhabitant of the 48 contiguous states of the USA.

    Attributes
    ----------
    states : list of str, length 48
        Names, in alphabetical order.
    edges : ndarray of int64, shape (107, 2)
        Pairs of states that share a border or a corner (Arizona and Colorado, New Mexico and Utah
        meet in a point), as positions in ``states``, first < second, in lexicographic order.
    years : ndarray of int64, shape (81,)
        1929, ..., 2009.
    income : ndarray of float64, shape (48, 81)
        US dollars of the year (not adjusted for inflation) per inhabitant.
    centres : ndarray of float64, shape (48, 2)
        Latitude and longitude of the centroid of each state, in degrees.
    """

    states: list[str]
    edges: IntArray
    years: IntArray
    income: FloatArray
    centres: FloatArray

    __repr__ = fields_text

    def graph(self) -> EmpiricalGraph:
        """Graph of the states that adjoin, by name; pictures draw them where they are.

        Returns
        -------
        EmpiricalGraph
            48 nodes, 107 edges of weight 1.
        """
        middle = float(self.centres[:, 0].min() + self.centres[:, 0].max()) / 2.0
        places = flattened(self.centres[:, ::-1], middle)
        return EmpiricalGraph(len(self.states), self.edges, nodes=self.states, positions=places)

    def trend_regression(self) -> tuple[FloatArray, FloatArray]:
        """Pose the path of each state's income towards the others' as a linear regression.

        The target is the logarithm of a state's income over the mean income of the 48 states in
        the same year (each state counts once), so that inflation and national growth drop out. The
        features are a constant and the time from -1 (1929) over 0 (1969) to 1 (2009). Hence the
        parameters of a state are its relative log income in 1969 and the change of it in 40
        years; adjoining states have similar ones, e.g. the South started poor and caught up.

        Returns
        -------
        X : ndarray, shape (48, 81, 2)
            Columns ``constant`` and ``trend``, the latter in units of 40 years since 1969.
        y : ndarray, shape (48, 81)
            Relative log income, without unit.
        """
        y = np.log(self.income / self.income.mean(axis=0))
        trend = (self.years - _MIDDLE_YEAR) / _HALF_SPAN
        X = np.stack([np.ones_like(y), np.broadcast_to(trend, y.shape)], axis=-1)
        return X, y


def load_us_income() -> USIncome:
    """Load the embedded income data.

    The figures are those of the Bureau of Economic Analysis, US Department of Commerce, a work of
    the US government in the public domain. Source, vintage and the way they were made are in
    ``README.md`` beside the data files.

    Returns
    -------
    USIncome
    """
    return read_folder(FOLDER)


def read_folder(folder: Path) -> USIncome:
    """Read ``income.csv``, ``contiguity.csv`` and ``centres.csv`` of a folder."""
    with (folder / "income.csv").open(encoding="utf-8", newline="") as handle:
        header, *rows = csv.reader(handle)
    states = [row[0] for row in rows]
    table = read_edges(folder / "contiguity.csv")
    position = {state: k for k, state in enumerate(states)}
    ends = np.array([position[str(label)] for label in table.labels])[table.edges]
    edges = np.unique(np.sort(ends, axis=1), axis=0).astype(np.int64)
    income = np.array([row[1:] for row in rows], dtype=np.float64)
    with (folder / "centres.csv").open(encoding="utf-8", newline="") as handle:
        places = {row["state"]: row for row in csv.DictReader(handle)}
    centres = np.array(
        [[float(places[state][name]) for name in ("latitude", "longitude")] for state in states]
    )
    years = np.array(header[1:], dtype=np.int64)
    return USIncome(states, edges, years, income, centres)


def us_income_paths() -> USIncomePaths:
    """Tell where the edge file and the data file of the embedded regression are.

    Returns
    -------
    USIncomePaths
        For ``gtvcvx fit --edges EDGES --data DATA --node state --target log_relative_income``.
    """
    return USIncomePaths(FOLDER / "contiguity.csv", FOLDER / "trend.csv")
