"""Powers on the grid: no logarithm, exponential or power is outside of what is said of it."""

from __future__ import annotations

import random
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

import pytest

from verify.kernel.grid_powers import GRID, ONE, exponential, logarithm, power

DIGITS = Context(120, Emin=MIN_EMIN, Emax=MAX_EMAX)
UNITS = Decimal(ONE)
COUNT = 3000


def log(n: int, d: int) -> Decimal:
    """Return ln(n/d) in units, right to some 80 digits."""
    return DIGITS.multiply(DIGITS.ln(DIGITS.divide(Decimal(n), Decimal(d))), UNITS)


def exp(y: Decimal) -> Decimal:
    """Return exp(y) in units, for y in units."""
    return DIGITS.multiply(DIGITS.exp(DIGITS.divide(y, UNITS)), UNITS)


def ratios(count: int) -> list[tuple[int, int]]:
    """Return n/d <= 1: of all sizes, short and long numbers, next to 1, and next to 2^-k r."""
    rng = random.Random(count)
    out = [(1, 1), (1, 2), (1, 3), (ONE - 1, ONE), (ONE, ONE + 1), (1, 1 << 3000)]
    out += [((i << 20) - 1, 1 << 29) for i in range(256, 513)]  # next to ends of table entries
    while len(out) < count:
        n = rng.getrandbits(rng.choice((1, 3, 10, 60, 200, 2000))) + 1
        out.append((n, n + rng.getrandbits(rng.choice((1, 5, 20, 60, 2000)))))
    return out


def test_logarithms_are_as_near_as_they_say() -> None:
    for n, d in ratios(COUNT):
        for x, y in ((n, d), (d, n)):
            value, error = logarithm(x, y)
            assert abs(value - log(x, y)) <= error <= 8 + abs(n.bit_length() - d.bit_length())


def test_exponentials_are_enclosed() -> None:
    rng = random.Random(1)
    sizes = [rng.choice((3, 60, 119, 121, 123, 126, 127, 130)) for _ in range(COUNT)]
    arguments = [-rng.getrandbits(size) for size in sizes] + [rng.getrandbits(123) for _ in sizes]
    ends = [(j << GRID - 8) + shift for j in range(-1024, 1024) for shift in (-1, 0)]
    for y in (0, 1, -1, *ends, *arguments):
        true = exp(Decimal(y))
        low, high = exponential(y)
        assert low <= true <= high, y
        assert high - low <= 600 * max(1, true / UNITS), y


@pytest.mark.parametrize("s", [Fraction(1.1), Fraction(7, 2), Fraction(10**9), Fraction(1, 7)])
def test_powers_are_enclosed_and_tight(s: Fraction) -> None:
    for n, d in ratios(COUNT // 3):
        for x, y in ((n, d), (d, n)) if s < 1 else ((n, d),):
            if x > y << 40:  # of no use, and no longer that tight
                continue
            exponent = DIGITS.divide(Decimal(s.numerator), Decimal(s.denominator))
            true = exp(DIGITS.multiply(log(x, y), exponent))
            low, high = power(x, y, s.numerator, s.denominator)
            assert 0 <= low <= true <= high
            assert x > y or high <= ONE
            assert high - low <= int(max(s, 1)) * max(1, x // y) << 16


def test_exponents_that_are_larger_than_the_grid_is_fine() -> None:
    """What is not known of the logarithm is then all there is, and stays on the safe side."""
    for n, d in ((ONE - 1, ONE), ((1 << 200) - 1, 1 << 200), (1, 3)):
        for s in (1 << 100, 1 << 125, 1 << 190, 10**300):
            low, high = power(n, d, s, 1)
            true = exp(DIGITS.multiply(log(n, d), s))
            assert 0 <= low <= true <= high <= ONE
