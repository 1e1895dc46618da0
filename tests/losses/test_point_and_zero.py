"""Point loss and zero loss: constructors, plain data, and what single losses refuse."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses import stacked


def test_stack_of_points_against_single_losses():
    rng = np.random.default_rng(0)
    a, w = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    stack = gtv.PointLoss.stack(a)
    singles = stacked([gtv.PointLoss(row) for row in a], gtv.EmpiricalGraph(4, []))
    np.testing.assert_array_equal(stack.value(w), singles.value(w))
    np.testing.assert_array_equal(stack.gradient(w), singles.gradient(w))
    np.testing.assert_array_equal(stack.minimizer(4), a)


def test_a_number_is_a_point_on_the_line():
    loss = gtv.PointLoss(2.0)
    assert loss.dim == 1
    assert loss.value([5.0]) == 9.0


def test_terms_are_sorted_by_node_and_zero_losses_have_none():
    losses = {"c": gtv.PointLoss([3.0]), "a": gtv.PointLoss([1.0]), "b": gtv.ZeroLoss()}
    graph = gtv.EmpiricalGraph(4, [], nodes=["a", "b", "c", "d"])
    (term,) = stacked(losses, graph).terms()
    assert term["kind"] == "point"
    assert term["node"].tolist() == [0, 2]
    assert term["a"].tolist() == [[1.0], [3.0]]


def test_later_changes_of_the_input_do_not_reach_the_loss():
    a = np.zeros((2, 1))
    stack, single = gtv.PointLoss.stack(a), gtv.PointLoss(a[0])
    minimizer = stack.minimizer(2)
    a[:] = 5.0
    minimizer[:] = 5.0
    stack.terms()[0]["a"][:] = 5.0
    assert stack.value(np.zeros((2, 1))).tolist() == [0.0, 0.0]
    assert single.value([0.0]) == 0.0


@pytest.mark.parametrize(
    ("a", "error", "message"),
    [
        ([1.0, np.nan], ValueError, r"a: entry \(1,\) is nan"),
        ([[1.0]], ValueError, "a: 1 axes are expected"),
        ([], ValueError, "a: at least one coordinate"),
        (["x"], TypeError, "a: an array of numbers"),
        (None, TypeError, "a: an array of numbers"),
        ([[1.0], 2.0], TypeError, "a: an array of numbers"),
    ],
)
def test_point_refuses(a, error, message):
    with pytest.raises(error, match=message):
        gtv.PointLoss(a)


@pytest.mark.parametrize(
    ("a", "message"),
    [
        ([1.0], "a: 2 axes are expected"),
        (np.empty((2, 0)), "a: at least one coordinate"),
        ([[1.0], [np.inf]], r"a: entry \(1, 0\) is inf"),
    ],
)
def test_stack_of_points_refuses(a, message):
    with pytest.raises(ValueError, match=message):
        gtv.PointLoss.stack(a)


class TestSingleLossesRefuse:
    losses = (gtv.PointLoss([1.0, 2.0]), gtv.SquaredLoss([[1.0, 2.0]], [3.0]), gtv.ZeroLoss())

    @pytest.mark.parametrize("loss", losses, ids=repr)
    @pytest.mark.parametrize(
        ("method", "name", "arguments"),
        [("value", "w", ()), ("gradient", "w", ()), ("prox", "v", (1.0,)), ("conjugate", "s", ())],
    )
    def test_vectors(self, loss, method, name, arguments):
        call = getattr(loss, method)
        for bad in ([np.nan, 0.0], [0.0, np.inf], [[0.0, 1.0]], 1.0, []):
            with pytest.raises(ValueError, match=f"^{name}: "):
                call(bad, *arguments)
        with pytest.raises(TypeError, match=f"^{name}: "):
            call(["0", "1"], *arguments)

    @pytest.mark.parametrize("loss", losses[:2], ids=repr)
    def test_another_dimension(self, loss):
        with pytest.raises(ValueError, match="w: a vector of length 2 is expected, got 3"):
            loss.value([1.0, 2.0, 3.0])

    @pytest.mark.parametrize("loss", losses, ids=repr)
    def test_step_size_and_tolerance(self, loss):
        for tau in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(ValueError, match="tau: a positive finite number"):
                loss.prox([0.0, 0.0], tau)
        for atol in (-1.0, np.nan):
            with pytest.raises(ValueError, match="atol: a number >= 0"):
                loss.conjugate([0.0, 0.0], atol)
