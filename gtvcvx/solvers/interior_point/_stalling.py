"""An iteration that gives way: it ends when another method is expected to be done much sooner.

How fast the gap falls is known from its checks; where it hardly falls, iterations would go on until
their limit. Everything is counted, nothing is timed: the same run gives way at the same iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gtvcvx.solvers.driver import Limits, Method, Proposal


@dataclass(frozen=True)
class StallingSettings:
    """When an iteration has stalled.

    Attributes
    ----------
    fewest : int
        No iteration gives way before: most converge within so many.
    share : float
        Nor before it has taken this share of what the other method costs, in iterations.
    factor : float
        The iterations that are left, by the rate of the last ones, are at least so many times as
        many as the other method costs.
    past : float
        The rate is that since the last check at this share of the iterations so far, or sooner.
    reached : float
        Relative gap below which no other method does better, since bounds are lost to rounding.
    """

    fewest: int = 3000
    share: float = 1.0
    factor: float = 2.0
    past: float = 0.7
    reached: float = 1e-10


DEFAULTS = StallingSettings()


class Stalling:
    """A method that has finished when it has stalled.

    Parameters
    ----------
    method : Method
        An iteration.
    cost : callable
        Returns how many iterations would take as long as the method that is to go on. Asked only
        once, and not before an iteration seems to stall.
    settings : StallingSettings

    Attributes
    ----------
    finished : bool
        Whether it has stalled.
    """

    def __init__(
        self,
        method: Method,
        cost: Callable[[], float],
        settings: StallingSettings = DEFAULTS,
    ) -> None:
        self._method, self._cost, self._settings = method, cost, settings
        self._known_cost: float | None = None
        self._checks: list[tuple[int, float]] = []
        self.stride = method.stride
        self.finished = False

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return self._method.n_iter

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits."""
        self._rtol = limits.rtol
        self._method.begin(limits, rel_gap)

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations."""
        self._method.run(n_iter)

    def due(self) -> bool:
        """Say whether the method wants a check."""
        return self._method.due()

    def proposal(self, final: bool = False) -> Proposal | None:
        """Return what the method proposes."""
        return self._method.proposal(final)

    def learn(self, rel_gap: float) -> None:
        """Take note of a gap, and give way if the gaps hardly fall."""
        self._method.learn(rel_gap)
        self._checks.append((self.n_iter, rel_gap))
        self.finished = self._stalled(rel_gap)

    def _stalled(self, rel_gap: float) -> bool:
        settings = self._settings
        goal = max(self._rtol, settings.reached)
        if self.n_iter < settings.fewest or rel_gap <= goal:
            return False
        left = self._left(goal)
        # Whoever will have finished soon is not even compared.
        if left <= settings.fewest:
            return False
        if self._known_cost is None:
            self._known_cost = self._cost()
        cost = self._known_cost
        return self.n_iter >= settings.share * cost and left >= settings.factor * cost

    def _left(self, goal: float) -> float:
        """Return how many iterations are left at the rate of late, zero if that is not known."""
        now, gap = self._checks[-1]
        earlier = [check for check in self._checks if check[0] <= self._settings.past * now]
        if not earlier:
            return 0.0
        then, before = earlier[-1]
        if not gap < before:
            return math.inf
        return (now - then) * math.log(gap / goal) / math.log(before / gap)

    def info(self) -> dict[str, Any]:
        """Return the particulars of the method."""
        return self._method.info()
