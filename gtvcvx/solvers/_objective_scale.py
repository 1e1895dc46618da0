"""A warning where the absolute part of the tolerance decides, and says little about the answer."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver import rounding_of_value

# An objective below this is far below 1: there the tolerance is loose by a factor of 100 at least.
_SMALL = 1e-2
# With a larger share of the objective as its gap, an answer has not even three digits.
_DIGITS = 1e-3
# Shares of the objective at the best constant: of an answer that fits so much better that its own
# digits matter, and of a tolerance that tells the two apart.
_SHARE = 1e-3
# Less than this share of the objective at zero is rounding: residuals of some ulps, squared, where
# an ill-conditioned fit loses digits.
_ZERO = 1e-24


class SmallObjectiveWarning(UserWarning):
    """The objective is so small that rtol * max(1, |value|) says little about the answer.

    Parameters
    ----------
    message : str
        What the numbers are, and what to do.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


def warn_if_small(
    problem: GTVProblem, solutions: Iterable[Solution], rtol: float, stacklevel: int = 2
) -> None:
    """Warn if the gap of some solution is within rtol, but large beside the small objective.

    Parameters
    ----------
    problem : GTVProblem
        With any lambda: it makes no difference to constants.
    solutions : iterable of Solution
        Computed without a tolerance of their own for the absolute part.
    rtol : float
    stacklevel : int
        As in `warnings.warn`, for the caller.
    """
    for solution in solutions:
        value = abs(solution.value)
        if not (value < _SMALL and _DIGITS * value < solution.gap <= rtol):
            continue
        if _is_rounding(problem, solution):
            continue  # the data are fitted exactly, as far as doubles can say
        constant = _at_a_constant(problem, solution)
        if value < _SHARE * constant or rtol > _SHARE * constant:
            warnings.warn(
                f"the objective is {solution.value:.2g}, and the gap {solution.gap:.2g} is small "
                f"beside 1 only: rtol={rtol:g} is relative to max(1, |value|). Scale the data, or "
                "give atol, such as atol=0 for a purely relative tolerance",
                SmallObjectiveWarning,
                stacklevel=stacklevel + 1,
            )
            return


def _is_rounding(problem: GTVProblem, solution: Solution) -> bool:
    w = solution.w
    noise = 2.0 * rounding_of_value(problem, w, problem.value(w))
    return solution.gap <= max(noise, _ZERO * abs(problem.value(np.zeros_like(w))))


def _at_a_constant(problem: GTVProblem, solution: Solution) -> float:
    """Return the objective at a good constant: zero, or the mean of w over each component."""
    n = problem.graph.n_nodes
    sizes = np.bincount(problem.graph.components)
    sums = np.zeros((len(sizes), problem.dim))
    np.add.at(sums, problem.graph.components, solution.w)
    means = (sums / sizes[:, None])[problem.graph.components]
    return min(abs(problem.value(w)) for w in (np.zeros((n, problem.dim)), means))
