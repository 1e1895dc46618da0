"""The search along lambda for a number of clusters, on solutions of low accuracy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.estimators._clusterpath import all_apart, cluster_labels
from gtvcvx.estimators._grouping import Counts, Grouping, most_between
from gtvcvx.estimators._necks import Necks
from gtvcvx.estimators._solving import Solving
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# In the units of `point_graph` (times `unit` for other graphs), real and generated data have their
# clusters between 1 and 1e5 (docs/decisions/clustering-defaults.md); the search goes up and down
# from here.
START = 16.0
# Steps of lambda. Clusters that live on half of it are seen, and bisection finds shorter lives.
RATIO = 0.7
# Where nothing changes, steps double up to this many at a time, a factor of 17.
LONGEST_STRIDE = 8
# Neighbouring values of lambda are not brought closer together than this ratio ...
FINEST = 1.001
# ... and not closer than this one before smaller clusters were tried: a number that lives so
# shortly is an accident, often of a cluster that is a point or two short of the least size, ...
BRIEF = 1.1
# ... but no smaller ones than a quarter, which would be outliers.
TRIED = 3
# Steps no longer than this are not looked into for numbers that rise and fall within one: among
# several sizes each would be found for some accident, remainders of rings for clusters.
LONG = 1.0 / RATIO**0.5
# No search solves more often: this covers a range of 1e20 and ten bisections to the end.
MOST_SOLVES = 120
# Of a stable number of clusters at least this share of all points are in clusters; with less, data
# in a plane fall apart into patches (the record compares 0.5, 0.8 and 0.9).
COVERED = 0.9
# Relative gap while lambda is looked for: clusters hardly change below it, and times double.
SEARCH_RTOL = 1e-4
# Share of the mean size that makes a cluster, see the record for others.
SHARE_OF_MEAN = 5
# Where the number is looked for: a share of all points, and no fewer than HDBSCAN's default.
SHARE_OF_ALL, FEW = 20, 5


class Found(NamedTuple):
    """A lambda, its solution, fused points (n,), and the size from which on they are a cluster.

    Whether the number of clusters is stable is said where it was looked for; then clusters may be
    unions of those of the partition, given by labels (n,).
    """

    lam: float
    solution: Solution
    partition: IntArray
    least: int
    stable: bool = True
    unions: IntArray | None = None


class Choice(NamedTuple):
    """The position of a lambda in a search, and what `Found` says of it."""

    position: int
    least: int
    stable: bool = True
    unions: IntArray | None = None


@dataclass(frozen=True)
class Wanted:
    """What is looked for.

    Attributes
    ----------
    k : int or None
        Number of clusters.
    sizes : list of int
        Least sizes of a cluster: the second is for the case that the first gives no k clusters.
    necks : callable, optional
        Where k is None: returns what tells the clusters that stand out.
    """

    k: int | None
    sizes: list[int]
    necks: Callable[[], Necks] | None = None

    @classmethod
    def of(cls, n: int, k: int | None, least: int | None) -> Wanted:
        """Fill in the default sizes for n points."""
        if least is not None:
            return cls(k, [min(least, n)])
        if k is None:
            return cls(k, [max(n // SHARE_OF_ALL, min(FEW, n // 10), min(2, n))])
        sizes = [max(n // (SHARE_OF_MEAN * k), 1)]
        while sizes[-1] > 1:
            sizes.append(sizes[-1] // 2)
        return cls(k, sizes)


def found_clusters(
    problem: GTVProblem,
    points: FloatArray,
    spread: float,
    wanted: Wanted,
    solving: Solving,
    make_solving: Callable[[float], Solving],
    rtol: float,
) -> Found:
    """Look for lambda at a low accuracy, and solve; if clusters differ then, look again."""
    least_lam = all_apart(problem, points, spread)
    weight = float(problem.graph.weights.sum())
    unit = spread * len(points) / weight if spread > 0 and weight > 0 else 1.0

    def partition(solution: Solution) -> IntArray:
        return cluster_labels(solution, spread)

    for goal in dict.fromkeys((max(rtol, SEARCH_RTOL), rtol)):
        rough = solving if goal == rtol else make_solving(goal)
        search = Search(problem, rough, partition, least_lam, unit)
        i, least, stable, unions = search.best(wanted)
        lam, solution = search.lams[i], search.solutions[i]
        if goal > rtol:
            solution = solving.solve(problem.with_lam(lam), solution)
        # Of equal points there is one cluster, and no other number to look for.
        stable = stable or spread == 0.0
        found = Found(lam, solution, partition(solution), least, stable, unions)
        expected = Counts.of(search.partitions[i], least).clusters
        if Counts.of(found.partition, least).clusters == expected or not solving.is_met(solution):
            break
    return found


class Search:
    """Solutions for decreasing lambda, found where they tell most.

    Bounds on the numbers of clusters in between hold where clusters only fuse as lambda grows.

    Parameters
    ----------
    problem : GTVProblem
        Of points, with a norm as penalty.
    solving : Solving
    partition : callable
        Gives the clusters (n,) of a solution.
    least_lam : float
        For smaller lambda, clusters do not change any more.
    unit : float
        The lambda at which the mean sum of the weights at a point moves it as far as the points
        spread.
    """

    def __init__(
        self,
        problem: GTVProblem,
        solving: Solving,
        partition: Callable[[Solution], IntArray],
        least_lam: float,
        unit: float,
    ) -> None:
        self._problem, self._solving, self._partition = problem, solving, partition
        self._least_lam = least_lam
        self._components = int(problem.graph.components.max()) + 1
        self.lams: list[float] = []
        self.solutions: list[Solution] = []
        self.partitions: list[IntArray] = []
        self._visit(START * unit)

    def best(self, wanted: Wanted) -> Choice:
        """Return the lambda that is looked for, or the nearest to it."""
        if wanted.k is None and wanted.necks is not None:
            return self.standing(wanted.sizes[0], wanted.necks)
        if wanted.k is None:
            i, least = self.stable(wanted.sizes[0]), wanted.sizes[0]
            return self._one(least) if i is None else Choice(i, least)
        hidden = BRIEF if len(wanted.sizes) == 1 else LONG
        attempts = [(least, BRIEF) for least in wanted.sizes[:TRIED]]
        for least, finest in [*attempts, *((least, FINEST) for least in wanted.sizes)]:
            i = self.numbered(wanted.k, least, finest, hidden)
            if i is not None:
                return Choice(i, least)
        return Choice(*self.nearest(wanted.k, wanted.sizes))

    def numbered(self, k: int, least: int, finest: float, hidden: float) -> int | None:
        """Position of a lambda with k clusters of at least ``least`` points, if there is one.

        More points are in clusters than not, or what is left of a structure would count as one.
        Of those that were seen it is the largest; where it leaves no point out a larger one would
        give the same clusters.
        """
        self._climb(least, lambda top: top.above < k or (top.clusters == k and not top.outside))
        self._descend(least, lambda end: end.clusters >= k or end.below < k)
        while True:
            counts = self._counts(least)
            exact = [
                i for i, found in enumerate(counts) if found.clusters == k and self._most(found)
            ]
            if exact:
                return exact[0]
            place = self._place_between(counts, k, least, finest, hidden)
            if place is None:
                return None
            self._bisect(place)

    def nearest(self, k: int, sizes: list[int]) -> tuple[int, int]:
        """Position of the largest lambda seen whose number of clusters is nearest to k.

        With the first of the least sizes for which it is, and that size: the search for a smaller
        one may have met what the one for a larger one did not see.
        """
        n = len(self.partitions[0])
        away = [
            [abs(found.clusters - k) + n * (not self._most(found)) for found in self._counts(least)]
            for least in sizes
        ]
        row, i = divmod(int(np.argmin(away)), len(self.lams))
        return i, sizes[row]

    def standing(self, least: int, necks: Callable[[], Necks]) -> Choice:
        """Lambda with the largest number of clusters that stand out.

        Of all partitions that are seen with most points in several clusters, what does not stand
        out is joined. Where another one has just the clusters that are left, outliers of either
        left out, the largest lambda with them is the choice; else unions are.
        """
        self._explore(least)
        n = len(self.partitions[0])
        counts = self._counts(least)
        covered = [i for i, found in enumerate(counts) if n - found.outside >= COVERED * n]
        covered = [i for i in covered if counts[i].clusters > 1]
        if not covered:
            return self._one(least)
        rule = necks()
        best, k, unions = 0, 1, np.zeros(n, dtype=np.int64)
        for i in sorted(covered, key=lambda i: (-counts[i].clusters, -i)):
            if counts[i].clusters <= k:
                break
            joined = rule.standing(self._grouping(i, least).labels)
            if joined.max() + 1 > k:
                best, k, unions = i, int(joined.max()) + 1, joined
        if k == 1:
            return self._one(least)
        outliers = self._grouping(best, least).outliers
        for i in covered:
            if counts[i].clusters == k:
                other = self._grouping(i, least)
                clear = ~(outliers | other.outliers)
                both = np.column_stack([unions[clear], other.labels[clear]])
                if len(np.unique(both, axis=0)) == k:
                    return Choice(i, least)
        return Choice(best, least, unions=unions)

    def stable(self, least: int) -> int | None:
        """Position of the largest lambda with the most stable number of clusters, if there is one.

        Longest is the life of k clusters on the scale of log lambda, over the square root of
        log((k + 1) / k). If fusions followed each other at powers of 1 / k, lives would be
        proportional to that logarithm; its root is between no correction, which favours two
        clusters, and the full one, which favours many. A life counts by the share of points that
        are in clusters, and one cluster (for each component of the graph) has none.
        """
        self._explore(least)
        n = len(self.partitions[0])
        counts = self._counts(least)
        number = np.array([found.clusters for found in counts])
        covered = 1.0 - np.array([found.outside for found in counts]) / n
        steps = -np.diff(np.log(self.lams)) / 2.0
        life = np.append(steps, 0.0) + np.append(0.0, steps)
        total = np.bincount(number, np.where(covered >= COVERED, covered * life, 0.0))
        total[: max(number[0], 1) + 1] = 0.0
        if not total.any():
            return None
        sizes = np.arange(1, len(total))
        best = 1 + int(np.argmax(total[1:] / np.sqrt(np.log1p(1.0 / sizes))))
        return int(np.argmax(number == best))

    def _one(self, least: int) -> Choice:
        """Return the largest lambda, with one cluster; several are components, which never fuse."""
        self._climb(least, lambda top: top.clusters == 1)
        several = self._components > 1 and self._counts(least)[0].clusters > 1
        return Choice(0, least, several)

    def _explore(self, least: int) -> None:
        """Go from one cluster to where few points are in clusters, in small steps."""
        self._climb(least, lambda top: top.above <= 1)
        n = len(self.partitions[0])
        self._descend(least, lambda end: end.below <= 1 or n - end.outside < COVERED * n)
        self._fill(least)

    def _grouping(self, i: int, least: int) -> Grouping:
        return Grouping.of(self.partitions[i], self.solutions[i].w, least, True)

    def _most(self, found: Counts) -> bool:
        return 2 * found.outside <= len(self.partitions[0])

    def _counts(self, least: int) -> list[Counts]:
        return [Counts.of(partition, least) for partition in self.partitions]

    def _climb(self, least: int, enough: Callable[[Counts], bool]) -> None:
        """Go up until the largest lambda is enough, or has one cluster in every component."""
        self._stride(
            0,
            1.0 / RATIO,
            lambda: (
                int(self.partitions[0].max()) + 1 == self._components
                or enough(Counts.of(self.partitions[0], least))
            ),
        )

    def _descend(self, least: int, enough: Callable[[Counts], bool]) -> None:
        """Go down until the smallest lambda is enough, or nothing changes below it."""
        self._stride(
            -1,
            RATIO,
            lambda: (
                self.lams[-1] <= self._least_lam or enough(Counts.of(self.partitions[-1], least))
            ),
        )

    def _stride(self, end: int, ratio: float, enough: Callable[[], bool]) -> None:
        stride = 1
        while not enough() and self._may_go_on:
            before = self.partitions[end]
            self._visit(self.lams[end] * ratio**stride)
            same = np.array_equal(before, self.partitions[end])
            stride = min(2 * stride, LONGEST_STRIDE) if same else 1

    def _place_between(
        self, counts: list[Counts], k: int, least: int, finest: float, hidden: float
    ) -> int | None:
        """Where to bisect for k clusters: where they are passed by, else where they may be.

        Of those places it is the longest, if its ratio is above `hidden`. If clusters are larger
        than a point their number may rise and fall again on a step, of which both ends know
        nothing.
        """
        if not self._may_go_on:
            return None
        ratios = self._ratios()
        best: int | None = None
        for i in range(len(counts) - 1):
            high, low = counts[i], counts[i + 1]
            if ratios[i] <= finest or min(high.below, low.above) < k:
                continue
            if high.clusters < k < low.clusters:
                return i
            if least == 1:  # the number of clusters only grows
                continue
            if ratios[i] > hidden and (best is None or ratios[i] > ratios[best]):
                most = most_between(self.partitions[i], self.partitions[i + 1], least)
                best = i if most >= k else best
        return best

    def _fill(self, least: int) -> None:
        """Bisect long steps on which the clusters change."""
        i = 0
        while i + 1 < len(self.lams) and self._may_go_on:
            same = np.array_equal(self.partitions[i], self.partitions[i + 1])
            if same or self._ratios()[i] < 1.01 / RATIO:
                i += 1
            else:
                self._bisect(i)

    @property
    def _may_go_on(self) -> bool:
        """Whether to solve once more; after the time limit a solve still takes its setup."""
        return len(self.lams) < MOST_SOLVES and not self._solving.over

    def _ratios(self) -> FloatArray:
        return np.array(self.lams[:-1]) / np.array(self.lams[1:])

    def _bisect(self, i: int) -> None:
        self._visit(float(np.sqrt(self.lams[i] * self.lams[i + 1])))

    def _visit(self, lam: float) -> None:
        """Solve for one more value, from the nearest one."""
        i = int(np.searchsorted(-np.array(self.lams), -lam))
        start = None
        if self.lams:
            near = self.solutions[int(np.argmin(np.abs(np.log(np.array(self.lams) / lam))))]
            # Partitions are read off rough solutions: none may stop as soon as its gap allows.
            info = {key: value for key, value in near.info.items() if key != "gap_ratio"}
            start = dataclasses.replace(near, info=info)
        solution = self._solving.solve(self._problem.with_lam(lam), start)
        self.lams.insert(i, lam)
        self.solutions.insert(i, solution)
        self.partitions.insert(i, self._partition(solution))
