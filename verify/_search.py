"""Dual points for a certificate: the caller's, the problem object's own, and CVXPY's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify._data import Floats, Instance, as_table
from verify._repair import FloatFlow, Repair


@dataclass(frozen=True)
class Candidate:
    """A repaired dual point.

    Attributes
    ----------
    flow : float flow, multipliers and their gap at `point`
    point : (n, d) the point that the multipliers were made for, close to a solution at best
    active : (m,) edges that residuals may be routed along
    lower : float estimate of the bound, P(point) - gap
    """

    flow: FloatFlow
    point: Floats
    active: NDArray[np.bool_]
    lower: float


class Search:
    """Lazily repairs flows from one source after the other.

    Attributes
    ----------
    points : solutions found on the way, candidates for a refutation
    note : why a source had nothing, for the reader
    """

    def __init__(
        self, inst: Instance, problem: Any, w: Floats, u: Floats | None, rtol: float
    ) -> None:
        self.inst, self.problem, self.w, self.u, self.rtol = inst, problem, w, u, rtol
        self.points: list[Floats] = []
        self.note = ""

    def candidates(self) -> Iterator[Candidate]:
        """Yield candidates; a source is asked only when the caller wants another one."""
        target = 0.02 * self.rtol * max(1.0, abs(self.inst.value(self.w)))
        for u, point in self._flows():
            try:
                repair = Repair(self.inst, point)
            except (OverflowError, np.linalg.LinAlgError):
                self.note = "the data are too large for the float builder"
                return
            flow = repair.run(u, target)
            yield Candidate(flow, point, repair.active, self.inst.value(point) - flow.gap)

    def _flows(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield flows, each with the point that goes with it.

        A solution's own point: multipliers made for a w that is off are off to first order.
        """
        inst = self.inst
        if self.u is not None:
            yield self.u, self.w
        if hasattr(self.problem, "solve"):
            solution = self.problem.solve(rtol=max(self.rtol / 10, 1e-12))
            point = as_table(solution.w, (inst.n, inst.d), "problem.solve().w")
            self.points.append(point)
            yield as_table(solution.u, (len(inst.edges), inst.d), "problem.solve().u"), point
        from verify._dual import consensus, solve_dual  # CVXPY takes a second to import

        own = solve_dual(inst)
        if own is None:
            self.note = "the dual solve failed"
            return
        points = [own.w, consensus(inst, own.w)]
        self.points += points
        yield own.u, min(points, key=inst.value)
