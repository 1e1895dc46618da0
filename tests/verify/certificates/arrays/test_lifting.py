"""Exact solutions of integer systems: the system itself says whether they are right."""

from fractions import Fraction

import numpy as np
import pytest

from verify.certificates.arrays._lifting import PRIME, solve
from verify.instance import _integers as integers


def system(d: int, bits: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    count = d * d + d
    parts = rng.integers(-(2**62), 2**62, count), rng.integers(0, bits, count)
    values = [int(x) << int(s) for x, s in zip(*parts, strict=True)]
    whole = np.array(values, dtype=object)
    return whole[: d * d].reshape(d, d), whole[d * d :]


@pytest.mark.parametrize(("d", "bits", "seed"), [(1, 1, 0), (2, 40, 1), (7, 100, 2), (30, 20, 3)])
def test_the_solution_of_elimination(d: int, bits: int, seed: int) -> None:
    a, b = system(d, bits, seed)
    found = solve(a, b)
    assert found is not None
    assert found == integers.solve(a, b)


def test_zero_and_fractions_with_different_denominators() -> None:
    a = np.diag(np.array([3, 7, 1 << 80], dtype=object))
    b = np.array([0, 1, 5], dtype=object)
    assert solve(a, b) == [Fraction(0), Fraction(1, 7), Fraction(5, 1 << 80)]


@pytest.mark.parametrize("pivot", [0, PRIME])
def test_singular_modulo_the_prime(pivot: int) -> None:
    a = np.array([[pivot, 0], [0, 1]], dtype=object)
    assert solve(a, np.array([1, 1], dtype=object)) is None
