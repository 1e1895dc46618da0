"""An iteration that gives way: it ends when another method is expected to be done much sooner.

How fast the residual falls is known at any time, how fast the gap falls from its checks. As the
other method's cost is known beforehand, an iteration that has taken a share of it, and is not
nearly done, ends: so both together take little more than the better one alone, whatever the data.
Everything is counted, nothing is timed: the same run gives way at the same iteration.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from gtvcvx._deadline import Allowance
from gtvcvx.solvers.driver import Limits, Method, Proposal


@dataclass(frozen=True)
class StallingSettings:
    """When an iteration has stalled.

    Attributes
    ----------
    fewest : int
        Iterations that any problem takes: nobody compares before, and another method that costs
        no more comes first.
    fewest_kinked : int
        The same of most problems whose rows have kinks: of 30 random ones with 20 to 500 nodes 6
        took fewer.
    fewest_linear : int
        The same of systems of linear equations: of 24 random ones with 41 to 533 nodes 9 took
        fewer, and as many gave way to a factorization.
    fewest_shrunk : int
        The same with l1 terms and no kinks, polishes and checks included: of 30 random ones those
        alone took as long as most of these.
    fewest_modelled : int
        The same with Huber functions, replaced by models: of 30 random ones 2 took more, and most
        half as many; but models and checks took as long as twice the iterations.
    fewest_smooth : int
        The same with smooth rows, models and checks included: of 42 with 600 to 10,000 nodes 32
        have a method that costs no more, and take .4 to 1.8 times as long with that one first, .78
        in all; where it costs 1,400 and more it is 1 to 6.5 times as long.
    fewest_raw : int
        Where features have different units losses take so many times as many iterations.
    models, multipliers : float
        What problems take whatever their size, in nanoseconds: smooth rows, for models and their
        checks, and boxes and simplices, for the multipliers of checks. 14 random ones whose other
        method costs less took .4 to .95 times as long with that one first.
    share : float
        An iteration has time for this share of what the other method costs.
    factor : float
        Then it goes on if what is left, by the rate of late, is less than so many times what the
        other method costs; the longer it goes on, the less may be left.
    past : float
        The rate is that since this share of the iterations so far, or sooner.
    look : float
        After so much work the method is looked at, even between its strides.
    hopeless : float
        An expected gap so many times as large as what is asked for is not worth a last check.
    reached : float
        Relative gap below which no other method does better, since bounds are lost to rounding.
    least_check : float
        Where there is no other method checks may take as long as so many iterations, or as all so
        far. Of 4,000 x 40 with logistic rows a first repair took 129 s after iterations of 9 s,
        and proved nothing.
    """

    fewest: int = 100
    fewest_kinked: int = 500
    fewest_linear: int = 200
    fewest_shrunk: int = 300
    fewest_modelled: int = 1000
    fewest_smooth: int = 900
    fewest_raw: int = 30
    models: float = 2.5e7
    multipliers: float = 1e7
    share: float = 0.5
    factor: float = 0.7
    past: float = 0.5
    look: float = 200.0
    hopeless: float = 100.0
    reached: float = 1e-10
    least_check: float = 1_000.0


DEFAULTS = StallingSettings()
TINY = float(np.finfo(np.float64).tiny)


class Cost(Protocol):
    """What the other method costs, in iterations of this one."""

    @property
    def iteration(self) -> float:
        """What an iteration of this one takes, in nanoseconds."""

    @property
    def least_cost(self) -> float:
        """Lower bound on the cost, which takes nothing to know."""

    @property
    def bound(self) -> float:
        """The same, which takes a little to know."""

    @property
    def cost(self) -> float:
        """The cost; infinite if it does not fit the problem."""


class Paced(Method, Protocol):
    """A method that knows how far it is."""

    @property
    def work(self) -> float:
        """Iterations so far, and those that would have taken as long as the rest of the work."""

    def residual(self) -> float:
        """Return a cheap number that falls with the gap, up to an unknown factor."""

    def expected_gap(self) -> float:
        """Return the relative gap that goes with the residual, as far as is known."""


class Stalling:
    """A method that has finished when it has stalled.

    Parameters
    ----------
    method : Paced
        An iteration.
    other : Cost
        What the method that is to go on costs. Asked only where an iteration seems to stall.
    settings : StallingSettings

    Attributes
    ----------
    finished : bool
        Whether it has stalled.
    """

    def __init__(self, method: Paced, other: Cost, settings: StallingSettings = DEFAULTS) -> None:
        self._method, self._other, self._settings = method, other, settings
        self._residuals: list[tuple[float, float]] = []  # work, and the least residual by then
        self._gaps: list[tuple[float, float]] = []  # work, and the gap of a check
        self._looked = 0.0  # work when the method was last looked at
        self._checks = 0.0  # iterations that would have taken as long as the checks so far
        self._allowance = Allowance()  # of the last check
        self.stride = method.stride
        self.finished = False

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return self._method.n_iter

    @property
    def _work(self) -> float:
        """Iterations so far, and those that would have taken as long as all else."""
        return self._method.work + self._checks

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits."""
        self._goal = max(limits.rtol, self._settings.reached)
        self._method.begin(limits, rel_gap)

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations; end, if that is so, with a check, which may see it otherwise."""
        method = self._method
        method.run(n_iter)
        # Where proximal maps take detours, the next stride is a long way off.
        lengthy = self._work - self._looked > self._settings.look
        if self.n_iter % self.stride == 0 or lengthy:
            self._looked = self._work
            least = min([method.residual(), *(before for _, before in self._residuals[-1:])])
            self._residuals.append((self._work, least))
            self.finished = not method.due() and self._stalled(method.expected_gap())

    def due(self) -> bool:
        """Say whether the method wants a check."""
        return self._method.due()

    def proposal(self, final: bool = False) -> Proposal | None:
        """Return what the method proposes; None if it gives way and is far from done.

        Unless it is final the check is rationed.
        """
        far = self._method.expected_gap() > self._settings.hopeless * self._goal
        if self.finished and far and not final:
            return None
        found = self._method.proposal(final)
        return found if final or found is None else self._rationed(found)

    def _rationed(self, found: Proposal) -> Proposal:
        """Let a check take as long as all so far, or as the least of the other method.

        Without any other one a repair far from the solution could take all of the time for nothing.
        """
        least = self._other.least_cost
        if math.isinf(least):
            least = self._settings.least_check
        self._allowance = Allowance(max(self._work, least) * self._other.iteration)
        return found._replace(allowance=self._allowance)

    def learn(self, rel_gap: float) -> None:
        """Take note of a gap, and give way if the gaps hardly fall, or take too long to know."""
        self._method.learn(rel_gap)
        self._checks += self._check_cost()
        self._gaps.append((self._work, rel_gap))
        self.finished = self._stalled(rel_gap)

    def _check_cost(self) -> float:
        """Return how many iterations would have taken as long as the last check."""
        return self._allowance.spent / self._other.iteration

    def _stalled(self, gap: float) -> bool:
        settings = self._settings
        if self._work < settings.fewest or gap <= self._goal:
            return False
        if self._work < settings.share * self._other.least_cost:
            return False
        missing = math.log(gap / self._goal)
        left = max(self._left(self._residuals, missing), self._left(self._gaps, missing))
        if self._allowance.spent > self._allowance.most:
            left = math.inf  # nobody knows
        # The cost itself takes some work to know, and its bound a little.
        return (
            self._outpaced(left, self._other.least_cost)
            and self._outpaced(left, self._other.bound)
            and self._outpaced(left, self._other.cost)
        )

    def _outpaced(self, left: float, cost: float) -> bool:
        """Say whether the other method, at its cost, would be done sooner."""
        work, settings = self._work, self._settings
        # What is left has often been too hopeful by then.
        late = min(1.0, cost / work) ** 2
        return work >= settings.share * cost and left >= settings.factor * cost * late

    def _left(self, seen: list[tuple[float, float]], missing: float) -> float:
        """Return what work is left at the rate of late, zero if that is not known.

        Until what was seen has fallen by so much more, on a logarithmic scale.
        """
        now, last = seen[-1] if seen else (0.0, 0.0)
        earlier = bisect_right(seen, self._settings.past * now, key=itemgetter(0))
        if not earlier:
            return 0.0
        then, before = seen[earlier - 1]
        if not last < before:
            return math.inf
        return (now - then) * missing / math.log(before / max(last, TINY))

    def memory(self) -> dict[str, Any]:
        """Return what has to be remembered of what was seen so far, as arrays and numbers."""
        return {
            "residuals": np.array(self._residuals).reshape(-1, 2),
            "gaps": np.array(self._gaps).reshape(-1, 2),
            "work": [self._looked, self._checks],
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Put back what `memory` has returned."""
        self._residuals = [(work, least) for work, least in memory["residuals"].tolist()]
        self._gaps = [(work, gap) for work, gap in memory["gaps"].tolist()]
        self._looked, self._checks = memory["work"]

    def info(self) -> dict[str, Any]:
        """Return the particulars of the method."""
        return self._method.info()
