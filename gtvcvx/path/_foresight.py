"""Which lambda has which number of clusters, as the clusters of a smaller lambda foretell it.

Where clusters only fuse as lambda grows, the problem on the clusters of one lambda has the
solutions for all larger ones, at the cost of its few nodes. That they do is for the flow inside
clusters to say, and for the gap of the whole problem: where it is too large the whole is solved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from gtvcvx._arrays import IntArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver import Incumbent
from gtvcvx.solvers.polishing._coarsening import Coarsening
from gtvcvx.solvers.polishing._from_finer import (
    DEFAULTS,
    LAM,
    ClusterPoint,
    Clusters,
    grows_from_clusters,
    stretched,
)
from gtvcvx.solvers.polishing._quotient_graph import QuotientEdges

# On clusters the gap is this share of the one that is asked for: there it costs little.
ACCURACY = 0.01
# Clusters foretell from so few of them on, as a share of the nodes: more would cost as much as
# the whole problem.
MOST_CLUSTERS = 0.5


@dataclass(frozen=True)
class Foresight:
    """The problem on clusters, its solutions told apart as those of the whole one are.

    Attributes
    ----------
    whole : GTVProblem
    clusters : Clusters
    rtol : float
        Tolerance of solutions of the whole problem.
    size : float
        Of its objective: that on clusters lacks what is constant on them.
    """

    whole: GTVProblem
    clusters: Clusters
    rtol: float
    size: float

    @classmethod
    def of(
        cls, problem: GTVProblem, solution: Solution, labels: IntArray, rtol: float
    ) -> Foresight | None:
        """Return that from the clusters (n,) of a solution; None where they foretell nothing."""
        count = int(labels.max()) + 1
        if not grows_from_clusters(problem) or count > MOST_CLUSTERS * len(labels):
            return None
        edges = QuotientEdges(problem, labels, 0, 1)
        if not len(edges.heads):
            return None
        coarse = Coarsening(problem, rtol).coarser(labels, edges)
        size = max(1.0, abs(solution.value))
        return cls(problem, Clusters(labels, edges, coarse), rtol, size)

    def solve(self, lam: float, start: Solution | None, seconds: float | None = None) -> Solution:
        """Solve on the clusters, within a time."""
        problem, goal = self.clusters.problem.with_lam(lam), ACCURACY * self.rtol
        return problem.solve(
            rtol=goal,
            atol=goal * self.size,
            time_limit=seconds,
            warm_start=start,
            verbose=False,
        )

    def proved(self, lam: float, found: Solution, near: Solution) -> Solution | None:
        """Return a solution on clusters as one of the whole problem; None if its gap is too large.

        The flow inside clusters is looked for near that of a solution for a smaller lambda.
        """
        if not isinstance(near.info.get(LAM), float):
            return None
        began, problem = time.perf_counter(), self.whole.with_lam(lam)
        coarse = self.clusters.problem.with_lam(lam)
        point = ClusterPoint.of(coarse, found.w, found.u, DEFAULTS.no_slack)
        flow = stretched(problem, near)
        pair = self.clusters.lifted(problem, point, flow, DEFAULTS.flow * self.rtol)
        incumbent = Incumbent(problem)
        incumbent.update(*pair, enough=self.rtol, exact=True)
        if not incumbent.rel_gap <= self.rtol:
            return None
        seconds = time.perf_counter() - began
        return incumbent.solution(
            status="optimal",
            n_iter=0,
            seconds=seconds,
            solver="AUTO",
            history=[incumbent.record(0, seconds)],
            info={"method": "clusters of a smaller lambda", "switched": False, LAM: lam},
        )


def telling(lams: list[float], counts: list[int], wanted: Callable[[int], bool]) -> list[float]:
    """Return where to solve, increasing: in the life of each number, and where one is passed by.

    Parameters
    ----------
    lams : list of float
        Decreasing.
    counts : list of int
        Numbers of clusters that are foretold for them.
    wanted : callable
        Whether a number is looked for.
    """
    found: set[float] = set()
    for k in filter(wanted, set(counts)):
        lives = [lam for lam, count in zip(lams, counts, strict=True) if count == k]
        # The middle: what is foretold may be off by the tolerance.
        found.add(lives[len(lives) // 2])
    for i in range(len(lams) - 1):
        if any(wanted(k) and k not in counts for k in range(counts[i] + 1, counts[i + 1])):
            found.update(lams[i : i + 2])
    return sorted(found)
