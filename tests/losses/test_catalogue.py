"""Constructors of the catalogue: single, stacked, from rows, sums, regularizers, many outputs."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses import stacked

N, M, D = 5, 4, 3
SIGN, LABEL, COUNT = "sign", "label", "count"
ROW_LOSSES = {
    "logistic": (gtv.LogisticLoss, LABEL, {}),
    "logistic ridge": (gtv.LogisticLoss, LABEL, {"ridge": 0.2, "intercept": 2}),
    "lasso": (gtv.LassoLoss, None, {"kappa": 0.3, "intercept": 0}),
    "huber": (gtv.HuberLoss, None, {"delta": 0.5}),
    "pseudohuber": (gtv.PseudoHuberLoss, None, {"delta": 0.5}),
    "poisson": (gtv.PoissonLoss, COUNT, {}),
    "absolute": (gtv.AbsoluteLoss, None, {}),
    "quantile": (gtv.QuantileLoss, None, {"level": 0.3}),
    "hinge": (gtv.HingeLoss, SIGN, {}),
}
rows = pytest.mark.parametrize(("cls", "target", "parameters"), ROW_LOSSES.values(), ids=ROW_LOSSES)


def data(rng, target):
    X, y = rng.standard_normal((N, M, D)), rng.standard_normal((N, M))
    return X, {
        None: y,
        LABEL: (y > 0).astype(float),
        SIGN: np.where(y > 0, 1.0, -1.0),
        COUNT: np.round(np.exp(y)),
    }[target]


def assert_same(first, second, rng, n=N):
    first, second = first.completed(n), second.completed(n)
    w, tau = rng.standard_normal((n, D)), rng.uniform(0.1, 2.0, n)
    w = first.project_domain(w)
    np.testing.assert_allclose(first.value(w), second.value(w), rtol=1e-13)
    np.testing.assert_allclose(first.gradient(w), second.gradient(w), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(first.prox(w, tau), second.prox(w, tau), rtol=1e-9, atol=1e-10)
    s = first.gradient(w)
    np.testing.assert_allclose(
        first.conjugate(s, np.full(n, 1e-9)), second.conjugate(s, np.full(n, 1e-9)), atol=1e-9
    )


@rows
class TestConstructorsAgree:
    def test_stack_and_single(self, cls, target, parameters, rng):
        X, y = data(rng, target)
        graph = gtv.EmpiricalGraph(N, [])
        singles = stacked([cls(X[i], y[i], **parameters) for i in range(N)], graph)
        assert_same(cls.stack(X, y, **parameters), singles, rng)

    def test_labelled(self, cls, target, parameters, rng):
        X, y = data(rng, target)
        labelled = np.array([True, False, True, False, True])
        graph = gtv.EmpiricalGraph(N, [])
        singles = {i: cls(X[i], y[i], **parameters) for i in np.flatnonzero(labelled)}
        assert_same(cls.stack(X, y, labelled, **parameters), stacked(singles, graph), rng)

    def test_from_rows(self, cls, target, parameters, rng):
        X, y = data(rng, target)
        node = rng.permutation(np.repeat(np.arange(N), M))
        order = np.argsort(node, kind="stable")
        flat, targets = np.empty((N * M, D)), np.empty(N * M)
        flat[order], targets[order] = X.reshape(-1, D), y.ravel()
        table = cls.from_rows(flat, targets, node, **parameters)
        assert_same(table, cls.stack(X, y, **parameters), rng)
        more = cls.from_rows(flat, targets, node, N + 2, **parameters)
        assert_same(more, table, rng, N + 2)

    def test_without_rows(self, cls, target, parameters, rng):
        zero = gtv.StackedLoss([], dim=D)
        nobody = np.zeros(N, dtype=bool)
        X, y = data(rng, target)
        assert_same(cls.stack(X, y, nobody, **parameters), zero, rng)
        empty = cls.from_rows(np.empty((0, D)), [], np.empty(0, int), N, **parameters)
        assert_same(empty, zero, rng)

    def test_everywhere(self, cls, target, parameters, rng):
        X, y = data(rng, target)
        loss = cls(X[0], y[0], **parameters)
        graph = gtv.EmpiricalGraph(N, [])
        assert_same(loss.everywhere(N), stacked([loss] * N, graph), rng)

    def test_later_changes_of_the_input_do_not_reach_the_loss(self, cls, target, parameters, rng):
        X, y = data(rng, target)
        single, stack = cls(X[0], y[0], **parameters), cls.stack(X, y, **parameters)
        w = rng.standard_normal((N, D))
        before = single.value(w[0]), stack.value(w)[0]
        X[:], y[:] = 7.0, 0.0
        assert (single.value(w[0]), stack.value(w)[0]) == before

    def test_its_name_and_size(self, cls, target, parameters, rng):
        X, y = data(rng, target)
        assert repr(cls(X[0], y[0], **parameters)) == f"{cls.__name__}(X of shape (4, 3))"
        assert cls(X[0], y[0], **parameters).dim == D


def test_parameters_of_single_data_points(rng):
    X, y = rng.standard_normal((N, M, D)), rng.standard_normal((N, M))
    delta = rng.uniform(0.1, 1.0, (N, M))
    node = np.repeat(np.arange(N), M)
    graph = gtv.EmpiricalGraph(N, [])
    singles = stacked([gtv.HuberLoss(X[i], y[i], delta[i]) for i in range(N)], graph)
    assert_same(gtv.HuberLoss.stack(X, y, delta=delta), singles, rng)
    labelled = np.array([False, True, True, False, True])
    some = stacked({i: gtv.HuberLoss(X[i], y[i], delta[i]) for i in (1, 2, 4)}, graph)
    assert_same(gtv.HuberLoss.stack(X, y, labelled, delta=delta), some, rng)
    shuffled = rng.permutation(N * M)
    table = gtv.HuberLoss.from_rows(
        X.reshape(-1, D)[shuffled],
        y.ravel()[shuffled],
        node[shuffled],
        delta=delta.ravel()[shuffled],
    )
    assert_same(table, singles, rng)


class TestRegularizers:
    def test_values(self):
        w = np.array([1.0, -2.0])
        assert gtv.Ridge(0.5).everywhere(1, 2).value(w[None])[0] == pytest.approx(1.25)
        assert gtv.Ridge([0.0, 0.5]).value(w) == 1.0
        assert gtv.L1([1.0, 0.5]).value(w) == 2.0
        assert gtv.Box([0.0, -np.inf], [1.0, 0.0]).value(w) == 0.0
        assert gtv.Box(0.0, 1.0).value(w) == np.inf
        assert gtv.Nonnegative().value(w) == np.inf
        assert gtv.Nonnegative().value(-w * [-1, 1]) == 0.0
        assert gtv.Simplex(3.0).value([1.0, 2.0]) == 0.0
        assert gtv.Simplex().value([1.0, 2.0]) == np.inf

    def test_projections(self):
        v = np.array([1.5, -0.5, 0.2])
        np.testing.assert_allclose(gtv.Nonnegative().prox(v, 1.0), [1.5, 0.0, 0.2])
        np.testing.assert_allclose(gtv.Box(-0.1, 1.0).prox(v, 3.0), [1.0, -0.1, 0.2])
        np.testing.assert_allclose(gtv.Simplex().prox(v, 0.1), [1.0, 0.0, 0.0])
        np.testing.assert_allclose(gtv.L1(0.4).prox(v, 1.0), [1.1, -0.1, 0.0])
        np.testing.assert_allclose(gtv.Ridge(1.0).prox(v, 1.0), v / 2)

    def test_support_functions(self):
        assert gtv.Box(-1.0, 2.0).conjugate([3.0, -1.0]) == 7.0
        assert gtv.Nonnegative().conjugate([-3.0, 0.0]) == 0.0
        assert gtv.Nonnegative().conjugate([-3.0, 0.1]) == np.inf
        assert gtv.Simplex(2.0).conjugate([3.0, -1.0]) == 6.0
        assert gtv.L1(0.5).conjugate([0.5, -0.5]) == 0.0
        assert gtv.L1(0.5).conjugate([0.6, 0.0]) == np.inf

    def test_any_dimension_or_their_own(self):
        assert gtv.Ridge(1.0).dim is None
        assert gtv.Ridge([1.0, 2.0]).dim == 2
        assert gtv.Box(0.0, [1.0, 2.0]).dim == 2
        assert gtv.Simplex().dim is None

    def test_their_names(self):
        assert [repr(x) for x in (gtv.Ridge(0.5), gtv.L1(1), gtv.Box(-1, np.inf))] == [
            "Ridge(0.5)",
            "L1(1.0)",
            "Box(-1.0, inf)",
        ]
        assert repr(gtv.PointLoss([1.0]) + gtv.Nonnegative() + gtv.Simplex(2)) == (
            "PointLoss(a=[1.]) + Nonnegative() + Simplex(2.0)"
        )
        assert repr(gtv.Ridge([1.0, 2.0])) == "Ridge([1. 2.])"
        assert repr(gtv.Box(0, [1.0, 2.0])) == "Box([0.], [1. 2.])"


class TestSums:
    def test_of_single_losses(self, rng):
        X, y, w = rng.standard_normal((M, D)), rng.standard_normal(M), rng.uniform(0, 1, D)
        parts = [gtv.HuberLoss(X, y, 1.0), gtv.Ridge(0.1), gtv.Nonnegative(), gtv.L1([0, 1, 2])]
        total = parts[0] + parts[1] + (parts[2] + parts[3])
        assert total.dim == D
        assert len(total.losses) == 4
        expected = parts[0].value(w) + 0.05 * w @ w + w @ [0, 1, 2]
        assert total.value(w) == pytest.approx(expected)
        assert total.value(-w) == np.inf

    def test_repeated_terms_add_up(self, rng):
        X, y = rng.standard_normal((2, M, D)), rng.standard_normal((2, M))
        w = rng.standard_normal(D)
        twice = gtv.SquaredLoss(X[0], y[0]) + gtv.SquaredLoss(X[1], y[1])
        single = gtv.SquaredLoss(X[0], y[0]).value(w) + gtv.SquaredLoss(X[1], y[1]).value(w)
        assert twice.value(w) == pytest.approx(single)
        points = gtv.PointLoss(w) + gtv.PointLoss(-w) + gtv.Ridge(1.0) + gtv.Ridge(0.5)
        assert points.value(w) == pytest.approx(4 * w @ w + 0.75 * w @ w)
        kinks = gtv.AbsoluteLoss(X[0], y[0]) + gtv.AbsoluteLoss(X[1], y[1])
        expected = np.mean(np.abs(X[0] @ w - y[0])) + np.mean(np.abs(X[1] @ w - y[1]))
        assert kinks.value(w) == pytest.approx(expected)

    def test_of_stacked_losses(self, rng):
        X, y = rng.standard_normal((N, M, D)), rng.standard_normal((N, M))
        graph = gtv.EmpiricalGraph(N, [])
        labelled = np.array([True, False, True, True, False])
        first = gtv.HuberLoss.stack(X, y, labelled, delta=0.5)
        second = gtv.PointLoss.stack(X[:, 0])
        total = first + second + gtv.Nonnegative().everywhere(N, D)
        singles = [
            gtv.PointLoss(X[i, 0]) + gtv.Nonnegative() + gtv.HuberLoss(X[i], y[i], 0.5)
            if labelled[i]
            else gtv.PointLoss(X[i, 0]) + gtv.Nonnegative()
            for i in range(N)
        ]
        assert_same(total, stacked(singles, graph), rng)

    def test_losses_of_different_nodes_stay_as_they_are(self, rng):
        first = gtv.SquaredLoss.from_rows(rng.standard_normal((2, D)), [1.0, 2.0], [0, 0])
        second = gtv.SquaredLoss.from_rows(rng.standard_normal((1, D)), [3.0], [2])
        total = first + second
        assert first.parts[0][1] in [batch for _, batch in total.parts]
        assert total.n_named == 3
        w = rng.standard_normal((4, D))
        np.testing.assert_allclose(total.value(w), first.value(w) + second.value(w))

    def test_sums_of_quadratic_losses_have_an_affine_prox(self, rng):
        loss = gtv.SquaredLoss(rng.standard_normal((2, D)), [1.0, 2.0]) + gtv.Ridge([0.0, 1.0, 2.0])
        losses = stacked([loss, loss + gtv.PointLoss(np.ones(D))], gtv.EmpiricalGraph(2, []))
        tau, v = np.array([0.5, 2.0]), rng.standard_normal((2, D))
        matrix, offset = losses.affine_prox(tau)
        z = np.einsum("kij,kj->ki", matrix, v) + offset
        np.testing.assert_allclose(z, losses.prox(v, tau), rtol=1e-12)
        np.testing.assert_allclose((v - z) / tau[:, None], losses.gradient(z), atol=1e-12)
        nonsmooth = stacked([loss, loss + gtv.L1(0.1)], gtv.EmpiricalGraph(2, []))
        assert nonsmooth.affine_prox(tau) is None

    def test_a_zero_loss_adds_nothing(self, rng):
        point, w = gtv.PointLoss(np.ones(D)), rng.standard_normal(D)
        assert (point + gtv.ZeroLoss()).value(w) == pytest.approx(point.value(w))
        assert (gtv.ZeroLoss() + gtv.Ridge(2.0)).everywhere(2, D).value(w + np.zeros((2, D)))[
            0
        ] == pytest.approx(w @ w)


class TestManyOutputs:
    def test_is_the_mean_over_all_entries(self, rng):
        X, Y = rng.standard_normal((M, D)), rng.standard_normal((M, 2))
        w = rng.standard_normal(2 * D)
        residual = X @ w.reshape(D, 2) - Y
        squared = gtv.multi_output(X, Y)
        assert isinstance(squared, gtv.SquaredLoss)
        assert squared.value(w) == pytest.approx(np.mean(residual**2))
        absolute = gtv.multi_output(X, Y, gtv.AbsoluteLoss)
        assert absolute.value(w) == pytest.approx(np.mean(np.abs(residual)))

    def test_parameters_by_entry(self, rng):
        X, Y = rng.standard_normal((M, D)), rng.standard_normal((M, 2))
        w, W = np.zeros(2 * D), rng.standard_normal((D, 2))
        level = rng.uniform(0.1, 0.9, (M, 2))
        loss = gtv.multi_output(X, Y, gtv.QuantileLoss, level=level)
        expected = np.mean(np.maximum(level * Y, (level - 1) * Y))
        assert loss.value(w) == pytest.approx(expected)
        kappa = rng.uniform(0.0, 1.0, (D, 2))
        lasso = gtv.multi_output(X, Y, gtv.LassoLoss, kappa=kappa)
        assert lasso.value(W.ravel()) == pytest.approx(
            np.mean((X @ W - Y) ** 2) + np.sum(kappa * np.abs(W))
        )

    def test_the_intercepts_of_all_outputs_are_spared(self, rng):
        X, Y = rng.standard_normal((M, D)), np.zeros((M, 2))
        lasso = gtv.multi_output(X, Y, gtv.LassoLoss, kappa=1.0, intercept=1)
        W = rng.standard_normal((D, 2))
        penalty = np.abs(W).sum() - np.abs(W[1]).sum()
        assert lasso.value(W.ravel()) == pytest.approx(np.mean((X @ W) ** 2) + penalty)

    def test_of_all_nodes(self, rng):
        X, Y = rng.standard_normal((N * M, D)), rng.standard_normal((N * M, 2))
        node = rng.integers(0, N - 1, N * M)
        stack = gtv.multi_output(X, Y, gtv.HuberLoss, node=node, n_nodes=N, delta=0.3)
        w = rng.standard_normal((N, 2 * D))
        for i in range(N - 1):
            own = node == i
            single = gtv.multi_output(X[own], Y[own], gtv.HuberLoss, delta=0.3)
            assert stack.value(w)[i] == pytest.approx(single.value(w[i]))
        assert stack.value(w)[N - 1] == 0.0
