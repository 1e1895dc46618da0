"""Outward rounding against exact rational arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from verify.partitions._rounding import (
    inverse,
    largest_eigenvalue,
    positive_definite,
    smallest_eigenvalue,
)


def psd(rng: np.random.Generator, k: int, d: int, rank: int) -> np.ndarray:
    x = rng.standard_normal((k, rank, d))
    return np.einsum("kri,krj->kij", x, x)


@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_eigenvalue_enclosures_are_tight_and_hold_the_float_value(d: int) -> None:
    rng = np.random.default_rng(d)
    h = psd(rng, 40, d, d + 2)
    values = np.linalg.eigvalsh(h)
    for enclosure, exact in (
        (smallest_eigenvalue(h), values[:, 0]),
        (largest_eigenvalue(h), values[:, -1]),
    ):
        assert (enclosure.lo <= exact * (1 + 1e-12)).all()
        assert (enclosure.hi >= exact * (1 - 1e-12)).all()
        assert (enclosure.hi - enclosure.lo <= 1e-10 * values[:, -1]).all()


def test_positive_definiteness_is_claimed_only_when_true() -> None:
    """Exact rational elimination is the oracle on matrices within rounding of singular."""
    rng = np.random.default_rng(0)
    claims = 0
    for _ in range(200):
        d = int(rng.integers(1, 5))
        x = rng.integers(-3, 4, (d, d)).astype(float)
        matrix = x @ x.T + np.diag(rng.choice([0.0, 1e-17, 1e-15, 1e-3, -1e-16], d))
        claim = bool(positive_definite(matrix[None])[0])
        work = [[Fraction(v) for v in row] for row in matrix.tolist()]
        definite = True
        for i in range(d):
            if work[i][i] <= 0:
                definite = False
                break
            for k in range(i + 1, d):
                factor = work[k][i] / work[i][i]
                work[k] = [a - factor * b for a, b in zip(work[k], work[i], strict=True)]
        assert definite or not claim
        claims += claim
    assert claims > 50


def test_inverse_bound_covers_the_exact_inverse() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        x = rng.integers(-4, 5, (4, 3)).astype(float)
        h = x.T @ x + np.eye(3)
        approximate, bound = inverse(h[None], np.zeros(1))
        work = [[Fraction(v) for v in row] for row in h.tolist()]
        adjugate = [
            [
                (-1) ** (i + j)
                * (
                    work[(r := [k for k in range(3) if k != j])[0]][
                        (c := [k for k in range(3) if k != i])[0]
                    ]
                    * work[r[1]][c[1]]
                    - work[r[0]][c[1]] * work[r[1]][c[0]]
                )
                for j in range(3)
            ]
            for i in range(3)
        ]
        determinant = sum(work[0][j] * adjugate[j][0] for j in range(3))
        for i, j in itertools.product(range(3), range(3)):
            error = abs(adjugate[i][j] / determinant - Fraction(float(approximate[0, i, j])))
            assert error <= Fraction(float(bound[0]))
        assert bound[0] < 1e-12
