"""What rank 0 computes alone: the others wait for it, and hear meanwhile that it is there.

Who waits takes a worker that is silent for longer than the time-out for lost. Long pieces of work
ask for the time again and again, so that whoever tells it can give a sign of life as well; while
functions are compiled nobody asks, and the compiler says when it begins and ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numba as nb
import numpy as np
from numba.core import event

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import by_clock, until
from gtvcvx.distributed._clock import now_here
from gtvcvx.distributed._parts import Parts

#: Seconds between two signs of life at least: less than any sensible time-out.
PULSE = 0.2
# So many seconds later no deadline is left.
_LATE = 1e12
#: Seconds that stand for no limit at all, so that Ctrl-C comes before it, and is one.
LONG = 1e9

Arrays = Sequence[FloatArray | IntArray]


def alone(parts: Parts, work: Callable[[], Arrays]) -> list[np.ndarray]:
    """Return in all workers the arrays that rank 0 computes; all workers call this.

    Everything goes on one thread, as it does over shards, and by the usual clock, not by that of
    the last sum. After Ctrl-C the time is over for whatever has a limit in there, such as `LONG`;
    the next sum raises KeyboardInterrupt in all workers.

    Parameters
    ----------
    parts : Parts
    work : callable
        Called at rank 0. It should look at the clock now and then.

    Returns
    -------
    list of ndarray
        Empty where Ctrl-C has come before, or has ended the work.
    """
    if parts.fabric.rank:
        # A sign of life has no arrays, an answer has one more than it seems.
        while not (told := parts.broadcast(None)):
            pass
        return told[1:]
    found: list[np.ndarray] = [np.zeros(0)]
    if not parts.clock.pressed:
        found += _worked(_Pulse(parts), work)
    parts.broadcast(found)
    return found[1:]


def _worked(pulse: _Pulse, work: Callable[[], Arrays]) -> Arrays:
    threads = nb.get_num_threads()
    nb.set_num_threads(1)  # more are taken where that was seen to be faster
    try:
        with by_clock(pulse.time), until(np.inf), _compiling(pulse):
            return work()
    except KeyboardInterrupt:
        if not pulse.late:
            raise  # nobody else will
        return []
    finally:
        nb.set_num_threads(threads)


def _compiling(pulse: _Pulse) -> AbstractContextManager[object]:
    """Let it hear of each function that is compiled."""
    listened: AbstractContextManager[object] = event.install_listener("numba:compile", pulse)
    return listened


class _Pulse(event.Listener):
    """A clock that lets the others know.

    Parameters
    ----------
    parts : Parts
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._last = time.monotonic()
        self._error: Exception | None = None

    def time(self) -> float:
        """Return the time, which is late after Ctrl-C; raises if a worker is lost."""
        self._beat()
        if self._error is not None:
            raise self._error
        return now_here() + (_LATE if self.late else 0.0)

    @property
    def late(self) -> bool:
        """Whether Ctrl-C has come, and the next sum will tell."""
        return self._parts.clock.pressed

    def on_start(self, event: event.Event) -> None:
        """Take note that a function is about to be compiled."""
        self._beat()

    def on_end(self, event: event.Event) -> None:
        """Take note that it was compiled."""
        self._beat()

    def _beat(self) -> None:
        # The time stands still while functions are compiled; silence does not.
        now = time.monotonic()
        if now < self._last + PULSE or self._error is not None:
            return
        try:
            self._parts.broadcast([])
        except Exception as error:
            # The compiler is not to be left half way.
            self._error = error
        self._last = now
