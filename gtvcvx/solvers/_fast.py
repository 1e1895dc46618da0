"""The default solver, `solver="AUTO"`: which method runs, and in which order of the nodes."""

from __future__ import annotations

import dataclasses
from typing import Any

from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers._driver import Limits, Progress, drive
from gtvcvx.solvers._ordering import Ordering
from gtvcvx.solvers._primal_dual import PrimalDual

# From this many edges on the working set outgrows the caches, and neighbours should be near.
ORDERING_EDGES = 20_000


def solve_fast(problem: GTVProblem, warm_start: Solution | None, limits: Limits) -> Solution:
    """Run the primal-dual method, on a renumbered problem if the graph is large."""
    if warm_start is not None:
        problem.checked_w(warm_start.w, "warm_start.w")
        problem.checked_u(warm_start.u, "warm_start.u")
    if problem.graph.n_edges < ORDERING_EDGES:
        return drive(problem, PrimalDual(problem, warm_start), limits)
    ordering = Ordering(problem)
    start = None if warm_start is None else ordering.apply(warm_start)
    limits = dataclasses.replace(limits, callback=_restored(limits, ordering))
    solution = drive(ordering.problem, PrimalDual(ordering.problem, start), limits)
    return ordering.restore(solution, problem)


def _restored(limits: Limits, ordering: Ordering) -> Any:
    """Return a callback that shows the user's own order of nodes and edges."""
    callback = limits.callback
    if callback is None:
        return None

    def restored(progress: Progress) -> Any:
        w, u = ordering.restore_w(progress.w), ordering.restore_u(progress.u)
        return callback(dataclasses.replace(progress, w=w, u=u))

    return restored
