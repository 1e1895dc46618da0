"""Smooth rows: functions, and slopes that are dual variables."""

import numpy as np
import pytest
from _central_path import approach

from gtvcvx.losses.node._scalar import row_conjugate, row_slope
from gtvcvx.solvers.interior_point.blockwise._curved_duals import CurvedIntervals
from gtvcvx.solvers.interior_point.blockwise._smooth_rows import SmoothRows

KINDS = ("logistic", "poisson", "pseudohuber")


def rows(kind, N=6, d=3):
    rng = np.random.default_rng(0)
    y = {"logistic": rng.integers(0, 2, N), "poisson": rng.poisson(3.0, N)}.get(kind, np.ones(N))
    term = {"kind": kind, "X": rng.standard_normal((N, d)), "y": y.astype(float)}
    term["node"] = np.repeat(np.arange(N // 2), 2)
    if kind == "pseudohuber":
        term["delta"] = np.full(N, 0.3)
    return SmoothRows.of([term], d)


def central(kind, x, mu, rounds=60):
    """Take Newton's steps towards a product of mu, with x as it is."""
    duals = CurvedIntervals(rows(kind).table)
    duals.begin(x, 1.0)
    approach(duals, x, mu, rounds)
    return duals


def test_no_rows_are_worth_nothing():
    none = SmoothRows.of([], 2)
    assert none.value(np.empty(0)) == 0.0
    assert CurvedIntervals(none.table).degree == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_begin_where_curvatures_are_those_of_the_rows(kind):
    found = rows(kind)
    duals, h = CurvedIntervals(found.table), 1e-5
    x, curvatures = duals.points()
    np.testing.assert_allclose(row_slope(found.table, x), duals.y, atol=1e-12)
    change = row_slope(found.table, x + h) - row_slope(found.table, x - h)
    np.testing.assert_allclose(curvatures, change / (2.0 * h), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_explain_the_derivatives_of_conjugates(kind):
    found = rows(kind)
    duals = central(kind, np.linspace(-2.0, 2.0, 6), 0.1)
    points, curvatures = duals.points()
    table, y, h = found.table, duals.y, 1e-6
    change = row_conjugate(table, y + h) - row_conjugate(table, y - h)
    np.testing.assert_allclose(points, change / (2.0 * h), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(row_slope(table, points), y, rtol=1e-9, atol=1e-9)
    assert (curvatures > 0.0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_near_the_end_slopes_are_those_of_the_rows(kind):
    x = np.array([-30.0, -3.0, -0.1, 0.2, 3.0, 30.0])
    found, duals = rows(kind), central(kind, x, 1e-14)
    np.testing.assert_allclose(duals.y, row_slope(found.table, x), rtol=1e-9, atol=1e-9)
    assert 0.0 <= duals.surplus(x) < 1e-9
    assert duals.complementarity() == pytest.approx(1e-14 * duals.degree)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_that_are_wrong_are_paid_for(kind):
    found, duals = rows(kind), CurvedIntervals(rows(kind).table)
    x = np.linspace(-2.0, 2.0, 6)
    surplus = found.value(x) + np.sum(row_conjugate(found.table, duals.y)) - duals.y @ x
    assert duals.surplus(x) == pytest.approx(surplus)
    assert surplus > 0.01
