"""A method whose iterates are polished once in a while: when, for how long, and what becomes of it.

Polishing takes the time of hundreds of iterations and gives a point, and a flow that nearly proves
it, which iterations alone would need thousands for; or it gives nothing, where the clusters are not
known yet. So it comes at growing intervals, and all of it may take the time of a multiple of the
iterations; where a check says that it has given nothing the intervals grow faster. Everything is
counted, nothing is timed: the same run polishes at the same iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from gtvcvx._logging import room_logger
from gtvcvx.penalties import CompiledForm, Penalty
from gtvcvx.solvers.driver._limits import Limits
from gtvcvx.solvers.driver._method import Iteration, Proposal
from gtvcvx.solvers.driver._schedule import Schedule


@dataclass(frozen=True)
class PolishingSettings:
    """When iterates are polished.

    Attributes
    ----------
    first, linf_first, warm_first : int
        Iterations before the first polish: some hundred tell which nodes are alike; from a warm
        start that is nearly known, but after 20 iterations half of the polishes along a path were
        not the last. With linf the split at ties makes polishes more expensive.
    growth : float
        The next polish comes when the iterations are so many times as many: the square of that
        after a fruitless polish, its cube after two of them, and so on.
    share : float
        All polishes together may take the time of so many times the iterations.
    generous : float
        But where that is more than so many seconds, as predicted, half of the iterations' time.
    credible_overload : float
        Flows that are above the capacities by this share of them all say that no clusters were
        found.
    gap_of_overload : float
        Relative gap over overload that is expected of the first polished pairs.
    point_ease : float
        With a polished point the gap is that of the flow alone, which is this share of the whole.
    well_below : float
        A coarser problem is iterated on until its residual is this share of what the problem's own
        gap asks for: what is lost on the way back is as large again. It is this share of that for
        each later polish of the run: the one before was not enough.
    """

    first: int = 500
    linf_first: int = 1000
    warm_first: int = 80
    growth: float = 2.0
    share: float = 2.0
    generous: float = np.inf
    credible_overload: float = 0.1
    gap_of_overload: float = 0.05
    point_ease: float = 0.5
    well_below: float = 0.1


_LOG = room_logger("solvers.polishing")
DEFAULTS = PolishingSettings()
# Iterations with kinks or constraints are many, and slow: clusters are mended in rounds as soon as
# most of them are known. On kNN graphs of 400 nodes a polish after 100 iterations was the last one
# for most losses and penalties; overloads of 1e-5 to 1e-3 came with .1 to .3 times as large gaps.
# On 2,000 nodes with 64 coordinates, thousands of clusters, polishes took 37 of 40 seconds.
CONIC = PolishingSettings(
    first=100, linf_first=100, warm_first=20, share=4.0, generous=1.0, gap_of_overload=0.3
)


class PolishedPair(NamedTuple):
    """What a polisher returns: a better point, and a flow that nearly proves it.

    Arrays, or over shards lists with an array for each part of the worker.
    """

    w: Any  # (n, d)
    conserved: Any  # (m, d), nearly on flow conservation
    inside: Any  # (m, d), within capacity
    overload: float  # of the conserved flow over the capacities, as a share of them all
    cost: float = 0.0  # how many iterations would have taken about as long


class Polisher(Protocol):
    """Improves iterates by other means than a method's own."""

    def polish(
        self,
        w: Any,
        u: Any,
        allowed: float,
        seconds: float,
        weight: float | list[float],
        enough: float,
    ) -> PolishedPair | None:
        """Return a better pair, or None, also if it would cost more iterations than allowed.

        Or more seconds, of which there may be infinitely many. Iterations on other problems, with
        this primal weight, may end where their residual is small enough; 0 if nobody knows.
        """


class Objective(Protocol):
    """What polishing asks of a problem."""

    @property
    def penalty(self) -> Penalty:
        """The penalty."""

    def value(self, w: Any) -> float:
        """Return the objective at a point."""


class Polished:
    """An iteration that goes on from polished points, and proposes them.

    Parameters
    ----------
    problem : GTVProblem, or what stands for one
    method : Iteration
    polisher : Polisher
    settings : PolishingSettings
    most : float
        No polish may cost more iterations than this: what another method takes for all.

    Attributes
    ----------
    point : ndarray, shape (n, d), or None
        Of the last pair that was gone on from.
    schedule : Schedule
        Of checks of polished pairs.
    """

    finished = False

    def __init__(
        self,
        problem: Objective,
        method: Iteration,
        polisher: Polisher,
        settings: PolishingSettings = DEFAULTS,
        most: float = np.inf,
    ) -> None:
        self._problem, self._method, self._polisher = problem, method, polisher
        self._settings, self._most = settings, most
        linf = problem.penalty.compiled_form == CompiledForm.LINF
        self._first = settings.linf_first if linf else settings.first
        self._next = settings.warm_first if method.warm else self._first
        self._cost = 0.0  # of all polishes, in iterations
        self._share = 1.0  # of the residual that the gap asks for, by polishes so far
        self._pair: PolishedPair | None = None  # found after the last iteration
        self._fruitless = 0  # polishes since the last one that was gone on from
        self.point: Any = None
        self.stride = method.stride

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return self._method.n_iter

    @property
    def work(self) -> float:
        """Iterations so far, and those that would have taken as long as the polishes."""
        return self._method.work + self._cost

    def residual(self) -> float:
        """Return that of the iteration."""
        return self._method.residual()

    def expected_gap(self) -> float:
        """Return the relative gap that is expected of the iterate, by its residual."""
        return self._method.expected_gap()

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits."""
        self._limits = limits
        # Polished pairs are checked when their overload promises enough, and seldom otherwise.
        self.schedule = Schedule(limits, ratio=self._settings.gap_of_overload)
        self._method.begin(limits, rel_gap)

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations, from the polished pair if there is one; polish if it is time."""
        if self._pair is not None:
            self._go_on_from(self._pair)
        self._method.run(n_iter)
        if self._polish_due():
            self._polish()

    def _go_on_from(self, pair: PolishedPair) -> None:
        self._fruitless = 0
        self._method.move_to(pair.w, pair.inside)
        self._method.schedule.eased(self._settings.point_ease)
        self.point, self._pair = pair.w, None

    def _polish_due(self) -> bool:
        method = self._method
        return (
            method.n_iter % self.stride == 0
            and method.n_iter >= self._next
            and self._allowance > 0.0
            and not self._limits.expired
            and not method.due()
            and not method.schedule.nearly_done(method.n_iter, method.residual())
        )

    @property
    def _allowance(self) -> float:
        """Iterations whose time the next polish may take.

        A warm start is credited with those that a first polish would have waited for.
        """
        waited = max(self.n_iter, self._first if self._method.warm else 0)
        allowed = self._settings.share * waited
        if allowed * self._method.seconds > self._settings.generous:
            allowed = max(0.5 * waited, self._settings.generous / self._method.seconds)
        return min(allowed - self._cost, self._most)

    def _polish(self) -> None:
        method = self._method
        self._share *= self._settings.well_below
        left = self._limits.seconds_left
        pair = self._polisher.polish(
            method.w, method.u, self._allowance, left, method.weight, self._enough
        )
        _LOG.debug(
            "polish after %d iterations: %s",
            *(method.n_iter, "nothing" if pair is None else f"overload {pair.overload:.3g}"),
        )
        self._wait()
        if pair is not None:
            self._cost += pair.cost
            if pair.overload <= self._settings.credible_overload:
                self._pair = pair

    def _wait(self) -> None:
        """Set when the next polish comes."""
        self._next = int(self._settings.growth ** (1 + self._fruitless) * self.n_iter)

    @property
    def _enough(self) -> float:
        """Residual with which the gap is well below rtol; 0 if no check has told the ratio."""
        ratio = self._method.gap_ratio
        return self._share * self._limits.rtol / ratio if ratio > 0.0 else 0.0

    def due(self) -> bool:
        """Say whether the polished pair, or the iterate, is worth a check."""
        if self._pair is not None:
            return self.schedule.promising(self.n_iter, self._pair.overload)
        return self._method.due()

    def proposal(self, final: bool = False) -> Proposal:
        """Return the polished pair, or the iterate; the last polished point if that is better."""
        found = self._method.proposal()
        if self._pair is not None:
            expected = self.schedule.expected_gap(self._pair.overload)
            found = Proposal(self._pair.w, self._pair.conserved, expected)
        value = self._problem.value
        if self.point is not None and value(self.point) < value(found.w):
            return found._replace(w=self.point)
        return found

    def learn(self, rel_gap: float) -> None:
        """Take note of the gap of what was proposed."""
        if self._pair is not None:
            self.schedule.checked(self.n_iter, rel_gap, self._pair.overload)
            # What is expected of an iterate is a guess until one has been checked.
            if self._method.gap_ratio > 0.0 and rel_gap > self._method.expected_gap():
                self._drop()
        else:
            self._method.learn(rel_gap)

    def _drop(self) -> None:
        """Go on from the iterate after a fruitless polish."""
        _LOG.debug("the polish was fruitless")
        self._pair = None
        self._fruitless += 1
        self._wait()

    def info(self) -> dict[str, Any]:
        """Return the particulars of the method."""
        return self._method.info()
