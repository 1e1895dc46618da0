"""Squares and a ridge against the same as squared errors of more rows."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses.batched import _thin
from gtvcvx.losses.batched._quadratic import BatchedQuadratic
from gtvcvx.losses.batched._ridged import BatchedRidged, ridged

K, D = 4, 6


@pytest.fixture(params=range(4))
def terms(request):
    """Rows at some nodes, up to more than coordinates; points and ridges, some of them tiny."""
    rng = np.random.default_rng(request.param)
    counts = rng.integers(0, D + 3, K)
    counts[0] = 2
    node = np.repeat(np.arange(K), counts)
    X = rng.standard_normal((len(node), D))
    X[1] = 2.0 * X[0]
    squared = {"kind": "squared", "node": node, "X": X, "y": rng.standard_normal(len(node))}
    mu = 10.0 ** rng.uniform(-4, 1, K)
    point = {
        "kind": "point",
        "node": np.arange(0, K, 2),
        "a": rng.standard_normal((K // 2, D)),
        "weight": rng.uniform(0.1, 2.0, K // 2),
    }
    return [squared, point, {"kind": "ridge", "node": np.arange(K), "mu": mu}]


@pytest.fixture
def pair(terms):
    return BatchedRidged.of(terms, K, D), BatchedQuadratic(terms, K, D)


@pytest.mark.parametrize(
    "of",
    [
        lambda b, w, s, t: b.value(w),
        lambda b, w, s, t: b.gradient(w),
        lambda b, w, s, t: b.rise(w, s),
        lambda b, w, s, t: b.prox(w, t),
        lambda b, w, s, t: b.affine_prox(t).matrix,
        lambda b, w, s, t: b.affine_prox(t).offset,
        lambda b, w, s, t: b.quadratic().hessian,
        lambda b, w, s, t: b.quadratic().linear,
        lambda b, w, s, t: b.total_hessian(),
        lambda b, w, s, t: b.minimizer(),
        lambda b, w, s, t: b.conjugate(s, np.zeros(K)),
        lambda b, w, s, t: b.fenchel_gap(w, s),
        lambda b, w, s, t: b.in_basis(np.linalg.qr(np.outer(w, s)[:D, :D])[0]).gradient(w),
    ],
)
def test_as_with_more_rows(pair, of):
    rng = np.random.default_rng(7)
    w, s, tau = rng.standard_normal((K, D)), rng.standard_normal((K, D)), rng.uniform(0.1, 9.0, K)
    found, expected = (of(batch, w, s, tau) for batch in pair)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_models_are_values_and_conjugates(pair):
    rng = np.random.default_rng(8)
    batch, x = pair[0], rng.standard_normal((K, D))
    for model, of in (
        (batch.expression, batch.value),
        (batch.conjugate_expression, lambda s: batch.conjugate(s, np.zeros(K))),
    ):
        variable = gtv._lazy.cp.Variable((K, D))
        cost, constraints = model(variable)
        problem = gtv._lazy.cp.Problem(gtv._lazy.cp.Minimize(cost), [*constraints, variable == x])
        problem.solve(solver="CLARABEL")
        assert problem.value == pytest.approx(of(x).sum(), rel=1e-6)


def test_thin_form_is_the_loss(pair):
    form, hessian = pair[0].thin(), pair[1].quadratic().hessian
    for i in range(K):
        rows = form.rows[form.indptr[i] : form.indptr[i + 1]]
        np.testing.assert_allclose(np.diag(form.diagonal[i]) + rows.T @ rows, hessian[i], atol=1e-9)
    linear = _thin.linear_of(form)
    np.testing.assert_allclose(linear, pair[1].quadratic().linear, atol=1e-9)


def test_which_nodes_it_takes(terms, monkeypatch):
    monkeypatch.setattr(_thin, "SMALL", 0)
    some = [{**terms[0], **{name: terms[0][name][:2] for name in ("node", "X", "y")}}, *terms[1:]]
    assert ridged(some, K, D).all()
    uneven = np.ones((K, D))
    uneven[1, 2] = 2.0
    some[2] = {"kind": "ridge", "node": np.arange(K), "mu": uneven}
    assert ridged(some, K, D).tolist() == [True, False, True, True]
    some[2] = {"kind": "ridge", "node": np.array([1]), "mu": np.array([0.5])}
    assert ridged(some, K, D).tolist() == [True, True, True, False]


def test_matrices_are_kept_where_they_are_small(terms):
    assert not ridged(terms, K, D).any()


def test_sums_and_multiples_keep_their_terms(monkeypatch, rng):
    monkeypatch.setattr(_thin, "SMALL", 0)
    X, y = rng.standard_normal((K, 2, D)), rng.standard_normal((K, 2))
    losses = 3.0 * (gtv.SquaredLoss.stack(X, y) + gtv.PointLoss.stack(np.ones((K, D))))
    (part,) = losses.parts
    assert isinstance(part[1], BatchedRidged)
    w = rng.standard_normal((K, D))
    rest = np.mean((np.einsum("kmd,kd->km", X, w) - y) ** 2, axis=1)
    np.testing.assert_allclose(losses.value(w), 3.0 * (rest + np.sum((w - 1.0) ** 2, axis=1)))
