"""The path of partitions of convex clustering: from one cluster to single points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.estimators._grouping import Counts, Grouping
from gtvcvx.estimators._solving import ROUNDING, Solving
from gtvcvx.path import LambdaPath, lambda_path
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# Centres that are closer than this share of the spread of the data are one: the default of
# Solution.clusters, which takes the range of the centres.
SAME = 1e-3
# Neighbouring values of lambda are not brought closer together than this ratio.
FINEST = 1.001


def cluster_labels(solution: Solution, spread: float) -> IntArray:
    """Clusters of nodes, (n,), where jumps up to 1e-3 times the spread of the data are none."""
    w = solution.w
    own = max(float(np.ptp(w, axis=0).max()), 1e-3 * float(np.abs(w).max()))
    if own == 0 or spread == 0:
        return solution.clusters()
    return solution.clusters(SAME * spread / own)


@dataclass(frozen=True)
class ClusteringPath(LambdaPath):
    """A path whose clusters are those of `cluster_labels`.

    Attributes
    ----------
    spread : float
        That of the data, see `spread_of`.
    """

    spread: float = 1.0

    def _partition(self, solution: Solution) -> IntArray:
        return cluster_labels(solution, self.spread)

    def clusters(self, n_clusters: int, min_cluster_size: int = 1) -> IntArray:
        """Labels (n,) for a number of clusters, at the largest lambda of the path that has it.

        Points of clusters below ``min_cluster_size`` join the cluster with the nearest centre.

        Raises
        ------
        ValueError
            No solution of the path has this number of clusters.
        """
        numbers = [Counts.of(labels, min_cluster_size).clusters for labels in self.labels]
        if n_clusters not in numbers:
            found = ", ".join(map(str, sorted(set(numbers))))
            raise ValueError(
                f"n_clusters: one of the path's numbers of clusters, {found}, is expected, "
                f"got {n_clusters}"
            )
        i = numbers.index(n_clusters)
        return Grouping.of(self.labels[i], self.solutions[i].w, min_cluster_size, True).labels


class PathBuilder:
    """Solutions for decreasing lambda; values are added where the number of clusters changes most.

    Parameters
    ----------
    problem : GTVProblem
        Of points, with a norm as penalty.
    points : ndarray, shape (n, d)
    solving : Solving
    n_lams : int
        Number of values of lambda, at least 2.
    spread : float
        See `spread_of`.
    known : tuple of float and Solution
        A value of lambda that belongs to the path if it is not above lambda_max.
    """

    def __init__(
        self,
        problem: GTVProblem,
        points: FloatArray,
        solving: Solving,
        n_lams: int,
        spread: float,
        known: tuple[float, Solution],
    ) -> None:
        self._problem, self._solving, self.spread = problem, solving, spread
        self.lams: list[float] = []
        self.solutions: list[Solution] = []
        self.labels: list[IntArray] = []
        if not fusible(problem, points):
            # One value stands for all.
            self._add(0, *known)
            return
        # The first of them is the consensus, known to be it at lambda_max.
        first = lambda_path(problem, n_lams=2, min_ratio=0.5, verbose=False)
        self._add(0, float(first.lams[0]), first[0])
        least = min(all_apart(problem, points, spread), 0.5 * self.lams[0])
        # From the smallest value up: each one starts from the clusters of the one below.
        for lam in np.geomspace(self.lams[0], least, (n_lams + 1) // 2 + 1)[:0:-1]:
            self._insert(1, float(lam))
        if known[0] < self.lams[0] and known[0] not in self.lams:
            self._add(int(np.searchsorted(-np.array(self.lams), -known[0])), *known)
        while len(self.lams) < n_lams:
            counts = self.counts
            gain = np.abs(np.diff(np.log(counts)))
            gain[np.abs(np.diff(counts)) <= 1] = 0.0
            gain[np.array(self.lams[:-1]) <= FINEST * np.array(self.lams[1:])] = 0.0
            if not gain.any():
                break
            self._bisect(int(np.argmax(gain)))

    @property
    def counts(self) -> IntArray:
        """Number of clusters at each lambda."""
        return np.array([int(labels.max()) + 1 for labels in self.labels])

    @property
    def n_missed(self) -> int:
        """Number of solutions whose gap is too large."""
        return sum(not self._solving.is_met(solution) for solution in self.solutions[1:])

    @property
    def path(self) -> ClusteringPath:
        """The solutions as a path."""
        return ClusteringPath(
            np.array(self.lams),
            list(self.solutions),
            np.empty(0),
            problem=self._problem,
            spread=self.spread,
        )

    def _bisect(self, i: int) -> None:
        """Add a value between the ones at positions i and i + 1."""
        self._insert(i + 1, float(np.sqrt(self.lams[i] * self.lams[i + 1])))

    def _insert(self, i: int, lam: float) -> None:
        start = self.solutions[i] if i < len(self.solutions) else None
        self._add(i, lam, self._solving.solve(self._problem.with_lam(lam), start))

    def _add(self, i: int, lam: float, solution: Solution) -> None:
        self.lams.insert(i, lam)
        self.solutions.insert(i, solution)
        self.labels.insert(i, cluster_labels(solution, self.spread))


def fusible(problem: GTVProblem, points: FloatArray) -> bool:
    """Whether the points at the ends of some edge are apart, by more than rounding."""
    jumps = np.abs(problem.differences(points))
    return bool(jumps.max(initial=0.0) > ROUNDING * np.abs(points).max())


def all_apart(problem: GTVProblem, points: FloatArray, spread: float) -> float:
    """Return a lambda at which the ends of all edges are apart, if their points clearly are.

    With s_i = -(D^T u)_i the optimality condition is 2 (w_i - a_i) = s_i, and ||s_i||_2 is at most
    sqrt(d) lambda times the weights of the edges at i: no farther can a centre leave its point.
    Infinity if no edge has ends that are far enough apart to be told.
    """
    graph, same = problem.graph, SAME * spread
    jumps = np.linalg.norm(problem.differences(points), axis=1)
    weight = np.bincount(graph.edges.ravel(), np.repeat(graph.weights, 2), graph.n_nodes)
    reach = 0.5 * np.sqrt(problem.dim) * weight[graph.edges].sum(axis=1)
    apart = jumps > 2.0 * same
    return float(((jumps - same) / reach)[apart].min(initial=np.inf))
