"""What ends the work on a certificate early: its time limit, and Ctrl-C."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from verify._compilation import CLOCK
from verify._deadline import passed, until
from verify._interrupts import noticed
from verify.kernel.work import unless

AT_LEAST = 10.0  # seconds that solving again may take where the caller sets no limit,
PER_ENTRY = 1e-3  # more for every entry of w and u,
PER_SECOND = 10.0  # and for every second of the builder's own work so far

LONGEST = 5.0  # seconds that a step may be foretold to take: of one that cannot be stopped

#: What helps where no flow was given, and where one was.
GIVE_FLOW = "give u, the flow of a solution"
GIVE_BETTER = "give w and u of a solution with a smaller gap"


class Clock:
    """Times one certificate.

    Parameters
    ----------
    limit : float or None
        Seconds for all of it; what is compiled meanwhile, once, is not counted.
    entries : int
        Number of entries of w and u, once they are known.
    """

    def __init__(self, limit: float | None, entries: int = 0) -> None:
        self.limit, self.entries = limit, entries
        self._start, self._solving = CLOCK.now(), 0.0
        self.stopped_solving: float | None = None

    @property
    def deadline(self) -> float:
        """When the caller's limit is over, by `verify._deadline.now`; perhaps infinite."""
        return math.inf if self.limit is None else self._start + self.limit

    @contextmanager
    def kept(self) -> Iterator[None]:
        """End the block at the limit by `Expired`, and checks by the kernel by UNPROVED."""
        with until(self.deadline), unless(passed):
            yield

    def expired(self) -> bool:
        """Return whether the caller's limit is over."""
        return self.limit is not None and CLOCK.now() - self._start >= self.limit

    def affords(self, seconds: float) -> bool:
        """Return whether something that takes so long, and cannot be stopped, may be begun."""
        if self.limit is None:
            return seconds <= LONGEST
        return seconds <= min(LONGEST, self.limit - (CLOCK.now() - self._start))

    def note(self, wanted: str = GIVE_FLOW) -> str | None:
        """Return what ran out of time and what to change, None if nothing did.

        Parameters
        ----------
        wanted : str
            What would help beside more time.
        """
        if self.expired():
            return f"the time limit of {self.limit:g} s ran out: raise time_limit, or {wanted}"
        if self.stopped_solving is not None:
            return (
                f"solving again was stopped after {self.stopped_solving:.3g} s: {wanted}, "
                "or a time_limit that is longer"
            )
        return None

    def for_solving(self) -> float:
        """Return the seconds that solving again may take."""
        elapsed = CLOCK.now() - self._start
        if self.limit is not None:
            return max(self.limit - elapsed, 0.01)
        own = elapsed - self._solving
        return AT_LEAST + PER_ENTRY * self.entries + PER_SECOND * own

    @contextmanager
    def solving(self) -> Iterator[float]:
        """Give the block its seconds, and remember if it took them all; raise Ctrl-C after it.

        A solver may take Ctrl-C as its own end and return what it has.
        """
        allowed, start = self.for_solving(), CLOCK.now()
        with noticed() as pressed:
            try:
                yield allowed
            finally:
                taken = CLOCK.now() - start
                self._solving += taken
                if taken >= 0.99 * allowed:
                    self.stopped_solving = taken
        if pressed:
            raise KeyboardInterrupt
