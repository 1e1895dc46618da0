"""A deadline that long pieces look at, wherever they are called from, and an allowance for work.

Gap checks, conjugate gradients and loops over users' losses lie many calls below whoever knows the
time limit. They look at the clock between their pieces; whoever set the deadline catches `Expired`
and has something to fall back on. What was begun is dropped: half a repair bounds nothing.

Whether a check is worth what it takes must not depend on the clock: there they spend from an
allowance what they count, and `Unaffordable` says that it is used up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from verify._deadline import Expired, by_clock, look, now, until

__all__ = [
    "Allowance",
    "Expired",
    "Unaffordable",
    "allowing",
    "by_clock",
    "look",
    "now",
    "pieces",
    "seconds_until",
    "spend",
    "until",
]

# What is left for a solve when the time is over: it returns what it was started from.
_LEAST_SECONDS = 1e-3

_allowance: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


class Unaffordable(Exception):
    """The allowance is used up."""


@dataclass
class Allowance:
    """Work that may be done, and what was done of it, in nanoseconds of one core: counted.

    Attributes
    ----------
    most, spent : float
    """

    most: float = math.inf
    spent: float = 0.0


@contextmanager
def allowing(allowance: Allowance) -> Iterator[None]:
    """Have the block spend from an allowance; it replaces the one outside."""
    token = _allowance.set(allowance)
    try:
        yield
    finally:
        _allowance.reset(token)


def spend(price: float) -> None:
    """Spend a price from the allowance, if there is one.

    Raises
    ------
    Unaffordable
        It is used up.
    """
    allowance = _allowance.get()
    if allowance is not None:
        allowance.spent += price
        if allowance.spent > allowance.most:
            raise Unaffordable


def pieces(count: int, size: int) -> Iterator[slice]:
    """Cut 0 .. count - 1 into pieces of at most so many, and look at the clock between them."""
    for first in range(0, count, size):
        if first:
            look()
        yield slice(first, min(first + size, count))


def seconds_until(end: float, share: float = 1.0) -> float | None:
    """Return the time limit of what has so much of the time until `end`; None if that is infinite.

    `end` is a time by `now`.
    """
    return None if math.isinf(end) else max(share * (end - now()), _LEAST_SECONDS)
