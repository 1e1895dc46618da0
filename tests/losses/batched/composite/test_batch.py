"""What holds for every loss of the catalogue: first principles, twins, and CVXPY's opinion."""

import cvxpy as cp
import numpy as np
import pytest
from _catalogue_cases import CASES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gtvcvx as gtv

seeds = given(seed=st.integers(0, 2**32 - 1))
per_case = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)


@pytest.fixture(params=[*CASES])
def case(request, rng):
    return CASES[request.param](rng)


def exact(case):
    return np.full(case.k, 1e-9)


def solved(problem):
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return problem.value


def test_value_is_the_formula(case, rng):
    w = case.draw(rng)
    expected = [twin.value(row) for twin, row in zip(case.twins, w, strict=True)]
    np.testing.assert_allclose(case.losses.value(w), expected, rtol=1e-12, atol=1e-13)
    for single, row, value in zip(case.singles, w, expected, strict=True):
        np.testing.assert_allclose(single.value(row), value, rtol=1e-12, atol=1e-13)


def test_value_is_infinite_outside_the_constraints(case, rng):
    for i, twin in enumerate(case.twins):
        bounded = np.any(np.isfinite(twin.lower)) or twin.total is not None
        if not bounded:
            continue
        w = case.draw(rng)
        w[i] -= 10.0
        assert np.flatnonzero(np.isinf(case.losses.value(w))).tolist() == [i]


@seeds
@per_case
def test_gradient_is_the_slope_of_the_value(case, seed):
    rng = np.random.default_rng(seed)
    w, h = rng.standard_normal((case.k, case.d)), 1e-6
    step = rng.standard_normal((case.k, case.d))
    # Constraints have no slope: the twins' values do not know them.
    ahead, here, behind = (
        np.array([twin.value(x) for twin, x in zip(case.twins, w + t * step, strict=True)])
        for t in (h, 0.0, -h)
    )
    slope = np.sum(case.losses.gradient(w) * step, axis=1)
    # A subgradient supports the function; next to a kink it need not be the slope.
    assert (ahead >= here + h * slope - 1e-12).all()
    assert (behind >= here - h * slope - 1e-12).all()
    smooth = ahead - 2.0 * here + behind <= 1e-9
    np.testing.assert_allclose(((ahead - behind) / (2 * h))[smooth], slope[smooth], atol=1e-5)


@seeds
@per_case
def test_proximal_points_are_optimal(case, seed):
    """``(v - z) / tau`` is a subgradient at z: their Fenchel-Young gap vanishes."""
    rng = np.random.default_rng(seed)
    v, tau = 3.0 * rng.standard_normal((case.k, case.d)), 10.0 ** rng.uniform(-2, 2, case.k)
    z = case.losses.prox(v, tau)
    size = np.abs(case.losses.value(z)) + np.sum(v**2 + z**2, axis=1) / tau
    assert (case.losses.fenchel_gap(z, (v - z) / tau[:, None]) <= 1e-11 * size).all()


@seeds
@per_case
def test_prox_is_firmly_nonexpansive(case, seed):
    rng = np.random.default_rng(seed)
    v, x = rng.standard_normal((2, case.k, case.d))
    tau = 10.0 ** rng.uniform(-2, 2, case.k)
    moved = case.losses.prox(v, tau) - case.losses.prox(x, tau)
    assert (np.sum(moved * (v - x), axis=1) >= np.sum(moved**2, axis=1) - 1e-11).all()


@seeds
@per_case
def test_fenchel_young(case, seed):
    rng = np.random.default_rng(seed)
    w, near = case.draw(rng), case.draw(rng)
    s = case.losses.gradient(near)
    gap = case.losses.fenchel_gap(w, s)
    assert (gap >= 0.0).all()
    definition = (
        case.losses.value(w) + case.losses.conjugate(s, exact(case)) - np.sum(s * w, axis=1)
    )
    np.testing.assert_allclose(gap, definition, rtol=1e-8, atol=1e-8)
    tight = case.losses.fenchel_gap(near, s)
    assert (tight <= 1e-11 * (1.0 + np.abs(case.losses.value(near)))).all()


def test_every_gap_is_an_upper_bound(case, rng):
    """No multipliers of another point give less than ``L(w) + L*(s) - <s, w>``."""
    w, s = case.draw(rng), case.losses.gradient(case.draw(rng))
    gap = case.losses.fenchel_gap(w, s)
    for _ in range(50):
        x = case.draw(rng)
        least = case.losses.value(w) - case.losses.value(x) - np.sum(s * (w - x), axis=1)
        assert (gap >= least - 1e-10 * (1.0 + np.abs(least))).all()


@pytest.mark.parametrize("kind", [gtv.AbsoluteLoss, gtv.HingeLoss, gtv.LogisticLoss])
@pytest.mark.parametrize("excess", [1e-6, 1e-2, 10.0])
def test_a_gap_off_the_domain_is_infinite(kind, excess):
    """Slopes of the rows are at most 1 / m: no multipliers give more, however little it is."""
    X, y = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 1.0])
    losses = kind.stack(X[None], y[None])
    w, inside = np.array([[0.3, 0.0]]), np.array([[-0.4, 0.0]])
    assert np.isfinite(losses.fenchel_gap(w, inside)).all()
    outside = np.array([[-1.0 - excess, 0.0]])
    assert np.isinf(losses.fenchel_gap(w, outside)).all()
    assert np.isinf(losses.conjugate(outside, np.zeros(1))).all()


def test_minimizers_are_minimizers(case, rng):
    best = case.losses.minimizer()
    assert np.isfinite(best).all()
    value = case.losses.value(best)
    zero = np.zeros_like(best)
    np.testing.assert_allclose(value, -case.losses.conjugate(zero, exact(case)), atol=1e-9)
    for _ in range(20):
        assert (value <= case.losses.value(case.draw(rng)) + 1e-9).all()


def test_projection_on_the_constraints(case, rng):
    inside, outside = case.draw(rng), 3.0 * rng.standard_normal((case.k, case.d))
    np.testing.assert_array_equal(case.losses.project_domain(inside), inside)
    near = case.losses.project_domain(outside)
    assert np.isfinite(case.losses.value(near)).all()
    for _ in range(20):
        # Obtuse angles characterize the projection on a convex set.
        other = case.draw(rng)
        assert (np.sum((outside - near) * (other - near), axis=1) <= 1e-10).all()


def test_prox_against_cvxpy(case, rng):
    v, tau = rng.standard_normal((case.k, case.d)), rng.uniform(0.1, 5.0, case.k)
    z = cp.Variable((case.k, case.d))
    models = [twin.model(z[i]) for i, twin in enumerate(case.twins)]
    distance = cp.sum(cp.multiply((z - v) ** 2, np.repeat(0.5 / tau[:, None], case.d, axis=1)))
    cost = sum(c for c, _ in models) + distance
    solved(cp.Problem(cp.Minimize(cost), [c for _, extra in models for c in extra]))
    np.testing.assert_allclose(case.losses.prox(v, tau), z.value, atol=2e-5)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # 1e-6 is enough
def test_conjugate_against_cvxpy(case, rng):
    s = case.losses.gradient(case.draw(rng))
    w = cp.Variable((case.k, case.d))
    models = [twin.model(w[i]) for i, twin in enumerate(case.twins)]
    # The suprema are attained nearby; the box bounds directions in which they are constant.
    problem = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(s, w)) - sum(c for c, _ in models)),
        [cp.abs(w) <= 100.0, *(c for _, extra in models for c in extra)],
    )
    conjugate = case.losses.conjugate(s, exact(case)).sum()
    np.testing.assert_allclose(conjugate, solved(problem), rtol=1e-6, atol=1e-6)


def test_expression_is_the_value(case, rng):
    w = cp.Variable((case.k, case.d))
    w.value = case.draw(rng)
    expression, constraints = case.losses.expression(w)
    assert cp.Problem(cp.Minimize(expression), constraints).is_dpp()
    np.testing.assert_allclose(expression.value, case.losses.value(w.value).sum(), rtol=1e-10)
    assert all(constraint.violation().max() <= 1e-12 for constraint in constraints)


def test_conjugate_expression_is_the_conjugate(case, rng):
    s = case.losses.gradient(case.draw(rng))
    variable = cp.Variable((case.k, case.d))
    cost, constraints = case.losses.conjugate_expression(variable)
    model = cp.Problem(cp.Minimize(cost), [variable == s, *constraints])
    assert model.is_dpp()
    expected = case.losses.conjugate(s, exact(case)).sum()
    np.testing.assert_allclose(solved(model), expected, rtol=1e-6, atol=1e-6)


def test_points_that_have_run_away_have_gaps_and_values():
    """Squares beyond doubles, times a curvature of zero: their gaps were no numbers."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4, 2)), rng.standard_normal(4)
    loss = gtv.AbsoluteLoss(X, y) + gtv.L1(0.1)
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), [loss, loss], "l2", 1.0)
    far = np.full((2, 2), 1e200)
    assert problem.losses.value(far) == pytest.approx(loss.value(far[0]), rel=1e-12)
    assert np.isfinite(problem.losses.value(far)).all()
    gap = problem.losses.fenchel_gap(far, np.zeros((2, 2)))
    assert np.isfinite(gap).all()
    assert (gap >= problem.losses.value(far) * (1.0 - 1e-12) - 4.0 * np.abs(y).max()).all()
