"""A clock that stands still while functions are compiled.

Code is compiled once, and kept on disk: no time limit should count it. numba tells when it begins
and ends (events of the kind "numba:compile"; what is found on disk is not compiled). Functions
that are compiled on behalf of another one are nested in its time. numba compiles one function at a
time, whatever the number of threads; the others wait for it, so the clock stands still for all.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Watcher(Protocol):
    """Whoever wants to know, for a display."""

    def begun(self) -> None:
        """Take note that something is being compiled."""

    def ended(self) -> None:
        """Take note that all is compiled that was called for."""


class CompilationClock:
    """Seconds since some moment, without those in which something was compiled.

    Parameters
    ----------
    clock : callable
        Gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._depth = 0
        # Seconds of what is through, and when that began which goes on: replaced in one go, since
        # other threads ask for the time meanwhile.
        self._state: tuple[float, float | None] = (0.0, None)
        self._watcher: Watcher | None = None
        self._collects = False

    def now(self) -> float:
        """Return the time; it stands still while something is compiled."""
        spent, since = self._state
        return (self._clock() if since is None else since) - spent

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Take the block as compilation."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        """Stop, until `end` was called as often as this.

        Garbage is not collected meanwhile: a compiler makes millions of objects that live on, and
        going through them again and again takes a fifth of its time.
        """
        self._depth += 1
        if self._depth == 1:
            self._collects = gc.isenabled()
            gc.disable()
            self._state = (self._state[0], self._clock())
            if self._watcher is not None:
                self._watcher.begun()

    def end(self) -> None:
        """Go on, if this ends the outermost."""
        self._depth -= 1
        spent, since = self._state
        if self._depth == 0 and since is not None:
            self._state = (spent + self._clock() - since, None)
            if self._collects:
                _take_as_old()
                gc.enable()
            if self._watcher is not None:
                self._watcher.ended()

    @contextmanager
    def watched(self, watcher: Watcher) -> Iterator[None]:
        """Let somebody know what happens inside the block, unless somebody outside it knows."""
        if self._watcher is not None:
            yield
            return
        self._watcher = watcher
        try:
            yield
        finally:
            self._watcher = None


def _take_as_old() -> None:
    """Let the collector take all objects for old ones, without a look at them.

    The first thing that it would do is to go through all that was made meanwhile, which takes a
    twentieth of a first solve. What of it is garbage goes with the next collection of old objects.
    """
    if not gc.get_freeze_count():  # what somebody has frozen stays so
        gc.freeze()
        gc.unfreeze()


CLOCK = CompilationClock()
