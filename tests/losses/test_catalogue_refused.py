"""Bad input of the catalogue is refused by the name of the argument."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses import stacked, stacked_from_terms

X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.0, 1.0])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: gtv.LogisticLoss(X, [0, 2]), ValueError, r"y: entry \(1,\) is 2.0, 0 or 1 is"),
        (lambda: gtv.LogisticLoss(X, [-1, 1]), ValueError, r"y: entry \(0,\) is -1.0, 0 or 1 is"),
        (lambda: gtv.LogisticLoss(X, Y, -0.1), ValueError, r"mu: entry \(0,\) is -0.1"),
        (lambda: gtv.LogisticLoss(X, Y, [1.0]), ValueError, r"mu: .* shape \(2,\) is expected"),
        (lambda: gtv.LogisticLoss(X, Y, 1.0, 2), ValueError, r"intercept: a column 0..1 .* got 2"),
        (lambda: gtv.LogisticLoss(X, Y, 1.0, 0.5), TypeError, "intercept: integers are expected"),
        (lambda: gtv.LassoLoss(X, Y, [1.0, -1.0]), ValueError, r"kappa: entry \(1,\) is -1.0"),
        (lambda: gtv.LassoLoss(X, Y, np.nan), ValueError, "kappa: entry"),
        (lambda: gtv.LassoLoss(X, Y, "1"), TypeError, "kappa: an array of numbers"),
        (lambda: gtv.LassoLoss(X, Y, 1.0, [-1]), ValueError, "intercept: a column"),
        (lambda: gtv.HuberLoss(X, Y, 0.0), ValueError, r"delta: got 0.0, a number > 0"),
        (lambda: gtv.HuberLoss(X, Y, [1.0]), ValueError, r"delta: .* shape \(2,\) is expected"),
        (lambda: gtv.HuberLoss(X, Y, np.inf), ValueError, "delta: entry .* is inf"),
        (
            lambda: gtv.PoissonLoss(X, [0, -1]),
            ValueError,
            r"y: entry \(1,\) is -1.0, a number >= 0",
        ),
        (
            lambda: gtv.QuantileLoss(X, Y, 1.0),
            ValueError,
            "level: got .* strictly between 0 and 1",
        ),
        (lambda: gtv.QuantileLoss(X, Y, [0.5, 0.0]), ValueError, r"level: entry \(1,\) is 0.0"),
        (lambda: gtv.HingeLoss(X, Y), ValueError, r"y: entry \(0,\) is 0.0, -1 or 1 is expected"),
        (lambda: gtv.AbsoluteLoss(X, [1.0]), ValueError, "y: 2 targets are expected"),
        (lambda: gtv.AbsoluteLoss(X, [1.0, np.nan]), ValueError, r"y: entry \(1,\) is nan"),
        (lambda: gtv.AbsoluteLoss([[np.inf]], [1.0]), ValueError, r"X: entry \(0, 0\) is inf"),
        (lambda: gtv.AbsoluteLoss(np.empty((0, 2)), []), ValueError, "X: at least one row"),
        (lambda: gtv.Ridge(-1.0), ValueError, "mu: entry"),
        (lambda: gtv.Ridge([[1.0]]), ValueError, "mu: a number or an array"),
        (lambda: gtv.Ridge([]), ValueError, "mu: "),
        (lambda: gtv.L1(np.nan), ValueError, "kappa: entry"),
        (lambda: gtv.Box(1.0, 0.0), ValueError, r"lower: entry \(0,\) is 1.0, above upper, 0.0"),
        (lambda: gtv.Box(0.0, [1.0, np.nan]), ValueError, r"upper: entry \(1,\) is nan"),
        (lambda: gtv.Box(np.inf, np.inf), ValueError, "lower: entry .* is inf"),
        (lambda: gtv.Box([0.0, 0.0], [1.0]), ValueError, "lower, upper: equal lengths"),
        (lambda: gtv.Box([[0.0]], 1.0), ValueError, "lower: a number or an array"),
        (lambda: gtv.Simplex(0.0), ValueError, "total: entry .* is 0.0, a number > 0"),
        (lambda: gtv.Simplex([1.0]), ValueError, "total: a number is expected"),
        (lambda: gtv.Simplex(np.inf), ValueError, "total: entry"),
        (lambda: gtv.Ridge(1.0).everywhere(0, 1), ValueError, "n_nodes: a positive integer"),
        (lambda: gtv.Ridge(1.0).everywhere(3), ValueError, "dim: a positive integer"),
        (lambda: gtv.Ridge([1.0, 2.0]).everywhere(3, 3), ValueError, "dim: 2 is expected, got 3"),
    ],
)
def test_single_losses(make, error, message):
    with pytest.raises(error, match=message):
        make()


class TestStacks:
    def test_targets_are_named_by_entry(self):
        labels = np.zeros((2, 3))
        labels[1, 2] = 0.5
        with pytest.raises(ValueError, match=r"y: entry \(1, 2\) is 0.5, 0 or 1 is expected"):
            gtv.LogisticLoss.stack(np.ones((2, 3, 1)), labels)
        # Data that are not accessible are not looked at.
        gtv.LogisticLoss.stack(np.ones((2, 3, 1)), labels, [True, False])

    @pytest.mark.parametrize("make", [gtv.LogisticLoss.stack, gtv.MultinomialLogisticLoss.stack])
    def test_targets_are_named_where_they_were_given(self, make):
        """Before nodes without labels, and rows of no weight, are dropped."""
        labels, known = np.zeros((6, 2)), np.array([False, True, True, False, True, True])
        labels[4, 1] = 0.5
        weights = np.ones((6, 2))
        weights[1] = [0.0, 1.0]
        with pytest.raises(ValueError, match=r"y: entry \(4, 1\) is 0.5"):
            make(np.ones((6, 2, 1)), labels, known, sample_weight=weights)
        with pytest.raises(ValueError, match=r"y: entry \(4,\) is 0.5"):
            make(np.ones((6, 1)), labels[:, 1], known)

    def test_targets_of_a_table_are_named_by_row(self):
        with pytest.raises(ValueError, match=r"y: entry \(2,\) is -1.0"):
            gtv.PoissonLoss.from_rows(np.ones((4, 1)), [1, 1, -1, 1], [3, 2, 1, 0])

    @pytest.mark.parametrize("stack", [gtv.SquaredLoss.stack, gtv.AbsoluteLoss.stack])
    def test_what_is_not_accessible_need_not_be_finite(self, stack):
        X, y, known = np.ones((3, 2, 1)), np.ones((3, 2)), np.array([True, False, True])
        X[1, 0, 0], y[1] = np.inf, np.nan
        found = stack(X, y, known)
        expected = stack(np.ones((3, 2, 1)), np.ones((3, 2)), known)
        w = np.arange(3.0)[:, None]
        np.testing.assert_array_equal(found.value(w), expected.value(w))
        X[2, 1, 0] = np.nan
        with pytest.raises(ValueError, match=r"X: entry \(2, 1, 0\) is nan"):
            stack(X, y, known)
        with pytest.raises(ValueError, match=r"y: entry \(1, 0\) is nan"):
            stack(np.ones((3, 2, 1)), y)
        with pytest.raises(ValueError, match=r"X: entry \(2, 0\) is nan"):
            stack(X[:, 1], y[:, 1], known)

    def test_parameters_are_named_as_they_were_given(self):
        X, y = np.ones((2, 3, 1)), np.ones((2, 3))
        with pytest.raises(ValueError, match=r"level: got 2\.0"):
            gtv.QuantileLoss.stack(X, y, level=2.0)
        levels = np.full((2, 3), 0.5)
        levels[1, 0] = 7.0
        with pytest.raises(ValueError, match=r"level: entry \(1, 0\) is 7.0"):
            gtv.QuantileLoss.stack(X, y, level=levels)

    def test_parameters(self):
        with pytest.raises(TypeError, match="delta: HuberLoss needs this parameter"):
            gtv.HuberLoss.stack(np.ones((2, 3, 1)), np.ones((2, 3)))
        with pytest.raises(TypeError, match="gamma: HuberLoss has no such parameter"):
            gtv.HuberLoss.stack(np.ones((2, 3, 1)), np.ones((2, 3)), delta=1.0, gamma=2.0)
        with pytest.raises(ValueError, match=r"delta: .* shape \(2, 3\) is expected, got \(3,\)"):
            gtv.HuberLoss.stack(np.ones((2, 3, 1)), np.ones((2, 3)), delta=np.ones(3))

    def test_rows(self):
        with pytest.raises(ValueError, match=r"node: row 1 names node 3, outside 0\.\.2"):
            gtv.AbsoluteLoss.from_rows(X, Y, [0, 3], 3)
        with pytest.raises(ValueError, match=r"y: shape \(2,\) is expected, got \(3,\)"):
            gtv.AbsoluteLoss.from_rows(X, [1.0, 2.0, 3.0], [0, 1])


class TestSums:
    def test_of_something_else(self):
        with pytest.raises(TypeError, match="unsupported operand"):
            gtv.Ridge(1.0) + 1.0
        with pytest.raises(TypeError, match="unsupported operand"):
            gtv.Ridge(1.0).everywhere(2, 1) + 1.0

    def test_of_other_dimensions(self):
        with pytest.raises(ValueError, match=r"losses: one dimension d .* got \[1, 2\]"):
            gtv.PointLoss([1.0]) + gtv.AbsoluteLoss(X, Y)
        with pytest.raises(ValueError, match="losses: dimension 1 is expected, got 2"):
            gtv.Ridge(1.0).everywhere(2, 1) + gtv.Ridge(1.0).everywhere(2, 2)

    def test_of_constraints_that_do_not_meet(self):
        data = gtv.AbsoluteLoss(X, Y)
        with pytest.raises(ValueError, match="losses: the boxes of node 0 do not meet"):
            data + gtv.Box(0.0, 1.0) + gtv.Box(2.0, 3.0)
        with pytest.raises(ValueError, match="losses: the simplices of node 0 do not meet"):
            data + gtv.Simplex(1.0) + gtv.Simplex(2.0)
        with pytest.raises(
            ValueError, match="losses: no point of the simplex is within the bounds"
        ):
            data + gtv.Simplex(1.0) + gtv.Box(0.0, 0.4)
        first = gtv.Box(0.0, 1.0).everywhere(3, 1)
        second = gtv.StackedLoss([(np.array([1]), gtv.Box(2.0, 3.0).batch([gtv.Box(2.0, 3.0)], 1))])
        with pytest.raises(ValueError, match="losses: the boxes of node 1 do not meet"):
            first + second

    def test_of_losses_given_as_functions(self):
        class Opaque(gtv.Loss):
            dim = 1

            @classmethod
            def batch(cls, losses, dim):
                return OpaqueBatch(len(losses))

            def __repr__(self):
                return "Opaque()"

        class OpaqueBatch(type(gtv.PointLoss.stack([[1.0]]).parts[0][1])):
            def __init__(self, k):
                super().__init__(np.zeros((k, 1)))

            def terms(self, nodes):
                return [{"kind": "opaque", "node": nodes, "name": "Opaque"}]

        with pytest.raises(TypeError, match=r"losses: nothing can be added to Opaque\(\)"):
            Opaque() + gtv.Ridge(1.0)
        stack = gtv.StackedLoss([(np.array([0, 2]), OpaqueBatch(2))])
        with pytest.raises(TypeError, match="losses: nothing can be added to Opaque at node 0"):
            stack + gtv.Ridge(1.0).everywhere(3, 1)
        # At other nodes it is no obstacle.
        other = gtv.StackedLoss([(np.array([1]), gtv.PointLoss.stack([[2.0]]).parts[0][1])])
        beside = stack + other
        assert beside.value(np.zeros((3, 1))).tolist() == [0.0, 4.0, 0.0]


class TestManyOutputs:
    @pytest.mark.parametrize(
        ("arguments", "options", "error", "message"),
        [
            ((X, Y), {}, ValueError, "Y: 2 axes are expected"),
            ((X, np.ones((3, 2))), {}, ValueError, "Y: 2 rows are expected, .* got 3"),
            ((X, np.ones((2, 0))), {}, ValueError, "Y: at least one output column"),
            ((X, np.ones((2, 2)), gtv.Ridge), {}, TypeError, "loss: a class of losses of data"),
            ((X, np.ones((2, 2)), "huber"), {}, TypeError, "loss: a class"),
            ((X, np.ones((2, 2))), {"node": [0]}, ValueError, r"node: shape \(2,\) is expected"),
            (
                (X, np.ones((2, 2)), gtv.LassoLoss),
                {"kappa": 1.0, "intercept": 2},
                ValueError,
                r"intercept: a column 0\.\.1 is expected, got 2",
            ),
        ],
    )
    def test_arguments(self, arguments, options, error, message):
        with pytest.raises(error, match=message):
            gtv.multi_output(*arguments, **options)


def test_without_any_dimension():
    with pytest.raises(ValueError, match="losses: all nodes have ZeroLoss"):
        stacked([gtv.Ridge(1.0), gtv.Nonnegative()], gtv.EmpiricalGraph(2, []))


BASE = {"node": [0], "X": [[1.0, 2.0]], "y": [1.0]}


@pytest.mark.parametrize(
    ("term", "error", "message"),
    [
        ({"kind": "entropy", **BASE}, ValueError, "terms: kind 'entropy' is not one of"),
        ({"kind": "hinge", **BASE, "y": [0.0]}, ValueError, r"y: entry \(0,\) is 0.0, -1 or 1"),
        ({"kind": "huber", **BASE}, KeyError, "delta"),
        ({"kind": "huber", **BASE, "delta": [0.0]}, ValueError, r"delta: entry \(0,\) is 0.0"),
        ({"kind": "huber", **BASE, "delta": [1.0, 1.0]}, ValueError, "delta: shape"),
        ({"kind": "pseudohuber", **BASE}, KeyError, "delta"),
        (
            {"kind": "pseudohuber", **BASE, "delta": [-1.0]},
            ValueError,
            "delta: entry",
        ),
        ({"kind": "quantile", **BASE, "level": [1.5]}, ValueError, "level: entry"),
        ({"kind": "poisson", **BASE, "y": [np.nan]}, ValueError, r"y: entry \(0,\) is nan"),
        ({"kind": "poisson", **BASE, "node": [-1]}, ValueError, "node: one axis of numbers >= 0"),
        (
            {"kind": "ridge", "node": [0, 0], "mu": [1.0, 2.0]},
            ValueError,
            "node: a node occurs twice",
        ),
        ({"kind": "ridge", "node": [0], "mu": [-1.0]}, ValueError, "mu: entry"),
        ({"kind": "l1", "node": [0], "kappa": [[1.0]]}, ValueError, r"kappa: shape \(1, 2\)"),
        ({"kind": "box", "node": [0], "lower": [[0.0, 0.0]]}, KeyError, "upper"),
        (
            {"kind": "box", "node": [0], "lower": [[2.0, 0.0]], "upper": [[1.0, 1.0]]},
            ValueError,
            r"lower: entry \(0, 0\) is 2.0, above upper",
        ),
        ({"kind": "simplex", "node": [0], "total": [0.0]}, ValueError, "total: entry"),
        ({"kind": "simplex", "node": [0.5], "total": [1.0]}, TypeError, "node: integers"),
    ],
)
def test_plain_data(term, error, message):
    with pytest.raises(error, match=message):
        stacked_from_terms([term], 2)
