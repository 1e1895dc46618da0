"""Proximal points that are reached by degrees."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses.batched.composite import _proximal
from gtvcvx.losses.batched.composite._continuation import go_by_degrees
from gtvcvx.losses.batched.composite._proximal import MAP, ProximalPoints
from gtvcvx.losses.node._segments import owners, sums

K, M, D = 30, 5, 4


def losses(name):
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((K, M, D)), rng.standard_normal((K, M))
    nodes = [gtv.AbsoluteLoss(X[i], y[i]) for i in range(K)]
    signs = np.sign(y)
    stacked = {
        "absolute": lambda: gtv.AbsoluteLoss.stack(X, y),
        "quantile": lambda: gtv.QuantileLoss.stack(X, y, level=0.3),
        "hinge": lambda: gtv.HingeLoss.stack(X, signs),
        "lasso": lambda: gtv.LassoLoss.stack(X, y, kappa=0.8),
        "logistic": lambda: gtv.LogisticLoss.stack(X, (y > 0) * 1.0),
        "box": lambda: [loss + gtv.Box(-0.2, 0.3) for loss in nodes],
        "simplex": lambda: [loss + gtv.Simplex() for loss in nodes],
    }[name]()
    return gtv.GTVProblem(gtv.generators.grid(K, 1), stacked, "l2", 1.0).losses


@pytest.fixture(params=["absolute", "quantile", "hinge", "lasso", "logistic", "box", "simplex"])
def prox(request):
    (found,) = {id(p): p for _, p in _composite(losses(request.param))}.values()
    return found


def _composite(batch):
    for nodes, part in getattr(batch, "parts", [(np.arange(K), batch)]):
        yield nodes, part._proximal


def test_all_nodes_get_there_and_to_the_same_points(prox):
    rng = np.random.default_rng(3)
    v, tau = 3.0 * rng.standard_normal((K, D)), rng.uniform(0.1, 3.0, K)
    c = prox._batch.coordinates
    q, p = c["mu"] + 1.0 / tau[:, None], c["linear"] + v / tau[:, None]
    there, made = go_by_degrees(prox._batch, prox.points, np.arange(K), q, p)
    assert there.all()
    assert made >= K
    # Multipliers come along.
    points, batch = prox.points, prox._batch
    pull = sums(batch.indptr, points.a[:, None] * batch.X)
    np.testing.assert_allclose(q * points.z + pull + points.t, p, rtol=1e-9, atol=1e-9)
    reached = points.z.copy()
    prox.points.z[:] = 0.0
    prox._from_scratch(np.arange(K), v, tau)
    np.testing.assert_allclose(reached, prox.points.z, rtol=1e-9, atol=1e-11)


def test_few_nodes_of_many_need_no_method_that_always_ends(monkeypatch):
    """Two nodes of 30 are too many at a share of 0.05, and enough numbers at one of 0.1."""
    tried = []

    def failing(self, at, v, tau, left):
        tried.append(left[at].sum())
        left[at][2:] = False
        return 2

    def never(*args):
        raise AssertionError("from scratch")

    monkeypatch.setattr(_proximal, "MANY_NUMBERS", K * D)
    monkeypatch.setattr(ProximalPoints, "_follow", failing)
    monkeypatch.setattr(ProximalPoints, "_from_scratch", never)
    v, tau = np.ones((K, D)), np.ones(K)
    with pytest.raises(AssertionError, match="from scratch"):
        losses("absolute").prox(v, tau)
    monkeypatch.setattr(_proximal, "FEW", 0.1)
    batch = losses("absolute")
    batch.prox(v, tau)
    assert tried == [K, K]
    assert batch.detours >= 2 * MAP / K


def test_rows_of_other_nodes_stay(prox):
    z, a, nodes = prox.points.z.copy(), prox.points.a.copy(), np.array([4, 17])
    q, p = prox._batch.coordinates["mu"][nodes] + 1.0, np.full((2, D), 5.0)
    there, _ = go_by_degrees(prox._batch, prox.points, nodes, q, p)
    assert there.all()
    others = np.setdiff1d(np.arange(K), nodes)
    np.testing.assert_array_equal(prox.points.z[others], z[others])
    assert (prox.points.z[nodes] != z[nodes]).any(axis=1).all()
    owner = owners(prox._batch.indptr)
    changed = owner[prox.points.a != a]
    assert set(changed) <= set(nodes)


def test_a_way_that_is_too_long_is_left_as_it_was(prox, monkeypatch):
    monkeypatch.setattr(f"{go_by_degrees.__module__}.MAX_CALLS", 0)
    z, a = prox.points.z.copy(), prox.points.a.copy()
    far = np.full((K, D), 5.0)
    there, made = go_by_degrees(prox._batch, prox.points, np.arange(K), far, far)
    assert not there.any()
    assert made == 0
    np.testing.assert_array_equal(prox.points.z, z)
    np.testing.assert_array_equal(prox.points.a, a)
