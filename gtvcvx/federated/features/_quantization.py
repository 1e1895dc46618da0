"""Features rounded so coarsely that every value is shared by k points of the local data set."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, is_integer
from gtvcvx.federated.features._protocol import fitted_columns, rows


class KAnonymousQuantization:
    """Piecewise constant map whose every cell holds at least k points of the local data set.

    Cells are boxes, made by halving: a cell is cut between two values of one feature, as near its
    median as leaves k points or more on either side, in the feature whose range in the cell is the
    largest share of its range in all (LeFevre, DeWitt, Ramakrishnan, "Mondrian Multidimensional
    K-Anonymity"). So units do not matter, and equal rows stay together. Phi(x) is the mean of the
    local points in the cell of x; every x has one, also those that were not fitted.

    k-anonymity is about the points that were fitted: each is one of k that look the same. If those
    k have the same private feature it is disclosed all the same, and there is no (eps, delta).

    Parameters
    ----------
    k : int
        >= 1; with 1, cells are the distinct rows.

    Raises
    ------
    ValueError
        k is no positive integer.
    """

    def __init__(self, k: int) -> None:
        if not is_integer(k) or k < 1:
            raise ValueError(f"k: an integer >= 1 is expected, got {k!r}")
        self.k = int(k)
        self._columns: int | None = None

    def fit(self, X: ArrayLike, private: ArrayLike | None = None) -> Self:
        """Make the cells, in O(d m log m) for each of their levels.

        Parameters
        ----------
        X : array_like of shape (m, d)
            The local data set, m >= k.
        private : array_like, optional
            Not used.

        Raises
        ------
        ValueError
            There are fewer than k points, or a number is not finite.
        """
        array = rows(X)
        if len(array) < self.k:
            raise ValueError(f"X: {self.k} points at least are expected, got {len(array)}")
        self._tree = _Tree.grown(array, self.k)
        self._columns = array.shape[1]
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Mean of the local points in the cell of each row of X (m, d), shape (m, d).

        Parameters
        ----------
        X : array_like of shape (m, d)
        """
        cells = self.cells(X)
        return self._tree.means[cells]

    def cells(self, X: ArrayLike) -> IntArray:
        """Return the number of the cell of each row of X (m, d), shape (m,); from 0 on.

        Parameters
        ----------
        X : array_like of shape (m, d)
        """
        array = rows(X, fitted_columns(self._columns))
        return self._tree.cells(array)

    @property
    def counts(self) -> IntArray:
        """How many local points each cell holds; all are >= k."""
        fitted_columns(self._columns)
        return self._tree.counts.copy()


class _Cut(NamedTuple):
    """Rows with ``x[feature] <= at`` go left."""

    feature: int
    at: float


class _Tree(NamedTuple):
    """Cuts, and where they lead: number of a cut, or -1 - number of a cell."""

    feature: IntArray
    at: FloatArray
    left: IntArray
    right: IntArray
    means: FloatArray
    counts: IntArray

    @classmethod
    def grown(cls, X: FloatArray, k: int) -> _Tree:
        """Cut X (m, d), m >= k, as long as k points stay on either side."""
        cuts: list[_Cut] = []
        ends: list[list[int]] = []
        means: list[FloatArray] = []
        counts: list[int] = []
        whole = _ranges(X)
        # Which rows, and where in `ends` the number of what becomes of them belongs.
        waiting = [(np.arange(len(X)), -1, 0)]
        while waiting:
            members, parent, side = waiting.pop()
            cut = _best_cut(X[members], k, whole)
            if cut is None:
                number = -1 - len(means)
                means.append(_mean(X[members]))
                counts.append(len(members))
            else:
                number = len(cuts)
                cuts.append(cut)
                ends.append([0, 0])
                goes_left = X[members, cut.feature] <= cut.at
                waiting += [(members[~goes_left], number, 1), (members[goes_left], number, 0)]
            if parent >= 0:
                ends[parent][side] = number
        left, right = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        return cls(
            np.array([cut.feature for cut in cuts], dtype=np.int64),
            np.array([cut.at for cut in cuts], dtype=np.float64),
            left,
            right,
            np.array(means),
            np.array(counts, dtype=np.int64),
        )

    def cells(self, X: FloatArray) -> IntArray:
        """Cell of each row, all rows going down one level at a time."""
        number = np.full(len(X), 0 if len(self.at) else -1, dtype=np.int64)
        moving = np.flatnonzero(number >= 0)
        while moving.size:
            here = number[moving]
            goes_left = X[moving, self.feature[here]] <= self.at[here]
            number[moving] = np.where(goes_left, self.left[here], self.right[here])
            moving = moving[number[moving] >= 0]
        return -1 - number


def _best_cut(points: FloatArray, k: int, whole: FloatArray) -> _Cut | None:
    """Return the cut of a cell, or None where every cut leaves fewer than k points on a side."""
    if len(points) < 2 * k:
        return None
    share = np.divide(_ranges(points), whole, out=np.zeros_like(whole), where=whole > 0)
    for feature in np.argsort(-share, kind="stable"):
        values = np.sort(points[:, feature])
        # A cut after position p - 1 leaves p points on the left.
        places = np.flatnonzero(values[1:] > values[:-1]) + 1
        places = places[(places >= k) & (places <= len(values) - k)]
        if places.size:
            p = int(places[np.abs(2 * places - len(values)).argmin()])
            return _Cut(int(feature), _between(values[p - 1], values[p]))
    return None


def _between(low: float, high: float) -> float:
    """Return t with low <= t < high, the middle if doubles allow."""
    middle = low / 2 + high / 2
    return float(middle) if low <= middle < high else float(low)


def _ranges(points: FloatArray) -> FloatArray:
    """Half the range of each feature: the whole may overflow."""
    return points.max(axis=0) / 2 - points.min(axis=0) / 2


def _mean(points: FloatArray) -> FloatArray:
    """Mean of the points, inside their box whatever rounding does: other cells have other means."""
    mean = (points / len(points)).sum(axis=0)
    return np.clip(mean, points.min(axis=0), points.max(axis=0))
