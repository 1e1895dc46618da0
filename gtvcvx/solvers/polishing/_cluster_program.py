"""The problem on clusters for losses that need not be quadratic, as a conic program.

The rows of data stay those of the nodes, the variables are those of the clusters. Rows that are
linear on both sides of a kink count only near it: the others have a known slope, which is checked
at the solution. What the losses' subgradients are there says what the flow must balance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.losses import stacked_from_terms
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point._losses import (
    KINKED,
    Kinks,
    add_kinks,
    add_losses,
    add_slopes,
)
from gtvcvx.solvers.interior_point._penalties import add_norms
from gtvcvx.solvers.interior_point._program import Program
from gtvcvx.solvers.polishing._cluster_problem import solved
from gtvcvx.solvers.polishing._contraction import Contracted
from gtvcvx.solvers.polishing._coordinate_slopes import COORDINATE_KINDS, CoordinateSlopes

# Rounds of Clarabel on such programs: 25 to 27 on lasso with thousands of clusters.
ROUNDS = 25.0


class ClusterSolution(NamedTuple):
    """Values, flows and subgradients on clusters."""

    w: FloatArray  # (n, d)
    flows: list[FloatArray]  # (r, q) for each block
    slopes: FloatArray  # (n, d), subgradients of the losses at w that balance the flows
    wrong: list[BoolArray]  # (N,) for each term with kinks: rows beyond theirs, taken as linear
    excess: float  # of the losses over what they are with those rows linear


class ConicLosses:
    """The losses of a problem as rows with kinks and everything else.

    Parameters
    ----------
    problem : GTVProblem
    """

    def __init__(self, problem: GTVProblem) -> None:
        n, d = problem.graph.n_nodes, problem.dim
        self._norm = problem.penalty.to_data()["kind"]
        terms = problem.losses.terms()
        self.kinks = [Kinks.of(term) for term in terms if term["kind"] in KINKED]
        self._others = [term for term in terms if term["kind"] not in KINKED]
        self._coordinates = CoordinateSlopes(self._others, n, d)
        smooth = [term for term in self._others if term["kind"] not in COORDINATE_KINDS]
        self._smooth = stacked_from_terms(smooth, d).completed(n)

    def solve(
        self,
        contracted: Contracted,
        near: Sequence[BoolArray],
        w: FloatArray,
        tolerance: float,
        seconds: float,
        most: float = np.inf,
    ) -> ClusterSolution | None:
        """Solve the problem on clusters; None where Clarabel fails, or needs more seconds.

        Also where it will take more than `most` nanoseconds, as counted.

        Parameters
        ----------
        contracted : Contracted
        near : sequence of ndarray, shape (N,)
            For each term with kinks the rows that may be on either side.
        w : ndarray, shape (n, d)
            A point that says on which side the other rows are.
        tolerance, seconds, most : float
        """
        variables, edges = contracted.variables, contracted.edges
        program = Program(contracted.n_variables)
        add_losses(program, self._others, variables)
        slopes = [_side(kinks, w) for kinks in self.kinks]
        places = []
        for kinks, slope, kept in zip(self.kinks, slopes, near, strict=True):
            add_slopes(program, variables, kinks.chosen(~kept), slope[~kept])
            places.append(add_kinks(program, variables, kinks.chosen(kept)))
        reads = [add_norms(program, self._norm, e.heads, e.tails, e.capacities) for e in edges]
        answer = solved(program, seconds, tolerance, most, ROUNDS)
        if answer is None:
            return None
        x, multipliers = answer
        point = x[: contracted.n_variables][variables]
        for kinks, slope, kept, place in zip(self.kinks, slopes, near, places, strict=True):
            slope[kept] = _slopes_at(kinks.chosen(kept), multipliers[program.place(place)])
        flows = [read(multipliers) for read in reads]
        wrong = [
            ~kept & (_side(kinks, point) != slope)
            for kinks, slope, kept in zip(self.kinks, slopes, near, strict=True)
        ]
        excess = sum(
            float(np.sum((_side(kinks, point) - slope)[rows] * kinks.residuals(point)[rows]))
            for kinks, slope, rows in zip(self.kinks, slopes, wrong, strict=True)
        )
        found = self._subgradients(point, slopes, contracted, flows)
        return ClusterSolution(point, flows, found, wrong, excess)

    def _subgradients(
        self,
        w: FloatArray,
        slopes: Sequence[FloatArray],
        contracted: Contracted,
        flows: Sequence[FloatArray],
    ) -> FloatArray:
        """Return subgradients (n, d) that have these slopes, and balance flows between clusters."""
        total = self._smooth.gradient(w)
        for kinks, slope in zip(self.kinks, slopes, strict=True):
            for k in range(total.shape[1]):
                total[:, k] += np.bincount(kinks.node, slope * kinks.X[:, k], len(total))
        if self._coordinates.any:
            variables = contracted.variables
            missing = -np.bincount(variables.ravel(), total.ravel()).astype(np.float64)
            for edge, flow in zip(contracted.edges, flows, strict=True):
                np.add.at(missing, edge.heads, -flow)
                np.add.at(missing, edge.tails, flow)
            total += self._coordinates.split(w, variables, missing)
        return total


def _side(kinks: Kinks, w: FloatArray) -> FloatArray:
    """Return slopes (N,) on the side of the kink that w is on."""
    return kinks.weight * np.where(kinks.residuals(w) > 0.0, kinks.high, kinks.low)


def _slopes_at(kinks: Kinks, gained: FloatArray) -> FloatArray:
    """Return slopes (N,) from what they gain over the lower ones."""
    low, high = kinks.weight * kinks.low, kinks.weight * kinks.high
    return np.clip(low + gained, low, high)
