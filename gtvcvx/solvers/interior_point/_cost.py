"""What the interior-point method costs, in iterations of the primal-dual method: counted."""

from __future__ import annotations

import math
from functools import cached_property

from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import missing
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint

# Iterations of Clarabel that a problem in raw units takes.
ROUNDS = 30
# Nanoseconds, only their ratios matter: for each multiplication of a factorization; for each
# nonzero of the factor, in the solves of an iteration and their refinement; for the cones and
# residuals, each variable.
FACTOR, SOLVE, VARIABLE = 1.0, 40.0, 1000.0
# For each edge and coordinate, and each entry of a node's matrix, in a primal-dual iteration.
EDGE, NODE = 5.0, 3.0
# Of any iteration, before it does anything.
CALL = 3000.0


class Alternative:
    """The interior-point method for a problem, made when somebody asks.

    Parameters
    ----------
    problem : GTVProblem
    """

    def __init__(self, problem: GTVProblem) -> None:
        self._problem = problem

    @cached_property
    def method(self) -> InteriorPoint:
        """The method, ready to run."""
        return InteriorPoint(self._problem)

    def cost(self) -> float:
        """Return how many primal-dual iterations take about as long; infinite if it cannot."""
        if missing(self._problem, InteriorPoint.requires):
            return math.inf
        _, factor = self.method.fill
        # Columns of equal length: as many multiplications as the squares of these add up to.
        multiplications = factor**2 / self.method.size
        one = FACTOR * multiplications + SOLVE * factor + VARIABLE * self.method.size
        return ROUNDS * one / self._iteration

    @property
    def _iteration(self) -> float:
        graph, d = self._problem.graph, self._problem.dim
        return CALL + EDGE * graph.n_edges * d + NODE * graph.n_nodes * d**2
