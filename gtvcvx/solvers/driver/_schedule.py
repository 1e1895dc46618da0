"""When a run checks its gap: seldom enough to cost little, often enough to stop in time."""

from __future__ import annotations

import numpy as np

from gtvcvx.solvers.driver._limits import Limits

FIRST_CHECK = 100
# The first iterations bring the relative gap down to this; then it falls along with the signal.
FIRST_GAP = 0.033
# A first look, whatever the signal says, after so many iterations; sooner from a warm start, where
# nobody knows what a signal means, and in a run that takes long.
FIRST_LOOK, WARM_LOOK, EARLY_LOOK = 1500, 200, 300
# A check that was not the last is not repeated before so many times as many iterations.
RECHECK = 1.15
GROWTH = 1.5
# A check takes about as long as so many iterations; those that are not expected to be the last
# may take this share of the run.
CHECK_COST, CHECK_SHARE = 200, 0.1
# A polish costs as much as some hundred iterations; none just before the first check, when the gap
# is expected this close to rtol. So far on in the run nobody believes that any more.
NEARLY_DONE, TOO_LATE = 12.0, 1000


class Schedule:
    """Decides at which iterations the gap is checked.

    A check costs as much as some hundred iterations. It is made when the gap is expected to be
    small enough, judging by the method's cheap signal and its ratio to the gap at the last check;
    otherwise seldom, so that all such checks take a small share of the run. No clock is asked, but
    for the early look at a run that takes long: the same run makes the same checks.
    """

    def __init__(
        self,
        limits: Limits,
        rel_gap: float = np.inf,
        *,
        first_look: float = FIRST_LOOK,
        first_check: int = FIRST_CHECK,
        ratio: float = np.nan,
    ) -> None:
        self._limits, self._first_look, self._first_check = limits, first_look, first_check
        self._last = 0
        self._first_gap = min(rel_gap, FIRST_GAP)
        self._ratio = ratio  # rel_gap / signal at the last check
        self._checks = 0

    def due(self, n_iter: int, signal: float, long: bool = False) -> bool:
        """Say whether to check now, in a run that takes long or not."""
        if n_iter >= self._limits.max_iter:
            return True
        if self._limits.stop == "iterations":
            return False
        if np.isnan(self._ratio):
            self._ratio = self._first_gap / max(signal, np.finfo(float).tiny)
        if n_iter < self._first_check:
            return False
        if self._ratio * signal <= self._limits.rtol:
            return n_iter >= RECHECK * self._last
        if self._last == 0:
            return n_iter >= (min(EARLY_LOOK, self._first_look) if long else self._first_look)
        affordable = CHECK_COST * self._checks <= CHECK_SHARE * n_iter
        return n_iter >= GROWTH * self._last and affordable

    def nearly_done(self, n_iter: int, signal: float) -> bool:
        """Say whether the first check is near, and may be the last."""
        near = self._ratio * signal <= NEARLY_DONE * self._limits.rtol
        return near and self._last == 0 and n_iter < TOO_LATE

    def eased(self, share: float) -> None:
        """Learn that the gap is only a share of what the signal said so far."""
        self._ratio *= share

    def checked(self, n_iter: int, rel_gap: float, signal: float) -> None:
        """Learn from a check."""
        self._last = n_iter
        self._checks += 1
        self._ratio = rel_gap / signal if signal > 0 else 0.0
