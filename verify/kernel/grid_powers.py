"""Powers on a grid: x^s in units of 2^-120, in some 5 us; with 60 digits of `decimal` it takes 120.

Logarithms and exponentials by tables and short series of integers. What is rounded or left out is
counted in units, on the safe side. Standard library only.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial

from verify.kernel import numbers

GRID = 120
ONE = 1 << GRID
STEPS = 70  # of a power, short numbers

_INDEX = 8  # bits by which tables are entered
_SHORT = 12  # bits of the inverses that bring a number close to 1
_ODD = [ONE // i for i in (13, 11, 9, 7, 5, 3)]  # coefficients of atanh(t) / t but the first
_TAYLOR = [ONE // factorial(i) for i in range(11, -1, -1)]


@cache
def _ln2() -> int:
    """Return ln 2, off by at most one unit, as all entries of tables."""
    return int(numbers.logarithm(2) * ONE)


@cache
def _inverse(i: int) -> tuple[int, int]:
    """Return r 2^12, r about 1 over what begins with the bits i, and -ln(r).

    Together they are within .0042 of 1: half a unit of i is at most 1/256 of it, and rounding r
    at most 1/4096.
    """
    r = round(Fraction(1 << _INDEX + _SHORT + 1, 2 * i + 1))
    return r, -int(numbers.logarithm(Fraction(r, 1 << _SHORT)) * ONE)


@cache
def _exp(j: int) -> int:
    """Return exp(j / 256)."""
    return int(numbers.exponential(Fraction(j, 1 << _INDEX)) * ONE)


def logarithm(n: int, d: int) -> tuple[int, int]:
    """Return ln(x), x = n/d > 0, and by how many units it may be off.

    x = 2^k m with 1/2 < m < 2, and ln m = ln(m r) - ln(r) with ln(m r) = 2 atanh(t), |t| < 2^-8.8:
    m is below by one unit, of 1/2 at least (2 units); t below by one (2.1); the series has terms
    each off by less than 3 units, times 2 |t|, and one for the last product (1.1); what it leaves
    out is below 2 |t|^15/15 (.1); the table of ln(r) is off by one, and k ln 2 by k. Below 8 + |k|.
    """
    k = n.bit_length() - d.bit_length()
    up = GRID - k
    m = (n << up) // d if up >= 0 else n // (d << -up)
    r, value = _inverse(m >> GRID - _INDEX)
    w, one = m * r, ONE << _SHORT
    t = ((w - one) << GRID) // (w + one)
    square = t * t >> GRID
    total = 0
    for c in _ODD:
        total = (total + c) * square >> GRID
    return value + (2 * t * (ONE + total) >> GRID) + k * _ln2(), 8 + abs(k)


def exponential(y: int) -> tuple[int, int]:
    """Enclose exp(y), y in units.

    y = k ln 2 + j/256 + g with 0 <= g < 1/256: the series leaves out less than 1.01 g^12/12! (.04)
    and has terms each off by less than 2 units, times g but for the last (2.02); exp(j/256) is
    below 2 and off by one, and the product rounded: below 7. y - k ln 2 is off by k units, times 2.
    """
    k, rest = divmod(y, _ln2())
    if k < -(GRID + 8):  # less than a unit
        return 0, 1
    j, g = divmod(rest, 1 << GRID - _INDEX)
    total = 0
    for c in _TAYLOR:
        total = (total * g >> GRID) + c
    value, error = total * _exp(j) >> GRID, 8 + 2 * abs(k)
    if k >= 0:
        return value - error << k, value + error << k
    return value - error >> -k, (value + error >> -k) + 1


def power(n: int, d: int, a: int, b: int) -> tuple[int, int]:
    """Enclose x^s, x = n/d > 0 and s = a/b > 0, for x <= 1, or x >= 1 and s <= 1."""
    if n == d:
        return ONE, ONE
    value, error = logarithm(n, d)
    least, most = (value - error) * a // b, -((value + error) * -a // b)
    most = min(most, 0) if n < d else most
    low, high = exponential(least)
    wide = most - least
    # exp(x + e) <= exp(x) (1 + 2 e) for 0 <= e <= 1
    high = high + (2 * high * wide >> GRID) + 1 if wide <= ONE else exponential(most)[1]
    return low, ONE if high > ONE and n < d else high
