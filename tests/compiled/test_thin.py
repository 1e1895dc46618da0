"""Passes with diagonals and few rows against NumPy, and against passes with matrices."""

import numpy as np
import pytest
from _twins import dense_projectors

import gtvcvx as gtv
from gtvcvx.compiled._thin import thin_images, thin_resolvents
from gtvcvx.duality._conservation import NullDirections
from gtvcvx.losses.batched import _thin
from gtvcvx.losses.batched._base import ThinForm
from gtvcvx.losses.batched._rows import stacked_thin
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from gtvcvx.solvers.primal_dual._proximal_maps import ThinProx, thin_prox


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def form_of(rng, n=5, d=6, ridge=1.0):
    counts = np.array([0, 1, 2, 3, 8])
    rows = rng.standard_normal((counts.sum(), d))
    rows[2] = rows[1]
    diagonal = ridge * rng.uniform(0.0, 2.0, (n, d))
    own, targets = diagonal * rng.standard_normal((n, d)), rng.standard_normal(len(rows))
    return ThinForm(diagonal, own, rows, targets, np.concatenate([[0], np.cumsum(counts)]))


def hessians(form):
    blocks = np.split(form.rows, form.indptr[1:-1])
    return np.array([np.diag(h) + R.T @ R for h, R in zip(form.diagonal, blocks, strict=True)])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_resolvents(rng, size):
    form, tau = form_of(rng), rng.uniform(0.1, 10.0, 5)
    form = form._replace(rows=size * form.rows)
    shrink, rows = np.empty((5, 6)), form.rows.copy()
    targets = form.targets.copy()
    thin_resolvents(form.diagonal, tau, form.indptr, rows, targets, shrink, np.empty((8, 8)))
    v = rng.standard_normal((5, 6))
    found = np.empty_like(v)
    thin_images(np.zeros(6, np.int8), shrink, rows, form.indptr, v, found)
    for i, R in enumerate(np.split(form.rows, form.indptr[1:-1])):
        root = 1.0 / np.sqrt(1.0 + tau[i] * form.diagonal[i])
        # By singular values: matrices with such entries have lost the identity.
        _, sigma, V = np.linalg.svd(np.sqrt(tau[i]) * R * root, full_matrices=False)
        x = root * v[i]
        expected = root * (x - V.T @ (sigma**2 / (1.0 + sigma**2) * (V @ x)))
        np.testing.assert_allclose(found[i], expected, rtol=1e-8, atol=1e-8)


def test_proximal_map_in_scaled_coordinates(rng):
    form, tau, s = form_of(rng), rng.uniform(0.1, 10.0, 5), rng.uniform(0.1, 3.0, 6)
    prox = thin_prox(form, tau, s)
    scaled = tau[:, None, None] * (s[:, None] * hessians(form) * s)
    linear = tau[:, None] * s * _thin.linear_of(form)
    expected = np.linalg.solve(np.eye(6) + scaled, linear[:, :, None])[:, :, 0]
    np.testing.assert_allclose(prox.offset, expected, rtol=1e-9, atol=1e-12)


def problems(rng, monkeypatch, spread=1.0, penalty="l2", ridge=False):
    """The same problem twice: with rows, and with matrices, one node alone."""
    n, d, m = 30, 18, 2
    X = rng.standard_normal((n, m, d)) * spread ** rng.random(d)
    losses = gtv.SquaredLoss.stack(X, rng.standard_normal((n, m)), np.arange(n) % 3 > 0)
    if ridge:
        losses = losses + gtv.PointLoss.stack(rng.standard_normal((n, d)))
    places = rng.random((n - 1, 2))
    edges = gtv.generators.nearest_neighbours(places, 3).edges
    out = []
    for small in (-1, 2**60):
        monkeypatch.setattr(_thin, "SMALL", small)
        graph = gtv.EmpiricalGraph(n, edges)
        terms = gtv.losses.stacked_from_terms(losses.terms(), d).completed(n)
        problem = gtv.GTVProblem(graph, terms, penalty, 0.1)
        assert (terms.thin(n) is not None) == (small < 0)
        assert problem.bounds is not None  # made while the threshold holds
        out.append((problem, PrimalDual(problem)))
    return out


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf", "squared"])
@pytest.mark.parametrize("spread", [1.0, 1e4])
@pytest.mark.parametrize("ridge", [False, True])
def test_iterations_are_those_with_matrices(rng, monkeypatch, penalty, spread, ridge):
    (thin, by_rows), (_, by_matrices) = problems(rng, monkeypatch, spread, penalty, ridge)
    assert isinstance(by_rows.state._prox, ThinProx)
    assert (by_rows.state.coordinates is not None) == (by_matrices.state.coordinates is not None)
    for method in (by_rows, by_matrices):
        method.run(30)  # no restart yet: one would tell apart what rounding has
    size = np.abs(by_matrices.w).max()
    np.testing.assert_allclose(by_rows.w, by_matrices.w, atol=1e-7 * size)
    np.testing.assert_allclose(by_rows.u, by_matrices.u, atol=1e-7 * np.abs(by_matrices.u).max())
    assert thin.value(by_rows.w) == pytest.approx(thin.value(by_matrices.w), rel=1e-7)


def test_null_directions_by_rows_are_projectors(rng, monkeypatch):
    ((problem, _), (dense, _)) = problems(rng, monkeypatch)
    monkeypatch.setattr(_thin, "SMALL", -1)
    null = NullDirections(problem.losses, problem.graph.n_nodes)
    assert len(null.projectors.rows)
    assert not len(null.projectors.matrices)
    x = rng.standard_normal((problem.graph.n_nodes, problem.dim))
    expected = np.einsum("nij,nj->ni", dense_projectors(dense), x)
    np.testing.assert_allclose(null.apply(x), expected, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_groups_add_up(rng, ridge):
    form, labels = form_of(rng, ridge=ridge), np.array([1, 0, 1, 2, 2])
    form = form._replace(diagonal=np.repeat(form.diagonal[:, :1], 6, axis=1))
    form = form._replace(own=ridge * form.own)
    groups = _thin.grouped_form(form, labels)
    members = np.eye(3)[labels].T
    total = np.einsum("gi,ijk->gjk", members, hessians(form))
    linear = members @ _thin.linear_of(form)
    assert np.diff(groups.indptr).tolist() == [1, 2, 6]  # 11 rows in six dimensions
    np.testing.assert_allclose(hessians(groups), total, atol=1e-12)
    np.testing.assert_allclose(_thin.linear_of(groups), linear, atol=1e-12)
    made = stacked_thin(groups).quadratic(3)
    np.testing.assert_allclose(made.hessian, total, atol=1e-12)
    np.testing.assert_allclose(made.linear, linear, atol=1e-12)
    alone = stacked_thin(form).quadratic(5)
    np.testing.assert_allclose(alone.hessian, hessians(form), atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "multinomial"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_models_of_smooth_losses(rng, loss, ridge):
    n, d = 5, 6
    X, y = rng.standard_normal((n, 2, d)), rng.integers(0, 2, (n, 2))
    if loss == "multinomial":
        losses = gtv.MultinomialLogisticLoss.stack(X[:, :, :3], y, n_classes=2)
    else:
        of = gtv.LogisticLoss if loss == "logistic" else gtv.PoissonLoss
        losses = of.stack(X, y.astype(float))
    if ridge:
        mu = {"kind": "ridge", "node": np.arange(n), "mu": np.full(n, ridge)}
        losses = losses + gtv.losses.stacked_from_terms([mu], d)
    model = losses.model(rng.standard_normal((n, d)))
    ((_, batch),) = model.parts
    form, expected = batch.thin(), model.quadratic(n)
    np.testing.assert_allclose(hessians(form), expected.hessian, atol=1e-12)
    np.testing.assert_allclose(_thin.linear_of(form), expected.linear, atol=1e-12)
