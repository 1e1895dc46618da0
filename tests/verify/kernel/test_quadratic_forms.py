"""Upper diagonals, upper inverses and sign forms against NumPy and enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from verify.instance._roots import inverted, root_of
from verify.kernel.matrices import EMPTY, Matrix, lower_diagonal
from verify.kernel.quadratic_forms import largest_sign_form, upper_diagonal, upper_inverse


def fractions(h: Any, scale: int = 8) -> Matrix:
    return [[Fraction(int(v), scale) for v in row] for row in h]


def form(matrix: Matrix, v: Any) -> Fraction:
    rows = [sum((x * b for x, b in zip(row, v, strict=True)), Fraction(0)) for row in matrix]
    return sum((x * a for x, a in zip(rows, v, strict=True)), Fraction(0))


def definite(d: int, rng: np.random.Generator) -> Matrix:
    x = rng.integers(-3, 4, (d + 1, d))
    return fractions(x.T @ x + np.eye(d, dtype=np.int64))


@pytest.mark.parametrize("d", range(1, 6))
def test_sign_forms_are_those_of_enumeration(d: int) -> None:
    rng = np.random.default_rng(d)
    for _ in range(20):
        x = rng.integers(-3, 4, (int(rng.integers(1, d + 2)), d))
        h = x.T @ x - int(rng.integers(0, 3)) * np.eye(d, dtype=np.int64)
        signs = itertools.product((-1, 1), repeat=d)
        largest = max(int(np.array(s) @ h @ np.array(s)) for s in signs)
        assert largest_sign_form(fractions(h)) == Fraction(largest, 8)


@pytest.mark.parametrize("d", range(1, 5))
def test_the_upper_diagonal_is_above_the_matrix(d: int) -> None:
    rng = np.random.default_rng(d)
    for _ in range(10):
        h = definite(d, rng)
        root = (rng.integers(-3, 4, (int(rng.integers(0, 3)), d)).tolist(), 1)
        t = upper_diagonal(h, root)
        for v in itertools.product((-2, 0, 1, 3), repeat=d):
            assert form(h, v) <= sum(a * x * x for a, x in zip(t, v, strict=True))
    assert upper_diagonal(h, EMPTY) == [sum(map(abs, row)) for row in h]


@pytest.mark.parametrize("d", range(1, 5))
@pytest.mark.parametrize("error", [0.0, 2.0**-20, 0.25])
def test_the_upper_inverse_is_above_the_inverse_whatever_is_guessed(d: int, error: float) -> None:
    rng = np.random.default_rng(d)
    for _ in range(10):
        h = definite(d, rng)
        root, exact = root_of(h, strict=True), inverted(h)
        assert root is not None
        assert exact is not None
        noise = (rng.integers(-3, 4, (d, d)) * error).tolist()  # not symmetric
        guess = [[x + Fraction(e) for x, e in zip(*rows, strict=True)]
                 for rows in zip(exact, noise, strict=True)]  # fmt: skip
        scaled = [[4 * x for x in row] for row in guess]
        mu = min(lower_diagonal(h, root))
        upper = upper_inverse(h, (scaled, 2), mu)
        assert upper == [list(row) for row in zip(*upper, strict=True)]
        if not error:
            assert upper == exact
        for v in itertools.product((-1, 0, 1, 2), repeat=d):
            assert form(exact, v) <= form(upper, v)


@pytest.mark.parametrize("d", range(1, 6))
def test_inverses_of_the_builder(d: int) -> None:
    rng = np.random.default_rng(d)
    h = definite(d, rng)
    inverse = inverted(h)
    assert inverse is not None
    product = [[sum(a * b for a, b in zip(r, c, strict=True)) for c in h] for r in inverse]
    assert product == [[Fraction(i == j) for j in range(d)] for i in range(d)]
    h[0][0] -= 1000
    assert inverted(h) is None
