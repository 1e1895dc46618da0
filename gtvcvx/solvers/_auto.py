"""The default solver, `solver="AUTO"`: which methods run, and in which order of the nodes.

The rule: if the problem is scalar in every coordinate, dynamic programming on the trees of the
graph and divide and conquer elsewhere; one model for each component where that fits all data; the
primal-dual method otherwise, polished where it is known how to. Where rounding keeps the first from
the gap that is asked for, the last goes on. Where that one stalls, an interior-point method solves
the problem; it comes first where it is predicted to take no longer than the fewest iterations: ours
where it fits, and Clarabel where it does not, or has got stuck.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from gtvcvx._callbacks import Progress, SolveCallback
from gtvcvx._deadline import look
from gtvcvx._logging import room_logger
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers._interpolation import interpolating
from gtvcvx.solvers._row_space import RowSpace
from gtvcvx.solvers.divide._division import Division
from gtvcvx.solvers.divide._requirements import REQUIREMENTS
from gtvcvx.solvers.driver import Limits, Method, Options, Run, Takes, missing
from gtvcvx.solvers.driver._foreseen import MISSED, is_foreseen
from gtvcvx.solvers.driver._scalar import separable_penalty
from gtvcvx.solvers.forest import REQUIREMENTS as FOREST
from gtvcvx.solvers.forest import DynamicProgram, Split
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._stalling import Paced, Stalling
from gtvcvx.solvers.polishing._coarsening import Coarsening
from gtvcvx.solvers.polishing._conic_contraction import ConicContraction
from gtvcvx.solvers.polishing._contraction import Contraction
from gtvcvx.solvers.polishing._from_finer import LAM, FromFiner, kept
from gtvcvx.solvers.polishing._policy import CONIC, Polished
from gtvcvx.solvers.primal_dual._ordering import Ordering
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from gtvcvx.solvers.second_order._second_order import SecondOrder
from verify._interrupts import noticed

_LOG = room_logger("solvers")
NAME = "AUTO"
TAKES = Takes()
SECOND_ORDER = "primal-dual on second-order models"
PRIMAL_DUAL, DIVISION = "primal-dual", "divide and conquer"
DYNAMIC_PROGRAM = "dynamic programming"
UNBEGUN = "none"  # Ctrl-C came before any
INTERIOR_POINT = "interior point"
CLUSTERS = "clusters of a smaller lambda"
INTERPOLATION = "interpolation"
FORESIGHT = "foreseen along the path"
# What a value of lambda tells the next: whether iterations were left for the interior-point method.
GAVE_WAY = "gave_way"
# From this many edges on the working set outgrows the caches, and neighbours should be near.
ORDERING_EDGES = 20_000


def solve_auto(problem: GTVProblem, options: Options) -> Solution:
    """Run the methods that fit; ``Solution.info["method"]`` says which ones they were.

    ``Solution.info["switched"]`` says whether the interior-point method took over from another,
    ``"gave_way"`` whether it did here or at the value of lambda that this solve started from: there
    it comes first, if it takes little.

    A number of iterations, or the decrease of the objective, as stopping rule is a matter of the
    primal-dual method alone.
    """
    limits = options.limits()
    start = options.checked_start(problem)
    try:
        return _solved(problem, start, limits)
    except KeyboardInterrupt:  # in no method, but in what lies between them
        return Run(problem, limits, NAME).solution(method=UNBEGUN, switched=False)


def _solved(problem: GTVProblem, start: Solution | None, limits: Limits) -> Solution:
    """Solve in coordinates of what rows span, where these are few."""
    run, space = Run(problem, limits, NAME), None
    with run.guarded():
        space = RowSpace.of(problem) if limits.stop == "gap" else None
    if run.stopped:
        return run.solution(method=UNBEGUN, switched=False)
    if space is None:
        return _by_coordinates(problem, start, limits)
    begun = None if start is None else space.start(start)
    inside = dataclasses.replace(
        limits,
        callback=space.watching(limits.callback),
        time_limit=limits.time_limit - space.reserve(problem.graph.n_nodes),
    )
    reduced = _by_coordinates(space.problem, begun, inside)
    found = space.restored(reduced, problem, limits)
    if found.status == "optimal" or reduced.status == "user_limit":
        return found
    # What the basis may have lost is more than the gap that is asked for.
    return _by_coordinates(problem, found, limits)


def _by_coordinates(problem: GTVProblem, start: Solution | None, limits: Limits) -> Solution:
    """Solve by dynamic programming where coordinates are scalar problems, or by iterations."""
    if limits.stop != "gap" or separable_penalty(problem) is not None:
        return _whole(problem, start, limits)
    run, forest, split = Run(problem, limits, NAME), False, None
    with run.guarded():
        forest = missing(problem, FOREST) is None
        split = None if forest else Split.of(problem)
    if run.stopped:
        return run.solution(method=UNBEGUN, switched=False)
    if forest:
        return _programmed(problem, limits)
    if split is not None:
        return _in_pieces(problem, split, start, limits)
    return _whole(problem, start, limits)


def _whole(problem: GTVProblem, start: Solution | None, limits: Limits) -> Solution:
    """Solve a problem without a look at the trees of its graph."""
    if limits.stop == "gap":
        run, divisible = Run(problem, limits, NAME), False
        with run.guarded():
            divisible = missing(problem, REQUIREMENTS) is None
        if run.stopped:
            return run.solution(method=UNBEGUN, switched=False)
        if divisible:
            return _divided(problem, start, limits)
    if problem.graph.n_edges < ORDERING_EDGES:
        return _iterated(problem, start, limits)
    return _reordered(problem, start, limits)


def _in_pieces(
    problem: GTVProblem, split: Split, start: Solution | None, limits: Limits
) -> Solution:
    """Solve the trees by dynamic programming, and the rest by what fits it."""
    with noticed() as pressed:
        trees = _programmed(split.trees.problem, dataclasses.replace(limits, callback=None))
    if pressed:  # which ended the trees, and is the end of the rest, too
        limits = dataclasses.replace(limits, time_limit=0.0)
    callback = split.watching(limits.callback, trees)
    begun = None if start is None else split.rest.start(start)
    rest = _whole(split.rest.problem, begun, dataclasses.replace(limits, callback=callback))
    joined = split.joined(trees, rest, limits)
    if joined.status == "optimal" or "user_limit" in (trees.status, rest.status):
        return joined
    # Gaps are small beside the pieces' values, which nearly cancel.
    return _whole(problem, joined, limits)


def _programmed(problem: GTVProblem, limits: Limits) -> Solution:
    """Solve on a forest; the primal-dual method goes on where rounding leaves too large a gap."""
    run = Run(problem, limits, NAME)
    with run.guarded():
        _drive(run, DynamicProgram(problem), DYNAMIC_PROGRAM)
    if run.stopped or run.satisfied:
        return run.solution(method=DYNAMIC_PROGRAM, switched=False)
    return _converged(run, problem, run.solution(), limits, [DYNAMIC_PROGRAM])


def _divided(problem: GTVProblem, start: Solution | None, limits: Limits) -> Solution:
    """Divide; go on by the primal-dual method where rounding has left too large a gap."""
    run = Run(problem, limits, NAME)
    with run.guarded():
        if start is not None:
            run.consider(start.w, start.u)
        with Division(problem) as division:
            _drive(run, division, DIVISION)
    if run.stopped or run.satisfied:
        return run.solution(method=DIVISION, switched=False)
    return _converged(run, problem, run.solution(), limits, [DIVISION])


def _iterated(problem: GTVProblem, start: Solution | None, limits: Limits) -> Solution:
    """Run the primal-dual method, unless one model for each component fits all data."""
    run = Run(problem, limits, NAME)
    fitting = None
    with run.guarded():
        fitting = interpolating(problem) if limits.stop == "gap" else None
        if fitting is not None:
            run.consider_point(fitting)
        # A start that was computed for other losses, or another lambda, is not good enough yet.
        elif start is not None and _may_be_of(problem, start):
            run.consider(start.w, start.u)
    if fitting is not None and run.satisfied:
        return run.solution(method=INTERPOLATION, switched=False, lam=problem.lam)
    if start is not None and is_foreseen(start) and not run.stopped:
        if run.satisfied:
            return run.solution(method=FORESIGHT, switched=False, lam=problem.lam, **kept(start))
        run.note({MISSED: True})
    start = start if fitting is None else run.solution()
    finer = FromFiner.of(problem, start) if limits.stop == "gap" else None
    if finer is None or run.stopped or run.satisfied:
        return _converged(run, problem, start, limits, [])
    with run.guarded():
        _drive(run, finer, CLUSTERS)
    if run.stopped or run.satisfied:
        return run.solution(method=CLUSTERS, switched=False, lam=problem.lam)
    begun = start if run.incumbent.empty else run.solution()
    return _converged(run, problem, begun, limits, [CLUSTERS])


def _may_be_of(problem: GTVProblem, start: Solution) -> bool:
    """Say whether a start has the value here that it says it has."""
    lam, value = start.info.get(LAM), start.value
    if is_foreseen(start):
        return True
    if isinstance(lam, float) and lam != problem.lam:
        # Its edges need no look where the losses leave something to them: they weigh differently.
        losses = float(np.sum(problem.losses.value(start.w)))
        if not math.isclose(losses, value, rel_tol=1e-9):
            return False
    return math.isclose(problem.value(start.w), value, rel_tol=1e-9)


def _converged(
    run: Run, problem: GTVProblem, start: Solution | None, limits: Limits, before: list[str]
) -> Solution:
    """Iterate; where that stalls the interior-point method goes on, and iterations after it.

    The interior-point method comes first where it costs no more than the fewest iterations.
    """
    modelled = _second_order(problem, limits)
    iteration = SECOND_ORDER if modelled else PRIMAL_DUAL
    interior = Alternative(problem, limits.rtol, modelled)
    methods, switched = list(before), False
    gave_way = start is not None and start.info.get(GAVE_WAY) is True

    def drive(method: Method, name: str) -> None:
        methods.append(name)
        _drive(run, method, name)

    unseen: Stalling | None = None
    first = False
    with run.guarded():
        if limits.stop != "gap":
            drive(_iteration(problem, start, limits, interior), iteration)
        elif not run.stopped:
            # Iterations that gave way one value of lambda before would do so again.
            first = (start is None or gave_way) and _comes_first(interior)
            if not first:
                unseen = Stalling(_iteration(problem, start, limits, interior), interior)
                drive(unseen, iteration)
            others = interior.methods()
            # None is made, and ordered, before it is needed.
            while not (run.stopped or run.satisfied) and (method := next(others, None)):
                switched = not first
                drive(method, INTERIOR_POINT)
            if not (run.stopped or run.satisfied):
                _see(run, unseen)
                drive(_iteration(problem, run.solution(), limits, interior), iteration)
    _see(run, unseen)
    names = ", ".join(dict.fromkeys(methods))
    own = {GAVE_WAY: switched or (gave_way and first)}
    return run.solution(method=names, switched=switched, lam=problem.lam, **own)


def _drive(run: Run, method: Method, name: str) -> None:
    _LOG.info("%s from iteration %d", name, run.n_iter)
    run.drive(method)


def _see(run: Run, method: Stalling | None) -> None:
    """Take note of what a method has found that gave way, if nothing better was found since."""
    if method is not None and run.incumbent.empty:
        with run.guarded():
            run.conclude(method)


def _comes_first(interior: Alternative) -> bool:
    """Say whether the interior-point method costs no more than the fewest iterations.

    Or than what these compile is worth.
    """
    if not interior.possible:
        return False
    fewest = interior.fewest
    if interior.least_cost <= fewest and interior.bound <= fewest and interior.cost <= fewest:
        return True
    return interior.is_short


def _iteration(
    problem: GTVProblem, start: Solution | None, limits: Limits, interior: Alternative
) -> Paced:
    """Return the primal-dual method, polished or on models where that is known how to do."""
    if _second_order(problem, limits):
        modelled = SecondOrder(problem, start)
        modelled.seconds = interior.seconds
        return modelled
    look()
    method = PrimalDual(problem, start)
    method.seconds = interior.seconds
    look()
    if limits.stop != "gap":
        return method
    if missing(problem, Contraction.requires) is None:
        return Polished(problem, method, Coarsening(problem, limits.rtol))
    if missing(problem, ConicContraction.requires) is None:
        polisher = ConicContraction(problem, limits.rtol)
        return Polished(problem, method, polisher, CONIC, interior.least_cost)
    return method


def _second_order(problem: GTVProblem, limits: Limits) -> bool:
    """Say whether the losses are replaced by quadratic models."""
    return limits.stop == "gap" and missing(problem, SecondOrder.requires) is None


def _reordered(problem: GTVProblem, start: Solution | None, limits: Limits) -> Solution:
    """Run the primal-dual method on the renumbered problem."""
    run = Run(problem, limits, NAME)
    with run.guarded():
        ordering = Ordering.of(problem)
    if run.stopped:
        return run.solution(method=PRIMAL_DUAL, switched=False)
    start = None if start is None else ordering.apply(start)
    callback = _translated(limits.callback, ordering)
    moved = _iterated(ordering.problem, start, dataclasses.replace(limits, callback=callback))
    return ordering.restore(moved, problem)


def _translated(callback: SolveCallback | None, ordering: Ordering) -> SolveCallback | None:
    """Return a callback that shows the given one the nodes in the order that it knows."""
    if callback is None:
        return None

    def translated(progress: Progress, /) -> object:
        w, u = ordering.restore_w(progress.w), ordering.restore_u(progress.u)
        return callback(dataclasses.replace(progress, w=w, u=u))

    return translated
