"""When a run checks its gap: seldom enough to cost little, often enough to stop in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gtvcvx.solvers._driver import Limits

FIRST_CHECK = 100
# The first iterations bring the relative gap down to this; then it falls along with the signal.
FIRST_GAP = 0.033
# A first look, whatever the signal says, after so many iterations; sooner from a warm start, where
# nobody knows what a signal means, and in a run that takes long, to have something to show.
FIRST_LOOK, WARM_LOOK = 1500, 200
EARLY_LOOK, EARLY_LOOK_SECONDS = 300, 10.0
# A check that was not the last is not repeated before so many times as many iterations.
RECHECK = 1.15
GROWTH = 1.5
CHECK_SHARE = 0.1
# A polish costs as much as some hundred iterations; none just before the first check, when the gap
# is expected this close to rtol.
NEARLY_DONE = 5.0


class Schedule:
    """Decides at which iterations the gap is checked.

    A check costs as much as some hundred iterations. It is made when the gap is expected to be
    small enough, judging by the method's cheap signal and its ratio to the gap at the last check;
    otherwise seldom, so that all such checks take a small share of the run.
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
        self._check_seconds = 0.0

    def due(self, n_iter: int, run_seconds: float, signal: float) -> bool:
        """Say whether to check now."""
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
            early = run_seconds >= EARLY_LOOK_SECONDS and n_iter >= EARLY_LOOK
            return n_iter >= self._first_look or (early and self._first_look < np.inf)
        affordable = self._check_seconds <= CHECK_SHARE * run_seconds
        return n_iter >= GROWTH * self._last and affordable

    def nearly_done(self, signal: float) -> bool:
        """Say whether the first check is near, and may be the last."""
        return self._last == 0 and self._ratio * signal <= NEARLY_DONE * self._limits.rtol

    def eased(self, share: float) -> None:
        """Learn that the gap is only a share of what the signal said so far."""
        self._ratio *= share

    def checked(self, n_iter: int, seconds: float, rel_gap: float, signal: float) -> None:
        """Learn from a check that took some seconds."""
        self._last = n_iter
        self._check_seconds += seconds
        self._ratio = rel_gap / signal if signal > 0 else 0.0
