"""Batches of losses with several classes: every operation against a definition of it."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv

# Ridge, intercept, rows a node and classes: interpolated data, rank-deficient features, one class.
CASES = {
    "plain": (0.0, None, 12, 3),
    "few-rows": (0.0, None, 2, 3),
    "ridge": (0.1, None, 4, 4),
    "intercept": (0.1, 0, 6, 3),
    "by-feature": ([0.0, 0.5, 0.1], None, 8, 2),
}
P, N = 3, 4


def case(name, seed=0):
    """Losses of four nodes, the definition of each, and points."""
    ridge, intercept, m, K = CASES[name]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, m, P))
    X[:, :, 0] = 1.0
    X[1, :, 2] = X[1, :, 1]
    y = rng.integers(0, K, (N, m))
    losses = gtv.MultinomialLogisticLoss.stack(X, y, n_classes=K, ridge=ridge, intercept=intercept)
    mu = np.broadcast_to(np.asarray(ridge, float), P).copy()
    if intercept is not None:
        mu[intercept] = 0.0

    def naive(w):
        W = w.reshape(N, P, K)
        Z = X @ W
        rows = np.log(np.exp(Z).sum(axis=2)) - np.take_along_axis(Z, y[:, :, None], 2)[:, :, 0]
        return rows.mean(axis=1) + 0.5 * np.sum(mu[:, None] * W**2, axis=(1, 2))

    ((_, batch),) = losses.parts
    return batch, naive, rng.standard_normal((N, P * K)), rng.standard_normal((N, P * K))


@pytest.fixture(params=CASES)
def given(request):
    return case(request.param)


def test_value_and_gradient(given):
    batch, naive, w, step = given
    np.testing.assert_allclose(batch.value(w), naive(w), rtol=1e-12)
    slope = (naive(w + 1e-6 * step) - naive(w - 1e-6 * step)) / 2e-6
    np.testing.assert_allclose(np.sum(batch.gradient(w) * step, axis=1), slope, rtol=1e-6)


def test_rise(given):
    batch, naive, w, step = given
    for length in (1.0, 1e-3):
        there = w + length * step
        tangent = naive(w) + np.sum(batch.gradient(w) * (there - w), axis=1)
        np.testing.assert_allclose(batch.rise(there, w), naive(there) - tangent, rtol=1e-6)


@pytest.mark.parametrize("tau", [1e-3, 1.0, 1e4])
def test_proximal_points_are_stationary(given, tau):
    batch, _, v, _ = given
    taus = tau * np.array([1.0, 2.0, 0.5, 1.0])
    z = batch.prox(v, taus)
    np.testing.assert_allclose(batch.gradient(z), (v - z) / taus[:, None], atol=1e-11)
    np.testing.assert_allclose(batch.prox(v, taus), z, rtol=1e-9, atol=1e-10)


def test_minimizers(given):
    batch, naive, w, _ = given
    least = batch.minimizer()
    # Where the data are separable the infimum is approached only.
    assert np.abs(batch.gradient(least)).max() < 1e-9
    assert (naive(least) <= naive(w)).all()


def test_conjugates_and_gaps(given):
    batch, naive, w, step = given
    s = batch.gradient(w)
    exact = np.sum(s * w, axis=1) - naive(w)
    np.testing.assert_allclose(batch.conjugate(s, np.full(N, 1e-9)), exact, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(batch.fenchel_gap(w, s), 0.0, atol=1e-12)
    for length in (1.0, 1e-4):
        there = w + length * step
        gap = naive(there) + exact - np.sum(s * there, axis=1)
        found = batch.fenchel_gap(there, s)
        assert (found >= gap * (1.0 - 1e-6) - 1e-13).all()
        np.testing.assert_allclose(found, gap, rtol=0.05, atol=1e-13)
    assert (batch.loose_gap(w) >= naive(w) - naive(batch.minimizer()) - 1e-12).all()


def test_null_directions_are_those_of_no_change(given):
    batch, naive, w, step = given
    projector = batch.null_projector()
    if isinstance(projector, float):
        assert projector == 0.0
        return
    along = np.einsum("kij,kj->ki", projector, step)
    np.testing.assert_allclose(naive(w + along), naive(w), rtol=1e-9)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", projector, batch.gradient(w)), 0, atol=1e-12)
    # Every direction is one, or changes the loss: ranks of Hessians by differences.
    for i in range(N):
        H = np.array([batch.gradient(w + 1e-6 * e)[i] for e in np.eye(w.shape[1])])
        H = (H - batch.gradient(w)[i]) / 1e-6
        rank = np.linalg.matrix_rank(H, tol=1e-5)
        assert rank == w.shape[1] - round(np.trace(projector[i]))
    away = batch.conjugate(batch.gradient(w) + along, np.full(N, 1e-9))
    assert (np.isinf(away) | (np.linalg.norm(along, axis=1) < 1e-9)).all()


def test_generators_give_all_slopes(given):
    batch, _, w, _ = given
    domain = batch.domain()
    if domain is None:
        assert batch.null_projector() == 0.0
        return
    s = batch.gradient(w)
    b, firm = batch.multipliers(s, w)
    assert ((domain.low <= b) & (b <= domain.high)).all()
    assert (firm >= 0.0).all()
    total = np.zeros_like(s)
    np.add.at(total, domain.owner, b[:, None] * domain.vectors)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", domain.projector, s), total, atol=1e-12)
    gap = batch.fenchel_gap(w, s, b)
    np.testing.assert_allclose(gap, 0.0, atol=1e-12)


def test_given_multipliers_serve_at_a_corner():
    """At the corner of the domain no finite point has these slopes."""
    batch, _, w, _ = case("few-rows")
    domain = batch.domain()
    b = np.zeros(len(domain.owner))
    first = np.unique(domain.owner, return_index=True)[1]
    b[first] = domain.high[first]
    s = np.zeros_like(w)
    np.add.at(s, domain.owner, b[:, None] * domain.vectors)
    gap = batch.fenchel_gap(w, s, b)
    assert np.isfinite(gap).all()
    # All of one class but y: entropies are zero.
    np.testing.assert_allclose(gap, batch.value(w) - np.sum(s * w, axis=1), rtol=1e-9)


def test_too_much_is_scaled_into_the_domain():
    batch, _, w, _ = case("few-rows")
    domain = batch.domain()
    s = np.zeros_like(w)
    np.add.at(s, domain.owner, (0.6 * domain.high)[:, None] * domain.vectors)
    assert np.isinf(batch.fenchel_gap(w, s)).all()
    share = batch.scale_to_feasible(s)
    assert 0.0 < share < 1.0
    assert np.isfinite(batch.fenchel_gap(w, share * s)).all()


def test_models_touch_and_learn(given):
    batch, _, w, step = given
    model = batch.model(w)
    np.testing.assert_allclose(model.gradient(w), batch.gradient(w), atol=1e-12)
    # The first ones lie above.
    assert (model.rise(w + step, w) >= batch.rise(w + step, w)).all()
    curvature = []
    for k in range(6):
        curvature.append(np.einsum("kjj->k", model.quadratic().hessian))
        model = batch.model(w + (k % 2) * 1e-3 * step, model)
    assert (curvature[-1] < curvature[0]).all()
    ends = w + 2e-3 * step, w + 1e-3 * step
    np.testing.assert_allclose(model.rise(*ends), batch.rise(*ends), rtol=0.05)


def test_models_solve_as_their_hessians_say(given):
    batch, _, w, step = given
    model = batch.model(w)
    hessian, linear = model.quadratic()
    tau = np.array([0.1, 1.0, 2.0, 5.0])
    z = model.prox(step, tau)
    left = z + tau[:, None] * (np.einsum("kij,kj->ki", hessian, z) - linear)
    np.testing.assert_allclose(left, step, atol=1e-9)
    matrix, offset = model.affine_prox(tau)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", matrix, step) + offset, z, atol=1e-9)


def test_cvxpy_models(given):
    batch, naive, w, _ = given
    x = cp.Variable(w.shape)
    cost, constraints = batch.expression(x)
    x.value = w
    assert constraints == []
    assert cost.value == pytest.approx(naive(w).sum())
    s = batch.gradient(w)
    cost, constraints = batch.conjugate_expression(x)
    dual = cp.Problem(cp.Minimize(cost), [*constraints, x == s]).solve(solver=cp.CLARABEL)
    assert dual == pytest.approx(batch.conjugate(s, np.full(N, np.inf)).sum(), abs=1e-6)


def test_units_of_the_features_do_not_matter():
    rng = np.random.default_rng(3)
    m, K = 12, 3
    y = rng.integers(0, K, (1, m))
    plain = np.concatenate([np.ones((1, m, 1)), rng.standard_normal((1, m, 2))], axis=2)
    raw = plain * np.array([1.0, 1e-4, 1e5])
    raw[:, :, 2] += 2e6  # a date beside an intercept
    (_, a), (_, b) = (gtv.MultinomialLogisticLoss.stack(X, y).parts[0] for X in (plain, raw))
    w = b.minimizer()
    assert np.abs(b.gradient(w) / np.repeat([1.0, 1e-4, 2e6], K)).max() < 1e-9
    assert b.value(w) == pytest.approx(a.value(a.minimizer()), rel=1e-9)
    assert b.null_projector().trace(axis1=1, axis2=2) == pytest.approx(3.0)
    there = w * (1.0 + 1e-6)
    assert np.isfinite(b.fenchel_gap(there, b.gradient(w))).all()
