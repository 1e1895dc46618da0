"""When a check is worth its cost: seldom enough to be cheap, often enough to stop in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gtvcvx.solvers.driver._limits import Limits


@dataclass(frozen=True)
class ScheduleSettings:
    """Counts and shares that say when the gap is checked.

    Attributes
    ----------
    first_check : int
        No check before so many iterations: earlier gaps are never small enough.
    told_check : int
        The same where the ratio of gap to residual is known from a neighbour on a path, whose
        solution is nearly one here: as soon as the residual is worth looking at.
    first_gap : float
        The first iterations bring the relative gap down to this on most problems; from then on it
        is taken to fall along with the residual.
    first_look, warm_look, long_look : float
        A first check, whatever the residual says, after so many iterations; sooner from a warm
        start, where nobody knows what a residual means, and in a run that takes long, to have
        something to show.
    long_seconds : float
        A run that takes more seconds takes long.
    recheck : float
        A check that failed is repeated when the iterations are so many times as many: the ratio
        of gap to residual drifts by more than a few iterations mend.
    growth : float
        The same for checks that are not expected to be the last.
    cost, share : float
        A check takes about as long as `cost` iterations; those that are not expected to be the
        last may take this share of the run.
    fast, sure : float
        Where the expected gap took no more iterations than `fast` for its last factor of ten, the
        first check waits until it is this share of rtol: that is a few iterations more, and a
        check that fails is as many as a run has there.
    near, too_late : float
        The first check is near when the expected gap is within this factor of rtol; from so many
        iterations on nobody believes that any more.
    """

    first_check: int = 100
    told_check: int = 10
    first_gap: float = 0.1
    first_look: float = 1500
    warm_look: float = 200
    long_look: float = 300
    long_seconds: float = 10.0
    recheck: float = 1.15
    growth: float = 1.5
    cost: float = 200
    share: float = 0.1
    fast: int = 80
    sure: float = 0.5
    near: float = 12.0
    too_late: int = 1000


DEFAULTS = ScheduleSettings()
#: Where a share of the flow is asked for: that takes ten iterations.
CHEAP = ScheduleSettings(cost=10)


class Schedule:
    """Decides at which iterations the gap is checked.

    A check costs as much as some hundred iterations. It is made when the gap is expected to be
    small enough, judging by a cheap residual and its ratio to the gap at the last check; otherwise
    seldom, so that all such checks take a small share of the run. No clock is asked, but for the
    early look at a run that takes long, where counts do not tell: the same run makes the same
    checks.

    Parameters
    ----------
    limits : Limits
    rel_gap : float
        Relative gap of the start; infinite if it is not known.
    warm : bool
        Whether the start is a solution of this problem or of a similar one.
    ratio : float
        Relative gap over residual, if it is known beforehand.
    seconds : float
        What an iteration takes, if counts predict it.
    """

    def __init__(
        self,
        limits: Limits,
        rel_gap: float = np.inf,
        *,
        warm: bool = False,
        ratio: float = np.nan,
        seconds: float = np.nan,
        settings: ScheduleSettings = DEFAULTS,
    ) -> None:
        self._limits, self._settings = limits, settings
        self._first_look = settings.warm_look if warm else settings.first_look
        self._last = 0
        self._first_gap = min(rel_gap, settings.first_gap)
        self._ratio, self._seconds = ratio, seconds
        self._first_check = settings.first_check if np.isnan(ratio) else settings.told_check
        self._checks = 0
        self._tenfold = 0  # when the expected gap was last more than ten times rtol

    @property
    def ratio(self) -> float:
        """Relative gap over residual, as far as is known."""
        return self._ratio

    def expected_gap(self, residual: float) -> float:
        """Return the relative gap that goes with a residual, as far as is known."""
        if np.isnan(self._ratio):
            self._ratio = self._first_gap / max(residual, np.finfo(float).tiny)
        return self._ratio * residual

    def due(self, n_iter: int, residual: float) -> bool:
        """Say whether to check now."""
        settings = self._settings
        if n_iter >= self._limits.max_iter:
            return True
        if self._limits.stop == "iterations":
            return False
        expected = self.expected_gap(residual)
        if expected > 10.0 * self._limits.rtol:
            self._tenfold = n_iter
        if n_iter < self._first_check:
            return False
        if expected <= self._limits.rtol:
            if self._last == 0 and n_iter - self._tenfold <= settings.fast:
                return expected <= settings.sure * self._limits.rtol
            return n_iter >= settings.recheck * self._last
        if self._last == 0:
            return n_iter >= self._look(n_iter)
        return self._grown(n_iter)

    def _look(self, n_iter: int) -> float:
        """Return the iterations until the first check, whatever the residual says."""
        settings = self._settings
        taken = self._limits.counted if np.isnan(self._seconds) else self._seconds * n_iter
        long = taken >= settings.long_seconds
        return min(settings.long_look, self._first_look) if long else self._first_look

    def _grown(self, n_iter: int) -> bool:
        """Say whether the run has grown so much that it can afford another look."""
        settings = self._settings
        affordable = settings.cost * self._checks <= settings.share * n_iter
        return n_iter >= settings.growth * self._last and affordable

    def promising(self, n_iter: int, residual: float) -> bool:
        """Say whether a check now would be the last, as it seems, or can be afforded anyway.

        For pairs that come up once in a while, at any time in a run, and are gone afterwards.
        """
        if self.expected_gap(residual) <= self._limits.rtol:
            return n_iter >= self._settings.recheck * self._last
        return self._last > 0 and self._grown(n_iter)

    def nearly_done(self, n_iter: int, residual: float) -> bool:
        """Say whether the first check is near, and may be the last."""
        near = self.expected_gap(residual) <= self._settings.near * self._limits.rtol
        return near and self._last == 0 and n_iter < self._settings.too_late

    def eased(self, share: float) -> None:
        """Learn that the gap is only a share of what the residual said so far."""
        self._ratio *= share

    def checked(self, n_iter: int, rel_gap: float, residual: float) -> None:
        """Learn from a check."""
        self._last = n_iter
        self._checks += 1
        self._ratio = rel_gap / residual if residual > 0 else 0.0


def checked_ratio(given: object) -> float:
    """Return a ratio of gap to residual that may come from a file, NaN if it is none."""
    return float(given) if isinstance(given, float) and 0.0 < given < np.inf else np.nan
