"""Containment of every primitive of the kernel against oracles of higher precision."""

from fractions import Fraction
from math import isqrt, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.kernel import numbers
from verify.kernel.verdict import Verdict

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
FRACTIONS = st.fractions(max_denominator=10**30)


@given(FLOATS)
def test_every_spelling_of_a_double_is_read_exactly(x: float) -> None:
    n, d = x.as_integer_ratio()
    spellings = [x, x.hex(), f"{n:#x}/{d:#x}", f"{n:#x}p{1 - d.bit_length():+d}"]
    for spelling in spellings:
        (v,), k = numbers.scaled([spelling])
        assert v * numbers.unit(k) == Fraction(x)


@given(st.lists(FRACTIONS, max_size=5))
def test_ratios_are_read_exactly_on_one_power_of_two(values: list[Fraction]) -> None:
    read, k = numbers.scaled([f"{x.numerator:#x}/{x.denominator:#x}" for x in values])
    assert [v * numbers.unit(k) for v in read] == values


@pytest.mark.parametrize(
    "value",
    ["", "1", "0x", "0x1", "1p3", "0x1p", "0x1p99999", "0x1p-99999", "0X1P3", " 0x1p3", "0x1p3 ",
     "0x1_0p3", "0x1.p3", "+0x1p3", "0x1/0x0", "0x1/-0x3", "1/3", "nan", "inf", "0x1p٣",
     True, None, [], {}, float("nan"), float("inf")],
)  # fmt: skip
def test_what_is_not_a_number_is_refused(value: object) -> None:
    with pytest.raises(Verdict, match="malformed"):
        numbers.scaled([value])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_doubles_in_bulk_are_read_as_one_by_one(values: list[float]) -> None:
    """Products with powers of two are exact; texts of the same numbers go the other way."""
    found, k = numbers.scaled(values)
    (*slowly, _), own = numbers.scaled([*values, 0])  # an int among them
    assert (found, k) == (slowly, own)
    assert [Fraction(v) / 2**k for v in found] == list(map(Fraction, values))


@given(FRACTIONS)
def test_rounding_is_outward_and_tight(x: Fraction) -> None:
    up, down = numbers.round_up(x), numbers.round_down(x)
    assert Fraction(down) <= x <= Fraction(up)
    assert up in (down, nextafter(down, np.inf))


def test_rounding_beyond_the_doubles() -> None:
    big = Fraction(2) ** 2000
    assert numbers.round_up(big) == np.inf
    assert numbers.round_down(big) == np.finfo(float).max
    assert numbers.round_up(-big) == -np.finfo(float).max


@given(st.fractions(min_value=0, max_denominator=10**30))
def test_square_root_upper_bound(x: Fraction) -> None:
    root = Fraction(numbers.sqrt_up(x))
    assert root * root >= x
    assert root == 0 or (root * (1 - Fraction(1, 10**15))) ** 2 < x


@given(
    st.lists(st.one_of(st.integers(0, 10**40), st.fractions(min_value=0)), max_size=6),
    st.integers(0, 200),
)
def test_sum_of_roots_is_enclosed(values: list[Fraction | int], k: int) -> None:
    weights = [3 + i for i in range(len(values))]
    bounds = numbers.roots(values, weights, k)
    scale = 10**60
    low = high = Fraction(0)
    for v, a in zip(values, weights, strict=True):
        root = isqrt(int(v * scale * scale))
        low += Fraction(a * root, scale)
        high += Fraction(a * (root + 1), scale)
    assert bounds.lo <= high * numbers.unit(k)
    assert bounds.hi >= low * numbers.unit(k)
    assert bounds.hi - bounds.lo <= sum(weights) * numbers.unit(k + 64)


@given(
    st.one_of(st.integers(0, 10**40), st.fractions(min_value=0)),
    st.integers(0, 300),
)
def test_root_is_enclosed_by_neighbours(v: Fraction | int, k: int) -> None:
    low, high = numbers.root(v, k)
    unit = numbers.unit(k)
    assert (low * unit) ** 2 <= v <= (high * unit) ** 2
    assert high - low <= 1
    assert (high == low) == ((low * unit) ** 2 == v)


def test_roots_of_squares_are_exact() -> None:
    bounds = numbers.roots([49, Fraction(9, 16)], [2, 4], 0)
    assert bounds == (Fraction(17), Fraction(17))


@given(st.dictionaries(st.integers(1, 10**9), st.fractions(), max_size=100), st.integers(-5, 300))
def test_quotients_are_enclosed(parts: dict[int, Fraction], k: int) -> None:
    exact = sum((v / q for q, v in parts.items()), Fraction(0)) * numbers.unit(k)
    bounds = numbers.quotients(parts, k)
    assert bounds.lo <= exact <= bounds.hi
    assert bounds.hi - bounds.lo <= Fraction(1, 2**250)


@pytest.mark.parametrize("count", [64, 65])
def test_quotients_on_both_sides_of_the_switch(count: int) -> None:
    bounds = numbers.quotients(dict.fromkeys(range(3, 3 + count), 1), 0)
    exact = sum(Fraction(1, q) for q in range(3, 3 + count))
    assert bounds.lo <= exact <= bounds.hi
    assert (bounds.lo == bounds.hi) == (count == 64)
