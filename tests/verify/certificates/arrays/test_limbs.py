"""Long integers in compiled code against Python's, which are exact."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.certificates.arrays import _limbs as limbs
from verify.certificates.arrays._convert import words_of
from verify.certificates.arrays._grid_flow import trimmed

LARGEST = (1 << 63) - 1
signed = st.one_of(
    st.integers(-LARGEST, LARGEST),
    st.sampled_from([0, 1, -1, LARGEST, -LARGEST, 1 << 62, (1 << 32) - 1, -(1 << 32)]),
)
words = st.integers(1, 5)


def long(values: Any, count: int) -> Any:
    return words_of(values, count).astype(np.uint64)


def wrapped(x: int, count: int) -> int:
    """Return x modulo 2^(64 count), with a sign."""
    half = 1 << (64 * count - 1)
    return (x + half) % (2 * half) - half


@given(st.lists(st.tuples(signed, signed, st.integers(0, 300)), min_size=1), words)
def test_sums_of_products(parts: list[tuple[int, int, int]], count: int) -> None:
    out = np.zeros((1, 1, count), dtype=np.uint64)
    for a, b, shift in parts:
        mantissa, exponent = np.array([[a]]), np.array([[shift]])
        limbs.add_rows(out, np.zeros(1, np.int64), mantissa, exponent, np.array([b]), 0)
    assert limbs.integer(out[0, 0]) == wrapped(sum(a * b << s for a, b, s in parts), count)


@given(st.lists(st.tuples(signed, signed), min_size=3, max_size=3), st.integers(0, 150), words)
def test_divergence(flows: list[tuple[int, int]], shift: int, count: int) -> None:
    edges = np.array([[0, 1], [0, 2], [1, 2]])
    out = np.zeros((3, 2, count), dtype=np.uint64)
    limbs.add_divergence(out, edges, np.array(flows), shift)
    for j in range(2):
        a, b, c = (row[j] << shift for row in flows)
        found = [limbs.integer(out[i, j]) for i in range(3)]
        assert found == [wrapped(x, count) for x in (a + b, c - a, -b - c)]


@given(st.lists(signed, min_size=4, max_size=4), words)
def test_what_is_carried_to_the_root(values: list[int], count: int) -> None:
    """Nodes 0 - 1 - 3 and 0 - 2; the flow on an edge takes away what its child has."""
    rho = long(values, count).reshape(4, 1, count)
    flow = np.zeros_like(rho)
    parent, edge = np.array([-1, 0, 0, 1]), np.array([-1, 0, 1, 2])
    limbs.route(rho, flow, np.arange(4), parent, edge, np.array([1, -1, -1, -1]))
    total = [limbs.integer(x[0]) for x in rho]
    assert total == [wrapped(sum(values), count), 0, 0, 0]
    carried = [limbs.integer(x[0]) for x in flow]
    a, b, c, d = values
    assert carried == [wrapped(x, count) for x in (0, b + d, c, d)]
    assert a + carried[1] + carried[2] == total[0] or count < 2


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_split_exactly(x: float) -> None:
    mantissa, exponent = np.empty(1, np.int64), np.empty(1, np.int64)
    limbs.split(np.array([x]), mantissa, exponent)
    m, e = int(mantissa[0]), int(exponent[0])
    assert m * Fraction(2) ** e == Fraction(x)
    assert m % 2 == 1 or (m, e) == (0, 0)


@given(st.integers(-(1 << 180), 1 << 180), st.integers(0, 200))
def test_rounded_to_doubles(x: int, k: int) -> None:
    found = limbs.doubles(long([x], 3), k)
    assert found == pytest.approx([float(Fraction(x, 1 << k))], rel=1e-15, abs=0)


@given(st.integers(-(1 << 127), (1 << 127) - 1))
def test_signs_and_words_that_only_repeat_them(x: int) -> None:
    assert limbs.integer(limbs.negated(long([x], 3))[0]) == -x
    short = trimmed(long([x], 4))
    assert limbs.integer(short[0]) == x
    assert short.shape[-1] == x.bit_length() // 64 + 1 if x >= 0 else True
