"""Solvers: the fast module, the paper's Algorithm 1, exact solutions, conic solvers of CVXPY."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers._auto import solve_fast
from gtvcvx.solvers._reference import solve_reference
from gtvcvx.solvers.algorithm1._algorithm1 import Algorithm1
from gtvcvx.solvers.algorithm1._local_updates import GradientSteps, LocalUpdate
from gtvcvx.solvers.driver._limits import Limits, Progress
from gtvcvx.solvers.driver._run import drive
from gtvcvx.solvers.exact._solve import solve_exact

__all__ = ["GradientSteps", "LocalUpdate", "Progress", "solve"]

DEFAULT_RTOL = 1e-6
DEFAULT_MAX_ITER = 100_000
# [GTV] stops Algorithm 1 after a fixed number of iterations R; section VI takes 1000.
PAPER_ITERATIONS = 1000
STOPPING_RULES = ("gap", "objective", "iterations")


def solve(
    problem: GTVProblem,
    solver: str,
    *,
    rtol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    warm_start: Solution | None = None,
    callback: Callable[[Progress], Any] | None = None,
    verbose: bool | None = None,
    stop: str | None = None,
    **options: Any,
) -> Solution:
    """Choose the method by name; see `GTVProblem.solve`."""
    _check_positive("rtol", rtol)
    _check_positive("time_limit", time_limit)
    if max_iter is not None and (not isinstance(max_iter, int) or max_iter < 1):
        raise ValueError(f"max_iter: a positive integer is expected, got {max_iter!r}")
    if warm_start is not None and not isinstance(warm_start, Solution):
        raise TypeError(f"warm_start: a Solution is expected, got {type(warm_start).__name__}")
    if not isinstance(solver, str):
        raise TypeError(f"solver: a name is expected, got {type(solver).__name__}")
    name = solver.upper()
    if name == "EXACT":
        refused = {"rtol": rtol, "callback": callback, "stop": stop, **options}
        for option, value in refused.items():
            if value is not None:
                raise ValueError(
                    f"{option}: EXACT proves that the gap is zero and does not take it"
                )
        return solve_exact(
            problem,
            max_iter=max_iter,
            time_limit=time_limit,
            warm_start=warm_start,
            verbose=verbose,
        )
    if name not in ("AUTO", "PDHG"):
        for option, value in (("callback", callback), ("stop", stop)):
            if value is not None:
                raise ValueError(f"{option}: {name} is run by CVXPY and does not take it")
        return solve_reference(
            problem,
            name,
            rtol=rtol,
            max_iter=max_iter,
            time_limit=time_limit,
            warm_start=warm_start,
            verbose=verbose,
            **options,
        )
    local_update = options.pop("local_update", None) if name == "PDHG" else None
    if options:
        raise TypeError(f"{next(iter(options))}: {name} has no such option")
    if stop is None:
        stop = "iterations" if name == "PDHG" and rtol is None else "gap"
    if stop not in STOPPING_RULES:
        raise ValueError(f"stop: one of {STOPPING_RULES} is expected, got {stop!r}")
    if max_iter is None:
        max_iter = PAPER_ITERATIONS if stop == "iterations" else DEFAULT_MAX_ITER
    limits = Limits(
        rtol=DEFAULT_RTOL if rtol is None else rtol,
        max_iter=max_iter,
        time_limit=math.inf if time_limit is None else time_limit,
        stop=stop,
        callback=callback,
        verbose=verbose,
    )
    if name == "PDHG":
        return drive(problem, Algorithm1(problem, warm_start, local_update), limits)
    return solve_fast(problem, warm_start, limits)


def _check_positive(name: str, value: float | None) -> None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}: a positive finite number is expected, got {value!r}")
