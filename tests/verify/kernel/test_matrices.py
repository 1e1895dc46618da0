"""Exact sweeps of symmetric matrices against NumPy."""

from fractions import Fraction

import numpy as np
import pytest

from verify.kernel.matrices import sweep
from verify.kernel.verdict import Verdict


@pytest.mark.parametrize("seed", range(12))
def test_sweep_inverts_on_the_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, rank = int(rng.integers(1, 6)), int(rng.integers(0, 6))
    root = rng.integers(-3, 4, (d, min(rank, d)))
    q = [[Fraction(int(x)) for x in row] for row in root @ root.T]
    swept, pivots = sweep(q)
    assert len(pivots) == np.linalg.matrix_rank(root)
    v = [Fraction(int(x)) for x in rng.integers(-5, 6, d)]
    u = [sum(a * b for a, b in zip(row, v, strict=True)) for row in q]  # in the range
    form = sum(u[i] * swept[i][j] * u[j] for i in pivots for j in pivots)
    assert form == sum(a * b for a, b in zip(u, v, strict=True))  # u^T Q^+ u = v^T Q v
    for j in set(range(d)) - set(pivots):
        assert u[j] == sum(swept[j][i] * u[i] for i in pivots)


@pytest.mark.parametrize("q", [[[-1]], [[0, 1], [1, 0]], [[1, 2], [2, 1]], [[1, 0], [0, -1]]])
def test_sweep_refuses_what_is_not_positive_semidefinite(q: list[list[int]]) -> None:
    with pytest.raises(Verdict, match="not positive semidefinite"):
        sweep(q)
