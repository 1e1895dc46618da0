"""Roots, null spaces and sweeps against NumPy, and against what the kernel makes of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from verify._arrays import FloatArray
from verify.instance._roots import Matrix, root_of, semidefinite, sweep
from verify.kernel.matrices import lower_diagonal


def fractions(q: FloatArray) -> Matrix:
    return [[Fraction(x) for x in row] for row in q.tolist()]


def integral(seed: int) -> tuple[FloatArray, int]:
    """Return a positive semidefinite matrix of small integers, and its rank."""
    rng = np.random.default_rng(seed)
    d, rank = int(rng.integers(1, 6)), int(rng.integers(0, 6))
    root = rng.integers(-3, 4, (d, min(rank, d)))
    return (root @ root.T).astype(float), int(np.linalg.matrix_rank(root))


def graded(d: int, condition: float) -> FloatArray:
    q, _ = np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))
    a = q @ np.diag(np.geomspace(1, 1 / condition, d)) @ q.T
    return np.asarray(a + a.T) / 2


@pytest.mark.parametrize("seed", range(12))
def test_sweep_inverts_on_the_range(seed: int) -> None:
    q, rank = integral(seed)
    swept = sweep(fractions(q))
    assert swept is not None
    s, pivots = swept
    assert len(pivots) == rank
    v = [Fraction(int(x)) for x in np.random.default_rng(seed).integers(-5, 6, len(q))]
    u = [sum(Fraction(a) * b for a, b in zip(row, v, strict=True)) for row in q]  # in the range
    form = sum(u[i] * s[i][j] * u[j] for i in pivots for j in pivots)
    assert form == sum(a * b for a, b in zip(u, v, strict=True))  # u^T Q^+ u = v^T Q v
    for j in set(range(len(q))) - set(pivots):
        assert u[j] == sum(s[j][i] * u[i] for i in pivots)


@pytest.mark.parametrize("seed", range(12))
def test_null_spaces_are_exact_and_whole(seed: int) -> None:
    q, rank = integral(seed)
    proof = semidefinite(fractions(q))
    assert proof is not None
    rows, _ = proof.null_space
    assert len(rows) == len(q) - rank
    assert not any(sum(Fraction(a) * b for a, b in zip(x, n, strict=True)) for x in q for n in rows)
    least = min(x for x in np.linalg.eigvalsh(q) if x > 1e-9) if rank else np.inf
    assert 0 < proof.margin <= least * (1 + 1e-9)
    assert proof.margin == min(lower_diagonal(proof.matrix, proof.root, proof.null_space))


@pytest.mark.parametrize("q", [[[-1]], [[0, 1], [1, 0]], [[1, 2], [2, 1]], [[1, 0], [0, -1]]])
def test_what_is_not_positive_semidefinite_has_no_witness(q: list[list[int]]) -> None:
    matrix = [[Fraction(x) for x in row] for row in q]
    assert sweep(matrix) is None
    assert semidefinite(matrix) is None
    assert root_of(matrix) is None


@pytest.mark.parametrize("condition", [1e0, 1e4, 1e8, 1e14])
def test_roots_are_short_and_prove_half_of_the_least_eigenvalue(condition: float) -> None:
    q = fractions(graded(12, condition))
    root = root_of(q, strict=True)
    assert root is not None
    assert root[1] < 30 + 0.75 * np.log2(condition)
    share = min(lower_diagonal(q, root)) * Fraction(condition)
    assert share > (0.4 if condition < 1e9 else 0.01)


def test_roots_of_matrices_in_units_that_differ_by_all_of_the_range_of_doubles() -> None:
    units = np.exp2(np.arange(-400.0, 401.0, 160.0))
    q = graded(len(units), 1e3) * units * units[:, None]
    proof = semidefinite(fractions(q))
    assert proof is not None
    assert proof.margin > 0
