"""Distances between nodes: of points, by KD-trees, or from a matrix.

Of neighbours at equal distance, those with the smaller number come first, whatever the order in
which a tree finds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, finite_array
from gtvcvx._geometry import on_sphere

EARTH_RADIUS = 6371.0088  # km, the mean radius of the IUGG
# Squares and sums of squares of larger coordinates may overflow.
LARGEST = 1e150
# Distances of the tree may be rounded otherwise than ours: what is this close counts as a tie
# until it was looked at.
MARGIN = 1e-9
# Numbers that are held at once while distances are computed.
BLOCK = 1 << 22

MINKOWSKI = {"euclidean": 2.0, "cityblock": 1.0, "chebyshev": np.inf}
METRICS = (*MINKOWSKI, "haversine", "precomputed")


class Space(ABC):
    """Distances between n nodes."""

    n_nodes: int

    @abstractmethod
    def lengths(self, edges: IntArray) -> FloatArray:
        """Distances of the pairs (m, 2), shape (m,)."""

    @abstractmethod
    def nearest(self, k: int) -> IntArray:
        """Return the k nearest others of each node, nearest first, shape (n, k)."""

    @abstractmethod
    def pairs_within(self, radius: float) -> IntArray:
        """All pairs i < j at a distance of radius at most, shape (m, 2)."""

    @abstractmethod
    def nearest_outside(self, group: IntArray) -> IntArray:
        """Nearest node of another group for each node, shape (n,); there are two groups or more."""


def space_of(X: ArrayLike, metric: str) -> Space:
    """Return the space of the nodes with features X (n, c), or of a distance matrix X (n, n)."""
    if metric not in METRICS:
        raise ValueError(f"metric: one of {METRICS} is expected, got {metric!r}")
    values = finite_array(X, "X", 2)
    if 0 in values.shape:
        raise ValueError(f"X: at least one row and one column are expected, got {values.shape}")
    if metric == "precomputed":
        return MatrixSpace(values)
    if metric == "haversine":
        return Sphere(values)
    return PointSpace(values, MINKOWSKI[metric])


class PointSpace(Space):
    """Points (n, c) with a Minkowski distance of order p."""

    def __init__(self, points: FloatArray, p: float) -> None:
        large = np.flatnonzero((np.abs(points) > LARGEST).any(axis=1))
        if large.size:
            raise ValueError(
                f"X: row {large[0]} has a value beyond {LARGEST:g}, too large for distances in "
                "double precision"
            )
        self.points, self.p = points, p
        self.n_nodes = len(points)
        self._tree = cKDTree(points)

    def _distance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Distances along the last axis."""
        size = np.abs(a - b)
        if self.p == 1.0:
            return size.sum(axis=-1)
        if self.p == 2.0:
            return np.sqrt((size**2).sum(axis=-1))
        return size.max(axis=-1)

    def _in_tree(self, radius: float) -> float:
        """Distance in the tree of points at this distance."""
        return radius

    def lengths(self, edges: IntArray) -> FloatArray:
        """Distances of the pairs, computed block by block."""
        out = np.empty(len(edges))
        for part in self._blocks(len(edges), 1):
            heads, tails = edges[part].T
            out[part] = self._distance(self.points[heads], self.points[tails])
        return out

    def _blocks(self, count: int, per_item: int) -> Iterator[slice]:
        step = max(BLOCK // (per_item * self.points.shape[1]), 1)
        return (slice(start, start + step) for start in range(0, count, step))

    def nearest(self, k: int) -> IntArray:
        """Query one neighbour more than wanted, to see whether the last one is tied."""
        wanted = min(k + 2, self.n_nodes)
        out = np.empty((self.n_nodes, k), dtype=np.int64)
        for part in self._blocks(self.n_nodes, wanted):
            rows = np.arange(self.n_nodes)[part]
            _, found = self._tree.query(self.points[part], k=range(1, wanted + 1), p=self.p)
            found = np.sort(found.astype(np.int64), axis=1)
            length = self._distance(self.points[rows][:, None], self.points[found])
            length[found == rows[:, None]] = np.inf
            order = np.argsort(length, axis=1, kind="stable")[:, :k]
            out[part] = np.take_along_axis(found, order, axis=1)
            if wanted == self.n_nodes:
                continue
            # A node that is not found itself has more equals than were asked for: that is a tie.
            last = np.take_along_axis(length, order[:, -1:], axis=1)[:, 0]
            listed = np.where(np.isinf(length), -1.0, length).max(axis=1)
            for i in rows[listed <= last * (1.0 + MARGIN)].tolist():
                out[i] = self._nearest_of_tied(i, k, float(last[i - rows[0]]))
        return out

    def _nearest_of_tied(self, i: int, k: int, radius: float) -> IntArray:
        """Return the k nearest others of node i, all of which are within the radius."""
        reach = self._in_tree(radius) * (1.0 + MARGIN)
        found = np.array(self._tree.query_ball_point(self.points[i], reach, p=self.p))
        found = np.sort(found[found != i])
        length = self._distance(self.points[i], self.points[found])
        return found[np.argsort(length, kind="stable")[:k]]

    def pairs_within(self, radius: float) -> IntArray:
        """Pairs from the tree, those at the radius itself by our own distance."""
        reach = self._in_tree(radius) * (1.0 + MARGIN)
        pairs = self._tree.query_pairs(reach, p=self.p, output_type="ndarray").astype(np.int64)
        pairs = np.sort(pairs, axis=1)
        return pairs[self.lengths(pairs) <= radius]

    def nearest_outside(self, group: IntArray) -> IntArray:
        """Nearest points of other groups, by a tree for every binary digit of their numbers.

        Two different numbers differ in a digit: the nearest of the nodes whose group has another
        digit, over all digits, is the nearest of all other groups.
        """
        best = np.full(self.n_nodes, np.inf)
        out = np.zeros(self.n_nodes, dtype=np.int64)
        for digit in range(int(group.max()).bit_length()):
            has = (group >> digit) & 1 == 1
            for side in (has, ~has):
                here, there = np.flatnonzero(side), np.flatnonzero(~side)
                if not len(here) or not len(there):
                    continue
                length, found = cKDTree(self.points[there]).query(self.points[here], p=self.p)
                closer = length < best[here]
                best[here[closer]] = length[closer]
                out[here[closer]] = there[found[closer]]
        return out


class Sphere(PointSpace):
    """Latitudes and longitudes (n, 2) in degrees, with great-circle distances in kilometres.

    The points are unit vectors: the chord between two of them grows with the angle.
    """

    def __init__(self, degrees: FloatArray) -> None:
        if degrees.shape[1] != 2:
            raise ValueError(
                "X: two columns, latitude and longitude in degrees, are expected for the metric "
                f"'haversine', got {degrees.shape[1]}"
            )
        for column, name, limit in ((0, "latitude", 90.0), (1, "longitude", 360.0)):
            wrong = np.flatnonzero(np.abs(degrees[:, column]) > limit)
            if wrong.size:
                k = int(wrong[0])
                raise ValueError(
                    f"X: row {k} has the {name} {degrees[k, column]:g}, degrees from {-limit:g} "
                    f"to {limit:g} are expected"
                )
        super().__init__(on_sphere(degrees[:, ::-1]), 2.0)

    def _distance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        # Accurate for points that are close and for points that are opposite each other.
        chord, sum_ = np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)
        return 2.0 * EARTH_RADIUS * np.arctan2(chord, sum_)

    def _in_tree(self, radius: float) -> float:
        return 2.0 * float(np.sin(min(radius / (2.0 * EARTH_RADIUS), np.pi / 2.0)))


class MatrixSpace(Space):
    """A symmetric matrix (n, n) of distances >= 0."""

    def __init__(self, matrix: FloatArray) -> None:
        n, columns = matrix.shape
        if n != columns:
            raise ValueError(f"X: a square matrix of distances is expected, got {matrix.shape}")
        scale = float(np.abs(matrix).max())
        self._refuse(matrix < 0, "is negative", matrix)
        self._refuse(np.abs(matrix - matrix.T) > 1e-8 * scale, "is not that of (j, i)", matrix)
        self._refuse(np.eye(n, dtype=bool) & (matrix > 1e-8 * scale), "should be 0", matrix)
        self.n_nodes = n
        self.matrix = matrix / 2.0 + matrix.T / 2.0

    @staticmethod
    def _refuse(wrong: BoolArray, what: str, matrix: FloatArray) -> None:
        if wrong.any():
            i, j = np.argwhere(wrong)[0].tolist()
            raise ValueError(f"X: the distance {matrix[i, j]:g} of (i, j) = ({i}, {j}) {what}")

    def lengths(self, edges: IntArray) -> FloatArray:
        """Entries of the matrix."""
        return self.matrix[edges[:, 0], edges[:, 1]]

    def nearest(self, k: int) -> IntArray:
        """Sort every row."""
        return np.argsort(self._others(), axis=1, kind="stable")[:, :k]

    def _others(self) -> FloatArray:
        """Distances to other nodes, infinite to itself."""
        others = self.matrix.copy()
        np.fill_diagonal(others, np.inf)
        return others

    def pairs_within(self, radius: float) -> IntArray:
        """Entries above the diagonal."""
        return np.argwhere(np.triu(self.matrix <= radius, 1)).astype(np.int64)

    def nearest_outside(self, group: IntArray) -> IntArray:
        """Least entry of every row in the columns of other groups."""
        outside = np.where(group[:, None] != group, self.matrix, np.inf)
        return np.argmin(outside, axis=1)
