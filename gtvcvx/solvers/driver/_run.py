"""Runs methods under limits: checks of the gap, stopping, history, display and Ctrl-C, all once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from gtvcvx._deadline import Allowance, Expired, Unaffordable, allowing, now, until
from gtvcvx._logging import room_logger
from gtvcvx._progress import ProgressDisplay as Display
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Record, Solution
from gtvcvx.solvers.driver._best_pair import BestPair
from gtvcvx.solvers.driver._incumbent import Incumbent
from gtvcvx.solvers.driver._limits import Limits
from gtvcvx.solvers.driver._method import Method, Proposal, Proved

# Iterations run in chunks of about this many seconds, so that limits and Ctrl-C take effect.
CHUNK_SECONDS = 0.25
# What comes last has at least so many seconds, whenever it begins: most repairs take less.
GRACE_SECONDS = 0.3
# Under a time limit a check that takes longer begins when so many times its time is left.
LAST_CHANCE = 1.5

_LOG = room_logger("solvers")


class Driver:
    """A run under limits: one method after the other, one incumbent and one history for all.

    Every stop, Ctrl-C included, leaves the incumbent with a valid gap. Points and flows are what
    the incumbent and the methods take for them.

    Parameters
    ----------
    incumbent : BestPair
    limits : Limits
    name : str
        Of the solver, for the display and the solution.

    Attributes
    ----------
    incumbent : BestPair
    stopped : bool
        Whether a limit, the callback or Ctrl-C has ended the run.
    history : list of Record
    """

    def __init__(self, incumbent: BestPair[Any, Any], limits: Limits, name: str) -> None:
        self._limits, self._name = limits, name
        self.history: list[Record] = []
        self._info: dict[str, Any] = {}
        self._checks = 0  # of what methods have proposed
        self._before = 0  # iterations of the methods that are through
        self._method: Method | None = None
        self._deadline = limits.deadline
        self._late = False  # whether it was too late for a check, when last looked
        self._check_seconds = np.nan  # of the last check, once there was one
        self._errors: Any = np.geterr()  # what NumPy does about overflow, outside of runs
        self.incumbent = incumbent
        self.stopped = False

    @property
    def n_iter(self) -> int:
        """Iterations of all methods."""
        return self._before + (0 if self._method is None else self._method.n_iter)

    @property
    def satisfied(self) -> bool:
        """Whether the gap is as small as was asked for."""
        return self._limits.stop == "gap" and self._rel_gap <= self._limits.rtol

    @property
    def _rel_gap(self) -> float:
        """Gap relative to what rtol is relative to."""
        return self._limits.relative(self.incumbent.gap, self.incumbent.value)

    @property
    def _exhausted(self) -> bool:
        """Whether a smaller gap would be rounding, where the tolerance may ask for one."""
        return self._limits.stricter and not self.satisfied and self.incumbent.is_rounding

    def consider(self, w: Any, u: Any) -> None:
        """Take note of a pair that comes from elsewhere, such as a start from another solution."""
        self._take(Proposal(w, u, np.inf))
        self._record()

    def consider_point(self, w: Any) -> None:
        """Take note of a point beside the flow that is known, which is zero at first."""
        self._take_point(w, keep_last=False)
        self._record()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Let Ctrl-C, or the deadline, end the block and the run with it, but not the session.

        Points that run away overflow: that is seen by their values and gaps, which are infinite or
        no numbers and not taken; NumPy's warnings would tell users nothing.
        """
        quiet = np.errstate(over="ignore", divide="ignore", invalid="ignore")
        try:
            with until(self._deadline), quiet:
                yield
        except Expired:
            self.stopped = True
            _LOG.info("the time is over after %d iterations", self.n_iter)
        except KeyboardInterrupt:
            _LOG.info("Ctrl-C after %d iterations", self.n_iter)
            self.stopped, self._deadline = True, now()

    @contextmanager
    def _last_work(self, end: float = 0.0) -> Iterator[None]:
        """Give the block until the deadline, or a moment longer; or until another end."""
        with until(end or self._last_end()):
            yield

    def _last_end(self) -> float:
        """Return when what comes last must end, if it begins now."""
        return max(self._deadline, now() + GRACE_SECONDS)

    def _take(self, pair: Proposal, keep_last: bool = False) -> None:
        """Offer a pair to the incumbent; w alone where it takes too long to repair u."""
        limits = self._limits
        if pair.proved is not None and (pair.another or self._suffices(pair.proved)):
            self.incumbent.take_proved(pair.w, pair.u, *pair.proved)
            return
        if pair.another:
            self._take_point(pair.w, keep_last)
            return
        enough = limits.rtol if limits.stop == "gap" and not limits.stricter else 0.0
        ended = limits.expired or self.n_iter >= limits.max_iter
        if not ended and self.incumbent.suffices_shortly(pair.w, pair.u, enough):
            return
        # Both together have no more than a moment.
        end = self._last_end()
        limited = self._deadline < np.inf and not self.incumbent.quick
        if limited and np.isnan(self._check_seconds):
            # The first check may take longer than there is time: something is to be known then.
            with suppress(Expired), self._last_work(end):
                self.incumbent.update_shortly(pair.w, pair.u)
        try:
            with self._last_work(end), allowing(pair.allowance or Allowance()):
                care = pair.a, enough, pair.exact, pair.waits
                self.incumbent.update(pair.w, pair.u, keep_last, *care)
        except Unaffordable:
            self._take_point(pair.w, keep_last)
        except Expired:
            self.stopped = True
            self._take_point(pair.w, keep_last)

    def _suffices(self, proved: Proved) -> bool:
        limits = self._limits
        small = limits.relative(proved.gap.total, proved.value) <= limits.rtol
        return limits.stop == "gap" and small

    def _take_point(self, w: Any, keep_last: bool) -> None:
        """Offer w to the incumbent, whose flow stays; leave it at that if that takes long, too."""
        self.begin_at_zero()
        with suppress(Expired), self._last_work():
            self.incumbent.update_point(w, keep_last)

    def begin_at_zero(self) -> None:
        """Have something to return: a point and a flow that cost next to nothing."""
        if self.incumbent.empty:
            with until(np.inf):
                self.incumbent.begin()

    def drive(self, method: Method) -> None:
        """Let a method work until the gap is small enough, a limit is met or it has finished."""
        if self._method is not None:
            self._before += self._method.n_iter
        self._method = method
        limits = dataclasses.replace(self._limits, max_iter=self._limits.max_iter - self._before)
        goal = limits.rtol if limits.stop == "gap" else None
        display = Display(
            self._name, verbose=limits.verbose, total=self._limits.max_iter, gap_goal=goal
        )
        through = False
        with self.guarded(), display:
            method.begin(limits, self._rel_gap)
            self._work(method, display)
            through = True
        if not through:
            with self.guarded():
                self.conclude(method)
        self._info |= method.info()

    def conclude(self, method: Method) -> None:
        """Take note of what a method has found that was interrupted, or gave way unseen."""
        with self._last_work():
            proposal = method.proposal(final=True)
        if proposal is not None:
            self._take(proposal)
            self._record()

    def _work(self, method: Method, display: Display) -> None:
        chunk = 1
        while not (self.stopped or self.satisfied or method.finished):
            chunk = self._advance(method, chunk)
            ended = self._limits.expired or self.n_iter >= self._limits.max_iter
            looking = method.n_iter % method.stride == 0
            due = ended or method.finished or (looking and method.due())
            late = self._last_chance()
            if due or late:
                before = now()
                self._check(method, final=ended or late)
                self._check_seconds = now() - before
                ended = ended or self._limits.expired  # a check may have taken all that was left
            self.stopped = self.stopped or ended
            display.update(self.n_iter, self._rel_gap)

    def _last_chance(self) -> bool:
        """Say whether a check must begin now to be through in time, as far as is known.

        The one after the deadline gets no more than a moment.
        """
        limits = self._limits
        if self._deadline == np.inf or limits.stop == "objective":
            return False
        needed = LAST_CHANCE * self._check_seconds
        if np.isnan(needed):
            needed = 0.5 * limits.time_limit
        if not needed > GRACE_SECONDS:
            return False
        late = limits.seconds_left <= needed
        first, self._late = late and not self._late, late
        return first

    def _advance(self, method: Method, chunk: int) -> int:
        """Run as many iterations as a chunk has; return how many the next one may have."""
        left = method.stride - method.n_iter % method.stride
        steps = min(chunk, left, self._limits.max_iter - self.n_iter)
        before = now()
        method.run(steps)
        affordable = CHUNK_SECONDS * steps / max(now() - before, 1e-9)
        return int(np.clip(affordable, 1, method.stride))

    def _check(self, method: Method, final: bool) -> None:
        """Evaluate what the method proposes, and stop where the callback or the rule says so."""
        with self._last_work():
            proposal = method.proposal(final)
        if proposal is None:
            return
        limits, incumbent, previous = self._limits, self.incumbent, self.incumbent.value
        self._take(proposal, limits.stop == "iterations")
        method.learn(self._rel_gap)
        self._record()
        if limits.callback is not None:
            progress = incumbent.progress(self.n_iter, limits.seconds)
            # What a callback does is not ours to cut short, or to keep quiet.
            with until(np.inf), np.errstate(**self._errors):
                self.stopped |= bool(limits.callback(progress))
        self._checks += 1
        self.stopped |= self._exhausted
        if limits.stop == "objective" and self._checks > 1:
            decrease = previous - incumbent.value
            self.stopped |= bool(limits.relative(decrease, previous) <= limits.rtol)

    def _record(self) -> None:
        record = self.incumbent.record(self.n_iter, self._limits.seconds)
        self.history.append(record)
        _LOG.debug(
            "check at iteration %d: value %.12g, lower bound %.12g, relative gap %.3g",
            *(record.n_iter, record.value, record.dual_value, self._rel_gap),
        )

    def note(self, info: dict[str, Any]) -> None:
        """Have something said of the run in its solution."""
        self._info |= info

    def solution_fields(self) -> dict[str, Any]:
        """Return what a `Solution` says about its run."""
        return {
            "n_iter": self.n_iter,
            "seconds": self._limits.seconds,
            "solver": self._name,
            "info": dict(self._info),
        }

    def solution(self, **info: Any) -> Any:
        """Return the incumbent as a solution, with particulars beside those of the methods."""
        if self.incumbent.empty:
            self.begin_at_zero()
            self._record()
        fields = self.solution_fields()
        fields["info"] |= info
        optimal = self._rel_gap <= self._limits.rtol
        status = "optimal" if optimal else "user_limit"
        if self._exhausted:
            status = "optimal_inaccurate"
        return self.incumbent.solution(status=status, history=self.history, **fields)


class Run(Driver):
    """A run on a problem in memory.

    Parameters
    ----------
    problem : GTVProblem
    limits, name
        See `Driver`.

    Attributes
    ----------
    incumbent : Incumbent
    stopped : bool
    """

    incumbent: Incumbent

    def __init__(self, problem: GTVProblem, limits: Limits, name: str) -> None:
        super().__init__(Incumbent(problem), limits, name)
        problem.losses.forget()  # what runs before have left

    def solution(self, **info: Any) -> Solution:
        """Return the incumbent as a Solution, with particulars beside those of the methods."""
        solution: Solution = super().solution(**info)
        return solution


def drive(problem: GTVProblem, method: Method, limits: Limits, name: str) -> Solution:
    """Run a single method."""
    run = Run(problem, limits, name)
    run.drive(method)
    return run.solution()
