"""Squared error: its three constructors, rank decisions, and what is refused."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtvcvx as gtv
from gtvcvx.losses import stacked


def by_nodes(stack, n, rng):
    """Everything observable of a stacked loss, for comparison."""
    stack = stack.completed(n)
    w = rng.standard_normal((n, stack.dim))
    tau = rng.uniform(0.1, 3.0, n)
    return [
        stack.value(w),
        stack.gradient(w),
        stack.prox(w, tau),
        stack.conjugate(stack.gradient(w), np.full(n, 1e-9)),
        stack.minimizer(n),
    ]


def assert_same(first, second, n):
    for a, b in zip(
        by_nodes(first, n, np.random.default_rng(3)),
        by_nodes(second, n, np.random.default_rng(3)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


class TestConstructorsAgree:
    @given(st.integers(0, 2**32 - 1))
    def test_rows_against_single_losses(self, seed):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        node = rng.integers(0, n, int(rng.integers(0, 15)))
        X, y = rng.standard_normal((len(node), d)), rng.standard_normal(len(node))
        singles = {
            i: gtv.SquaredLoss(X[node == i], y[node == i]) for i in range(n) if (node == i).any()
        }
        graph = gtv.EmpiricalGraph(n, [])
        one_by_one = stacked(singles, graph) if singles else gtv.StackedLoss([], dim=d)
        assert_same(gtv.SquaredLoss.from_rows(X, y, node), one_by_one, n)
        assert_same(gtv.SquaredLoss.from_rows(X, y, node, n_nodes=n), one_by_one, n)

    def test_stack_against_single_losses(self):
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((5, 3, 2)), rng.standard_normal((5, 3))
        labelled = np.array([True, False, True, True, False])
        singles = [gtv.SquaredLoss(X[i], y[i]) if labelled[i] else gtv.ZeroLoss() for i in range(5)]
        expected = stacked(singles, gtv.EmpiricalGraph(5, []))
        assert_same(gtv.SquaredLoss.stack(X, y, labelled), expected, 5)
        assert_same(gtv.SquaredLoss.stack(X, y, labelled.tolist()), expected, 5)
        everything = [gtv.SquaredLoss(X[i], y[i]) for i in range(5)]
        assert_same(gtv.SquaredLoss.stack(X, y), stacked(everything, gtv.EmpiricalGraph(5, [])), 5)

    def test_stack_without_rows_or_labelled_nodes_is_zero(self):
        zero = gtv.StackedLoss([], dim=2)
        assert_same(gtv.SquaredLoss.stack(np.empty((3, 0, 2)), np.empty((3, 0))), zero, 3)
        nobody = np.zeros(3, dtype=bool)
        assert_same(gtv.SquaredLoss.stack(np.ones((3, 4, 2)), np.ones((3, 4)), nobody), zero, 3)

    def test_later_changes_of_the_input_do_not_reach_the_loss(self):
        X, y = np.ones((1, 2, 2)), np.ones((1, 2))
        single, stack = gtv.SquaredLoss(X[0], y[0]), gtv.SquaredLoss.stack(X, y)
        rows = gtv.SquaredLoss.from_rows(X[0], y[0], [0, 0])
        X[:], y[:] = 7.0, 8.0
        w = np.zeros((1, 2))
        assert (single.value(w[0]), stack.value(w)[0], rows.value(w)[0]) == (1.0, 1.0, 1.0)


class TestTerms:
    def test_nodes_are_sorted_and_rows_stay_in_order(self):
        losses = {
            2: gtv.SquaredLoss([[1.0], [2.0]], [3.0, 4.0]),
            0: gtv.SquaredLoss([[5.0]], [6.0]),
            1: gtv.SquaredLoss([[7.0], [8.0], [9.0]], [1.0, 2.0, 3.0]),
        }
        (term,) = stacked(losses, gtv.EmpiricalGraph(4, [])).terms()
        assert term["kind"] == "squared"
        assert term["node"].tolist() == [0, 1, 1, 1, 2, 2]
        assert term["X"].ravel().tolist() == [5.0, 7.0, 8.0, 9.0, 1.0, 2.0]
        assert term["y"].tolist() == [6.0, 1.0, 2.0, 3.0, 3.0, 4.0]

    def test_changing_them_does_not_change_the_loss(self):
        stack = gtv.SquaredLoss.stack(np.ones((2, 1, 1)), np.ones((2, 1)))
        for array in (stack.terms()[0][key] for key in ("node", "X", "y")):
            array[:] = 0
        assert stack.value(np.zeros((2, 1))).tolist() == [1.0, 1.0]


class TestNearlyDependentFeatures:
    """A bound must not exceed the optimum, whatever the rank of X looks like in floating point."""

    @pytest.mark.parametrize("small", [1e-3, 1e-8, 1e-9, 1e-11, 1e-13])
    def test_least_value_uses_every_direction(self, small):
        loss = gtv.SquaredLoss(np.diag([1.0, small]), [2.0, 3.0])
        np.testing.assert_allclose(loss.conjugate([0.0, 0.0]), 0.0, atol=1e-12)

    @pytest.mark.parametrize("small", [1e-3, 1e-8, 1e-9, 1e-11, 1e-13])
    def test_gap_counts_what_the_small_direction_could_gain(self, small):
        batch = gtv.SquaredLoss.batch([gtv.SquaredLoss(np.diag([1.0, small]), [2.0, 3.0])], 2)
        zero = np.zeros((1, 2))
        assert batch.value(zero)[0] == 13.0 / 2.0
        np.testing.assert_allclose(batch.fenchel_gap(zero, zero), 13.0 / 2.0, rtol=1e-12)
        np.testing.assert_allclose(batch.value(batch.minimizer()), 0.0, atol=1e-12)

    def test_beside_nodes_of_other_sizes_and_ranks(self):
        rng = np.random.default_rng(0)
        weak = gtv.SquaredLoss(np.diag([1.0, 1e-11]), [2.0, 3.0])
        others = [gtv.SquaredLoss(rng.standard_normal((m, 2)), np.ones(m)) for m in (1, 2, 5)]
        losses = [others[0], weak, *others[1:], weak]
        batch = gtv.SquaredLoss.batch(losses, 2)
        w = rng.standard_normal((5, 2))
        alone = [
            gtv.SquaredLoss.batch([x], 2).fenchel_gap(row[None], 0 * row[None])[0]
            for x, row in zip(losses, w, strict=True)
        ]
        np.testing.assert_allclose(batch.fenchel_gap(w, np.zeros((5, 2))), alone, rtol=1e-12)
        np.testing.assert_allclose(alone[1], weak.value(w[1]), rtol=1e-12)

    def test_flow_along_a_small_direction_is_refused(self):
        loss = gtv.SquaredLoss(np.diag([1.0, 1e-11]), [2.0, 3.0])
        assert np.isfinite(loss.conjugate([1.0, 0.0]))
        assert loss.conjugate([0.0, 1e-6]) == np.inf

    def test_no_solver_calls_such_a_problem_solved_too_early(self):
        losses = [gtv.SquaredLoss(np.diag([1.0, 1e-11]), [0.0, 1.0])] * 2
        problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), losses, lam=1.0)
        assert problem.value([[0.0, 1e11]] * 2) < 1e-12
        assert problem.lower_bound(np.zeros((1, 2)))[0] < 1e-12

    def test_exactly_dependent_features_have_a_tight_conjugate(self):
        X = np.array([[1.0, 3.0], [2.0, 6.0], [0.5, 1.5]])
        y = np.array([1.0, -1.0, 2.0])
        w = cp.Variable(2)
        model = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) / 3), [cp.abs(w) <= 10])
        model.solve(solver=cp.CLARABEL)
        loss = gtv.SquaredLoss(X, y)
        np.testing.assert_allclose(-loss.conjugate([0.0, 0.0]), model.value, rtol=1e-7)
        assert np.isfinite(loss.conjugate([0.1, 0.3]))
        assert loss.conjugate([0.1, 0.2]) == np.inf

    def test_scale_of_the_data_does_not_matter(self):
        X = np.array([[1.0, 1.0], [1.0, 1.0]])
        for scale in (1e-150, 1.0, 1e150):
            T = gtv.SquaredLoss.batch([gtv.SquaredLoss(scale * X, [0.0, 0.0])], 2).null_projector()
            np.testing.assert_allclose(T[0], [[0.5, -0.5], [-0.5, 0.5]], atol=1e-15)


class TestRefused:
    @pytest.mark.parametrize(
        ("X", "y", "error", "message"),
        [
            ([1.0, 2.0], [1.0], ValueError, r"X: 2 axes are expected, got shape \(2,\)"),
            ([[1.0]], [[1.0]], ValueError, r"y: 1 axes are expected, got shape \(1, 1\)"),
            ([[1.0]], [1.0, 2.0], ValueError, "y: 1 targets are expected, as X has rows, got 2"),
            ([[1.0, np.nan]], [1.0], ValueError, r"X: entry \(0, 1\) is nan"),
            ([[1.0]], [np.inf], ValueError, r"y: entry \(0,\) is inf"),
            (np.empty((0, 2)), [], ValueError, "X: at least one row .* ZeroLoss"),
            (np.empty((2, 0)), [1.0, 2.0], ValueError, "X: at least one row and one column"),
            ([["1.0"]], [1.0], TypeError, "X: an array of numbers is expected"),
            ([[1.0], [1.0, 2.0]], [1.0, 2.0], TypeError, "X: an array of numbers is expected"),
            ([[1.0]], None, TypeError, "y: an array of numbers is expected"),
            ([[1j]], [1.0], TypeError, "X: an array of numbers is expected"),
            (np.ma.masked_equal([[1.0, 2.0]], 2.0), [1.0], ValueError, "X: entries are masked"),
            ([[1.0], [2.0]], np.ma.masked_equal([1, 9], 9), ValueError, "y: entries are masked"),
        ],
    )
    def test_single(self, X, y, error, message):
        with pytest.raises(error, match=message):
            gtv.SquaredLoss(X, y)

    @pytest.mark.parametrize(
        ("X", "y", "labelled", "message"),
        [
            (np.ones((2, 3)), np.ones((2, 3)), None, "X: 3 axes are expected"),
            (np.ones((2, 3, 1)), np.ones(2), None, "X: 2 axes are expected"),
            (np.ones((2, 3, 1)), np.ones((2, 2)), None, r"y: shape \(2, 3\) is expected"),
            (np.ones((2, 3, 0)), np.ones((2, 3)), None, "X: at least one feature column"),
            (np.ones((2, 3, 1)), np.ones((2, 3)), [True], r"labelled: .* shape \(2,\)"),
            (np.ones((2, 3, 1)), np.ones((2, 3)), [1, 0], "labelled: a Boolean array"),
            (np.full((2, 3, 1), np.nan), np.ones((2, 3)), None, r"X: entry \(0, 0, 0\) is nan"),
        ],
    )
    def test_stack(self, X, y, labelled, message):
        with pytest.raises(ValueError, match=message):
            gtv.SquaredLoss.stack(X, y, labelled)

    @pytest.mark.parametrize(
        ("node", "n_nodes", "error", "message"),
        [
            ([0, 3], 3, ValueError, r"node: row 1 names node 3, outside 0\.\.2"),
            ([-1, 0], None, ValueError, r"node: row 0 names node -1, outside 0\.\.n-1"),
            ([0], None, ValueError, r"node: shape \(2,\) is expected, got \(1,\)"),
            ([0.0, 1.0], None, TypeError, "node: integers are expected"),
            (["a", "b"], None, TypeError, "node: integers are expected"),
            ([0, 1], 2.0, ValueError, r"n_nodes: a positive integer is expected, got 2\.0"),
            ([0, 1], 0, ValueError, "n_nodes: a positive integer is expected, got 0"),
        ],
    )
    def test_rows(self, node, n_nodes, error, message):
        with pytest.raises(error, match=message):
            gtv.SquaredLoss.from_rows(np.ones((2, 1)), np.ones(2), node, n_nodes)

    def test_rows_of_other_shapes(self):
        with pytest.raises(ValueError, match=r"y: shape \(2,\) is expected, got \(3,\)"):
            gtv.SquaredLoss.from_rows(np.ones((2, 1)), np.ones(3), [0, 1])
        with pytest.raises(ValueError, match="X: at least one feature column"):
            gtv.SquaredLoss.from_rows(np.ones((2, 0)), np.ones(2), [0, 1])


def test_proximal_maps_for_changing_steps(monkeypatch):
    """Products of singular vectors are kept where they take little room: the maps are the same."""
    rng = np.random.default_rng(5)
    X, y, tau = rng.standard_normal((6, 3, 2)), rng.standard_normal((6, 3)), rng.random((3, 6))
    X[2, :, 1] = X[2, :, 0]
    kept = gtv.SquaredLoss.stack(X, y)
    assert kept.parts[0][1]._products is not None
    monkeypatch.setattr("gtvcvx.losses.batched._squared.PIECE", 6 * 2 * 4 - 1)
    plain = gtv.SquaredLoss.stack(X, y)
    for steps in tau:
        matrix, offset = kept.affine_prox(steps)
        expected = plain.affine_prox(steps)
        np.testing.assert_allclose(matrix, expected.matrix, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(offset, expected.offset, rtol=1e-12, atol=1e-15)
        v = rng.standard_normal((6, 2))
        point = np.einsum("kij,kj->ki", matrix, v) + offset
        np.testing.assert_allclose(point, kept.prox(v, steps), rtol=1e-12)
    assert plain.parts[0][1]._products is None
