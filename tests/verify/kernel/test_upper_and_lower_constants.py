"""Attacks on the constants of Theorem 2: random roots and inverses never prove too much."""

from __future__ import annotations

import itertools
import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from verify._arrays import FloatArray
from verify.instance._roots import root_of
from verify.kernel.constants import _upper_beta, is_lower_alpha
from verify.kernel.matrices import EMPTY, Matrix, Root

EXAMPLES = 150 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
NORMS = ("l1", "l2", "linf")


def fractions(h: Any) -> Matrix:
    return [[Fraction(x) for x in row] for row in h.tolist()]


def signs(d: int) -> list[FloatArray]:
    return [np.array(s, dtype=float) for s in itertools.product((1.0, -1.0), repeat=d)]


def alpha_of(h: FloatArray, norm: str) -> float:
    inverse = np.linalg.inv(h)
    if norm == "l2":
        return float(np.linalg.eigvalsh(h)[0])
    if norm == "linf":
        return 1 / float(np.diag(inverse).max())
    return 1 / max(float(s @ inverse @ s) for s in signs(len(h)))


def beta_of(h: FloatArray, norm: str) -> float:
    if norm == "l2":
        return float(np.linalg.eigvalsh(h)[-1])
    if norm == "l1":
        return float(np.diag(h).max())
    return max(float(s @ h @ s) for s in signs(len(h)))


def hessian(rng: np.random.Generator, d: int) -> FloatArray:
    x = rng.integers(-3, 4, (d + 2, d)).astype(float) * rng.choice([1.0, 1.0, 4.0], d)
    return np.asarray(x.T @ x + np.eye(d))


def some_root(rng: np.random.Generator, h: FloatArray) -> Root:
    """Return no root, a good one, a good one with an entry changed, or anything."""
    d = len(h)
    kind = int(rng.integers(0, 4))
    good = root_of(fractions(h), strict=True) if kind in (1, 2) else EMPTY
    assert good is not None
    rows = [list(row) for row in good[0]]
    if kind == 2 and rows:
        rows[int(rng.integers(0, len(rows)))][int(rng.integers(0, d))] += int(rng.integers(-9, 10))
    if kind == 3:
        rows = rng.integers(-3, 4, (int(rng.integers(1, 4)), d)).tolist()
    return rows, good[1]


def some_inverse(rng: np.random.Generator, h: FloatArray) -> Root | None:
    """Return none, a rounded one, one that is far off, or zeros."""
    kind = int(rng.integers(0, 4))
    if kind == 0:
        return None
    error = {1: 0.0, 2: 0.1, 3: 1.0}[kind]
    noise = error * rng.integers(-2, 3, h.shape)
    guess = (np.linalg.inv(h) if kind < 3 else 0.0 * h) + noise * (kind < 3)
    return np.rint(guess * 2.0**40).astype(int).tolist(), 40


@pytest.mark.parametrize("norm", NORMS)
def test_whatever_is_proved_of_alpha_is_true(norm: str) -> None:
    rng = np.random.default_rng(1)
    proved = 0
    for _ in range(EXAMPLES):
        h = hessian(rng, int(rng.integers(1, 4)))
        root, inverse, true = some_root(rng, h), some_inverse(rng, h), alpha_of(h, norm)
        for factor in (0.2, 1 - 1e-6):
            alpha = Fraction(true * factor)
            proved += is_lower_alpha(fractions(h), alpha, norm, root, inverse)
        for factor in (1 + 1e-6, 2.0, 1e9):
            assert not is_lower_alpha(fractions(h), Fraction(true * factor), norm, root, inverse)
    assert proved > EXAMPLES // 4


@pytest.mark.parametrize("norm", NORMS)
def test_whatever_is_proved_of_beta_is_true(norm: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(EXAMPLES):
        h = hessian(rng, int(rng.integers(1, 4)))
        bound = _upper_beta(fractions(h), norm, some_root(rng, h))
        assert float(bound) >= beta_of(h, norm) * (1 - 1e-12)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_no_inverse_helps_where_the_root_leaves_no_margin(norm: str) -> None:
    """With a negative mu the rest S^T S / mu would lower the bound of the inverse."""
    h = fractions(np.array([[1.0, 0.75], [0.75, 1.0]]))
    zeros: Root = ([[0, 0], [0, 0]], 0)
    for root in (([[2, 0]], 0), ([[1, 1]], 0)):
        assert not is_lower_alpha(h, Fraction(100), norm, root, zeros)
    exact_zero: Root = ([[Fraction(1, 2), 0]], 0)  # leaves 3/4 - 3/4 = 0
    assert not is_lower_alpha(h, Fraction(1, 10), norm, exact_zero, zeros)


@pytest.mark.parametrize("alpha", [0, -1])
def test_alpha_is_positive(alpha: int) -> None:
    for norm in NORMS:
        assert not is_lower_alpha([[Fraction(1)]], Fraction(alpha), norm, None, None)
