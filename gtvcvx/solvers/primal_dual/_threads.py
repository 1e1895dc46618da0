"""How many threads iterate, and which nodes each of them has."""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from gtvcvx._arrays import IntArray


@dataclass(frozen=True)
class ThreadSettings:
    """When more than one thread iterates.

    Attributes
    ----------
    parallel_size : int
        From this many flow variables on, all threads that numba has are tried; below, waiting for
        each other takes longer than the work.
    trial : int
        A number of threads is tried for so many iterations.
    trial_share : float
        The slower number is tried again when that takes this share of the time since it was tried
        last: the machine may have become quieter.
    """

    parallel_size: int = 30_000
    trial: int = 2
    trial_share: float = 0.05


DEFAULTS = ThreadSettings()


def most_threads(size: int, settings: ThreadSettings = DEFAULTS) -> int:
    """Return how many threads may iterate on so many flow variables."""
    return int(nb.get_num_threads()) if size >= settings.parallel_size else 1


class Pace:
    """Decides how many threads run, by what they have been seen to gain.

    Threads that wait for each other lose, badly, on a core that somebody else is using; so both
    ways are timed, and the slower one is tried again whenever that takes a small share of the run.
    Results are the same, to the last bit.
    """

    def __init__(self, threads: int, settings: ThreadSettings = DEFAULTS) -> None:
        self._settings = settings
        self._seconds = dict.fromkeys({1, threads}, 0.0)  # an iteration, when last seen
        self._since = 0.0  # seconds since the last trial of the slower way

    def choose(self, n_iter: int) -> tuple[int, int]:
        """Return the number of threads for the next call, and how many iterations it may run."""
        trial, seconds = self._settings.trial, self._seconds
        slower, faster = (
            max(seconds, key=seconds.__getitem__),
            min(seconds, key=seconds.__getitem__),
        )
        cheap = trial * seconds[slower] <= self._settings.trial_share * self._since
        if slower != faster and cheap:
            self._since = 0.0
            return slower, min(n_iter, trial)
        untried = seconds[faster] == 0.0
        return faster, min(n_iter, trial) if untried else n_iter

    def record(self, threads: int, seconds: float, n_iter: int) -> None:
        """Learn what some iterations took."""
        self._seconds[threads] = seconds / n_iter
        self._since += seconds


def equal_blocks(starts: IntArray, blocks: int) -> IntArray:
    """Cut the nodes into blocks with equally many edges (and nodes) each."""
    work = starts + np.arange(len(starts))
    goals = np.linspace(0, work[-1], blocks + 1)
    return np.searchsorted(work, goals).astype(np.int64)
