"""Norms of rows: of few columns and of many, of zeros and of numbers at both ends of the range."""

from __future__ import annotations

import numpy as np
import pytest

from gtvcvx import _norms
from gtvcvx._norms import row_norm_1, row_norm_2, row_norm_inf, row_squares, row_sums

ORDERS = {row_norm_1: 1, row_norm_2: 2, row_norm_inf: np.inf}


@pytest.mark.parametrize("d", [1, 2, 3, 4, 9, 40])
@pytest.mark.parametrize("m", [0, 1, 50])
def test_norms_of_rows(m, d):
    v = np.random.default_rng(d).standard_normal((m, d))
    v[::7] = 0.0
    for function, order in ORDERS.items():
        np.testing.assert_allclose(function(v), np.linalg.norm(v, order, axis=1), rtol=1e-14)
    np.testing.assert_allclose(row_squares(v), np.sum(v**2, axis=1), rtol=1e-14)
    np.testing.assert_allclose(row_sums(v), np.sum(v, axis=1), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_squares_out_of_range(d, unit):
    v = np.random.default_rng(d).standard_normal((20, d))
    v[3] = 0.0
    expected = np.linalg.norm(v, axis=1)
    found = row_norm_2(np.concatenate([unit * v, v]))
    np.testing.assert_allclose(found[:20] / unit, expected, rtol=1e-14)
    np.testing.assert_allclose(found[20:], expected, rtol=1e-14)


def test_rows_of_zeros_are_not_scaled(monkeypatch):
    """Most jumps of a solution are zero: their norms must not take another way, which is slow."""
    monkeypatch.setattr(_norms, "_scaled_row_norm", None)
    v = np.zeros((1000, 2))
    v[7] = 3.0, 4.0
    assert row_norm_2(v).sum() == 5.0
