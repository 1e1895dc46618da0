"""One loss at all nodes, of every class that there is."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv

LOSSES = {
    "squared": gtv.SquaredLoss([[1.0, 2.0], [0.0, 1.0]], [1.0, 2.0]),
    "point": gtv.PointLoss([1.0, 2.0]),
    "rows": gtv.HuberLoss([[1.0, 2.0]], [1.0], 0.5),
    "times": 2.0 * gtv.SquaredLoss([[1.0, 2.0]], [1.0]),
    "sum": gtv.SquaredLoss([[1.0, 2.0]], [1.0]) + gtv.Ridge(0.5),
    "callable": gtv.CvxpyLoss(lambda v: cp.sum_squares(v - 1.0), dim=2),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_values_are_those_of_the_loss(loss):
    w = np.random.default_rng(0).normal(size=(5, 2))
    stacked = loss.everywhere(5)
    np.testing.assert_allclose(stacked.value(w), [loss.value(row) for row in w])
    with pytest.raises(ValueError, match="dim: 2 is expected, got 3"):
        loss.everywhere(5, 3)


def test_any_dimension():
    assert gtv.ZeroLoss().everywhere(3, 2).value(np.ones((3, 2))).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="dim: a positive integer"):
        gtv.ZeroLoss().everywhere(3)


def test_others_can_be_added():
    both = LOSSES["squared"].everywhere(4) + gtv.PointLoss.stack(np.ones((4, 2)))
    alone = LOSSES["squared"] + gtv.PointLoss([1.0, 1.0])
    w = np.random.default_rng(1).normal(size=(4, 2))
    np.testing.assert_allclose(both.value(w), [alone.value(row) for row in w])
