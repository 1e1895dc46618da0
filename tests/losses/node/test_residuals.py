"""Residuals of twice the precision, against rationals."""

from fractions import Fraction

import numpy as np
import pytest

from gtvcvx.losses.batched._doubt import uncertain
from gtvcvx.losses.node._residuals import Centred, residuals
from gtvcvx.losses.node._scalar import (
    HUBER,
    KINK,
    LOGISTIC,
    POISSON,
    ROW,
    SQUARED,
    row_gap,
    row_value,
)

HALF_ULP = 2.0**-53


def drawn(rng, d, offset, kinds=(SQUARED,)):
    """Return features, rows and points of three nodes, one of them without rows."""
    indptr = np.array([0, 4, 4, 9])
    X = np.where(rng.random((9, d)) < 0.3, 1.0, offset * rng.standard_normal((9, d)))
    w = offset * rng.standard_normal((3, d))
    rows = np.zeros(9, ROW)
    rows["kind"] = np.resize(kinds, 9)
    rows["c"], rows["delta"], rows["low"], rows["high"] = 0.5, 0.1, -0.5, 0.5
    # Targets that products nearly cancel with.
    rows["y"] = np.einsum("rj,rj->r", X, w[[0] * 4 + [2] * 5]) + rng.standard_normal(9)
    return X, rows, indptr, w


def exact(X, rows, indptr, w):
    """Return residuals and the sums of the sizes of products as rationals."""
    found = []
    for i in range(len(w)):
        for r in range(indptr[i], indptr[i + 1]):
            products = [
                Fraction(a) * Fraction(b) for a, b in zip(X[r].tolist(), w[i].tolist(), strict=True)
            ]
            of_residual = rows["kind"][r] not in (LOGISTIC, POISSON)
            target = Fraction(float(rows["y"][r])) if of_residual else Fraction(0)
            found.append((sum(products) - target, sum(abs(product) for product in products)))
    return found


def found(X, rows, indptr, w):
    return residuals(X, Centred.of(rows).targets, indptr, w)


@pytest.mark.parametrize("kinds", [(SQUARED,), (KINK, HUBER, LOGISTIC, POISSON)])
@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("offset", [1.0, 1e5, 1e60])
def test_they_are_as_exact_as_is_said(offset, d, kinds):
    data = drawn(np.random.default_rng(d), d, offset, kinds)
    for r, (truth, size) in zip(found(*data).tolist(), exact(*data), strict=True):
        off = abs(Fraction(r) - truth)
        assert off <= Fraction(HALF_ULP) * abs(truth) + Fraction(uncertain(d)) * size


def test_functions_of_them_are_those_of_predictions():
    X, rows, indptr, w = drawn(np.random.default_rng(1), 3, 1.0, (KINK, HUBER, LOGISTIC, POISSON))
    z = np.einsum("rj,rj->r", X, w[[0] * 4 + [2] * 5])
    r, a, centred = found(X, rows, indptr, w), np.full(9, 0.2), Centred.of(rows).rows
    assert row_value(centred, r) == pytest.approx(row_value(rows, z), rel=1e-12)
    assert row_gap(centred, r, a) == pytest.approx(row_gap(rows, z, a), rel=1e-12)


def test_numbers_too_large_for_the_errors_have_plain_residuals():
    rows = np.zeros(2, ROW)
    rows["y"] = [1e305, 0.0]
    X, w = np.array([[1e305, 1.0], [1.0, 1e308]]), np.array([[2.0, 1e306]])
    r = found(X, rows, np.array([0, 2]), w)
    assert r[0] == pytest.approx(1.1e306, rel=1e-15)
    assert r[1] == np.inf
