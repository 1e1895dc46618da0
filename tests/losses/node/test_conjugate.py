"""Conjugates of single nodes: multipliers that add up, suprema, distances from the domain."""

import cvxpy as cp
import numpy as np
import pytest
from _catalogue_cases import CASES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gtvcvx import AbsoluteLoss, HingeLoss, LogisticLoss, PoissonLoss
from gtvcvx.losses.batched.composite._ascent import best_multipliers
from gtvcvx.losses.node import _conjugate

seeds = given(seed=st.integers(0, 2**32 - 1))
per_case = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)


@pytest.fixture(params=[*CASES])
def case(request, rng):
    return CASES[request.param](rng)


def multipliers(case, s, start):
    """The compiled answer, with s as it is."""
    parts = case.losses._parts
    (z, a, t, nu, leak), norms = best_multipliers(parts, s, start, None, False)
    pulled = np.zeros_like(s)
    np.add.at(pulled, parts.owner, a[:, None] * parts.X)
    return z, a, pulled + t + np.where(np.isnan(parts.totals), 0.0, nu[:, 0])[:, None], leak, norms


def intervals(case):
    """Bounds of the multipliers of rows and coordinates."""
    parts = case.losses._parts
    c = parts.coordinates
    curved = c["mu"] > 0.0
    low = np.where(curved | np.isfinite(c["lower"]), -np.inf, -c["kappa"])
    high = np.where(curved | np.isfinite(c["upper"]), np.inf, c["kappa"])
    return low, high


@seeds
@per_case
def test_multipliers_and_leak_add_up(case, seed):
    rng = np.random.default_rng(seed)
    parts, start = case.losses._parts, rng.standard_normal((case.k, case.d))
    s = rng.standard_normal((case.k, case.d)) * 10.0 ** rng.uniform(-3, 1)
    _, a, total, leak, norms = multipliers(case, s, start)
    assert (a >= parts.rows["low"]).all()
    assert (a <= parts.rows["high"]).all()
    np.testing.assert_allclose(total + leak, s, atol=1e-12 * (1.0 + np.abs(s).max()))
    np.testing.assert_allclose(norms, np.linalg.norm(leak, axis=1))


@seeds
@per_case
def test_inside_the_domain_nothing_leaks(case, seed):
    rng = np.random.default_rng(seed)
    s, start = case.losses.gradient(case.draw(rng)), case.draw(rng)
    _, _, _, _, norms = multipliers(case, s, start)
    assert (norms <= 1e-13 * (1.0 + np.abs(s).max())).all()


def test_outside_the_leak_is_the_distance(case, rng):
    """The least norm of what is left, by CVXPY."""
    parts = case.losses._parts
    s = 3.0 * rng.standard_normal((case.k, case.d))
    leaks = multipliers(case, s, np.zeros_like(s))[4]
    low, high = intervals(case)
    for i in range(case.k):
        rows = slice(parts.indptr[i], parts.indptr[i + 1])
        m = parts.indptr[i + 1] - parts.indptr[i]
        a, t, nu = cp.Variable(max(m, 1)), cp.Variable(case.d), cp.Variable()
        X = parts.X[rows] if m else np.zeros((1, case.d))
        bounds = [(a, parts.rows["low"][rows], parts.rows["high"][rows])] if m else []
        constraints = [] if not np.isnan(parts.totals[i]) else [nu == 0]
        for x, lo, hi in (*bounds, (t, low[i], high[i])):
            for end, sign in ((lo, -1), (hi, 1)):
                at = np.flatnonzero(np.isfinite(end))
                if at.size:
                    constraints.append(sign * x[at] <= sign * end[at])
        rest = s[i] - X.T @ a - t - nu
        problem = cp.Problem(cp.Minimize(cp.norm(rest)), constraints)
        problem.solve(solver=cp.CLARABEL)
        assert leaks[i] == pytest.approx(problem.value, abs=1e-5)
        assert leaks[i] >= problem.value - 1e-6


@pytest.mark.parametrize("name", ["logistic", "hinge", "absolute", "huber", "l1-alone"])
def test_conjugate_is_infinite_farther_than_the_tolerance(name, rng):
    case = CASES[name](rng)
    s = 3.0 * rng.standard_normal((case.k, case.d))
    away = multipliers(case, s, np.zeros_like(s))[4]
    assert (away > 1e-3).any()
    for factor, finite in ((0.9, away == 0.0), (1.1, np.ones(case.k, dtype=bool))):
        conjugate = case.losses.conjugate(s, factor * away)
        np.testing.assert_array_equal(np.isfinite(conjugate), finite | (away < 1e-9))
    # An infinite tolerance forgives null directions only.
    unlimited = case.losses.conjugate(s, np.full(case.k, np.inf))
    np.testing.assert_array_equal(np.isfinite(unlimited), away < 1e-9)
    assert np.isinf(case.losses.fenchel_gap(case.draw(rng), s)[away > 1e-3]).all()


def test_a_count_bounds_the_slope_from_below_only():
    x, y = np.array([1.0, -2.0]), 3.0
    loss = PoissonLoss([x], [y])
    assert loss.conjugate(-y * x) == pytest.approx(0.0)
    assert loss.conjugate(-(y + 1e-6) * x) == np.inf
    assert loss.conjugate(1e3 * x) == pytest.approx(1003 * np.log(1003) - 1003)
    assert loss.conjugate([1.0, 0.0]) == np.inf


def test_suprema_that_are_not_attained_have_their_value():
    """Separable labels: the infimum 0 of the logistic loss is at infinity, L*(0) = 0."""
    X = np.array([[1.0, 2.0], [0.5, -1.0]])
    rng = np.random.default_rng(0)
    for loss in (LogisticLoss(X, [1, 0]), PoissonLoss(X, [0, 0]), HingeLoss(X, [1, -1])):
        batch = type(loss).batch([loss], 2)
        assert np.isfinite(batch.minimizer()).all()
        assert batch.value(batch.minimizer())[0] == pytest.approx(0.0, abs=1e-9)
        assert loss.conjugate([0.0, 0.0]) == pytest.approx(0.0, abs=1e-9)
        w = rng.standard_normal((1, 2))
        np.testing.assert_allclose(
            batch.fenchel_gap(w, np.zeros((1, 2))), batch.value(w), rtol=1e-9
        )


def test_slopes_at_the_vertices_of_the_domain():
    """All residuals on one side: every multiplier is at its end."""
    X = np.random.default_rng(1).standard_normal((3, 5))
    loss = AbsoluteLoss(X, [10.0, 20.0, -30.0])
    s = loss.gradient(np.zeros(5))
    assert loss.conjugate(s) == pytest.approx(-loss.value(np.zeros(5)))
    assert loss.conjugate(s * (1.0 + 1e-6)) == np.inf
    assert np.isfinite(loss.conjugate(s * (1.0 - 1e-6)))


def test_few_rows_share_by_a_system_of_their_own(monkeypatch):
    """One of all coordinates took seconds a node at d = 1,000."""
    rng, d = np.random.default_rng(3), 600
    X = np.repeat([1.0, 1985.0, 1e4, 0.05], d // 4) * rng.standard_normal((3, 3, d))
    X[2, 2] = X[2, 1]  # of full rank at two nodes
    shapes, share_all = set(), _conjugate._share_all

    def watched(nodes, shares, *rest):
        shapes.add(shares.H.shape)
        share_all(nodes, shares, *rest)

    monkeypatch.setattr(_conjugate, "_share_all", watched)
    batch = AbsoluteLoss.stack(X, rng.standard_normal((3, 3))).parts[0][1]
    a = rng.uniform(-0.3, 0.3, (3, 3))
    found = batch._multipliers(np.einsum("nmd,nm->nd", X, a), np.zeros((3, d)))
    assert shapes == {(3, 3)}
    assert (found.leak <= 1e-12 * found.size).all()
    np.testing.assert_allclose(found.a.reshape(3, 3)[:2], a[:2], rtol=1e-9)
