"""Every number of clusters in a range: values of lambda are added where numbers are passed by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from gtvcvx._arrays import IntArray, is_integer
from gtvcvx.path._foresight import Foresight, telling
from gtvcvx.solution import Solution
from verify._display import fields_text

# Beyond both ends of a path lambda is doubled, or halved, so often: a factor of 1e9.
MOST_DOUBLINGS = 30
# The clusters that foretell the others are at most so many times as many as are looked for, where
# so many bisections find that few.
ENOUGH, TRIES = 2, 6


@dataclass(frozen=True)
class Clusterings:
    """Partitions by their number of clusters.

    Attributes
    ----------
    labels : dict of int to ndarray, shape (n,)
        For each number of clusters that was found, the labels at the largest lambda that has it.
    lams : dict of int to float
        That lambda.
    missing : list of int
        Numbers without a solution: several clusters fuse within a factor ``finest`` of lambda, or
        at once, or within the tolerance; or no lambda that was tried has so many, or so few.
    n_solves : int
        Values of lambda that were added.
    status : {"complete", "time_limit", "interrupted"}
        What ended the search; unless it is complete, missing numbers may exist.
    """

    labels: dict[int, IntArray] = field(repr=False)
    lams: dict[int, float]
    missing: list[int]
    n_solves: int
    status: str = "complete"

    __repr__ = fields_text


class Ended(Exception):
    """The time is over, or Ctrl-C was pressed; its text is a status of `Clusterings`."""


@dataclass
class Refinement:
    """Solutions for falling lambda, and what it takes to add one.

    Attributes
    ----------
    lams : list of float
    solutions : list of Solution
    labels : list of ndarray, shape (n,)
    solve : callable
        Solves for a lambda from a start.
    partition : callable
        Clusters of a solution.
    components : int
        Of the graph: there are no fewer clusters.
    foresee : callable, optional
        Returns the problem on the clusters of a solution, where it foretells those of larger
        lambda.
    left : callable, optional
        Returns the seconds that are left, None for no limit; raises `Ended` where it is time.
    """

    lams: list[float]
    solutions: list[Solution]
    labels: list[IntArray]
    solve: Callable[[float, Solution], Solution]
    partition: Callable[[Solution], IntArray]
    components: int
    foresee: Callable[[Solution, IntArray], Foresight | None] | None = None
    left: Callable[[], float | None] = lambda: None
    n_solves: int = 0

    @property
    def counts(self) -> list[int]:
        """Numbers of clusters."""
        return [int(labels.max()) + 1 for labels in self.labels]

    def between(self, first: int, last: int, finest: float) -> Clusterings:
        """Add values until each number from first to last is found, or known to be missing.

        Or until it is time: what was found by then is returned.
        """
        status = "complete"
        try:
            self._refine(first, last, finest)
        except Ended as end:
            status = str(end)
        except KeyboardInterrupt:
            status = "interrupted"
        counts = self.counts
        places = {k: i for i, k in reversed(list(enumerate(counts))) if first <= k <= last}
        return Clusterings(
            {k: self.labels[places[k]] for k in sorted(places)},
            {k: self.lams[places[k]] for k in sorted(places)},
            [k for k in range(first, last + 1) if k not in places],
            self.n_solves,
            status,
        )

    def _refine(self, first: int, last: int, finest: float) -> None:
        fewest = max(first, self.components)
        most = min(last, len(self.labels[0]))
        self._reach(lambda: self.counts[-1] >= most, len(self.lams), 0.5)
        self._look_ahead(first, most, finest)
        self._reach(lambda: self.counts[0] <= fewest, 0, 2.0)
        while (place := self._passed_by(first, last, finest)) is not None:
            self._add(place + 1, float(np.sqrt(self.lams[place] * self.lams[place + 1])))

    def _reach(self, enough: Callable[[], bool], end: int, factor: float) -> None:
        """Go on beyond an end of the path until it is enough."""
        for _ in range(MOST_DOUBLINGS):
            if enough():
                return
            self._add(end, factor * self.lams[0 if end == 0 else -1])
            end = 0 if end == 0 else len(self.lams)

    def _look_ahead(self, first: int, most: int, finest: float) -> None:
        """Add the values that the clusters of the last one with enough of them foretell."""
        enough = [i for i, count in enumerate(self.counts) if count >= most]
        if self.foresee is None or not enough:
            return
        i = enough[0]
        for _ in range(TRIES):
            few = self.counts[i] <= ENOUGH * most
            if few or not i or self.lams[i - 1] <= finest * self.lams[i]:
                break
            self._add(i, float(np.sqrt(self.lams[i - 1] * self.lams[i])))
            i += self.counts[i] < most
        ahead = self.foresee(self.solutions[i], self.labels[i])
        if ahead is None:
            return
        base = ahead.solve(self.lams[i], None, self.left())
        clusters = Refinement(
            [self.lams[i]],
            [base],
            [self.partition(base)],
            lambda lam, start: ahead.solve(lam, start, self.left()),
            self.partition,
            self.components,
            left=self.left,
        )
        clusters._refine(first, most, finest)
        known = set(self.counts)
        for lam in telling(
            clusters.lams, clusters.counts, lambda k: first <= k <= most and k not in known
        ):
            if lam not in self.lams:
                place = int(np.searchsorted(-np.array(self.lams), -lam))
                found = clusters.solutions[clusters.lams.index(lam)]
                self._add(place, lam, ahead.proved(lam, found, self._below(place)))

    def _passed_by(self, first: int, last: int, finest: float) -> int | None:
        """Where a number that is missing lies between those of two neighbours."""
        counts = self.counts
        known = set(counts)
        for i, (high, low) in enumerate(pairwise(counts)):
            passed = range(max(high + 1, first), min(low, last + 1))
            apart = self.lams[i] > finest * self.lams[i + 1]
            if apart and any(k not in known for k in passed):
                return i
        return None

    def _below(self, i: int) -> Solution:
        """Return the solution that is to be the smaller neighbour of one at this position."""
        return self.solutions[min(i, len(self.solutions) - 1)]

    def _add(self, i: int, lam: float, solution: Solution | None = None) -> None:
        """Add one more value; solve for it, from the smaller neighbour, whose clusters it shares.

        Unless its solution is known.
        """
        if solution is None:
            solution = self.solve(lam, self._below(i))
            self.left()  # what was cut short says nothing about clusters
        self.lams.insert(i, lam)
        self.solutions.insert(i, solution)
        self.labels.insert(i, self.partition(solution))
        self.n_solves += 1


def checked_range(first: int, last: int, finest: float) -> None:
    """Check the arguments of `LambdaPath.clusterings`."""
    if not (is_integer(first) and is_integer(last) and 1 <= first <= last):
        raise ValueError(
            f"first, last: integers with 1 <= first <= last are expected, got {first!r}, {last!r}"
        )
    if not finest > 1.0:
        raise ValueError(f"finest: a ratio above 1 is expected, got {finest!r}")
