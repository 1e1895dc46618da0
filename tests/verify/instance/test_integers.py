"""Bulk exact arithmetic against plain Fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from verify.instance import _integers as integers
from verify.kernel.numbers import scaled, unit

ARRAYS = hnp.arrays(
    np.float64, st.integers(0, 6), elements=st.floats(allow_nan=False, allow_infinity=False)
)


@given(ARRAYS)
def test_dyadic_is_exact(a: np.ndarray) -> None:
    v, k = integers.dyadic(a)
    assert [Fraction(x) / 2**k for x in v] == [Fraction(x) for x in a.tolist()]
    assert k == 0 or any(x % 2 for x in v)


@given(ARRAYS, st.integers(0, 1200))
def test_grid_is_the_closest_integer(a: np.ndarray, k: int) -> None:
    for x, v in zip(a.tolist(), integers.to_grid(a, k), strict=True):
        assert abs(v - Fraction(x) * 2**k) <= Fraction(1, 2)


@given(
    st.lists(st.one_of(st.integers(), st.fractions()), min_size=1, max_size=4), st.integers(0, 200)
)
def test_text_is_read_back_exactly(values: list[Fraction | int], k: int) -> None:
    texts = integers.texts(np.array(values, dtype=object), k)
    read, scale = scaled(texts)
    assert [v * unit(scale) for v in read] == [Fraction(v) / 2**k for v in values]


@given(hnp.arrays(np.float64, 3, elements=st.floats(-1e300, 1e300)), st.integers(0, 60))
def test_floats_come_back(a: np.ndarray, shift: int) -> None:
    v, k = integers.dyadic(a)
    back = integers.to_floats(v * (1 << shift), k + shift)
    np.testing.assert_allclose(back, a, rtol=1e-15, atol=np.abs(a).max() * 1e-290)


@pytest.mark.parametrize("seed", range(20))
def test_integer_solve_against_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, r = (int(x) for x in rng.integers(1, 6, 2))
    a = rng.integers(-9, 10, (d, r)).astype(object)
    if seed % 3 == 0 and d > 1:
        a[-1] = a[0] * 2  # dependent rows
    b = a @ rng.integers(-5, 6, r).astype(object)
    x = integers.solve(a, b)
    assert x is not None
    for row, goal in zip(a, b, strict=True):
        assert sum(c * v for c, v in zip(row, x, strict=True)) == goal
    if seed % 3 == 0 and d > 1:
        b[-1] += 1
        assert integers.solve(a, b) is None
