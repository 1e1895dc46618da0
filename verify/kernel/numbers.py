"""Exact numbers of the kernel: scaled integers, rationals and outward enclosures.

Every double is a dyadic rational, so tables of doubles become integers over one power of two.
Square roots come from `math.isqrt`, widened outwards, the few logarithms and exponentials of which
`grid_powers` makes tables from `decimal`, whose results are correctly rounded. Standard library
only, no floating-point arithmetic.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from typing import Any, NamedTuple

from verify.kernel import work
from verify.kernel.verdict import malformed, shown

Number = int | Fraction
_LARGEST = 1.7976931348623157e308


def round_up(x: Fraction) -> float:
    """Return the least float that is not below x."""
    try:
        f = x.numerator / x.denominator
    except OverflowError:
        return math.inf if x > 0 else -_LARGEST
    return f if Fraction(f) >= x else math.nextafter(f, math.inf)


def round_down(x: Fraction) -> float:
    """Return the greatest float that is not above x."""
    return -round_up(-x)


def upper_root(x: Fraction) -> Fraction:
    """Return a rational that is not below the square root of x >= 0, about as tight as floats."""
    half = max(0, 64 + (x.denominator.bit_length() - x.numerator.bit_length()) // 2)
    root = math.isqrt((x.numerator << 2 * half) // x.denominator) + (x > 0)
    return Fraction(root, 1 << half)


def sqrt_up(x: Fraction) -> float:
    """Return a float that is not below the square root of x >= 0, about as tight as floats are."""
    return round_up(upper_root(x))


_HEX = re.compile(r"(-?0x[0-9a-f]+)(?:\.([0-9a-f]+))?p([+-]?[0-9]{1,5})")
_RATIO = re.compile(r"(-?0x[0-9a-f]+)/(0x[0-9a-f]+)")
_MAX_EXPONENT = 20000  # products of a few doubles and a margin; keeps hostile files cheap
_MAX_DIGITS = 1 << 16  # of a numerator or a denominator


def _number(value: object) -> tuple[int, int] | Fraction:
    """Read a witness number: n 2^-k as (n, k) with k >= 0, or a Fraction."""
    if isinstance(value, str):
        if len(value) > 2 * _MAX_DIGITS:
            raise malformed(f"more than {2 * _MAX_DIGITS} characters in the number {value[:40]!r}")
        if match := _HEX.fullmatch(value):
            whole, part, exponent = match.groups()
            part = part or ""
            n, k = int(whole + part, 16), 4 * len(part) - int(exponent)
            if abs(k) > _MAX_EXPONENT:
                raise malformed(f"exponent out of range in {value[:40]!r}")
            return (n, k) if k >= 0 else (n << -k, 0)
        if (match := _RATIO.fullmatch(value)) and (q := int(match[2], 16)):
            return Fraction(int(match[1], 16), q)
    elif isinstance(value, int) and not isinstance(value, bool):
        return int(value), 0
    elif isinstance(value, float) and math.isfinite(value):
        n, denominator = value.as_integer_ratio()
        return n, denominator.bit_length() - 1
    raise malformed(f"not a finite number: {shown(value)}")


def scaled(values: Sequence[object]) -> tuple[list[Number], int]:
    """Return (v, k): the numbers are v_i 2^-k, v_i an int wherever that is possible."""
    read = [_number(v) for v in values]
    k = max((x[1] for x in read if isinstance(x, tuple)), default=0)
    rationals = [x for x in read if not isinstance(x, tuple)]
    bits = max((x[0].bit_length() + k - x[1] for x in read if isinstance(x, tuple)), default=0)
    work.read(len(read), bits, rationals, k)
    return [x[0] << (k - x[1]) if isinstance(x, tuple) else whole(x * (1 << k)) for x in read], k


def whole(x: Number) -> Number:
    """Return an integral Fraction as an int, which is faster, and anything else as it is."""
    return x.numerator if x.denominator == 1 else x


def as_list(value: Any, length: int | None, name: str) -> list[Any]:
    """Return an array, list or tuple of the given length as a list."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, list | tuple) or (length is not None and len(value) != length):
        size = "" if length is None else f" of length {length}"
        raise malformed(f"{name} must be a list{size}")
    return list(value)


def table(
    value: object, rows: int | None, columns: int, name: str
) -> tuple[list[list[Number]], int]:
    """Read a rows x columns table of witness numbers on one power of two, as `scaled` does."""
    parts = [as_list(row, columns, f"a row of {name}") for row in as_list(value, rows, name)]
    v, k = scaled([x for row in parts for x in row])
    found = [v[i * columns : (i + 1) * columns] for i in range(len(parts))]
    work.read_rows(found)
    return found, k


class Bounds(NamedTuple):
    """An enclosure lo <= value <= hi."""

    lo: Fraction
    hi: Fraction


def exactly(value: Number, k: int) -> Bounds:
    """Return the enclosure of exactly value 2^-k."""
    work.charge(work.fraction(work.length(value) + abs(k)))
    x = Fraction(value) * unit(k)
    return Bounds(x, x)


def unit(k: int) -> Fraction:
    """Return 2^-k."""
    return Fraction(1, 1 << k) if k >= 0 else Fraction(1 << -k)


def by_denominator(pairs: Iterable[tuple[int, Number]]) -> dict[int, Number]:
    """Add up the numerators of each denominator of (denominator, numerator)."""
    parts: dict[int, Number] = defaultdict(int)
    for q, v in pairs:
        parts[q] += v
    return parts


def quotients(parts: Mapping[int, Number], k: int) -> Bounds:
    """Enclose 2^-k sum of parts[q] / q: exactly for up to 64 denominators, else within 2^-256."""
    if len(parts) <= 64:
        return exactly(work.total(Fraction(v) / q for q, v in parts.items()), k)
    g = max(0, 256 + len(parts).bit_length() - k)
    lo = sum((v * (1 << g)) // q for q, v in parts.items())
    hi = -sum(-(v * (1 << g)) // q for q, v in parts.items())
    return Bounds(lo * unit(k + g), hi * unit(k + g))


def roots(values: Sequence[Number], weights: Sequence[int], k: int) -> Bounds:
    """Enclose sum of weights_i sqrt(values_i 2^-2k), weights_i >= 0, each root within 2^-64 of it.

    The error of a root is 2^-(k+64); a nonzero integer value makes that relative.
    """
    found = [root(v, 64) for v in values]
    lo, hi = (sum(a * x[j] for a, x in zip(weights, found, strict=True)) for j in (0, 1))
    return Bounds(lo * unit(k + 64), hi * unit(k + 64))


def root(v: Number, k: int) -> tuple[int, int]:
    """Enclose sqrt(v), v >= 0, in units of 2^-k, k >= 0: the largest integer below, and the next.

    Both are the root itself where it is an integer.
    """
    square, rest = divmod(v * (1 << 2 * k), 1)
    low = math.isqrt(int(square))
    return low, low + (rest != 0 or low * low != square)


_TRAPS = [InvalidOperation, DivisionByZero, Overflow]
_DECIMAL = Context(60, ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=_TRAPS)


def _decimal(x: Number) -> Decimal:
    """Return x rounded to 60 digits: relative error at most 1e-59."""
    return _DECIMAL.divide(Decimal(x.numerator), Decimal(x.denominator))


def exponential(z: Number) -> Fraction:
    """Return exp(z) for 0 <= z <= 1, off by at most 1e-57: z and exp(z) are rounded."""
    return Fraction(_DECIMAL.exp(_decimal(z)))


def logarithm(x: Number) -> Fraction:
    """Return ln(x) for x > 0, off by at most 1e-59 (1 + |ln(x)|): x and ln(x) are rounded."""
    return Fraction(_DECIMAL.ln(_decimal(x)))
