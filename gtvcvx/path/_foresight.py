"""Which lambda has which number of clusters, as the clusters of a smaller lambda foretell it.

Where clusters only fuse as lambda grows, the problem on the clusters of one lambda has the
solutions for all larger ones, at the cost of its few nodes. That they do is not proved here: what
is foretold is where to solve, and each solution there has its own gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gtvcvx._arrays import IntArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.polishing._coarsening import Coarsening
from gtvcvx.solvers.polishing._from_finer import grows_from_clusters
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
    problem : GTVProblem
        On the clusters.
    rtol, atol : float
        Tolerance of its solutions.
    """

    problem: GTVProblem
    rtol: float
    atol: float

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
        goal = ACCURACY * rtol
        # The objective on clusters lacks what is constant on them.
        size = max(1.0, abs(solution.value))
        return cls(Coarsening(problem, rtol).coarser(labels, edges), goal, goal * size)

    def solve(self, lam: float, start: Solution | None) -> Solution:
        """Solve on the clusters."""
        problem = self.problem.with_lam(lam)
        return problem.solve(rtol=self.rtol, atol=self.atol, warm_start=start, verbose=False)


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
