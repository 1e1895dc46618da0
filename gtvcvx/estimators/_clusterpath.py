"""The path of partitions of convex clustering: from one cluster to single points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.estimators._solving import ROUNDING, Solving
from gtvcvx.path import LambdaPath, lambda_path
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# Centres that are closer than this share of the spread of the data are one: the default of
# Solution.clusters, which takes the spread of the centres.
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
        Largest range of a coordinate of the data.
    """

    spread: float = 1.0

    @cached_property
    def labels(self) -> IntArray:
        """Clusters at each lambda, shape (k, n)."""
        return np.stack([cluster_labels(solution, self.spread) for solution in self.solutions])


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
    """

    def __init__(
        self, problem: GTVProblem, points: FloatArray, solving: Solving, n_lams: int
    ) -> None:
        self._problem, self._solving = problem, solving
        self.spread = float(np.ptp(points, axis=0).max())
        self.lams: list[float] = []
        self.solutions: list[Solution] = []
        self.labels: list[IntArray] = []
        jumps = np.linalg.norm(problem.differences(points), axis=1)
        if jumps.max(initial=0.0) <= ROUNDING * np.abs(points).max():
            # Nothing is left to fuse: one value stands for all.
            self._insert(0, 1.0)
            return
        # The first of them is the consensus, known to be it at lambda_max.
        first = lambda_path(problem, n_lams=2, min_ratio=0.5, verbose=False)
        self._add(0, float(first.lams[0]), first[0])
        least = min(_all_apart(problem, jumps, SAME * self.spread), 0.5 * self.lams[0])
        for lam in np.geomspace(self.lams[0], least, (n_lams + 1) // 2 + 1)[1:]:
            self._insert(len(self.lams), float(lam))
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
            np.array(self.lams), list(self.solutions), np.empty(0), spread=self.spread
        )

    def position_of(self, n_clusters: int) -> int:
        """Position of the smallest lambda with this number of clusters, or the next smaller one.

        The path is refined until it has one, or neighbouring values of lambda are close.
        """
        while True:
            counts = self.counts
            exact = np.flatnonzero(counts == n_clusters)
            if exact.size:
                return int(exact[-1])
            fewer = np.flatnonzero(counts < n_clusters)
            last = int(fewer[-1])
            if last + 1 == len(counts) or self.lams[last] <= FINEST * self.lams[last + 1]:
                return int(fewer[np.argmax(counts[fewer])])
            self._bisect(last)

    def longest_lived(self) -> int:
        """Return the number of clusters that lasts over the longest range of log lambda.

        Neither one (for each component) nor n, unless there is no other.
        """
        n = len(self.labels[0])
        if len(self.lams) == 1:
            return int(self.counts[0])
        logs = np.log(self.lams)
        steps = -np.diff(logs) / 2.0
        life = np.bincount(self.counts, np.append(steps, 0.0) + np.append(0.0, steps), n + 1)
        components = int(self._problem.graph.components.max()) + 1
        inner = life[components + 1 : n]
        return components + 1 + int(np.argmax(inner)) if inner.any() else components

    def _bisect(self, i: int) -> None:
        """Add a value between the ones at positions i and i + 1."""
        self._insert(i + 1, float(np.sqrt(self.lams[i] * self.lams[i + 1])))

    def _insert(self, i: int, lam: float) -> None:
        start = self.solutions[i - 1] if i else None
        self._add(i, lam, self._solving.solve(self._problem.with_lam(lam), start))

    def _add(self, i: int, lam: float, solution: Solution) -> None:
        self.lams.insert(i, lam)
        self.solutions.insert(i, solution)
        self.labels.insert(i, cluster_labels(solution, self.spread))


def _all_apart(problem: GTVProblem, jumps: FloatArray, same: float) -> float:
    """Return a lambda at which the ends of all edges are apart, if their points are by 2 same.

    With s_i = -(D^T u)_i the optimality condition is 2 (w_i - a_i) = s_i, and ||s_i||_2 is at most
    sqrt(d) lambda times the weights of the edges at i: no farther can a centre leave its point.
    """
    graph = problem.graph
    weight = np.bincount(graph.edges.ravel(), np.repeat(graph.weights, 2), graph.n_nodes)
    reach = 0.5 * np.sqrt(problem.dim) * weight[graph.edges].sum(axis=1)
    apart = jumps > 2.0 * same
    return float(((jumps - same) / reach)[apart].min(initial=np.inf))
