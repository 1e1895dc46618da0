"""Runs an iterative method: checks of the gap, stopping, history, display, the incumbent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gtvcvx._bounds import Gap
from gtvcvx._progress import Progress as Display
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Record, Solution

FloatArray = NDArray[np.float64]

FIRST_CHECK = 100
# The first iterations bring the relative gap down to this; then it falls along with the signal.
FIRST_GAP = 0.05
# A first look, whatever the signal says, after so many iterations or seconds.
FIRST_LOOK, FIRST_LOOK_SECONDS = 1000, 2.0
# The gap falls somewhat faster than the signal: check when it is predicted this close to rtol.
OPTIMISM = 1.5
RECHECK = 1.1
GROWTH = 1.5
CHECK_SHARE = 0.1
# Iterations run in chunks of about this many seconds, so that limits and Ctrl-C take effect.
CHUNK_SECONDS = 0.25
# Edges with this share of their capacity left are taken as fused when the incumbent is polished.
FUSED_SLACK = 1e-4
FIRST_CHUNK = 10
LARGEST_CHUNK = 20


class Method(Protocol):
    """An iterative method: its current point, and how to go on."""

    name: str
    n_iter: int
    w: FloatArray
    u: FloatArray

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations."""

    def signal(self) -> float:
        """Cheap number that falls with the gap, up to an unknown factor."""

    def info(self) -> dict[str, Any]:
        """Return particulars for `Solution.info`."""


@dataclass(frozen=True)
class Progress:
    """What a callback sees at every check: the incumbent and its bounds."""

    n_iter: int
    seconds: float
    w: FloatArray
    u: FloatArray
    value: float
    dual_value: float
    gap: float
    rel_gap: float


@dataclass
class Limits:
    """When to stop."""

    rtol: float
    max_iter: int
    time_limit: float = np.inf
    stop: str = "gap"  # "gap" | "objective" | "iterations"
    callback: Callable[[Progress], Any] | None = None
    verbose: bool | None = None


@dataclass
class Incumbent:
    """Best point and best flow so far; they need not come from the same iteration."""

    problem: GTVProblem
    w: FloatArray = field(init=False)
    u: FloatArray = field(init=False)
    value: float = np.inf
    dual_value: float = -np.inf
    gap: float = np.inf
    parts: Gap = field(init=False)

    def offer(self, w: FloatArray, u: FloatArray, keep_last: bool = False) -> None:
        """Take w, or w made constant on fused clusters, if its value is lower than the best.

        The repaired u is taken if its bound is higher. With keep_last, w is taken as it is.
        """
        value = self.problem.value(w)
        parts, flow = self.problem.bounds.gap(w, u)
        dual_value = value - parts.total
        if not np.isfinite(dual_value):
            raise ValueError(
                "losses, lam: the objective and its bound overflow double precision; scale the data"
            )
        if not keep_last:
            fused = _fused(self.problem, w, flow)
            if (fused_value := self.problem.value(fused)) < value:
                w, value = fused, fused_value
                parts = self.problem.bounds.gap_of(w, flow)
                dual_value = value - parts.total
        better_w = value < self.value or keep_last
        better_u = dual_value > self.dual_value
        if better_w:
            self.w, self.value = w.copy(), value
        if better_u:
            self.u, self.dual_value = flow, dual_value
        if better_w and better_u:
            self.parts, self.gap = parts, parts.total
        elif better_w or better_u:
            self.parts = self.problem.bounds.gap_of(self.w, self.u)
            self.gap = self.parts.total
            self.dual_value = self.value - self.gap

    @property
    def rel_gap(self) -> float:
        """Gap relative to max(1, |value|)."""
        return self.gap / max(1.0, abs(self.value))

    def progress(self, n_iter: int, seconds: float) -> Progress:
        """Return what a callback is shown."""
        return Progress(
            n_iter=n_iter,
            seconds=seconds,
            w=self.w,
            u=self.u,
            value=self.value,
            dual_value=self.dual_value,
            gap=self.gap,
            rel_gap=self.rel_gap,
        )

    def record(self, n_iter: int, seconds: float) -> Record:
        """Return a line of the history."""
        return Record(n_iter, seconds, self.value, self.dual_value)

    def solution(self, **fields: Any) -> Solution:
        """Return the incumbent as a Solution."""
        problem = self.problem
        return Solution(
            w=self.w,
            u=self.u,
            value=self.value,
            dual_value=self.dual_value,
            gap=self.gap,
            nodes=problem.graph.nodes,
            node_gaps=self.parts.node,
            edge_gaps=self.parts.edge,
            edges=problem.graph.edges,
            slack=problem.bounds.slack(self.u),
            **fields,
        )


def _fused(problem: GTVProblem, w: FloatArray, flow: FloatArray) -> FloatArray:
    """Average w over clusters whose edges have flow below capacity.

    Every solution is constant there, while iterates only come close.
    """
    if not problem.penalty.is_norm:
        return w
    below = problem.bounds.slack(flow) > FUSED_SLACK * problem.capacities
    ends = problem.graph.edges[below]
    n = problem.graph.n_nodes
    links = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    count, labels = sp.csgraph.connected_components(links, directed=False)
    members = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(count, n))
    means = (members @ w) / np.bincount(labels, minlength=count)[:, None]
    return means[labels]


class Schedule:
    """Decides at which iterations the gap is checked.

    A check costs as much as some hundred iterations. It is made when the gap is expected to be
    small enough, judging by the method's cheap signal and its ratio to the gap at the last check;
    otherwise seldom, so that all such checks take a small share of the run.
    """

    def __init__(self, limits: Limits, rel_gap: float) -> None:
        self._limits = limits
        self._last = 0
        self._first_gap = min(rel_gap, FIRST_GAP)
        self._ratio = np.nan  # rel_gap / signal at the last check
        self._check_seconds = 0.0

    def due(self, n_iter: int, run_seconds: float, signal: float) -> bool:
        """Say whether to check now."""
        if n_iter >= self._limits.max_iter:
            return True
        if self._limits.stop == "iterations":
            return False
        if np.isnan(self._ratio):
            self._ratio = self._first_gap / max(signal, np.finfo(float).tiny)
        if n_iter < FIRST_CHECK:
            return False
        if self._ratio * signal <= OPTIMISM * self._limits.rtol:
            return n_iter >= RECHECK * self._last
        if self._last == 0:
            return n_iter >= FIRST_LOOK or run_seconds >= FIRST_LOOK_SECONDS
        affordable = self._check_seconds <= CHECK_SHARE * run_seconds
        return n_iter >= GROWTH * self._last and affordable

    def checked(self, n_iter: int, seconds: float, rel_gap: float, signal: float) -> None:
        """Learn from a check that took some seconds."""
        self._last = n_iter
        self._check_seconds += seconds
        self._ratio = rel_gap / signal if signal > 0 else 0.0


class Run:
    """One run of a method: the state that the checks, the history and the display share."""

    def __init__(self, problem: GTVProblem, method: Method, limits: Limits) -> None:
        self._method, self._limits = method, limits
        self._start = time.perf_counter()
        self._run_seconds = 0.0
        self._chunk = FIRST_CHUNK
        self.history: list[Record] = []
        self.incumbent = Incumbent(problem)
        # A finite gap from the start: the zero flow of a cold start is feasible for every problem.
        self.incumbent.offer(method.w, method.u)
        self._schedule = Schedule(limits, self.incumbent.rel_gap)

    @property
    def seconds(self) -> float:
        """Wall-clock time since the start."""
        return time.perf_counter() - self._start

    def advance(self) -> bool:
        """Run some iterations; say whether the gap is to be checked now."""
        method, limits = self._method, self._limits
        steps = min(self._chunk, limits.max_iter - method.n_iter)
        before = self.seconds
        method.run(steps)
        took = self.seconds - before
        self._run_seconds += took
        affordable = CHUNK_SECONDS * steps / max(took, 1e-9)
        self._chunk = int(np.clip(affordable, 1, LARGEST_CHUNK))
        due = self._schedule.due(method.n_iter, self._run_seconds, method.signal())
        return due or self.seconds >= limits.time_limit

    def check(self) -> bool:
        """Evaluate the gap of the current point; say whether to stop."""
        method, limits, incumbent = self._method, self._limits, self.incumbent
        previous, before = incumbent.value, self.seconds
        incumbent.offer(method.w, method.u, keep_last=limits.stop == "iterations")
        self._schedule.checked(
            method.n_iter, self.seconds - before, incumbent.rel_gap, method.signal()
        )
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


def drive(problem: GTVProblem, method: Method, limits: Limits) -> Solution:
    """Run the method until its gap is small enough or a limit is met.

    Every stop, Ctrl-C included, returns the incumbent with a valid gap.
    """
    run = Run(problem, method, limits)
    goal = limits.rtol if limits.stop == "gap" else None
    display = Display(method.name, verbose=limits.verbose, total=limits.max_iter, gap_goal=goal)
    try:
        with display:
            stopped = limits.stop == "gap" and run.incumbent.rel_gap <= limits.rtol
            while not stopped:
                if run.advance():
                    stopped = run.check()
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
