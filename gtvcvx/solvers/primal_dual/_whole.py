"""A problem, perhaps in parts, as far as first weights and coordinates ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray
from gtvcvx.problem import GTVProblem

#: Sums arrays, one for each part that is at hand, over all parts there are.
Sum: TypeAlias = Callable[[Sequence[ArrayLike]], FloatArray]


def _alone(rows: Sequence[ArrayLike]) -> FloatArray:
    return np.asarray(rows[0])


@dataclass(frozen=True)
class Whole:
    """A problem, or those parts of it that are at hand.

    Attributes
    ----------
    parts : sequence of GTVProblem
        Each node with a loss is in one of all parts.
    n_edges : int
        Of all.
    capacity : float
        Their mean.
    add : callable
        The sum over all parts.
    """

    parts: Sequence[GTVProblem]
    n_edges: int
    capacity: float
    add: Sum = _alone

    @staticmethod
    def of(problem: GTVProblem) -> Whole:
        """Take a problem that is in one part."""
        edges = problem.graph.n_edges
        mean = float(np.mean(problem.capacities)) if edges else 0.0
        return Whole([problem], edges, mean)

    def everywhere(self, holds: Callable[[GTVProblem], bool]) -> bool:
        """Say whether something holds of all parts."""
        return not float(self.add([0.0 if holds(part) else 1.0 for part in self.parts]))

    def total(self, term: Callable[[GTVProblem], ArrayLike | None]) -> FloatArray | None:
        """Return the sum of a (d, d) matrix of each part, or None if some part has none."""
        found = [term(part) for part in self.parts]
        d = self.parts[0].dim
        none = np.zeros((d, d))
        if float(self.add([0.0 if a is not None else 1.0 for a in found])):
            return None
        return self.add([none if a is None else a for a in found])

    def sum(self, term: Callable[[GTVProblem], ArrayLike]) -> FloatArray:
        """Return the sum of a number, or an array of one shape, of each part."""
        return self.add([term(part) for part in self.parts])
