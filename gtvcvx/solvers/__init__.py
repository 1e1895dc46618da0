"""Solvers: the default, the paper's Algorithm 1, exact solutions, conic solvers of CVXPY."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gtvcvx._callbacks import Progress, SolveCallback
from gtvcvx._compiling import announced
from gtvcvx._logging import room_logger
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers import _auto, _reference
from gtvcvx.solvers._consensus import ConsensusWarning, warn_if_consensus
from gtvcvx.solvers._objective_scale import SmallObjectiveWarning, warn_if_small
from gtvcvx.solvers.algorithm1 import GradientSteps, LocalUpdate, _solve
from gtvcvx.solvers.driver import DEFAULT_RTOL, Options, Takes
from gtvcvx.solvers.exact import _solve as _exact

__all__ = [
    "ConsensusWarning",
    "GradientSteps",
    "LocalUpdate",
    "Progress",
    "SmallObjectiveWarning",
    "SolveCallback",
    "solve",
    "warn_if_consensus",
    "warn_if_small",
]


_LOG = room_logger("solvers")


class _Solver(NamedTuple):
    """A solver and the options that it takes."""

    solve: Callable[[GTVProblem, Options], Solution]
    takes: Takes


_SOLVERS = {
    _auto.NAME: _Solver(_auto.solve_auto, _auto.TAKES),
    _solve.NAME: _Solver(_solve.solve_algorithm1, _solve.TAKES),
    _exact.NAME: _Solver(_exact.solve_exact, _exact.TAKES),
}


def solve(
    problem: GTVProblem,
    solver: str,
    *,
    rtol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    warm_start: Solution | None = None,
    callback: SolveCallback | None = None,
    verbose: bool | None = None,
    atol: float | None = None,
    stop: str | None = None,
    **own: Any,
) -> Solution:
    """Choose the solver by its name.

    Parameters
    ----------
    problem : GTVProblem
    solver, rtol, max_iter, time_limit, warm_start, callback, verbose, stop, **own
        As in `GTVProblem.solve`.
    atol : float, optional
        Absolute gap that is good enough, too. Whoever gives it warns of small objectives, and of
        nodes that all agree, by `warn_if_small` and `warn_if_consensus`.
    """
    if not isinstance(solver, str):
        raise TypeError(f"solver: a name is expected, got {type(solver).__name__}")
    name = solver.upper()
    options = Options(rtol, max_iter, time_limit, warm_start, callback, verbose, stop, own, atol)
    # Every other name is that of a conic solver, run by CVXPY.
    chosen = _SOLVERS.get(name) or _Solver(_reference.named(name), _reference.TAKES)
    chosen.takes.check(name, options)
    graph = problem.graph
    _LOG.info(
        "%s: %d nodes, %d edges, dimension %d, penalty %s, lambda %.6g",
        *(name, graph.n_nodes, graph.n_edges, problem.dim, problem.penalty.name, problem.lam),
    )
    problem.forget()
    with announced(verbose):
        solution = chosen.solve(problem, options)
    _LOG.info(
        "%s: %s, relative gap %.3g, %d iterations, %.3g s",
        *(solution.solver, solution.status, solution.rel_gap, solution.n_iter, solution.seconds),
    )
    if atol is None:  # paths and estimators, which give it, warn of what they return
        warn_if_consensus(problem, solution, stacklevel=3)
    if atol is None and (rtol is not None or name == _auto.NAME):
        # The caller of `GTVProblem.solve` is told.
        tolerance = DEFAULT_RTOL if rtol is None else rtol
        warn_if_small(problem, [solution], tolerance, stacklevel=3)
    return solution


def __dir__() -> list[str]:
    return sorted(__all__)
