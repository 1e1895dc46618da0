"""Best multipliers of smooth losses, found in coordinates in which units do not matter."""

from types import SimpleNamespace

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses.batched.composite import _batch, _newton
from gtvcvx.losses.batched.composite._row_arrays import RowArrays
from gtvcvx.losses.node._scalar import PSEUDO_HUBER, SQUARED, row_curvature, row_slope

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


def newton_nodes(k=300, m=8, r=5):
    """Huber and squared rows of nodes, far out in the tails, at random points."""
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((k, m, r)), 3.0 * rng.standard_normal((k, m))
    rows = gtv.HuberLoss.stack(X, y, delta=0.1).parts[0][1]._parts.rows.reshape(k, m)
    squared = rng.random((k, m)) < 0.1
    rows["kind"][squared], rows["low"][squared], rows["high"][squared] = SQUARED, -np.inf, np.inf
    rows = RowArrays.of(rows)
    t = 0.9 * _newton._sums(X, rows.slopes(_newton._images(X, rng.standard_normal((k, r))))[0])
    z = rng.standard_normal((k, r))
    return _newton._Nodes(np.arange(k), X, rows, rows.spans, t, z, np.full(k, np.inf))


def test_steps_end_where_the_slope_along_them_vanishes():
    """Which bisection finds; or they are whole ones, where it has mostly gone."""
    nodes, longest = newton_nodes(), 0.0
    for _ in range(6):
        step = nodes.step(_newton.NEWTON)
        length = nodes._ends_of_lines(step, _newton.NEWTON)
        whole, bounded, low, slope = bisected(nodes, step, length)
        assert (length[whole] == 1.0).all()
        exact = bounded & ~whole & (step.promise > 1e-6 * step.size)
        assert (np.abs(slope[exact]) <= 1e-6 * step.promise[exact]).all()
        np.testing.assert_allclose(length[exact], low[exact], rtol=1e-6)
        longest = max(longest, length[exact].max(initial=0.0))
        nodes = nodes._replace(z=nodes.z + length[:, None] * step.d)
    assert longest > 2.0  # curvatures in tails are made up


def bisected(nodes, step, length):
    """Where whole steps will do, where the slope vanishes at all, where, and what is left of it."""

    def slope_at(length):
        a, _ = nodes.rows.slopes(step.image + length[:, None] * step.change)
        return np.sum(nodes.t * step.d, axis=1) - np.sum(a * step.change, axis=1)

    low, high = np.zeros(len(length)), np.full(len(length), 1e12)
    bounded = slope_at(high) < 0.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        beyond = slope_at(middle) < 0.0
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    whole = np.abs(slope_at(np.ones(len(length)))) <= _newton.NEWTON.turned * step.promise
    return whole, bounded, low, slope_at(length)


def test_huber_rows_take_few_steps(monkeypatch):
    """By the lengths of whole steps one in ten of these nodes took sixty, and was left."""
    nodes, steps = newton_nodes(), []
    after = _newton._Nodes.after
    monkeypatch.setattr(
        _newton._Nodes, "after", lambda *given: steps.append(given[2].sum()) or after(*given)
    )
    ends = _newton.maximize(SimpleNamespace(X=nodes.X), nodes.rows, nodes.t, nodes.z)
    assert (ends.found | ends.off).all()
    assert np.mean(ends.found) > 0.9
    assert sum(steps) <= 15 * len(nodes.t)


def test_lengths_of_other_rows_are_searched_for():
    """Nodes of both kinds have each their own."""
    nodes = newton_nodes()
    kind = nodes.rows.kind.copy()
    kind[:100, 0] = PSEUDO_HUBER
    mixed = nodes._replace(rows=nodes.rows._replace(kind=kind))
    step = mixed.step(_newton.NEWTON)
    length = mixed._lengths(step, _newton.NEWTON)
    np.testing.assert_array_equal(length[:100], mixed._searched(step, _newton.NEWTON)[:100])
    np.testing.assert_array_equal(length[100:], mixed._ends_of_lines(step, _newton.NEWTON)[100:])
