"""Runs an iterative method: checks of the gap, stopping, history, display, the incumbent."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._progress import Progress as Display
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Record, Solution
from gtvcvx.solvers.driver._incumbent import Incumbent
from gtvcvx.solvers.driver._limits import Limits
from gtvcvx.solvers.driver._method import Method
from gtvcvx.solvers.driver._schedule import FIRST_GAP, FIRST_LOOK, WARM_LOOK, Schedule

# Iterations run in chunks of about this many seconds, so that limits and Ctrl-C take effect.
CHUNK_SECONDS = 0.25
# A run that takes longer is looked at early, to have something to show.
LONG_SECONDS = 10.0
# The schedule is asked every so many iterations.
LOOK_EVERY = 10
# Polishing starts after so many iterations and comes back when they are so many times as many; all
# in all it may take the time of this many times as many.
FIRST_POLISH, NEXT_POLISH, POLISH_SHARE = 500, 2.0, 2.0
# From a warm start the clusters are nearly known.
WARM_POLISH = 20
# Flows that are above the capacities by this share of them all say that no clusters were found.
CREDIBLE_EXCESS = 0.1
# Relative gap over excess that is expected of the first polished points.
POLISHED_RATIO = 0.05
# With a polished point the gap is that of the flow alone, which is this share of what it was.
POINT_EASE = 0.5


class Polished(NamedTuple):
    """What a polisher returns: a better point, and a flow that nearly proves it."""

    w: FloatArray  # (n, d)
    balanced: FloatArray  # (m, d), nearly conserved
    inside: FloatArray  # (m, d), within capacity
    excess: float  # of `balanced` over the capacities, as a share of them all
    cost: float = 0.0  # how many iterations would have taken about as long


class Polisher(Protocol):
    """Improves iterates once in a while by other means than the method's own."""

    def polish(
        self, w: FloatArray, u: FloatArray, allowed: float, seconds: float, weight: float
    ) -> Polished | None:
        """Return a better point, or None, also if it would cost more iterations than allowed.

        Or more seconds, of which there may be infinitely many.
        """


class Run:
    """One run of a method: the state that the checks, the history and the display share."""

    def __init__(
        self,
        problem: GTVProblem,
        method: Method,
        limits: Limits,
        polisher: Polisher | None = None,
        warm: bool = False,
        known: bool = False,
    ) -> None:
        self._problem, self._method, self._limits = problem, method, limits
        self._polisher, self._warm = polisher, warm
        self._start = time.perf_counter()
        self._polish_cost = 0.0  # in iterations
        self._next_polish = WARM_POLISH if warm else FIRST_POLISH
        self._chunk = LOOK_EVERY
        self.history: list[Record] = []
        self.incumbent = Incumbent(problem)
        if known:
            # It may be good enough already; from a cold start nothing is.
            self.incumbent.offer(method.w, method.u)
        self._schedule = Schedule(
            limits,
            self.incumbent.rel_gap if known else FIRST_GAP,
            first_look=WARM_LOOK if warm else FIRST_LOOK,
        )
        # Polished points are looked at when their excess promises enough, and seldom otherwise.
        self._polished = Schedule(limits, first_look=np.inf, first_check=0, ratio=POLISHED_RATIO)
        self._point: FloatArray | None = None  # the last polished one

    @property
    def seconds(self) -> float:
        """Wall-clock time since the start."""
        return time.perf_counter() - self._start

    def step(self) -> bool:
        """Run some iterations, polish or check when it is time; say whether to stop."""
        due = self._advance()
        if not due and self._polish_due():
            return self._polish()
        method = self._method
        return due and self._check(method.w, method.u, self._schedule, method.signal())

    def _advance(self) -> bool:
        """Run some iterations; say whether the gap is to be checked now."""
        method, limits = self._method, self._limits
        left = LOOK_EVERY - method.n_iter % LOOK_EVERY
        steps = min(self._chunk, left, limits.max_iter - method.n_iter)
        before = self.seconds
        method.run(steps)
        affordable = CHUNK_SECONDS * steps / max(self.seconds - before, 1e-9)
        self._chunk = int(np.clip(affordable, 1, LOOK_EVERY))
        if self.seconds >= limits.time_limit or method.n_iter >= limits.max_iter:
            return True
        return self._looking and self._schedule.due(
            method.n_iter, method.signal(), long=self.seconds >= LONG_SECONDS
        )

    @property
    def _looking(self) -> bool:
        """Whether this is an iteration at which decisions are taken, however long chunks are."""
        return self._method.n_iter % LOOK_EVERY == 0

    def _polish_due(self) -> bool:
        return (
            self._polisher is not None
            and self._looking
            and self._method.n_iter >= self._next_polish
            and self._polish_allowance > 0.0
            and not self._schedule.nearly_done(self._method.n_iter, self._method.signal())
        )

    @property
    def _polish_allowance(self) -> float:
        """Iterations whose time the next polish may take.

        A warm start is credited with those that a first polish would have waited for.
        """
        n_iter = max(self._method.n_iter, FIRST_POLISH if self._warm else 0)
        return POLISH_SHARE * n_iter - self._polish_cost

    def _polish(self) -> bool:
        """Let the method go on from a polished point, evaluated if it looks good enough."""
        method = self._method
        assert self._polisher is not None
        polished = self._polisher.polish(
            method.w,
            method.u,
            self._polish_allowance,
            self._limits.time_limit - self.seconds,
            method.weight,
        )
        self._next_polish = int(NEXT_POLISH * method.n_iter)
        if polished is not None:
            self._polish_cost += polished.cost
        stop = False
        if polished is not None and polished.excess <= CREDIBLE_EXCESS:
            signal = polished.excess
            if self._polished.due(method.n_iter, signal):
                stop = self._check(polished.w, polished.balanced, self._polished, signal)
            if not stop:
                method.restart(polished.w, polished.inside)
                self._point = polished.w
                self._schedule.eased(POINT_EASE)
        return stop

    def _check(self, w: FloatArray, u: FloatArray, schedule: Schedule, signal: float) -> bool:
        """Evaluate the gap of a point; say whether to stop."""
        method, limits, incumbent = self._method, self._limits, self.incumbent
        previous = incumbent.value
        if self._point is not None and self._problem.value(self._point) < self._problem.value(w):
            w = self._point
        incumbent.offer(w, u, keep_last=limits.stop == "iterations")
        schedule.checked(method.n_iter, incumbent.rel_gap, signal)
        self.history.append(incumbent.record(method.n_iter, self.seconds))
        asked = limits.callback is not None and bool(
            limits.callback(incumbent.progress(method.n_iter, self.seconds))
        )
        if asked or self.seconds >= limits.time_limit or method.n_iter >= limits.max_iter:
            return True
        if limits.stop == "objective":
            decrease = previous - incumbent.value
            return len(self.history) > 1 and decrease <= limits.rtol * max(1.0, abs(previous))
        return limits.stop == "gap" and incumbent.rel_gap <= limits.rtol


def drive(
    problem: GTVProblem,
    method: Method,
    limits: Limits,
    polisher: Polisher | None = None,
    *,
    warm: bool = False,
    known: bool = False,
) -> Solution:
    """Run the method until its gap is small enough or a limit is met.

    Warm: it starts from a solution of this problem or a similar one. Known: of this problem.
    Every stop, Ctrl-C included, returns the incumbent with a valid gap.
    """
    run = Run(problem, method, limits, polisher, warm, known)
    goal = limits.rtol if limits.stop == "gap" else None
    display = Display(method.name, verbose=limits.verbose, total=limits.max_iter, gap_goal=goal)
    try:
        with display:
            stopped = limits.stop == "gap" and run.incumbent.rel_gap <= limits.rtol
            while not stopped:
                stopped = run.step()
                display.update(method.n_iter, run.incumbent.rel_gap)
    except KeyboardInterrupt:
        # Ctrl-C ends the run, not the session: what was found so far is returned.
        run.incumbent.offer(method.w, method.u)
    incumbent = run.incumbent
    return incumbent.solution(
        status="optimal" if incumbent.rel_gap <= limits.rtol else "user_limit",
        n_iter=method.n_iter,
        seconds=run.seconds,
        solver=method.name,
        history=run.history,
        info=method.info(),
    )
