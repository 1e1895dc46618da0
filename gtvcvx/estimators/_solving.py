"""Solving for estimators: tolerances in the scale of the data, warnings where they are missed."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gtvcvx._arrays import FloatArray, is_number
from gtvcvx._deadline import now, seconds_until
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# Differences below this share of the parameters are a matter of rounding, not of the data.
ROUNDING = 1e-10


class Solving:
    """How an estimator solves its problems.

    `GTVProblem.solve` takes gaps relative to max(1, |value|), so that targets in small units would
    be fitted badly. Here they are relative to max(min(1, P(start)), |value|), where ``start`` is
    a simple point: the zero vector, or the median.

    Parameters
    ----------
    start : ndarray, shape (n, d)
        Any point at which the objective is finite.
    rtol : float
        Relative gap to reach.
    solver, max_iter, verbose
        See `GTVProblem.solve`.
    time_limit : float, optional
        Seconds for all solves, counted from now on; each has what is left.

    Attributes
    ----------
    end : float
        When the time is over, by `gtvcvx._deadline.now`; infinity without a limit.
    tolerances : dict
        ``rtol`` and ``atol`` of each solve.
    """

    def __init__(
        self,
        problem: GTVProblem,
        start: FloatArray,
        *,
        rtol: float,
        solver: str,
        max_iter: int | None,
        verbose: bool,
        time_limit: float | None = None,
    ) -> None:
        if not is_number(rtol) or not rtol > 0:
            raise ValueError(f"rtol: a positive number is expected, got {rtol!r}")
        if time_limit is not None and not (is_number(time_limit) and 0 < time_limit < np.inf):
            raise ValueError(
                f"time_limit: a positive finite number is expected, got {time_limit!r}"
            )
        self.end = math.inf if time_limit is None else now() + time_limit
        noise = len(start) * (ROUNDING * float(np.abs(start).max())) ** 2
        self._unit = min(1.0, max(problem.value(start), noise)) or 1.0
        self._rtol = float(rtol)
        self.tolerances = {"rtol": self._rtol * self._unit, "atol": self._rtol * self._unit}
        self._options: dict[str, Any] = {
            "solver": solver,
            **self.tolerances,
            "max_iter": max_iter,
            "verbose": bool(verbose),
        }

    def solve(self, problem: GTVProblem, warm_start: Solution | None = None) -> Solution:
        """Solve, whether or not the tolerance is reached."""
        return problem.solve(**self._options, time_limit=self.left, warm_start=warm_start)

    @property
    def left(self) -> float | None:
        """Seconds that are left; None without a limit."""
        return seconds_until(self.end)

    @property
    def over(self) -> bool:
        """Whether the time limit has passed."""
        return now() >= self.end

    def _rel_gap(self, solution: Solution) -> float:
        return solution.gap / max(self._unit, abs(solution.value))

    def is_met(self, solution: Solution) -> bool:
        """Whether the gap of a solution is within the tolerance."""
        return self._rel_gap(solution) <= self._rtol

    def warn(self, solution: Solution, name: str, stacklevel: int) -> None:
        """Emit a ConvergenceWarning if the gap of the solution is too large."""
        if self.is_met(solution):
            return
        warnings.warn(
            f"{name}: after {solution.n_iter} iterations the relative gap is "
            f"{self._rel_gap(solution):.1e}, above rtol={self._rtol:g}; increase "
            "max_iter, time_limit or rtol",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
