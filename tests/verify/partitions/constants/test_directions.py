"""Sign vectors by local search, and the quotients that they prove, against enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from verify.partitions.constants._directions import best_signs, quotients
from verify.partitions.constants._enclosures import sign_vectors


def forms(matrices: np.ndarray, signs: np.ndarray) -> np.ndarray:
    return np.einsum("ki,kij,kj->k", signs, matrices, signs)


def test_local_search_nearly_always_finds_the_maximum() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 7, 10))
    m = np.einsum("kri,krj->kij", x, x)
    s = sign_vectors(10).astype(float)
    top = ((s @ m) * s).sum(axis=2).max(axis=1)
    found = forms(m, best_signs(m))
    assert (found <= top * (1 + 1e-12)).all()
    assert (found >= 0.9 * top).all()
    assert (found >= top * (1 - 1e-12)).mean() > 0.98


@pytest.mark.parametrize("d", [1, 2, 12, 40])
def test_signs_that_some_vector_follows_are_found(d: int) -> None:
    """Then the sum of absolute entries is attained, in several components too."""
    rng = np.random.default_rng(d)
    follow = rng.choice([-1.0, 1.0], d)
    sizes = rng.uniform(0, 1, (3, d, d)) * (rng.random((3, d, d)) < 0.3)
    m = (sizes + sizes.transpose(0, 2, 1) + np.eye(d)) * np.outer(follow, follow)
    signs = best_signs(m)
    assert set(np.unique(signs)) <= {-1.0, 1.0}
    assert forms(m, signs) == pytest.approx(np.abs(m).sum(axis=(1, 2)), rel=1e-12)


def test_no_matrices_no_signs() -> None:
    assert best_signs(np.zeros((0, 9, 9))).shape == (0, 9)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_quotients_hold_the_exact_value(norm: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((20, 4, 9))
    m = np.einsum("kri,krj->kij", x, x)
    m = (m + m.transpose(0, 2, 1)) / 2
    v = rng.standard_normal((20, 9)) * 2.0 ** rng.integers(-30, 30, (20, 1))
    found = quotients(m, np.full(20, 1e-9), v, norm)
    for k in range(20):
        row = [Fraction(y) for y in v[k].tolist()]
        form = sum(
            Fraction(m[k, i, j].item()) * row[i] * row[j] for i in range(9) for j in range(9)
        )
        sizes = [abs(y) for y in row]
        exact = form / (sum(sizes) if norm == "l1" else max(sizes)) ** 2
        assert Fraction(found.lo[k].item()) < exact < Fraction(found.hi[k].item())
        assert found.hi[k] - found.lo[k] < 1e-6 * float(exact) + 1e-6
