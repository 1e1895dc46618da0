"""Weights of data points, factors of losses, one data point a node, and no features at all."""

import cvxpy as cp
import numpy as np
import pytest
from _catalogue_cases import KINDS, targets

import gtvcvx as gtv
from gtvcvx.losses import StackedLoss

CLASSES = {
    "squared": (gtv.SquaredLoss, {}),
    "lasso": (gtv.LassoLoss, {"kappa": 0.2}),
    "logistic": (gtv.LogisticLoss, {"ridge": 0.3}),
    "huber": (gtv.HuberLoss, {"delta": 0.4}),
    "pseudohuber": (gtv.PseudoHuberLoss, {"delta": 0.4}),
    "poisson": (gtv.PoissonLoss, {}),
    "absolute": (gtv.AbsoluteLoss, {}),
    "quantile": (gtv.QuantileLoss, {"level": 0.8}),
    "hinge": (gtv.HingeLoss, {}),
}
N, M, D = 4, 5, 2
GRAPH = gtv.EmpiricalGraph(N, [(i, i + 1) for i in range(N - 1)])
# Node 1 has no weight, and the rows of node 2 weigh the same.
WEIGHTS = np.array(
    [[1, 0, 3, 2, 1], [0, 0, 0, 0, 0], [2, 2, 2, 2, 2], [0, 5, 1, 1, 0]], dtype=np.float64
)


def data(kind):
    rng = np.random.default_rng(len(kind))
    X = rng.standard_normal((N, M, D))
    z = (X @ np.array([0.5, -0.4])).ravel()
    return X, targets(kind if kind in KINDS else "squared", z, rng).reshape(N, M)


def repeated(kind):
    """Each row as often as it weighs."""
    cls, parameters = CLASSES[kind]
    X, y = data(kind)
    rows = np.repeat(np.arange(N * M), WEIGHTS.ravel().astype(int))
    node = np.repeat(np.arange(N), M)[rows]
    return cls.from_rows(X.reshape(-1, D)[rows], y.ravel()[rows], node, N, **parameters)


def weighted(kind, weights=WEIGHTS):
    cls, parameters = CLASSES[kind]
    return cls.stack(*data(kind), sample_weight=weights, **parameters)


def agree(a: StackedLoss, b: StackedLoss, n: int = N) -> None:
    """Two losses that are the same function, up to rounding, however they are computed."""
    rng = np.random.default_rng(1)
    w, v = rng.standard_normal((2, n, a.dim))
    tau, atol = rng.uniform(0.5, 2.0, n), np.full(n, 1e-9)
    assert np.array_equal(a.completed(n).nodes_with_loss, b.completed(n).nodes_with_loss)
    assert a.value(w) == pytest.approx(b.value(w), rel=1e-12)
    s = a.gradient(w)
    assert s == pytest.approx(b.gradient(w), rel=1e-10, abs=1e-12)
    assert a.prox(v, tau) == pytest.approx(b.prox(v, tau), rel=1e-7, abs=1e-9)
    assert a.conjugate(s, atol) == pytest.approx(b.conjugate(s, atol), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("kind", CLASSES)
class TestEveryKind:
    def test_integer_weights_are_repetitions(self, kind):
        agree(weighted(kind), repeated(kind))

    def test_table_and_single_losses(self, kind):
        (cls, parameters), (X, y) = CLASSES[kind], data(kind)
        node = np.repeat(np.arange(N), M)
        shuffled = np.random.default_rng(2).permutation(N * M)
        table = cls.from_rows(
            X.reshape(-1, D)[shuffled],
            y.ravel()[shuffled],
            node[shuffled],
            sample_weight=WEIGHTS.ravel()[shuffled],
            **parameters,
        )
        agree(table, weighted(kind))
        single = {i: cls(X[i], y[i], sample_weight=WEIGHTS[i], **parameters) for i in (0, 2, 3)}
        agree(gtv.GTVProblem(GRAPH, single, lam=1.0).losses, weighted(kind))

    def test_only_ratios_count(self, kind):
        scales = np.array([[1e-300], [1.0], [1e300], [2.0**-30]])
        agree(weighted(kind, WEIGHTS * scales), weighted(kind))

    def test_equal_weights_are_none(self, kind):
        cls, parameters = CLASSES[kind]
        plain, equal = cls.stack(*data(kind), **parameters), weighted(kind, np.full((N, M), 0.1))
        for a, b in zip(plain.terms(), equal.terms(), strict=True):
            assert a.keys() == b.keys()
            assert all(np.array_equal(a[name], b[name]) for name in a)

    def test_cvxpy_and_every_solver_agree(self, kind):
        problem = gtv.GTVProblem(GRAPH, weighted(kind), lam=0.1)
        model = problem.cvxpy()
        value = model.solve(solver=cp.CLARABEL)
        solution = problem.solve(rtol=1e-8)
        assert solution.status == "optimal"
        assert solution.value == pytest.approx(value, rel=1e-6, abs=1e-7)
        dual = problem.dual().cvxpy()
        assert dual.solve(solver=cp.CLARABEL) == pytest.approx(value, rel=1e-6, abs=1e-6)
        same = gtv.GTVProblem(GRAPH, repeated(kind), lam=0.1).solve(rtol=1e-8)
        assert same.value == pytest.approx(solution.value, rel=1e-7, abs=1e-8)

    def test_factors(self, kind):
        losses = weighted(kind)
        three = 3.0 * losses
        w = np.random.default_rng(3).standard_normal((N, D))
        assert three.value(w) == pytest.approx(3.0 * losses.value(w), rel=1e-12)
        each = np.array([1.0, 2.0, 0.0, 0.5])
        assert (losses * each).value(w) == pytest.approx(each * losses.value(w), rel=1e-12)
        assert (each * losses).nodes_with_loss.tolist() == [0, 3]
        (cls, parameters), (X, y) = CLASSES[kind], data(kind)
        single = 0.5 * cls(X[0], y[0], sample_weight=WEIGHTS[0], **parameters)
        assert single.value(w[0]) == pytest.approx(0.5 * losses.value(w)[0], rel=1e-12)
        assert single.gradient(w[0]) == pytest.approx(0.5 * losses.gradient(w)[0], rel=1e-12)

    def test_one_data_point_a_node(self, kind):
        (cls, parameters), (X, y) = CLASSES[kind], data(kind)
        agree(
            cls.stack(X[:, 0], y[:, 0], **parameters), cls.stack(X[:, :1], y[:, :1], **parameters)
        )

    def test_no_features(self, kind):
        (cls, parameters), (_, y) = CLASSES[kind], data(kind)
        ones = np.ones((N, M, 1))
        agree(cls.stack(None, y, **parameters), cls.stack(ones, y, **parameters))
        agree(cls.stack(None, y[:, 0], **parameters), cls.stack(ones[:, 0], y[:, 0], **parameters))
        node = np.repeat(np.arange(N), M)
        agree(cls.from_rows(None, y.ravel(), node, **parameters), cls.stack(ones, y, **parameters))
        assert cls(None, y[0], **parameters).value([0.3]) == cls(ones[0], y[0], **parameters).value(
            [0.3]
        )


@pytest.mark.parametrize(
    ("cls", "name"),
    [(gtv.HuberLoss, "delta"), (gtv.PseudoHuberLoss, "delta"), (gtv.QuantileLoss, "level")],
)
def test_parameters_of_rows_stay_with_their_rows(cls, name):
    (X, y), values, kept = data("huber"), np.linspace(0.1, 0.9, M), WEIGHTS[0] > 0.0
    loss = cls(X[0], y[0], sample_weight=WEIGHTS[0], **{name: values})
    some = cls(X[0][kept], y[0][kept], values[kept], sample_weight=WEIGHTS[0][kept])
    assert loss.value([0.3, 0.2]) == some.value([0.3, 0.2])


class TestFactors:
    def test_twice_the_loss_is_half_of_lambda(self):
        losses = weighted("squared")
        once = gtv.GTVProblem(GRAPH, losses, lam=0.1).solve(rtol=1e-10)
        twice = gtv.GTVProblem(GRAPH, 2.0 * losses, lam=0.2).solve(rtol=1e-10)
        assert twice.value == pytest.approx(2.0 * once.value, rel=1e-9)
        # w is known up to the root of what the gap leaves.
        assert twice.w == pytest.approx(once.w, abs=0.01)

    @pytest.mark.parametrize(
        "loss",
        [
            gtv.PointLoss([1.0, -2.0]),
            gtv.Ridge(0.5),
            gtv.L1([0.5, 0.0]),
            gtv.SquaredLoss(np.eye(2), [1.0, 2.0]) + gtv.L1(0.1) + gtv.PointLoss([1.0, 0.0]),
            gtv.AbsoluteLoss(np.eye(2), [1.0, 2.0]) + gtv.PointLoss([1.0, 0.0]),
            gtv.CvxpyLoss(lambda w: cp.sum_squares(w - 1.0) + cp.norm1(w), dim=2),
        ],
        ids=repr,
    )
    def test_of_every_loss(self, loss):
        w, s = np.array([0.3, -0.7]), np.array([0.2, 0.0])
        for product in (2.5 * loss, loss * 2.5, np.float64(2.5) * loss, np.array(2.5) * loss):
            assert product.value(w) == pytest.approx(2.5 * loss.value(w))
            assert product.gradient(w) == pytest.approx(2.5 * loss.gradient(w), rel=1e-6)
        # (c L)*(c s) = c L*(s)
        assert (2.5 * loss).conjugate(2.5 * s) == pytest.approx(2.5 * loss.conjugate(s), rel=1e-6)
        assert (2.5 * loss).prox(w, 0.4) == pytest.approx(loss.prox(w, 1.0), rel=1e-6)
        assert (2.0 * (0.5 * loss)).value(w) == pytest.approx(loss.value(w))
        assert repr(2.5 * loss).startswith("2.5 * ")

    def test_constraints_stay(self):
        loss = 3.0 * (gtv.PointLoss([2.0, 2.0]) + gtv.Box(0.0, 1.0))
        assert loss.value([1.0, 1.0]) == 6.0
        assert np.isinf(loss.value([1.5, 1.0]))
        zero = 2.0 * gtv.ZeroLoss()
        assert isinstance(zero, gtv.ZeroLoss)
        node = np.array([0.0, 1.0]) * gtv.Simplex(1.0).everywhere(2, 3)
        assert np.isinf(node.value(np.ones((2, 3)))).all()

    def test_points_of_all_nodes(self):
        a = np.arange(8.0).reshape(4, 2)
        losses, c = gtv.PointLoss.stack(a), np.array([1.0, 2.0, 3.0, 4.0])
        single = [f * gtv.PointLoss(x) for f, x in zip(c, a, strict=True)]
        agree(c * losses, gtv.GTVProblem(GRAPH, single, lam=1.0).losses)
        scalar = (c * losses).scalar(4)
        assert np.array_equal(scalar.curvature, np.repeat(2.0 * c[:, None], 2, axis=1))
        assert ((c * losses) * c).value(np.zeros((4, 2))) == pytest.approx(c * c * (a**2).sum(1))

    def test_losses_by_cvxpy_at_many_nodes(self):
        loss = gtv.CvxpyLoss(lambda w: cp.norm1(w - 1.0), dim=2)
        losses = gtv.GTVProblem(GRAPH, [loss] * N, lam=1.0).losses
        product = losses * np.array([1.0, 2.0, 2.0, 3.0])
        assert product.value(np.zeros((N, 2))) == pytest.approx([2.0, 4.0, 4.0, 6.0])
        with pytest.raises(TypeError, match="factor: zero at node 1, whose loss is written with"):
            losses * np.array([1.0, 0.0, 1.0, 1.0])

    @pytest.mark.parametrize(
        ("factor", "error", "message"),
        [
            (0.0, ValueError, r"factor: a finite number > 0 is expected, got 0\.0.*ZeroLoss\(\)"),
            (-1.0, ValueError, r"factor: a finite number > 0 is expected, got -1\.0"),
            (np.nan, ValueError, "factor: a finite number > 0 is expected, got nan"),
            (np.inf, ValueError, "factor: a finite number > 0 is expected, got inf"),
            ("2", TypeError, "factor: an array of numbers is expected"),
            (1e308, ValueError, "factor: times the loss of node 0, it leaves the range of doubles"),
            (1e-308, ValueError, "factor: times the loss of node 0"),
            (5e-324, ValueError, "factor: times the loss of node 0"),
        ],
    )
    def test_refused(self, factor, error, message):
        loss = gtv.Ridge(100.0) + gtv.SquaredLoss(np.ones((9, 1)), np.ones(9))
        with pytest.raises(error, match=message):
            factor * loss
        with pytest.raises(error, match=message):
            loss.everywhere(3) * factor

    @pytest.mark.parametrize(
        ("factor", "message"),
        [
            ([1.0, 2.0], r"for each of 4 nodes is expected, got an array of shape \(2,\)"),
            ([[1.0, 2.0]], r"for each of 4 nodes is expected, got an array of shape \(1, 2\)"),
            (
                [1.0, np.nan, 1.0, 1.0],
                "factor: a finite number >= 0 is expected at node 1, got nan",
            ),
            ([1.0, 1.0, -2.0, 1.0], r"factor: .* is expected at node 2, got -2\.0"),
        ],
    )
    def test_refused_of_nodes(self, factor, message):
        with pytest.raises(ValueError, match=message):
            np.array(factor) * weighted("squared")
        with pytest.raises(ValueError, match=r"factor: a number is expected, got an array"):
            np.array([1.0, 2.0]) * gtv.Ridge(1.0)


class TestRefused:
    @pytest.mark.parametrize(
        ("weights", "error", "message"),
        [
            ([1.0, -1.0], ValueError, r"sample_weight: entry \(1,\) is -1\.0, a number >= 0"),
            ([1.0, np.nan], ValueError, r"sample_weight: entry \(1,\) is nan"),
            ([np.inf, 1.0], ValueError, r"sample_weight: entry \(0,\) is inf"),
            ([1.0], ValueError, r"sample_weight: shape \(2,\) is expected, got \(1,\)"),
            ([[1.0, 1.0]], ValueError, "sample_weight: 1 axes are expected"),
            (["a", "b"], TypeError, "sample_weight: an array of numbers"),
            ([0.0, 0.0], ValueError, r"sample_weight: all are 0.*ZeroLoss\(\)"),
        ],
    )
    @pytest.mark.parametrize("kind", ["squared", "absolute"])
    def test_single(self, weights, error, message, kind):
        cls, parameters = CLASSES[kind]
        with pytest.raises(error, match=message):
            cls([[1.0], [2.0]], [1.0, 2.0], sample_weight=weights, **parameters)

    def test_stacked(self):
        X, y = data("squared")
        with pytest.raises(ValueError, match=r"sample_weight: entry \(0, 1\) is -1\.0"):
            gtv.SquaredLoss.stack(X, y, sample_weight=WEIGHTS - (WEIGHTS == 0.0))
        none = gtv.SquaredLoss.stack(X, y, sample_weight=np.zeros((N, M)))
        assert not len(none.nodes_with_loss)
        assert none.dim == D

    def test_extreme_ratios(self):
        """What has no normal share of the whole is absent; what has one is there."""
        loss = gtv.SquaredLoss(None, [1.0, 5.0, 7.0], sample_weight=[1e300, 1e-300, 1e300])
        assert loss.value([0.0]) == 25.0
        assert len(loss.y) == 2
        loss = gtv.AbsoluteLoss(None, [1.0, 5.0], sample_weight=[1.0, 1e-300])
        assert len(loss.y) == 2
        assert loss.value([1.0]) == pytest.approx(4e-300)


class TestSeveralOutputs:
    def test_weights_of_rows_and_of_entries(self):
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((5, 2)), rng.standard_normal((5, 3))
        s, W = np.arange(5.0), rng.standard_normal((2, 3))
        loss = gtv.multi_output(X, Y, gtv.HuberLoss, delta=0.3, sample_weight=s)
        both = gtv.multi_output(
            X, Y, gtv.HuberLoss, delta=0.3, sample_weight=np.repeat(s[:, None], 3, 1)
        )
        rows = [gtv.multi_output(X[[r]], Y[[r]], gtv.HuberLoss, delta=0.3) for r in range(5)]
        value = sum(f * row.value(W.ravel()) for f, row in zip(s, rows, strict=True)) / s.sum()
        assert loss.value(W.ravel()) == pytest.approx(value)
        assert both.value(W.ravel()) == loss.value(W.ravel())
        table = gtv.multi_output(
            X, Y, gtv.HuberLoss, delta=0.3, sample_weight=s, node=np.zeros(5, dtype=int)
        )
        assert table.value(W.reshape(1, -1))[0] == pytest.approx(value)
        with pytest.raises(ValueError, match=r"sample_weight: shape \(5,\) or \(5, 3\)"):
            gtv.multi_output(X, Y, sample_weight=np.ones(3))

    def test_no_features(self):
        loss = gtv.multi_output(None, [[1.0, 2.0], [3.0, 4.0]])
        assert loss.dim == 2
        assert loss.value([2.0, 3.0]) == 1.0
