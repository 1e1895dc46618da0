"""What holds for every convex loss: optimality, Moreau, Fenchel-Young, and CVXPY's opinion."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

seeds = given(seed=st.integers(0, 2**32 - 1))
per_batch = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def unlimited(batch):
    return np.full(batch.k, np.inf)


@seeds
@per_batch
def test_gradient_is_the_slope_of_the_value(batch, seed):
    rng = np.random.default_rng(seed)
    w, direction, h = batch.draw(rng), batch.draw(rng), 1e-5
    # Central differences are exact for quadratics, but for rounding.
    slope = (batch.losses.value(w + h * direction) - batch.losses.value(w - h * direction)) / (
        2 * h
    )
    inner = np.sum(batch.losses.gradient(w) * direction, axis=1)
    np.testing.assert_allclose(slope, inner, rtol=1e-6, atol=1e-7)


@seeds
@per_batch
def test_prox_satisfies_its_optimality_condition(batch, seed):
    rng = np.random.default_rng(seed)
    v, tau = batch.draw(rng), 10.0 ** rng.uniform(-3, 3, batch.k)
    z = batch.losses.prox(v, tau)
    np.testing.assert_allclose((v - z) / tau[:, None], batch.losses.gradient(z), atol=1e-8)


@seeds
@per_batch
def test_prox_is_firmly_nonexpansive(batch, seed):
    rng = np.random.default_rng(seed)
    v, x, tau = batch.draw(rng), batch.draw(rng), 10.0 ** rng.uniform(-2, 2, batch.k)
    moved = batch.losses.prox(v, tau) - batch.losses.prox(x, tau)
    assert (np.sum(moved * (v - x), axis=1) >= np.sum(moved**2, axis=1) - 1e-12).all()


@seeds
@per_batch
def test_fenchel_young(batch, seed):
    rng = np.random.default_rng(seed)
    w, s = batch.draw(rng), batch.inside(batch.draw(rng))
    gap = batch.losses.fenchel_gap(w, s)
    assert (gap >= 0.0).all()
    definition = (
        batch.losses.value(w) + batch.losses.conjugate(s, unlimited(batch)) - np.sum(s * w, axis=1)
    )
    np.testing.assert_allclose(gap, definition, rtol=1e-9, atol=1e-9)


@seeds
@per_batch
def test_fenchel_young_is_tight_at_the_gradient(batch, seed):
    w = batch.draw(np.random.default_rng(seed))
    s = batch.losses.gradient(w)
    # Without cancellation: far below the rounding of value + conjugate - inner product.
    assert (batch.losses.fenchel_gap(w, s) <= 1e-28).all()
    conjugate = batch.losses.conjugate(s, np.full(batch.k, 1e-9))
    np.testing.assert_allclose(conjugate, np.sum(s * w, axis=1) - batch.losses.value(w), atol=1e-9)


def test_conjugate_is_infinite_outside_its_domain(batch, rng):
    s = batch.draw(rng)
    outside = np.linalg.norm(s - batch.inside(s), axis=1)
    conjugate = batch.losses.conjugate(s, np.full(batch.k, 1e-9))
    np.testing.assert_array_equal(np.isinf(conjugate), outside > 1e-9)
    assert (conjugate[np.isinf(conjugate)] > 0).all()
    # The tolerance is a distance, for each node its own.
    assert np.isfinite(batch.losses.conjugate(s, 1.001 * outside + 1e-12)).all()
    far = outside > 1e-9
    assert np.isinf(batch.losses.conjugate(s, 0.999 * outside)[far]).all()


def test_prox_against_cvxpy(batch, rng):
    v, tau = batch.draw(rng), rng.uniform(0.1, 5.0, batch.k)
    z = cp.Variable((batch.k, batch.d))
    loss = sum(twin.model(z[i]) for i, twin in enumerate(batch.twins))
    distance = cp.sum(cp.multiply((z - v) ** 2, np.repeat(0.5 / tau[:, None], batch.d, axis=1)))
    cp.Problem(cp.Minimize(loss + distance)).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(batch.losses.prox(v, tau), z.value, atol=1e-6)


def test_conjugate_against_cvxpy(batch, rng):
    near = batch.draw(rng)
    s = np.array([twin.gradient(x) for twin, x in zip(batch.twins, near, strict=True)])
    w = cp.Variable((batch.k, batch.d))
    loss = sum(twin.model(w[i]) for i, twin in enumerate(batch.twins))
    # The suprema are attained at `near`; the box bounds the directions in which they are constant.
    supremum = cp.Problem(cp.Maximize(cp.sum(cp.multiply(s, w)) - loss), [cp.abs(w) <= 100.0])
    supremum.solve(solver=cp.CLARABEL)
    conjugate = batch.losses.conjugate(s, np.full(batch.k, 1e-9))
    np.testing.assert_allclose(conjugate.sum(), supremum.value, rtol=1e-6, atol=1e-6)


def test_moreau_identity_against_cvxpy(batch, rng):
    """v = prox_{tau L}(v) + tau prox_{L* / tau}(v / tau), the second by the conjugate's model."""
    v, tau = batch.draw(rng), rng.uniform(0.1, 5.0, batch.k)
    s = cp.Variable((batch.k, batch.d))
    cost, constraints = batch.losses.conjugate_expression(s)
    scale = np.repeat(tau[:, None], batch.d, axis=1)
    distance = 0.5 * cp.sum(cp.multiply(scale, (s - v / scale) ** 2))
    cp.Problem(cp.Minimize(cost + distance), constraints).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(batch.losses.prox(v, tau) + scale * s.value, v, atol=1e-5)


def test_expression_is_the_value(batch, rng):
    w = cp.Variable((batch.k, batch.d))
    w.value = batch.draw(rng)
    expression, constraints = batch.losses.expression(w)
    assert constraints == []
    assert expression.is_convex()
    np.testing.assert_allclose(expression.value, batch.losses.value(w.value).sum(), rtol=1e-12)


@pytest.mark.parametrize("inside", [True, False])
def test_conjugate_expression_is_the_conjugate(batch, rng, inside):
    s = batch.inside(batch.draw(rng)) if inside else batch.draw(rng)
    expected = batch.losses.conjugate(s, np.full(batch.k, 1e-9)).sum()
    variable = cp.Variable((batch.k, batch.d))
    cost, constraints = batch.losses.conjugate_expression(variable)
    model = cp.Problem(cp.Minimize(cost), [variable == s, *constraints])
    model.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(model.value, expected, rtol=1e-6, atol=1e-6)
