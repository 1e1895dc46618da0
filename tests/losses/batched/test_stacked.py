"""The losses of all nodes of a graph: sequences, mappings, stacks, and back from plain data."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses import stacked, stacked_from_terms

LABELS = ["a", "b", "c", "d", "e"]


@pytest.fixture
def graph():
    return gtv.EmpiricalGraph(5, [(0, 1), (1, 2)], nodes=LABELS)


@pytest.fixture
def losses():
    rng = np.random.default_rng(1)
    return [
        gtv.SquaredLoss(rng.standard_normal((3, 2)), rng.standard_normal(3)),
        gtv.ZeroLoss(),
        gtv.PointLoss(rng.standard_normal(2)),
        gtv.SquaredLoss(rng.standard_normal((1, 2)), rng.standard_normal(1)),
        gtv.ZeroLoss(),
    ]


@pytest.fixture
def rng():
    return np.random.default_rng(2)


class TestOperations:
    """A stack does at every node what the node's own loss does."""

    def test_against_single_losses(self, graph, losses, rng):
        stack = stacked(losses, graph)
        w, tau = rng.standard_normal((5, 2)), rng.uniform(0.1, 2.0, 5)
        s, atol = stack.gradient(w), np.full(5, 1e-9)
        for i, loss in enumerate(losses):
            np.testing.assert_allclose(stack.value(w)[i], loss.value(w[i]))
            np.testing.assert_allclose(stack.gradient(w)[i], loss.gradient(w[i]))
            np.testing.assert_allclose(stack.prox(w, tau)[i], loss.prox(w[i], tau[i]))
            np.testing.assert_allclose(
                stack.conjugate(s, atol)[i], loss.conjugate(s[i]), atol=1e-12
            )
        matrix, offset = stack.affine_prox(tau)
        mapped = np.einsum("nij,nj->ni", matrix, w) + offset
        np.testing.assert_allclose(mapped, stack.prox(w, tau))
        np.testing.assert_allclose(stack.fenchel_gap(w, s), 0.0, atol=1e-25)
        np.testing.assert_allclose(stack.gradient(stack.minimizer(5)), 0.0, atol=1e-13)

    def test_without_affine_prox_there_is_none(self, graph, losses):
        stack = stacked(losses, graph)
        stack.parts[0][1].affine_prox = lambda tau: None
        assert stack.affine_prox(np.ones(5)) is None


class TestFormsOfInput:
    def test_sequence_mapping_and_stack_agree(self, graph, losses, rng):
        w = rng.standard_normal((5, 2))
        mapping = {"d": losses[3], "a": losses[0], "c": losses[2]}
        listed = stacked(losses, graph)
        for other in (tuple(losses), mapping, stacked(mapping, graph)):
            np.testing.assert_allclose(stacked(other, graph).value(w), listed.value(w))

    def test_order_of_a_mapping_does_not_matter(self, rng):
        """One kind of loss at all nodes is one part, whose rows need not be in node order."""
        graph = gtv.EmpiricalGraph(3, [(0, 1)], nodes=["a", "b", "c"])
        mapping = {label: gtv.PointLoss([float(ord(label))]) for label in "cab"}
        stack = stacked(mapping, graph)
        assert stack.minimizer(3).ravel().tolist() == [97.0, 98.0, 99.0]
        x = cp.Variable((3, 1), value=rng.standard_normal((3, 1)))
        for expression, values in (
            (stack.expression(x), stack.value(x.value)),
            (stack.conjugate_expression(x), stack.conjugate(x.value, np.zeros(3))),
        ):
            np.testing.assert_allclose(expression[0].value, values.sum())

    def test_a_stack_is_completed_by_zero_losses(self, graph):
        stack = stacked(gtv.SquaredLoss.from_rows([[1.0]], [2.0], [1]), graph)
        assert stack.value(np.zeros((5, 1))).tolist() == [0.0, 4.0, 0.0, 0.0, 0.0]
        assert stacked(stack, graph) is stack

    def test_every_node_belongs_to_a_part(self, graph, losses):
        two = gtv.PointLoss.stack(np.zeros((2, 2))).completed(5)
        for given in (losses, {"b": losses[0]}, two):
            named = np.concatenate([nodes for nodes, _ in stacked(given, graph).parts])
            assert sorted(named.tolist()) == [0, 1, 2, 3, 4]

    def test_a_stack_on_its_own_counts_nodes_that_are_not_named(self, rng):
        stack = gtv.SquaredLoss.from_rows([[1.0]], [2.0], [1])
        s, atol = rng.standard_normal((3, 1)), np.full(3, 1e-9)
        for _ in range(3):  # memory that was used before must not show through
            assert stack.value(s)[[0, 2]].tolist() == [0.0, 0.0]
            assert stack.conjugate(s, atol)[[0, 2]].tolist() == [np.inf, np.inf]
            assert stack.prox(s, np.ones(3))[[0, 2]].tolist() == s[[0, 2]].tolist()
            assert stack.affine_prox(np.ones(3)).matrix[[0, 2], 0, 0].tolist() == [1.0, 1.0]
            assert len(stack.conjugate_expression(cp.Variable((3, 1)))[1]) == 2

    def test_no_loss_at_all_needs_a_dimension(self, graph):
        assert stacked(gtv.StackedLoss([], dim=3), graph).value(np.ones((5, 3))).sum() == 0.0
        for losses in ({}, [gtv.ZeroLoss()] * 5):
            with pytest.raises(ValueError, match="losses: all nodes have ZeroLoss"):
                stacked(losses, graph)


class TestRefused:
    def test_too_few_and_too_many(self, graph, losses):
        for count in (4, 6):
            with pytest.raises(ValueError, match=rf"each of the 5 nodes is expected, got {count}"):
                stacked((losses + losses)[:count], graph)

    def test_unknown_label(self, graph, losses):
        with pytest.raises(ValueError, match="losses: 'z' is not a node of the graph"):
            stacked({"z": losses[0]}, graph)

    @pytest.mark.parametrize("bad", [None, 3.0, gtv.ZeroLoss, "ZeroLoss"])
    def test_something_that_is_no_loss_names_its_node(self, graph, losses, bad):
        losses[2] = bad
        with pytest.raises(TypeError, match=r"losses: node 'c' has .*, which is not a gtvcvx loss"):
            stacked(losses, graph)

    def test_another_dimension_names_both_nodes(self, graph, losses):
        losses[3] = gtv.PointLoss([1.0, 2.0, 3.0])
        message = "losses: node 'd' has dimension 3, node 'a' has 2"
        with pytest.raises(ValueError, match=message):
            stacked(losses, graph)

    @pytest.mark.parametrize("bad", [None, 3.0, gtv.PointLoss([1.0]), {1.0, 2.0}])
    def test_another_type(self, graph, bad):
        with pytest.raises(TypeError, match="losses: a sequence of losses, a mapping"):
            stacked(bad, graph)

    def test_a_stack_for_more_nodes(self, graph):
        with pytest.raises(ValueError, match="losses: node 5 has a loss but the graph has 5 nodes"):
            stacked(gtv.PointLoss.stack(np.zeros((6, 2))), graph)

    @pytest.mark.parametrize(
        ("nodes", "error", "message"),
        [
            ([0, 0], ValueError, "losses: node 0 has two losses"),
            ([-2, 1], ValueError, "losses: node number -2 is negative"),
            ([0], ValueError, "losses: a part needs one node number for each"),
            ([0.0, 1.0], TypeError, "losses: integers are expected"),
        ],
    )
    def test_parts(self, nodes, error, message):
        batch = gtv.PointLoss.stack(np.zeros((2, 1))).parts[0][1]
        with pytest.raises(error, match=message):
            gtv.StackedLoss([(np.array(nodes), batch)])

    def test_dimensions_of_parts(self):
        first = gtv.PointLoss.stack(np.zeros((1, 1))).parts
        second = [(np.array([1]), gtv.PointLoss.stack(np.zeros((1, 2))).parts[0][1])]
        with pytest.raises(ValueError, match=r"losses: one common dimension d .* got \[1, 2\]"):
            gtv.StackedLoss(first + second)
        for dim in (0, -1, 1.5):
            with pytest.raises(ValueError, match="dim: a positive integer is expected"):
                gtv.StackedLoss([], dim=dim)


class TestPlainData:
    def test_round_trip(self, graph, losses, rng):
        stack = stacked(losses, graph)
        back = stacked_from_terms(stack.terms(), 2).completed(5)
        w = rng.standard_normal((5, 2))
        np.testing.assert_array_equal(back.value(w), stack.value(w))
        assert len(stack.terms()) == 2

    def test_lists_serve_as_arrays(self, graph, losses, rng):
        stack = stacked(losses, graph)
        plain = [
            {key: value if isinstance(value, str) else value.tolist() for key, value in t.items()}
            for t in stack.terms()
        ]
        w = rng.standard_normal((5, 2))
        back = stacked_from_terms(plain, 2).completed(5)
        np.testing.assert_array_equal(back.value(w), stack.value(w))

    @pytest.mark.parametrize(
        ("term", "error", "message"),
        [
            ({"kind": "entropy"}, ValueError, "terms: kind 'entropy' is not one of"),
            ({"kind": "point", "node": [0.5], "a": [[1.0, 1.0]]}, TypeError, "node: integers"),
            ({"kind": "point", "node": [0], "a": [[np.nan, 1.0]]}, ValueError, "a: entry"),
            ({"kind": "point", "node": [0], "a": [[1.0]]}, ValueError, "one common dimension"),
            ({"kind": "squared", "node": [0], "X": [[1.0, 1.0]]}, KeyError, "y"),
        ],
    )
    def test_refused(self, term, error, message):
        with pytest.raises(error, match=message):
            stacked_from_terms([term], 2)
