"""One clock and one Ctrl-C for all workers.

Workers make the same decisions because they see the same numbers; times are numbers, too. So each
worker goes by the clock of rank 0 as of the last sum over all shards, and Ctrl-C, which rank 0
notices, is raised everywhere after the same sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gtvcvx._deadline import by_clock, now
from verify._interrupts import noticed

# As often as that Ctrl-C is taken as a wish to end the run, and only then as one to break it off.
_PATIENT = 2


class AgreedClock:
    """What all workers take for the time, and for Ctrl-C.

    Parameters
    ----------
    rank : int
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._time = 0.0
        self._pressed: list[int] = []
        self._seen = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the block go by this clock; Ctrl-C waits for the next sum."""
        with noticed(raised=False, most=_PATIENT) as self._pressed, by_clock(lambda: self._time):
            yield

    @property
    def pressed(self) -> bool:
        """Whether Ctrl-C was pressed here, and nobody has heard of it."""
        return len(self._pressed) > self._seen

    def tell(self) -> tuple[float, float]:
        """Return what goes with a sum: the time at rank 0, and how often Ctrl-C was pressed."""
        return now_here(), float(len(self._pressed))

    def hear(self, time: float, pressed: float) -> None:
        """Take what came from rank 0 with a sum.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C was pressed since the last sum.
        """
        self._time = time
        if pressed > self._seen:
            self._seen = int(pressed)
            raise KeyboardInterrupt


def now_here() -> float:
    """Return the time by this process's own clock."""
    with by_clock(None):
        return now()
