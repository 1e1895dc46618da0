"""Exact elimination, inverses and sign forms against NumPy and enumeration."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from verify.kernel.quadratic_forms import definite, inverted, largest_sign_form


@pytest.mark.parametrize("d", range(1, 6))
def test_elimination_agrees_with_eigenvalues(d: int) -> None:
    rng = np.random.default_rng(d)
    seen = set()
    for _ in range(60):
        x = rng.integers(-3, 4, (int(rng.integers(1, d + 2)), d))
        h = x.T @ x - int(rng.integers(0, 3)) * np.eye(d, dtype=np.int64)
        matrix = [[Fraction(v, 8) for v in row] for row in h.tolist()]
        least = np.linalg.eigvalsh(h.astype(float))[0]
        answer = definite(matrix)
        assert answer == (least > -1e-9, least > 1e-9)
        seen.add(answer)
        signs = itertools.product((-1, 1), repeat=d)
        largest = max(int(np.array(s) @ h @ np.array(s)) for s in signs)
        assert largest_sign_form(matrix) == Fraction(largest, 8)
        inverse = inverted(matrix)
        assert (inverse is not None) == (least > 1e-9)
        if inverse is not None:
            product = [
                [sum(a * b for a, b in zip(r, c, strict=True)) for c in matrix] for r in inverse
            ]
            assert product == [[Fraction(i == j) for j in range(d)] for i in range(d)]
    assert seen == {(True, True), (True, False), (False, False)}
