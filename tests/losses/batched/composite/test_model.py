"""Quadratic models of smooth losses against tangents, differences and plain linear algebra."""

import numpy as np
import pytest
from _catalogue_cases import CASES

import gtvcvx as gtv

SMOOTH = (
    "logistic",
    "huber",
    "pseudohuber",
    "poisson",
    "huber-few-rows",
    "huber-collinear",
    "logistic-ridge",
    "poisson-point-ridge",
)


@pytest.fixture(params=SMOOTH)
def case(request):
    return CASES[request.param](np.random.default_rng(1))


def steps(case):
    """A point of each loss, and another one."""
    rng = np.random.default_rng(2)
    return case.draw(rng), case.draw(rng)


def test_a_model_touches_the_losses(case):
    w, other = steps(case)
    for model in (case.losses.model(w), case.losses.model(w, case.losses.model(other))):
        np.testing.assert_allclose(model.gradient(w), case.losses.gradient(w), atol=1e-12)
        hessian, linear = model.quadratic()
        assert (np.linalg.eigvalsh(hessian) >= -1e-12).all()
        np.testing.assert_allclose(model.total_hessian(), hessian.sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(
            model.gradient(other), np.einsum("kij,kj->ki", hessian, other) - linear, atol=1e-12
        )
        curved = 0.5 * np.einsum("ki,kij,kj->k", other - w, hessian, other - w)
        np.testing.assert_allclose(model.rise(other, w), curved, atol=1e-12)


def test_a_model_is_no_flatter_than_the_losses(case):
    w, _ = steps(case)
    (hessian, _), h = case.losses.model(w).quadratic(), 1e-5
    gradient = case.losses.gradient
    columns = [(gradient(w + h * e) - gradient(w - h * e)) / (2.0 * h) for e in np.eye(case.d)]
    exact = np.stack(columns, axis=2)
    assert (np.linalg.eigvalsh(hessian - 0.5 * (exact + exact.transpose(0, 2, 1))) >= -1e-6).all()


def test_a_model_that_was_too_steep_gets_flatter(case):
    w, other = steps(case)
    model = case.losses.model(w)
    for k in range(6):
        # There and back again, over a short way on which the losses are nearly parabolas.
        model = case.losses.model(w + 1e-5 * (k % 2) * (other - w), model)
    shares = model.row_models.share
    assert (shares[shares < 0.1] == 0.01).all()
    steeper = case.losses.model(w).quadratic().hessian - model.quadratic().hessian
    assert (np.linalg.eigvalsh(steeper) >= -1e-4).all()


def test_a_model_that_was_too_flat_gets_steeper():
    loss = gtv.HuberLoss(np.ones((1, 1)), np.array([5.0]), 1.0)
    losses = type(loss).batch([loss], 1)
    far, beyond = np.zeros((1, 1)), np.full((1, 1), 10.0)
    model = losses.model(far)
    for k in range(3):
        model = losses.model(far - 0.01 * k, model)
    assert model.row_models.share == 0.01
    assert losses.model(beyond, model).row_models.share == pytest.approx(0.1)


def test_rise_is_the_distance_to_the_tangent(case):
    w, other = steps(case)
    step = np.sum(case.losses.gradient(w) * (other - w), axis=1)
    expected = case.losses.value(other) - case.losses.value(w) - step
    np.testing.assert_allclose(case.losses.rise(other, w), expected, atol=1e-12)
    # The step so short that all digits of the difference are lost.
    near = case.losses.rise(w + 1e-9 * (other - w), w)
    model = case.losses.model(w, case.losses.model(w, case.losses.model(w)))
    assert (near >= 0.0).all()
    assert (near <= 1.01e-18 * case.losses.model(w).rise(other, w) + 1e-30).all()
    assert model.rise(w, w).max() == 0.0


def test_the_proximal_map_and_the_minimizer(case):
    w, v = steps(case)
    model, tau = case.losses.model(w), np.geomspace(1e-3, 1e3, case.k)
    hessian, linear = model.quadratic()
    matrix, offset = model.affine_prox(tau)
    system = np.eye(case.d) + tau[:, None, None] * hessian
    right = v + tau[:, None] * linear
    expected = np.linalg.solve(system, right[:, :, None])[:, :, 0]
    np.testing.assert_allclose(np.einsum("kij,kj->ki", matrix, v) + offset, expected, rtol=1e-9)
    assert np.abs(model.gradient(model.minimizer())).max() <= 1e-6


@pytest.mark.parametrize("name", ["absolute", "huber-elastic-nonnegative", "squared-simplex"])
def test_kinks_and_constraints_have_no_model(name):
    losses = CASES[name](np.random.default_rng(0)).losses
    assert not losses.modelled
    assert losses.model(np.zeros((losses.n_nodes, losses.dim))) is None


def test_quadratic_losses_are_their_own_models():
    rng = np.random.default_rng(0)
    X, y, a = rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 3)), np.ones((2, 2))
    losses = gtv.SquaredLoss.stack(X, y) + gtv.PointLoss.stack(a)
    both = gtv.StackedLoss([*losses.parts], 2).completed(4)
    w, other = rng.standard_normal((2, 4, 2))
    model = both.model(w, both)
    assert [batch for _, batch in model.parts] == [batch for _, batch in both.parts]
    step = np.sum(both.gradient(w) * (other - w), axis=1)
    np.testing.assert_allclose(
        both.rise(other, w), both.value(other) - both.value(w) - step, atol=1e-12
    )
