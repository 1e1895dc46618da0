"""The exact reference: the primal problem in CVXPY, by any conic solver that CVXPY has."""

from __future__ import annotations

import time
import warnings
from typing import Any

import cvxpy as cp
import numpy as np

from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver._incumbent import Incumbent

# What solvers call the limits; others take theirs through **options.
_OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "CLARABEL": {
        "max_iter": ("max_iter",),
        "time_limit": ("time_limit",),
        "rtol": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    },
    "SCS": {
        "max_iter": ("max_iters",),
        "time_limit": ("time_limit_secs",),
        "rtol": ("eps_abs", "eps_rel"),
    },
    "OSQP": {
        "max_iter": ("max_iter",),
        "time_limit": ("time_limit",),
        "rtol": ("eps_abs", "eps_rel"),
    },
}
# The backend's own tolerance is set tighter than the gap that is asked for by this factor.
_MARGIN = 0.1


def solve_reference(
    problem: GTVProblem,
    solver: str,
    *,
    rtol: float | None,
    max_iter: int | None,
    time_limit: float | None,
    warm_start: Solution | None,
    verbose: bool | None,
    **options: Any,
) -> Solution:
    """Solve by CVXPY; u is the dual value of ``D w - z == 0``, repaired.

    Raises
    ------
    ValueError
        The solver is not installed, or has no such limit.
    cvxpy.SolverError
        The backend failed.
    """
    if solver not in cp.installed_solvers():
        known = ", ".join(["AUTO", "PDHG", "EXACT", *cp.installed_solvers()])
        raise ValueError(f"solver: {solver!r} is not one of {known}")
    start = time.perf_counter()
    model = problem.cvxpy()
    variable = model.var_dict["w"]
    if warm_start is not None:
        variable.value = problem.checked_w(warm_start.w, "warm_start.w")
    limits = {"rtol": rtol and _MARGIN * rtol, "max_iter": max_iter, "time_limit": time_limit}
    for limit, value in limits.items():
        if value is not None:
            options |= dict.fromkeys(_names_of(limit, solver), value)
    with warnings.catch_warnings():
        # The status says so, and the gap says how much.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        model.solve(
            solver=solver,
            verbose=bool(verbose),
            warm_start=warm_start is not None,
            **options,
        )
    incumbent = Incumbent(problem)
    incumbent.offer(*_starting_point(problem, warm_start))
    if variable.value is not None:
        flow = model.constraints[0].dual_value if problem.graph.n_edges else None
        u = np.zeros((problem.graph.n_edges, problem.dim)) if flow is None else flow
        incumbent.offer(np.asarray(variable.value), np.asarray(u).reshape(-1, problem.dim))
    status = str(model.status)
    if status == cp.OPTIMAL and rtol is not None and incumbent.rel_gap > rtol:
        status = cp.OPTIMAL_INACCURATE
    seconds = time.perf_counter() - start
    n_iter = int(model.solver_stats.num_iters or 0)
    return incumbent.solution(
        status=status,
        n_iter=n_iter,
        seconds=seconds,
        solver=solver,
        history=[incumbent.record(n_iter, seconds)],
        info={"solve_time": float(model.solver_stats.solve_time or np.nan)},
    )


def _starting_point(problem: GTVProblem, warm_start: Solution | None) -> tuple[Any, Any]:
    if warm_start is not None:
        return warm_start.w, problem.checked_u(warm_start.u, "warm_start.u")
    shape = problem.graph.n_edges, problem.dim
    return np.zeros((problem.graph.n_nodes, problem.dim)), np.zeros(shape)


def _names_of(limit: str, solver: str) -> tuple[str, ...]:
    try:
        return _OPTIONS[solver][limit]
    except KeyError:
        raise ValueError(
            f"{limit}: not known for {solver}; give the solver's own option by its name instead"
        ) from None
