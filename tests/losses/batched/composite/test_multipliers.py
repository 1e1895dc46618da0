"""Best multipliers of smooth losses, found in coordinates in which units do not matter."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses.batched.composite import _batch
from gtvcvx.losses.batched.composite._row_arrays import RowArrays
from gtvcvx.losses.node._scalar import row_curvature, row_slope

# An intercept, a year and an income; powers of two, so that units change no digits.
UNITS = 2.0 ** np.array([0, 11, 15])
KINDS = {
    "huber": lambda X, z, **more: gtv.HuberLoss.stack(X, z, delta=0.5, **more),
    "pseudo-huber": lambda X, z, **more: gtv.PseudoHuberLoss.stack(X, z, delta=0.5, **more),
    "logistic": lambda X, z, **more: gtv.LogisticLoss.stack(X, 1.0 * (z > 0.3), **more),
    "poisson": lambda X, z, **more: gtv.PoissonLoss.stack(X, np.rint(np.exp(0.3 * z)), **more),
}


@pytest.fixture
def no_ascent(monkeypatch):
    def failing(*arguments):
        raise AssertionError("a node was left")

    monkeypatch.setattr(_batch, "best_multipliers", failing)


def batches(kind, m, ridge, k=40):
    """The same losses in units of one and in raw units, points and slopes in units of one."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((k, m, 3))
    z = np.einsum("kmj,j->km", X, [1.0, -1.0, 0.5]) + rng.standard_normal((k, m))
    more = {"ridge": ridge} if ridge and kind == "logistic" else {}
    unit, raw = (KINDS[kind](x, z, **more).parts[0][1] for x in (X, X * UNITS))
    w, near = rng.standard_normal((2, k, 3))
    # Shorter than a gradient: Huber rows all in their tails would be at the domain's boundary.
    return unit, raw, w, 0.7 * unit.gradient(near)


@pytest.mark.parametrize("m", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_units_of_columns_do_not_matter(kind, m, no_ascent):
    unit, raw, w, s = batches(kind, m, 0.0)
    gap = unit.fenchel_gap(w, s)
    assert np.isfinite(gap).all()
    # With null directions, the intercept's share of s is rounding of the income's.
    rtol = 1e-9 if m >= 3 else 1e-6
    np.testing.assert_allclose(raw.fenchel_gap(w / UNITS, s * UNITS), gap, rtol=rtol, atol=1e-10)


@pytest.mark.parametrize("m", [2, 7])
def test_a_weak_ridge_in_raw_units_does_not_matter_either(m, no_ascent):
    _, raw, w, _ = batches("logistic", m, 1e-3)
    near = w / UNITS
    value = raw.value(near)
    tight = raw.fenchel_gap(near, raw.gradient(near))
    assert (tight <= 1e-11 * (1.0 + value)).all()
    far = np.random.default_rng(4).standard_normal(w.shape) / UNITS
    gap = raw.fenchel_gap(far, raw.gradient(near))
    exact = raw.value(far) - value - np.sum(raw.gradient(near) * (far - near), axis=1)
    np.testing.assert_allclose(gap, exact, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["huber", "pseudo-huber", "logistic"])
@pytest.mark.parametrize("m", [2, 3, 7])
def test_slopes_off_the_domain_are_told_at_once(kind, m, no_ascent):
    """Multipliers are bounded: far enough along any slope that has multipliers, there are none."""
    _, raw, w, s = batches(kind, m, 0.0)
    assert np.isinf(raw.fenchel_gap(w / UNITS, 1e4 * s * UNITS)).all()


def test_multipliers_are_found_from_points_that_are_far_out(no_ascent):
    """Separable rows have their least values at infinity, where curvatures are zero."""
    unit, _, _, s = batches("logistic", 7, 0.0)
    near = np.random.default_rng(5).standard_normal(s.shape)
    s, w = unit.gradient(near), 1e2 * near
    gap = unit.fenchel_gap(w, s)
    exact = unit.value(w) - unit.value(near) - np.sum(s * (w - near), axis=1)
    np.testing.assert_allclose(gap, exact, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_of_arrays_are_those_of_single_rows(kind):
    rows = batches(kind, 2, 0.0)[0]._parts.rows
    z = np.random.default_rng(6).standard_normal(len(rows)) * 5.0
    found = np.array(RowArrays.of(rows).slopes(z))
    np.testing.assert_allclose(found, [row_slope(rows, z), row_curvature(rows, z)], rtol=1e-13)
