"""Smooth rows: functions and derivatives, and steps that do not lead too far."""

import numpy as np
import pytest

from gtvcvx.losses.node._scalar import row_point
from gtvcvx.solvers.interior_point.blockwise._smooth_rows import SmoothRows, safe_length

KINDS = ("logistic", "poisson", "pseudohuber")


def rows(kind, N=6, d=3):
    rng = np.random.default_rng(0)
    y = {"logistic": rng.integers(0, 2, N), "poisson": rng.poisson(3.0, N)}.get(kind, np.ones(N))
    term = {"kind": kind, "X": rng.standard_normal((N, d)), "y": y.astype(float)}
    term["node"] = np.repeat(np.arange(N // 2), 2)
    if kind == "pseudohuber":
        term["delta"] = np.full(N, 0.3)
    return SmoothRows.of([term], d)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_and_curvatures_are_derivatives(kind):
    found, x, h = rows(kind), np.linspace(-2.0, 2.0, 6), 1e-5
    for k in range(6):
        e = h * np.eye(6)[k]
        slope = (found.value(x + e) - found.value(x - e)) / (2.0 * h)
        assert found.slopes(x)[k] == pytest.approx(slope, rel=1e-6)
        curvature = (found.slopes(x + e)[k] - found.slopes(x - e)[k]) / (2.0 * h)
        assert found.curvatures(x)[k] == pytest.approx(curvature, rel=1e-6)


def test_no_rows_are_no_limit():
    none = SmoothRows.of([], 2)
    assert none.value(np.empty(0)) == 0.0
    turn = none.turn(np.empty(0), np.empty(0), np.empty(0), 0.75)
    assert safe_length(lambda length: turn, 0.75, 1.0) == 0.75


@pytest.mark.parametrize("kind", KINDS)
def test_points_have_the_slopes_that_were_asked_for(kind):
    found, x = rows(kind), np.linspace(-2.0, 2.0, 6)
    np.testing.assert_allclose(row_point(found.table, found.slopes(x)), x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_steeper_curvatures_lead_to_the_slopes_that_a_step_wants(kind):
    found = rows(kind)
    # Far out curvatures are next to none, on the side from which rows have to come back.
    side = np.where(found.table["y"] > 0.5, 1.0, -1.0) if kind == "logistic" else -np.ones(6)
    x = 20.0 * side
    curvatures = found.curvatures(x)
    step = np.where(np.arange(6) % 2 == 0, -1e4, 1e-3) * side
    steeper = found.steeper(x, step, curvatures)
    np.testing.assert_array_equal(steeper[1::2], curvatures[1::2])
    assert (steeper[::2] > 2.0 * curvatures[::2]).all()
    wanted = (curvatures * step)[::2]
    reached = (found.slopes(x + curvatures * step / steeper) - found.slopes(x))[::2]
    np.testing.assert_allclose(reached, wanted, rtol=1e-6)


@pytest.mark.parametrize(("step", "shorter"), [(-3.0, False), (0.1, False), (40.0, True)])
def test_steps_into_steep_exponentials_are_shortened(step, shorter):
    found, x = rows("poisson"), np.zeros(6)
    dx = np.full(6, step)
    slopes, curvatures = found.slopes(x), found.curvatures(x)
    descent = float(np.sum(curvatures * dx**2))  # nothing else holds the step back
    length = safe_length(lambda t: found.turn(x, dx, curvatures, t), 1.0, descent)
    assert (length < 1.0) == shorter
    # From its start on the slope rises at most half as far above zero as it was below.
    along = -descent + np.sum(dx * (found.slopes(x + length * dx) - slopes))
    assert along <= 0.5 * descent * (1.0 + 1e-12)
    if shorter:
        twice = -descent + np.sum(dx * (found.slopes(x + 2.0 * length * dx) - slopes))
        assert twice > 0.5 * descent
