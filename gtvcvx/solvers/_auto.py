"""The default solver, `solver="AUTO"`: which method runs, and in which order of the nodes.

The rule: divide and conquer if the problem is scalar in every coordinate, the primal-dual method
otherwise. Where rounding keeps the first from the gap that is asked for, the second goes on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Record, Solution
from gtvcvx.solvers.divide._division import DivisionRun
from gtvcvx.solvers.divide._scalar_problems import scalar_problems
from gtvcvx.solvers.driver._incumbent import Incumbent
from gtvcvx.solvers.driver._limits import Limits, Progress
from gtvcvx.solvers.driver._run import drive
from gtvcvx.solvers.polishing._coarsening import Coarsening
from gtvcvx.solvers.polishing._contraction import applies
from gtvcvx.solvers.primal_dual._ordering import Ordering
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual

METHOD = "primal-dual"
# From this many edges on the working set outgrows the caches, and neighbours should be near.
ORDERING_EDGES = 20_000


def solve_fast(problem: GTVProblem, warm_start: Solution | None, limits: Limits) -> Solution:
    """Run the method that fits the problem; ``Solution.info["method"]`` says which one it was.

    A number of iterations, or the decrease of the objective, as stopping rule is a matter of the
    primal-dual method alone.
    """
    if warm_start is not None:
        problem.checked_w(warm_start.w, "warm_start.w")
        problem.checked_u(warm_start.u, "warm_start.u")
    scalars = scalar_problems(problem) if limits.stop == "gap" else None
    if scalars is None:
        return _primal_dual(problem, warm_start, limits)
    run = DivisionRun(problem, scalars, warm_start, limits)
    complete = run.divide()
    solution = run.solution()
    if complete and solution.rel_gap > limits.rtol:
        return _continued(problem, solution, limits)
    return solution


def _continued(problem: GTVProblem, first: Solution, limits: Limits) -> Solution:
    """Go on from a solution by the primal-dual method; limits and history cover both."""
    rest = dataclasses.replace(
        limits,
        max_iter=limits.max_iter - first.n_iter,
        time_limit=limits.time_limit - first.seconds,
        callback=_translated(limits.callback, lambda progress: _after(first, progress)),
    )
    second = _primal_dual(problem, first, rest)
    best = Incumbent(problem)
    best.offer(first.w, first.u)
    best.offer(second.w, second.u)
    records = [
        Record(
            first.n_iter + record.n_iter,
            first.seconds + record.seconds,
            min(first.value, record.value),
            max(first.dual_value, record.dual_value),
        )
        for record in second.history
    ]
    return best.solution(
        status="optimal" if best.rel_gap <= limits.rtol else "user_limit",
        n_iter=first.n_iter + second.n_iter,
        seconds=first.seconds + second.seconds,
        solver=second.solver,
        history=[*first.history, *records],
        info={**second.info, "method": f"{first.info['method']}, {second.info['method']}"},
    )


def _after(first: Solution, progress: Progress) -> Progress:
    return dataclasses.replace(
        progress,
        n_iter=first.n_iter + progress.n_iter,
        seconds=first.seconds + progress.seconds,
    )


def _primal_dual(problem: GTVProblem, warm_start: Solution | None, limits: Limits) -> Solution:
    """Run the primal-dual method, on a renumbered problem if the graph is large."""
    if problem.graph.n_edges < ORDERING_EDGES:
        solution = _drive(problem, warm_start, limits)
    else:
        ordering = Ordering.of(problem)
        start = None if warm_start is None else ordering.apply(warm_start)

        def restored(progress: Progress) -> Progress:
            w, u = ordering.restore_w(progress.w), ordering.restore_u(progress.u)
            return dataclasses.replace(progress, w=w, u=u)

        limits = dataclasses.replace(limits, callback=_translated(limits.callback, restored))
        moved = _drive(ordering.problem, start, limits)
        solution = ordering.restore(moved, problem)
    solution.info["method"] = METHOD
    return solution


def _drive(problem: GTVProblem, warm_start: Solution | None, limits: Limits) -> Solution:
    """Run the primal-dual method, polished by contraction where that is known how to do."""
    method = PrimalDual(problem, warm_start)
    useful = limits.stop == "gap" and method.affine and applies(problem)
    polisher = Coarsening(problem, limits.rtol) if useful else None
    if warm_start is None:
        return drive(problem, method, limits, polisher)
    # A start that was computed for other losses, or another lambda, is not good enough yet.
    known = math.isclose(problem.value(warm_start.w), warm_start.value, rel_tol=1e-9)
    return drive(problem, method, limits, polisher, warm=True, known=known)


def _translated(
    callback: Callable[[Progress], Any] | None, translate: Callable[[Progress], Progress]
) -> Callable[[Progress], Any] | None:
    """Return a callback that sees what the given one is to see."""
    if callback is None:
        return None
    return lambda progress: callback(translate(progress))
