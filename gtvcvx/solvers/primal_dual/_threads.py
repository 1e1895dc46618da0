"""How many threads iterate, and which nodes each of them has."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import IntArray

# From this many flow variables on, all threads that numba has are used.
PARALLEL_SIZE = 30_000


# A number of threads is tried for so many iterations, and the slower one is tried again when that
# takes this share of the time since it was tried last.
TRIAL, TRIAL_SHARE = 2, 0.05


class Pace:
    """Decides how many threads run, by what they have been seen to gain.

    Threads that wait for each other lose, badly, on a core that somebody else is using; so both
    ways are timed, and the slower one is tried again whenever that takes a small share of the run.
    """

    def __init__(self, threads: int) -> None:
        self._seconds = dict.fromkeys({1, threads}, 0.0)  # an iteration, when last seen
        self._since = 0.0  # seconds since the last trial of the slower way

    def choose(self, n_iter: int) -> tuple[int, int]:
        """Return the number of threads for the next call, and how many iterations it may run."""
        slower = max(self._seconds, key=self._seconds.__getitem__)
        faster = min(self._seconds, key=self._seconds.__getitem__)
        if slower != faster and TRIAL * self._seconds[slower] <= TRIAL_SHARE * self._since:
            self._since = 0.0
            return slower, min(n_iter, TRIAL)
        untried = self._seconds[faster] == 0.0
        return faster, min(n_iter, TRIAL) if untried else n_iter

    def record(self, threads: int, seconds: float, n_iter: int) -> None:
        """Learn what some iterations took."""
        self._seconds[threads] = seconds / n_iter
        self._since += seconds


def _balanced_blocks(starts: IntArray, blocks: int) -> IntArray:
    """Cut the nodes into blocks with equally many edges (and nodes) each."""
    work = starts + np.arange(len(starts))
    goals = np.linspace(0, work[-1], blocks + 1)
    return np.searchsorted(work, goals).astype(np.int64)
