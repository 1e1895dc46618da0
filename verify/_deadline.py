"""A deadline that long pieces look at, wherever they are called from.

They lie many calls below whoever knows the time limit, and look at the clock between their parts;
whoever set the deadline catches `Expired` and has something to fall back on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from verify._compilation import CLOCK

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
_clock: ContextVar[Callable[[], float] | None] = ContextVar("clock", default=None)


class Expired(Exception):
    """The deadline has passed."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Set the deadline inside the block, by `now`; it replaces the one outside."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def now() -> float:
    """Return the time by the clock that deadlines are told by.

    It stands still while functions are compiled, which happens once and is no part of a solve.
    """
    clock = _clock.get()
    return CLOCK.now() if clock is None else clock()


@contextmanager
def by_clock(clock: Callable[[], float] | None) -> Iterator[None]:
    """Tell the time by another clock inside the block, or by the usual one (None)."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


def passed() -> bool:
    """Say whether the deadline has passed."""
    deadline = _deadline.get()
    return deadline < math.inf and now() >= deadline


def look() -> None:
    """Look at the clock.

    Raises
    ------
    Expired
        The deadline has passed.
    """
    if passed():
        raise Expired
