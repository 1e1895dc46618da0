"""The exact reference: the primal problem in CVXPY, by any conic solver that CVXPY has."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver import Incumbent, Options, Takes

TAKES = Takes(refused=("callback", "stop"), own=None, reason="is run by CVXPY and does not take it")

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


def named(solver: str) -> Callable[[GTVProblem, Options], Solution]:
    """Return the reference solution by the conic solver of this name."""
    return partial(solve_reference, solver)


def solve_reference(solver: str, problem: GTVProblem, options: Options) -> Solution:
    """Solve by CVXPY; u is the dual value of ``D w - z == 0``, repaired.

    Parameters
    ----------
    solver : str
        Name of the conic solver, in CVXPY's spelling.
    problem : GTVProblem
    options : Options
        Those of the solver's own go to it as they are.

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
    warm_start, rtol = options.checked_start(problem), options.rtol
    if warm_start is not None:
        variable.value = warm_start.w
    with warnings.catch_warnings():
        # The status says so, and the gap says how much.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        model.solve(
            solver=solver,
            verbose=bool(options.verbose),
            warm_start=warm_start is not None,
            **_backend_options(solver, options),
        )
    incumbent = Incumbent(problem)
    if warm_start is None:
        incumbent.update(*_zero(problem))
    else:
        incumbent.update(warm_start.w, warm_start.u)
    if variable.value is not None:
        flow = model.constraints[0].dual_value if problem.graph.n_edges else None
        u = np.zeros((problem.graph.n_edges, problem.dim)) if flow is None else flow
        incumbent.update(np.asarray(variable.value), np.asarray(u).reshape(-1, problem.dim))
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


def _zero(problem: GTVProblem) -> tuple[FloatArray, FloatArray]:
    shape = problem.graph.n_edges, problem.dim
    return np.zeros((problem.graph.n_nodes, problem.dim)), np.zeros(shape)


def _backend_options(solver: str, options: Options) -> dict[str, Any]:
    """Return the limits in the words of the solver, and its own options as they are."""
    limits = {
        "rtol": options.rtol and _MARGIN * options.rtol,
        "max_iter": options.max_iter,
        "time_limit": options.time_limit,
    }
    out = dict(options.own)
    for limit, value in limits.items():
        if value is not None:
            out |= dict.fromkeys(_names_of(limit, solver), value)
    return out


def _names_of(limit: str, solver: str) -> tuple[str, ...]:
    try:
        return _OPTIONS[solver][limit]
    except KeyError:
        raise ValueError(
            f"{limit}: not known for {solver}; give the solver's own option by its name instead"
        ) from None
