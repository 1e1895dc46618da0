"""The lower diagonal of a matrix by a root: below the matrix whatever the root is."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from verify.kernel.matrices import EMPTY, lower_diagonal
from verify.kernel.numbers import table
from verify.kernel.verdict import Verdict


@pytest.mark.parametrize("seed", range(12))
def test_the_lower_diagonal_is_below_the_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    m = rng.integers(-4, 5, (d, d))
    m += m.T
    root = (rng.integers(-3, 4, (int(rng.integers(0, 4)), d)).tolist(), int(rng.integers(0, 3)))
    plus = (rng.integers(-3, 4, (int(rng.integers(0, 3)), d)).tolist(), 1)
    t = lower_diagonal(m.tolist(), root, plus)
    rows = np.array(plus[0]).reshape(-1, d) / 2
    for v in itertools.product((-2, -1, 0, 1, 3), repeat=d):
        form = v @ (m + rows.T @ rows) @ np.array(v)
        assert sum(a * x * x for a, x in zip(t, v, strict=True)) <= Fraction(float(form))


def test_the_lower_diagonal_is_the_formula() -> None:
    matrix = [[Fraction(5), Fraction(-1, 3)], [Fraction(-1, 3), Fraction(7)]]
    root = ([[1, 2], [Fraction(1, 3), 0]], 1)
    g = [
        [5 - Fraction(1 + Fraction(1, 9)) / 4, Fraction(-1, 3) - Fraction(2, 4)],
        [0, 7 - Fraction(4, 4)],
    ]
    assert lower_diagonal(matrix, root) == [g[0][0] - abs(g[0][1]), g[1][1] - abs(g[0][1])]
    assert lower_diagonal(matrix, EMPTY) == [5 - Fraction(1, 3), 7 - Fraction(1, 3)]
    assert lower_diagonal(matrix, EMPTY, ([[2, 0]], 0)) == [9 - Fraction(1, 3), 7 - Fraction(1, 3)]


@pytest.mark.parametrize("rows", [None, {}, 3, [[1]], [[1, 2, 3]], [1, 2], [[1, "x"]], [[1, None]]])
def test_roots_of_another_shape_are_malformed(rows: object) -> None:
    with pytest.raises(Verdict, match="malformed"):
        table(rows, None, 2, "root")
