"""Exact solutions: w and u as rational numbers, gap zero by proof.

With the l1 penalty, or any norm for d = 1, and quadratic losses the solution is rational: once it
is known which edges are fused, coordinate by coordinate, and in which direction the others jump, it
solves a linear system. A solution in double precision tells this nearly always; what it got wrong
is corrected in exact arithmetic (`gtvcvx.solvers.exact._active_set`), and the optimality conditions
are checked with equality in the end (`gtvcvx.solvers.exact._proof`). On a forest nothing has to be
searched for where coordinates are scalar problems (`gtvcvx.solvers.exact._trees`).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, SignArray
from gtvcvx._lazy import cp
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import ExactSolution, Record, Solution
from gtvcvx.solvers._auto import solve_auto
from gtvcvx.solvers._reference import solve_reference
from gtvcvx.solvers.driver import Limits, Options, Run, Takes
from gtvcvx.solvers.exact._active_set import Search
from gtvcvx.solvers.exact._data import ExactData, exact_data
from gtvcvx.solvers.exact._faces import Face, Point
from gtvcvx.solvers.exact._proof import prove
from gtvcvx.solvers.exact._trees import tree_solution

NAME = "EXACT"
START = "CLARABEL"
TAKES = Takes(
    refused=("rtol", "atol", "callback", "stop"),
    reason="proves that the gap is zero and does not take it",
    error=ValueError,
)


@dataclass(frozen=True)
class ExactSettings:
    """Where the exact search starts, and where it gives up.

    Attributes
    ----------
    rounds : int
        Most rounds; a few are the rule.
    start_rtol : float
        Accuracy that the start aims at: the more digits, the more signs are right.
    fallback_rtol, fallback_iterations : float, int
        Those of the start by the default solver, where an interior-point method fails.
    """

    rounds: int = 1000
    start_rtol: float = 1e-12
    fallback_rtol: float = 1e-9
    fallback_iterations: int = 20_000


DEFAULTS = ExactSettings()


def solve_exact(
    problem: GTVProblem, options: Options, settings: ExactSettings = DEFAULTS
) -> Solution:
    """Solve a small problem exactly; see `GTVProblem.solve`.

    The arrays w and u of the answer are its rational solution, `Solution.exact`, rounded. Where
    solutions are not unique it is one of them.

    Parameters
    ----------
    problem : GTVProblem
    options : Options
        ``max_iter`` is the largest number of rounds, and the first signs are taken from
        ``warm_start``, by default a solution by Clarabel.
    settings : ExactSettings

    Returns
    -------
    Solution
        Status "optimal" and gap 0.0 if and only if the optimality conditions hold exactly.
        Otherwise the best solution in double precision with its gap, status
        "optimal_inaccurate", or "user_limit" if max_iter, time_limit or Ctrl-C ended the search.

    Raises
    ------
    ValueError
        The penalty or a loss has no rational solution.
    """
    limits = options.limits(max_iter=settings.rounds)
    run = Run(problem, limits, NAME)
    given = start = options.checked_start(problem)
    search = None
    with run.guarded():
        data = exact_data(problem)
        found = tree_solution(problem.graph, data)
        if found is not None:
            exact = prove(data, *found)
            if exact is None:
                raise RuntimeError("dynamic programming on a forest has not found an optimal pair")
            return _proved(problem, found[0], exact, run.solution_fields())
        if start is None:
            start = _float_solution(problem, limits, settings)
            # The time is over, or it was Ctrl-C, which solvers take as their own end.
            run.stopped = start.solver == START and start.status == "user_limit"
        if not run.stopped:
            search = Search(data, *_guess(problem, data, start.w, start.u), start.u)
    if search is not None:
        run.drive(search)
        if search.proof is not None:
            return _proved(problem, search.point, search.proof, run.solution_fields())
    if start is not None:
        run.consider(start.w, start.u)
    limited = options.max_iter is not None or run.n_iter < limits.max_iter
    if given is not None and not limited:
        better = _float_solution(problem, limits, settings)
        run.consider(better.w, better.u)
    status = "user_limit" if limited else cp.OPTIMAL_INACCURATE
    return dataclasses.replace(run.solution(), status=status)


def _float_solution(problem: GTVProblem, limits: Limits, settings: ExactSettings) -> Solution:
    left = max(limits.seconds_left, 1e-3) if math.isfinite(limits.time_limit) else None
    try:
        wanted = Options(rtol=settings.start_rtol, time_limit=left, verbose=False)
        return solve_reference(START, problem, wanted)
    except cp.SolverError:
        # Data that an interior-point method cannot scale: any start will do.
        wanted = Options(
            rtol=settings.fallback_rtol,
            max_iter=settings.fallback_iterations,
            time_limit=left,
            verbose=False,
        )
        return solve_auto(problem, wanted)


def _guess(
    problem: GTVProblem, data: ExactData, w: FloatArray, u: FloatArray
) -> tuple[Point, SignArray]:
    """Point on the face that a solution in double precision suggests, and its signs.

    An edge counts as fused where the jump, relative to the spread of the coordinate, is smaller
    than the slack, relative to the capacity.
    """
    jumps = problem.differences(w)
    spread = np.ptp(w, axis=0)
    slack = np.maximum(1.0 - np.abs(u) / problem.capacities[:, None], 0.0)
    fused = np.abs(jumps) <= slack * spread
    labels = Face(data, np.where(fused, 0, np.sign(jumps)).astype(np.int8)).labels.ravel()
    means = np.bincount(labels, w.ravel()) / np.bincount(labels)
    point = Point.from_floats(means[labels].reshape(w.shape))
    return point, point.signs(data.edges)


def _proved(
    problem: GTVProblem, point: Point, exact: ExactSolution, fields: dict[str, Any]
) -> Solution:
    """Round an exact solution for everyday use."""
    n, d = point.numerators.shape
    m = problem.graph.n_edges
    u = np.array([[float(x) for x in row] for row in exact.u]).reshape(m, d)
    value = float(exact.value)
    return Solution(
        w=point.floats,
        u=u,
        value=value,
        dual_value=value,
        gap=0.0,
        status=cp.OPTIMAL,
        nodes=problem.graph.nodes,
        node_gaps=np.zeros(n),
        edge_gaps=np.zeros(m),
        edges=problem.graph.edges,
        slack=problem.bounds.slack(u),
        exact=exact,
        history=[Record(fields["n_iter"], fields["seconds"], value, value)],
        **fields,
    )
