"""What losses tell solvers of themselves: quadratic, coordinate by coordinate, smooth, none."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses import stacked
from gtvcvx.losses.batched._squared import BatchedSquared

X, Y = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.1]]), np.array([1.0, 0.0, -2.0])
SQUARED = gtv.SquaredLoss(X, Y)
POINT = gtv.PointLoss([1.0, -3.0])
QUADRATIC = {
    "squared": SQUARED,
    "point": POINT,
    "zero": gtv.ZeroLoss(),
    "sum": SQUARED + POINT,
    "ridge": SQUARED + gtv.Ridge([0.5, 0.0]),
    "lasso without a kink": gtv.LassoLoss(X, Y, kappa=0.0),
}
SMOOTH = {
    "logistic": gtv.LogisticLoss(X, np.abs(Y) > 0.5, ridge=0.1),
    "huber": gtv.HuberLoss(X, Y, delta=1.0) + POINT,
    "pseudo-Huber": gtv.PseudoHuberLoss(X, Y, delta=1.0) + gtv.Ridge(1.0),
    "poisson": gtv.PoissonLoss(X, np.abs(Y)),
}
OTHER = {
    "lasso": gtv.LassoLoss(X, Y, kappa=1.0),
    "absolute": gtv.AbsoluteLoss(X, Y),
    "quantile": gtv.QuantileLoss(X, Y, level=0.3),
    "hinge": gtv.HingeLoss(X, np.array([1.0, -1.0, 1.0])),
    "box": SQUARED + gtv.Box(0.0, 1.0),
    "simplex": POINT + gtv.Simplex(),
    "cvxpy": gtv.CvxpyLoss(lambda w: cp.sum_squares(w), dim=2),
}


def at_three_nodes(loss):
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    return stacked([loss, POINT, loss], graph)


class TestQuadratic:
    @pytest.mark.parametrize("loss", QUADRATIC.values(), ids=QUADRATIC)
    def test_the_form_is_the_loss(self, loss, rng):
        losses = at_three_nodes(loss)
        hessian, linear = losses.quadratic(3)
        w = rng.standard_normal((3, 2))
        form = 0.5 * np.einsum("ni,nij,nj->n", w, hessian, w) - np.sum(linear * w, axis=1)
        constant = losses.value(np.zeros((3, 2)))
        np.testing.assert_allclose(form + constant, losses.value(w), rtol=1e-12)
        np.testing.assert_array_equal(hessian, hessian.transpose(0, 2, 1))

    @pytest.mark.parametrize("loss", [*SMOOTH.values(), *OTHER.values()], ids=[*SMOOTH, *OTHER])
    def test_others_have_none(self, loss):
        losses = at_three_nodes(loss)
        assert losses.quadratic(3) is None
        assert losses.scalar(3) is None

    @pytest.mark.parametrize(
        "loss", [*QUADRATIC.values(), *SMOOTH.values(), *OTHER.values()],
        ids=[*QUADRATIC, *SMOOTH, *OTHER],
    )  # fmt: skip
    def test_exactly_these_have_an_affine_prox(self, loss):
        losses = at_three_nodes(loss)
        known = losses.quadratic(3) is not None
        assert (losses.affine_prox(np.ones(3)) is not None) == known
        assert losses.is_quadratic == known

    def test_units_that_differ_cost_no_digits(self, rng):
        features = rng.standard_normal((20, 2)) * [1e-4, 1e4]
        batch = BatchedSquared(features, 1e6 * rng.standard_normal(20), np.array([0, 20]))
        exact = features.astype(np.longdouble).T @ features.astype(np.longdouble) / 10
        np.testing.assert_allclose(batch.quadratic().hessian[0], exact.astype(float), rtol=1e-13)

    def test_nodes_that_are_not_named_have_no_loss(self):
        losses = gtv.SquaredLoss.from_rows(X, Y, [1, 1, 1])
        hessian, linear = losses.quadratic(4)
        assert not hessian[[0, 2, 3]].any()
        assert not linear[[0, 2, 3]].any()
        assert hessian[1].all()


class TestScalar:
    ORTHOGONAL = np.array([[2.0, 0.0], [0.0, 3.0], [1.0, 0.0]])

    @pytest.mark.parametrize("more", [gtv.ZeroLoss(), POINT, gtv.Ridge([2.0, 4.0])])
    def test_orthogonal_features(self, more):
        losses = at_three_nodes(gtv.SquaredLoss(self.ORTHOGONAL, Y) + more)
        curvature, linear = losses.scalar(3)
        whole = losses.quadratic(3)
        np.testing.assert_allclose(np.einsum("nii->ni", whole.hessian), curvature, rtol=1e-15)
        np.testing.assert_allclose(whole.linear, linear, rtol=1e-15)

    def test_features_that_are_orthogonal_but_for_rounding_are_not(self):
        features = np.array([[1.0, 1.0], [1.0, -1.0 - 2.0**-50]])
        assert at_three_nodes(gtv.SquaredLoss(features, Y[:2])).scalar(3) is None
        features[1, 1] = -1.0
        assert at_three_nodes(gtv.SquaredLoss(features, Y[:2])).scalar(3) is not None

    def test_features_whose_squares_vanish_are_no_data(self):
        losses = at_three_nodes(gtv.SquaredLoss([[1e-170, 0.0], [0.0, 1.0]], [1.0, 1.0]))
        curvature, linear = losses.scalar(3)
        assert curvature[0].tolist() == [0.0, 1.0]
        assert linear[0].tolist() == [0.0, 1.0]


class TestSmoothAndZero:
    @pytest.mark.parametrize("loss", [*QUADRATIC.values(), *SMOOTH.values()])
    def test_smooth_losses(self, loss):
        assert at_three_nodes(loss).smooth

    @pytest.mark.parametrize("loss", OTHER.values(), ids=OTHER)
    def test_others(self, loss):
        assert not at_three_nodes(loss).smooth

    def test_nodes_with_loss(self):
        graph = gtv.EmpiricalGraph(5, [(0, 1)])
        losses = stacked({3: SQUARED, 1: POINT, 2: gtv.ZeroLoss()}, graph)
        assert losses.nodes_with_loss.tolist() == [1, 3]
        assert gtv.losses.StackedLoss([], dim=2).nodes_with_loss.tolist() == []


@pytest.fixture
def rng():
    return np.random.default_rng(4)
