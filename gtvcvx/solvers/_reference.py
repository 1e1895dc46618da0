"""The exact reference: the primal problem in CVXPY, by any conic solver that CVXPY has."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gtvcvx._deadline import look
from gtvcvx._lazy import cp
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver import Limits, Options, Run, Takes

TAKES = Takes(refused=("callback", "stop"), own=None, reason="is run by CVXPY and does not take it")

# What solvers call the limits; others take theirs through **options.
_OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "CLARABEL": {
        "max_iter": ("max_iter",),
        "time_limit": ("time_limit",),
        "rtol": ("tol_gap_rel", "tol_feas"),
        "atol": ("tol_gap_abs",),
    },
    "SCS": {
        "max_iter": ("max_iters",),
        "time_limit": ("time_limit_secs",),
        "rtol": ("eps_rel",),
        "atol": ("eps_abs",),
    },
    "OSQP": {
        "max_iter": ("max_iter",),
        "time_limit": ("time_limit",),
        "rtol": ("eps_rel",),
        "atol": ("eps_abs",),
    },
    "HIGHS": {"time_limit": ("time_limit",)},
}
# Seconds for the backend where hardly any are left: none would be no limit for some.
_LEAST = 1e-3
# The backend's own tolerance is set tighter than the gap that is asked for by this factor.
_MARGIN = 0.1


def named(solver: str) -> Callable[[GTVProblem, Options], Solution]:
    """Return the reference solution by the conic solver of this name."""
    return partial(solve_reference, solver)


def solve_reference(solver: str, problem: GTVProblem, options: Options) -> Solution:
    """Solve by CVXPY; u is the dual value of ``D w - z == 0``, repaired.

    The time limit is for all of it: the backend has what the model has left over. At Ctrl-C, which
    some backends hear only when they are through, what is known is returned: the warm start, or
    w = 0.

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
    limits = options.limits()
    run = Run(problem, limits, solver)
    start, model = options.checked_start(problem), None
    with run.guarded():
        if start is not None:
            run.consider(start.w, start.u)
        model = problem.cvxpy()
        look()
        _solve(model, solver, start, options, limits)
        if start is None:
            run.begin_at_zero()
        found = model.var_dict["w"].value
        if found is not None:
            flow = model.constraints[0].dual_value if problem.graph.n_edges else None
            u = np.zeros((problem.graph.n_edges, problem.dim)) if flow is None else flow
            run.consider(np.asarray(found), np.asarray(u).reshape(-1, problem.dim))
    solution = run.solution()
    if run.stopped or model is None:
        return solution
    status, stats = str(model.status), model.solver_stats
    strict = options.rtol is not None or options.atol is not None
    if status == cp.OPTIMAL and strict and not run.satisfied:
        status = cp.OPTIMAL_INACCURATE
    return replace(
        solution,
        status=status,
        n_iter=int(stats.num_iters or 0),
        history=[replace(record, n_iter=int(stats.num_iters or 0)) for record in solution.history],
        info={"solve_time": float(stats.solve_time or np.nan)},
    )


def _solve(
    model: cp.Problem, solver: str, start: Solution | None, options: Options, limits: Limits
) -> None:
    """Let the backend solve the model, within the time that is left."""
    if start is not None:
        model.var_dict["w"].value = start.w
    _backend_options(solver, options, limits)  # refuses what is not known, before anything is done
    # CVXPY keeps the program: of the limit the backend has what is left when it is written.
    model.get_problem_data(solver, solver_opts=dict(options.own))
    look()
    with warnings.catch_warnings():
        # The status says so, and the gap says how much.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        model.solve(
            solver=solver,
            verbose=bool(options.verbose),
            warm_start=start is not None,
            **_backend_options(solver, options, limits),
        )


def _backend_options(solver: str, options: Options, limits: Limits) -> dict[str, Any]:
    """Return the limits in the words of the solver, and its own options as they are."""
    strict = options.rtol is not None or options.atol is not None
    atol = limits.rtol if options.atol is None else options.atol
    wanted = {
        "rtol": _MARGIN * limits.rtol if strict else None,
        "atol": _MARGIN * atol if strict else None,
        "max_iter": options.max_iter,
        "time_limit": None if options.time_limit is None else max(limits.seconds_left, _LEAST),
    }
    out = dict(options.own)
    for limit, value in wanted.items():
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
