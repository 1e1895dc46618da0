"""Solving for many values of lambda, each time from the solutions before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array, is_integer
from gtvcvx._callbacks import PathCallback
from gtvcvx._compiling import announced
from gtvcvx._deadline import now, seconds_until
from gtvcvx._logging import room_logger
from gtvcvx._progress import ProgressDisplay
from gtvcvx.path._critical import CriticalLambda, critical
from gtvcvx.path._path import LambdaPath
from gtvcvx.path._prediction import predicted
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers import warn_if_small
from gtvcvx.solvers.polishing._from_finer import grows_from_clusters
from verify._interrupts import noticed

_LOG = room_logger("path")
# Coordinates of flows, from which on clusters save more than their overhead: 360 points in 90
# dimensions take .3 to .6 times as long from the smallest value up, 20 to 300 points in the plane 1
# to 1.3 times.
GROWING_FLOWS = 6_000


class NoLambdaMax(ValueError):
    """Every lambda > 0 has the same solution, so that there is no grid of values.

    Parameters
    ----------
    message : str
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


def lambda_path(
    problem: GTVProblem,
    lams: ArrayLike | None = None,
    n_lams: int = 20,
    min_ratio: float = 1e-3,
    rtol: float = 1e-6,
    *,
    solver: str = "AUTO",
    max_iter: int | None = None,
    time_limit: float | None = None,
    warm_start: Solution | None = None,
    callback: PathCallback | None = None,
    verbose: bool | None = None,
    atol: float | None = None,
) -> LambdaPath:
    """Solve a problem for many values of lambda, from the largest to the smallest.

    Every solution starts from the ones before. Without ``lams`` the first value is `lambda_max`,
    whose solution, the consensus, is known from its computation. Where every node has a point loss,
    the penalty is l2 or linf and neither limit nor callback may end the path early, the smallest
    value is solved first: each one then costs its clusters, not the nodes.

    Parameters
    ----------
    problem : GTVProblem
        Its own lambda is not used.
    lams : array_like, optional
        Values of lambda, positive, finite and all different, in any order.
    n_lams : int
        Number of values, at least 2, if ``lams`` is not given: a geometric sequence.
    min_ratio : float
        The smallest value over `lambda_max`, if ``lams`` is not given; between 0 and 1.
    rtol, atol : float
        Tolerance of each solution, see `GTVProblem.solve`.
    solver : str
        See `GTVProblem.solve`.
    max_iter : int, optional
        Limit of each solve.
    time_limit : float, optional
        Seconds for the whole path, lambda_max included; each solve has what is left. If it is over
        before lambda_max is known, an upper bound of it stands in.
    warm_start : Solution, optional
        Start of the first solve, if ``lams`` is given.
    callback : callable, optional
        Called with each `Solution`; a true return value ends the path.
    verbose : bool, optional
        Show progress. Default: only on a terminal.

    Returns
    -------
    LambdaPath
        After the time limit, Ctrl-C or a stop by the callback: what was solved so far. The
        solution that came last may have been cut short, as its status and its gap say.

    Raises
    ------
    TypeError, ValueError
        Naming the argument. Without ``lams`` also: the penalty is not a norm, lambda_max is 0
        because the consensus is the solution for every lambda, or it cannot be bounded.
    """
    if not isinstance(problem, GTVProblem):
        raise TypeError(f"problem: a GTVProblem is expected, got {type(problem).__name__}")
    limits = {"rtol": rtol} if time_limit is None else {"rtol": rtol, "time_limit": time_limit}
    for name, number in limits.items():
        if not (isinstance(number, (int, float)) and math.isfinite(number) and number > 0):
            raise ValueError(f"{name}: a positive finite number is expected, got {number!r}")
    end = math.inf if time_limit is None else now() + time_limit
    start: Solution | None
    if lams is None:
        with announced(verbose):
            values, start = _grid(problem, n_lams, min_ratio, verbose, end)
    else:
        values, start = _checked_lams(lams), warm_start
    options = {"solver": solver, "rtol": rtol, "max_iter": max_iter, "verbose": False}
    options["atol"] = rtol if atol is None else atol
    if math.isinf(end) and callback is None and solver == "AUTO" and _grows(problem):
        # Who may end a path early expects the largest values first.
        values, start = values[::-1].copy(), None if lams is None else start
    walk = _Walk(problem, values, start, end, options)
    status = "complete"
    _LOG.info("%d values of lambda from %.6g to %.6g", len(values), values[0], values[-1])
    display = ProgressDisplay("lambda path", verbose=verbose, total=len(values))
    with noticed() as pressed, announced(verbose), display:
        try:
            while status == "complete" and not walk.finished:
                solution = walk.step()
                display.update(len(walk.solutions), solution.rel_gap)
                if pressed:
                    status = "interrupted"
                elif callback is not None and callback(solution):
                    status = "callback"
                elif now() >= end and not (walk.finished and walk.reached):
                    status = "time_limit"
        except KeyboardInterrupt:
            if not walk.solutions:
                raise
            status = "interrupted"
    if atol is None:
        warn_if_small(problem, walk.solutions, rtol)
    _LOG.info("%s after %d of %d values of lambda", status, len(walk.solutions), len(values))
    return walk.path(status)


def _grows(problem: GTVProblem) -> bool:
    """Say whether to go from the smallest value up: each one then takes the clusters below."""
    return problem.graph.n_edges * problem.dim >= GROWING_FLOWS and grows_from_clusters(problem)


class _Walk:
    """Goes along the values of lambda; each solve starts from the solutions before it.

    Parameters
    ----------
    problem : GTVProblem
    lams : ndarray, shape (k,)
        In the order in which they are solved for: all growing, or all falling.
    start : Solution, optional
    end : float
        When the time is over.
    options : dict
        Of each solve.
    """

    def __init__(
        self,
        problem: GTVProblem,
        lams: FloatArray,
        start: Solution | None,
        end: float,
        options: dict[str, Any],
    ) -> None:
        self._problem, self._lams, self._start = problem, lams, start
        self._end, self._options = end, options
        self.solutions: list[Solution] = []

    @property
    def finished(self) -> bool:
        """Whether there is no value left."""
        return len(self.solutions) == len(self._lams)

    @property
    def reached(self) -> bool:
        """Whether the latest solution has the gap that was asked for."""
        last = self.solutions[-1]
        return last.gap <= max(self._options["atol"], self._options["rtol"] * abs(last.value))

    def step(self) -> Solution:
        """Solve for the next value, within the time that is left."""
        problem = self._problem.with_lam(float(self._lams[len(self.solutions)]))
        solution = problem.solve(
            time_limit=seconds_until(self._end),
            warm_start=self._predicted(problem),
            **self._options,
        )
        self.solutions.append(solution)
        _LOG.debug("lambda %.6g: relative gap %.3g", problem.lam, solution.rel_gap)
        return solution

    def _predicted(self, problem: GTVProblem) -> Solution | None:
        """Return what the solutions so far predict, or the start of the path."""
        done = len(self.solutions)
        if not done:
            return self._start
        return predicted(problem, self._lams[:done], self.solutions)

    def path(self, status: str) -> LambdaPath:
        """Return the solutions so far, from the largest lambda to the smallest."""
        done, lams = len(self.solutions), self._lams
        growing = lams[0] < lams[-1]
        found = self.solutions[::-1] if growing else self.solutions
        values = lams[:done][::-1] if growing else lams[:done]
        missing = lams[done:][::-1] if growing else lams[done:]
        return LambdaPath(values.copy(), list(found), missing.copy(), status, self._problem)


def _grid(
    problem: GTVProblem, n_lams: int, min_ratio: float, verbose: bool | None, end: float
) -> tuple[FloatArray, Solution]:
    """Values of lambda from lambda_max down, and the solution for the first of them."""
    if not is_integer(n_lams) or n_lams < 2:
        raise ValueError(f"n_lams: an integer of at least 2 is expected, got {n_lams!r}")
    if not 0 < min_ratio < 1:
        raise ValueError(f"min_ratio: a number between 0 and 1 is expected, got {min_ratio!r}")
    if not problem.penalty.is_norm:
        raise ValueError(
            f"lams: values are expected for the penalty {problem.penalty.name!r}, which is not a "
            "norm and has no lambda_max to start from"
        )
    found = critical(problem, verbose=verbose, end=end)
    if found.upper == 0:
        raise NoLambdaMax(
            "lams: lambda_max is 0, since one parameter vector per component is optimal for every "
            "lambda; give values"
        )
    if not math.isfinite(found.upper):
        raise ValueError(
            f"lams: lambda_max is above {found.lower:g}, but rounding leaves no upper bound; give "
            "values, or bring the features to a common scale"
        )
    values = found.upper * np.geomspace(1.0, min_ratio, n_lams)
    return values, _first_solution(problem.with_lam(found.upper), found)


def _first_solution(problem: GTVProblem, found: CriticalLambda) -> Solution:
    """Return the consensus as a solution for lambda_max."""
    value = problem.value(found.w)
    parts = problem.bounds.gap_of(found.w, found.u)
    return Solution(
        w=found.w,
        u=found.u,
        value=value,
        dual_value=value - parts.total,
        gap=parts.total,
        status="optimal",
        n_iter=0,
        seconds=0.0,
        solver="consensus",
        nodes=problem.graph.nodes,
        node_gaps=parts.node,
        edge_gaps=parts.edge,
        edges=problem.graph.edges,
        slack=problem.bounds.slack(found.u),
    )


def _checked_lams(lams: ArrayLike) -> FloatArray:
    """Return values of lambda as a decreasing array after checking them."""
    values = finite_array(lams, "lams", 1)
    if not len(values):
        raise ValueError("lams: at least one value is expected")
    wrong = np.flatnonzero(values <= 0)
    if wrong.size:
        raise ValueError(f"lams: positive values are expected, got {values[wrong[0]]}")
    decreasing = np.sort(values)[::-1].copy()
    twice = np.flatnonzero(np.diff(decreasing) == 0)
    if twice.size:
        raise ValueError(f"lams: {decreasing[twice[0]]} occurs twice")
    return decreasing
