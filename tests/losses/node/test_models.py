"""Curvatures of models of rows: parabolas that lie above them, and shares that are learned."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node import _models as models
from gtvcvx.losses.node import _scalar as scalar

SMOOTH = [
    ("logistic", 0.0),
    ("logistic", 1.0),
    ("huber", 0.3),
    ("pseudohuber", -5.0),
    ("poisson", 0.0),
    ("poisson", 7.0),
]
signals = st.floats(-30.0, 30.0)


def row(kind, y):
    """One of four rows of a node."""
    term = {"kind": kind, "node": np.zeros(4, np.int64), "X": np.ones((4, 1)), "y": np.full(4, y)}
    if kind in ("huber", "pseudohuber"):
        term["delta"] = np.full(4, 0.4)
    return Parts.of([term], 1, 1).rows[0]


@pytest.mark.parametrize(("kind", "y"), SMOOTH)
@given(z=signals, other=signals)
def test_a_parabola_lies_above_the_row(kind, y, z, other):
    r = row(kind, y)
    curvature = models.row_majorizer(r, z)
    assert curvature >= scalar.row_curvature(r, z) * (1.0 - 1e-12)
    if kind == "poisson":
        # Up to the minimizer from below, and for smaller rates from above.
        highest = max(math.log(y), z) if y > 0.0 else z
        other = min(other, highest)
        other = max(other, z) if y > 0.0 and z < math.log(y) else other
    rise = scalar.row_gap(r, other, scalar.row_slope(r, z))
    assert rise <= 0.5 * curvature * (other - z) ** 2 * (1.0 + 1e-6) + 1e-14


def test_shares_follow_what_models_were_worth():
    rows = np.concatenate([np.array([row("logistic", 0.0)])] * 3)
    before, z = np.zeros(3), np.array([1.0, 1.0, 0.0])
    slope = np.full(3, scalar.row_slope(rows[0], 0.0))
    share = np.full(3, 0.05)
    models.learn(rows, before, z, slope, np.array([1.0, 1e-6, 1.0]), share)
    np.testing.assert_allclose(share, [0.01, 0.5, 0.05])


def test_hessians_and_resolvents_are_plain_linear_algebra():
    rng = np.random.default_rng(0)
    X, indptr = rng.standard_normal((7, 3)), np.array([0, 2, 7])
    out = np.empty((2, 3, 3))
    models.hessians(X, indptr, out)
    np.testing.assert_allclose(out[0], X[:2].T @ X[:2], atol=1e-14)
    np.testing.assert_allclose(out[1], 0.4 * X[2:].T @ X[2:], atol=1e-14)
    linear, tau = rng.standard_normal((2, 3)), np.array([0.5, 30.0])
    matrix, offset = np.empty_like(out), np.empty_like(linear)
    models.resolvents(out, linear, tau, matrix, offset)
    for i in range(2):
        inverse = np.linalg.inv(np.eye(3) + tau[i] * out[i])
        np.testing.assert_allclose(matrix[i], inverse, atol=1e-12)
        np.testing.assert_allclose(offset[i], inverse @ (tau[i] * linear[i]), atol=1e-12)
