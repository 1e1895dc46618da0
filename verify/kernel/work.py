"""Work of a check, counted: a hostile document gets an answer, not the machine. Standard library.

A step is about what an operation with small integers takes, 0.1 us; an operation with long numbers
counts as many. Steps are counted before they are taken, and there are more of them than the memory
they need has words, so that a budget bounds both. The count decides nothing but when to give up:
the answer is then UNPROVED. Nothing is counted unless a check runs, so that the builder may use the
kernel's arithmetic as it likes. Whoever runs a check may have it give up for reasons of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from math import isqrt, lcm
from typing import Any

from verify.kernel.verdict import Verdict

#: Steps for a document of up to `UNIT` bytes, and for every `UNIT` of a larger one: at most 5 s on
#: the machine of docs/benchmarks.md, half of what is promised.
STEPS = 50_000_000
UNIT = 1 << 20
#: Bytes that a number takes in a JSON text, for documents that are not text.
_BYTES = 20


class _Meter:
    """What has been done, and how long the numbers are that have been read.

    ``bits`` are those of the integers, ``long`` those of numerators and denominators of rationals
    that are none over a power of two, and ``common`` is a common denominator of them. Over one of
    its own the rationals of a row of a table are at most as long as ``row``, 0 without any.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.done = limit, 0
        self.bits, self.long, self.common, self.row = 0, 0, 1, 0


_METER: ContextVar[_Meter | None] = ContextVar("_METER", default=None)
_OVER: ContextVar[Callable[[], bool]] = ContextVar("_OVER", default=lambda: False)


@contextmanager
def unless(over: Callable[[], bool]) -> Iterator[None]:
    """Give up, in checks inside, where work is counted and this is true: `Verdict` (UNPROVED)."""
    token = _OVER.set(over)
    try:
        yield
    finally:
        _OVER.reset(token)


@contextmanager
def counted(limit: int) -> Iterator[None]:
    """Count the work inside; beyond the limit `charge` raises `Verdict` (UNPROVED)."""
    token = _METER.set(_Meter(limit))
    try:
        yield
    finally:
        _METER.reset(token)


def charge(steps: int) -> None:
    """Count steps that are about to be taken.

    Raises
    ------
    Verdict
        UNPROVED: there are more of them than the budget has left.
    """
    meter = _METER.get()
    if meter is not None:
        if _OVER.get()():
            raise Verdict("UNPROVED", "the check was given up")
        meter.done += steps
        if meter.done > meter.limit:
            raise Verdict(
                "UNPROVED",
                f"the check takes more than the budget of {meter.limit} steps: to raise it, give"
                " --budget STEPS (ten million take about a second)",
            )


def read(count: int, bits: int, rationals: Sequence[Fraction], shift: int) -> None:
    """Count numbers that are about to be made: integers of at most so many bits, and rationals."""
    meter = _METER.get()
    if meter is None:
        return
    meter.bits = max(meter.bits, bits)
    charge(count * (16 + (bits >> 6)))
    for x in rationals:
        size = max(x.numerator.bit_length() + shift, x.denominator.bit_length())
        meter.long = max(meter.long, size)
        if meter.common % x.denominator:
            charge(2 * addition(meter.common.bit_length(), x.denominator.bit_length()))
            meter.common = lcm(meter.common, x.denominator)
        charge(fraction(size))


def read_rows(table: Iterable[Sequence[int | Fraction]]) -> None:
    """Look how long the rows of a table are over a common denominator each."""
    meter = _METER.get()
    if meter is None or meter.common == 1:
        return
    for row in table:
        common = 1
        for x in row:
            if common % x.denominator:
                charge(2 * addition(common.bit_length(), x.denominator.bit_length()))
                common = lcm(common, x.denominator)
        if common > 1:
            meter.row = max(meter.row, common.bit_length() + meter.long)


def operations(count: int) -> None:
    """Count operations with integers as long as any that has been read, or products of two."""
    meter = _METER.get()
    if meter is not None:
        charge(count * product(2 * meter.bits))


def rows(count: int, width: int) -> None:
    """Count rows that so many rationals each take part in: sums of products, squared and added up.

    Unlike integers, rationals grow when they are added, until they have a common denominator:
    that of a row of a table, or of two, or of all.
    """
    meter = _METER.get()
    if meter is None or not count:
        return
    common = meter.common.bit_length()
    whole = meter.long + common
    size = min(width * meter.long, 2 * meter.row or whole, whole) + meter.bits
    each = width * addition(size, meter.long + meter.bits) + 6 * fraction(2 * size)
    charge(count * (each + 2 * addition(2 * (common + size), 2 * size)))


def sums(count: int) -> None:
    """Count rationals that are added to long sums of others."""
    meter = _METER.get()
    if meter is not None:
        short = meter.long + meter.bits
        charge(count * addition(short + meter.common.bit_length(), short))


def fractions(count: int) -> None:
    """Count operations with rationals as long as products of two numbers that have been read."""
    meter = _METER.get()
    if meter is not None:
        charge(count * fraction(meter.bits + meter.long + meter.common.bit_length()))


def divisions(count: int) -> None:
    """Count divisions of products of two integers that have been read; rationals count apart."""
    meter = _METER.get()
    if meter is not None:
        charge(count * fraction(2 * meter.bits))


def plus(a: int | Fraction, b: int | Fraction) -> int | Fraction:
    """Return a + b, counted by the lengths of these two where one of them is a rational.

    Sums at a node have the denominators of its own rationals, and not those of all others.
    """
    if type(a) is Fraction or type(b) is Fraction:
        one, other = length(a), length(b)
        charge(addition(max(one, other), min(one, other)))
    return a + b


def rational_rows(table: Iterable[Iterable[int | Fraction]]) -> int:
    """Return how many rows of a table have a rational; 0 if nothing is counted."""
    meter = _METER.get()
    if meter is None or meter.common == 1:
        return 0
    return sum(any(type(x) is Fraction for x in row) for row in table)


def product(bits: int) -> int:
    """Return the steps to multiply two integers of this length."""
    words = bits >> 9
    return 1 + words * (1 + 6 * isqrt(words))


def fraction(bits: int) -> int:
    """Return the steps to add or multiply rationals of this length, or to divide integers."""
    words = bits >> 9
    return 20 + 8 * words + 5 * words * words


def times(one: int, other: int) -> int:
    """Return the steps to multiply integers of these lengths, of which one may be short."""
    long, short = max(one, other), min(one, other)
    return min(product(long), addition(long, short))


def division(long: int, short: int) -> int:
    """Return the steps to divide an integer by a shorter one: words of the quotient times its."""
    words, by = long >> 9, short >> 9
    return 1 + words + 3 * max(0, words - by) * by


def addition(long: int, short: int) -> int:
    """Return the steps to add a short rational to a long one."""
    words, more = long >> 9, short >> 9
    return 20 + 6 * (words + more) + 5 * words * more


def length(x: int | Fraction) -> int:
    """Return the bits of a number, numerator and denominator."""
    return x.numerator.bit_length() + x.denominator.bit_length()


def total(values: Iterable[Fraction]) -> Fraction:
    """Add a few rationals that may have nothing in common."""
    out = Fraction(0)
    for x in values:
        charge(addition(max(length(out), length(x)), min(length(out), length(x))))
        out += x
    return out


def size_of(document: object) -> int:
    """Return about how many bytes a document of mappings, lists and arrays would take as a text."""
    size, seen, waiting = 0, set(), [document]
    while waiting:
        value: Any = waiting.pop()
        if isinstance(value, str):
            size += len(value)
        elif hasattr(value, "tolist"):
            size += _BYTES * int(getattr(value, "size", 1))
        elif isinstance(value, Mapping | list | tuple):
            if id(value) not in seen:
                seen.add(id(value))
                waiting.extend(value.values() if isinstance(value, Mapping) else value)
        else:
            size += _BYTES
    return size


def default_budget(size: int) -> int:
    """Return the steps for documents that take so many bytes together."""
    return STEPS * max(size, UNIT) // UNIT
