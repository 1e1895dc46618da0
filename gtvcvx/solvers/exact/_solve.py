"""Exact solutions: w and u as rational numbers, gap zero by proof.

With the l1 penalty, or any norm for d = 1, and quadratic losses the solution is rational: once it
is known which edges are fused, coordinate by coordinate, and in which direction the others jump, it
solves a linear system. A solution in double precision tells this nearly always; what it got wrong
is corrected in exact arithmetic (`gtvcvx.solvers.exact._active_set`), and the optimality conditions
are checked with equality in the end (`gtvcvx.solvers.exact._proof`).
"""

from __future__ import annotations

import math
import time
from typing import Any

import cvxpy as cp
import numpy as np

from gtvcvx._arrays import FloatArray, SignArray
from gtvcvx._progress import Progress as Display
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import ExactSolution, Record, Solution
from gtvcvx.solvers.driver._incumbent import Incumbent
from gtvcvx.solvers.exact._active_set import Search
from gtvcvx.solvers.exact._data import ExactData, exact_data
from gtvcvx.solvers.exact._faces import Face, Point

NAME = "EXACT"
DEFAULT_ROUNDS = 1000
# Accuracy that the solution in double precision aims at, and that of the fallback.
START_RTOL = 1e-12
FALLBACK_RTOL, FALLBACK_ITERATIONS = 1e-9, 20_000


def solve_exact(
    problem: GTVProblem,
    *,
    max_iter: int | None,
    time_limit: float | None,
    warm_start: Solution | None,
    verbose: bool | None,
) -> Solution:
    """Solve a small problem exactly; see `GTVProblem.solve`.

    The arrays w and u of the answer are its rational solution, `Solution.exact`, rounded. Where
    solutions are not unique it is one of them.

    Parameters
    ----------
    max_iter : int, optional
        Largest number of rounds, default 1000.
    time_limit : float, optional
        Seconds; looked at between rounds.
    warm_start : Solution, optional
        Where to take the first signs from; default: a solution by Clarabel.

    Returns
    -------
    Solution
        Status "optimal" and gap 0.0 if and only if the optimality conditions hold exactly.
        Otherwise the best solution in double precision with its gap, status
        "optimal_inaccurate", or "user_limit" if max_iter or time_limit ended the search.

    Raises
    ------
    ValueError
        The penalty or a loss has no rational solution.
    """
    began = time.perf_counter()
    data = exact_data(problem)
    if warm_start is None:
        start = _float_solution(problem, time_limit)
        w, u = start.w, start.u
    else:
        w = problem.checked_w(warm_start.w, "warm_start.w")
        u = problem.checked_u(warm_start.u, "warm_start.u")
    search = Search(data, *_guess(problem, data, w, u), u)
    deadline = math.inf if time_limit is None else began + time_limit
    rounds = DEFAULT_ROUNDS if max_iter is None else max_iter
    exact = _run(search, rounds, deadline, verbose)
    fields: dict[str, Any] = {
        "n_iter": search.n_rounds,
        "solver": NAME,
        "info": {"unknowns": search.n_unknowns},
    }
    if exact is not None:
        return _proved(problem, search.point, exact, time.perf_counter() - began, fields)
    incumbent = Incumbent(problem)
    incumbent.offer(w, u)
    incumbent.offer(search.point.floats, u)
    limited = max_iter is not None or search.n_rounds < rounds
    if warm_start is not None and not limited:
        start = _float_solution(problem, time_limit)
        incumbent.offer(start.w, start.u)
    seconds = time.perf_counter() - began
    return incumbent.solution(
        status="user_limit" if limited else cp.OPTIMAL_INACCURATE,
        seconds=seconds,
        history=[incumbent.record(search.n_rounds, seconds)],
        **fields,
    )


def _run(
    search: Search, rounds: int, deadline: float, verbose: bool | None
) -> ExactSolution | None:
    """Search until there is a proof, or a limit or Ctrl-C ends it."""
    try:
        with Display(NAME, verbose=verbose) as display:
            while search.n_rounds < rounds:
                exact = search.advance()
                display.update(search.n_rounds)
                if exact is not None or time.perf_counter() >= deadline:
                    return exact
    except KeyboardInterrupt:
        # Ctrl-C ends the search, not the session, as in the iterative methods.
        pass
    return None


def _float_solution(problem: GTVProblem, time_limit: float | None) -> Solution:
    try:
        return problem.solve("CLARABEL", rtol=START_RTOL, time_limit=time_limit, verbose=False)
    except cp.SolverError:
        # Data that an interior-point method cannot scale: any start will do.
        return problem.solve(
            rtol=FALLBACK_RTOL,
            max_iter=FALLBACK_ITERATIONS,
            time_limit=time_limit,
            verbose=False,
        )


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
    problem: GTVProblem,
    point: Point,
    exact: ExactSolution,
    seconds: float,
    fields: dict[str, Any],
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
        seconds=seconds,
        history=[Record(fields["n_iter"], seconds, value, value)],
        edges=problem.graph.edges,
        slack=problem.bounds.slack(u),
        exact=exact,
        **fields,
    )
