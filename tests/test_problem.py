"""GTVProblem: its values against their definitions, its bounds, and what it refuses."""

import numpy as np
import pytest
from _instances import NORMS, PENALTIES, cases, reference
from hypothesis import given
from hypothesis import strategies as st

import gtvcvx as gtv


def naive_value(problem, losses, w):
    """P(w), node by node and edge by edge."""
    total = sum(loss.value(x) for loss, x in zip(losses, w, strict=True))
    for (head, tail), weight in zip(problem.graph.edges, problem.graph.weights, strict=True):
        total += problem.lam * weight * problem.penalty.value((w[head] - w[tail])[None])[0]
    return total


def naive_dual_value(problem, losses, u):
    """Dual(u), node by node and edge by edge."""
    s = np.zeros((problem.graph.n_nodes, problem.dim))
    total = 0.0
    edges, weights = problem.graph.edges, problem.graph.weights
    for (head, tail), weight, flow in zip(edges, weights, u, strict=True):
        s[head] -= flow
        s[tail] += flow
        cap = problem.lam * weight
        total -= cap * problem.penalty.conjugate((flow / cap)[None], 1e-9)[0]
    return total - sum(loss.conjugate(x, 1e-8) for loss, x in zip(losses, s, strict=True))


def feasible_flow(problem, rng):
    """Flow inside the capacities that no node injects: combinations of cycles of the graph."""
    D = problem.graph.incidence.toarray()
    _, sigma, basis = np.linalg.svd(D.T)
    cycles = basis[int(np.sum(sigma > 1e-12)) :]
    u = cycles.T @ rng.standard_normal((len(cycles), problem.dim))
    u = problem.penalty.project_domain(u, 1.0) if not problem.penalty.is_norm else u
    return 0.9 * u * problem.penalty.scale_to_feasible(u, problem.capacities)


class TestValues:
    @pytest.mark.parametrize("case", cases(), ids=str)
    def test_value(self, case):
        problem, rng = case.problem(), case.rng
        w = rng.standard_normal((problem.graph.n_nodes, problem.dim))
        expected = naive_value(problem, case.losses(), w)
        np.testing.assert_allclose(problem.value(w), expected, rtol=1e-13)
        assert isinstance(problem.value(w.tolist()), float)

    @pytest.mark.parametrize("case", cases(), ids=str)
    def test_dual_value_of_a_feasible_flow(self, case):
        problem = case.problem()
        u = feasible_flow(problem, case.rng)
        expected = naive_dual_value(problem, case.losses(), u)
        assert np.isfinite(expected)
        np.testing.assert_allclose(problem.dual_value(u), expected, rtol=1e-10, atol=1e-12)
        assert problem.dual_value(u) <= reference(case).value + 1e-6

    @pytest.mark.parametrize("case", cases(penalties=NORMS), ids=str)
    def test_dual_value_beyond_a_capacity(self, case):
        problem = case.problem()
        u = feasible_flow(problem, case.rng)
        use = problem.penalty.dual_norm(u) / problem.capacities
        u /= use.max()
        assert np.isfinite(problem.dual_value(u))
        assert problem.dual_value(1.001 * u) == -np.inf
        assert np.isfinite(problem.dual_value(1.001 * u, tol=0.01))

    @pytest.mark.parametrize(
        "case", cases(families=["unlabelled", "isolated", "few-rows"], seeds=[0, 1]), ids=str
    )
    def test_dual_value_without_conservation(self, case):
        """Never the finite number that a pseudo-inverse would give."""
        problem = case.problem()
        u = feasible_flow(problem, case.rng)
        quiet = next(i for i, loss in enumerate(case.losses()) if isinstance(loss, gtv.ZeroLoss))
        touching = np.flatnonzero((problem.graph.edges == quiet).any(axis=1))
        direction = np.ones((1, problem.dim))
        if not problem.penalty.is_norm:
            direction = problem.penalty.project_domain(direction, 1.0)
        u[touching[:1]] += 1e-3 * direction
        assert problem.dual_value(u) == -np.inf

    def test_rank_deficient_node(self):
        loss = gtv.SquaredLoss([[1.0, 0.0]], [1.0])
        problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), [loss, loss], "l2", 1.0)
        assert np.isfinite(problem.dual_value([[0.5, 0.0]]))
        assert problem.dual_value([[0.5, 1e-6]]) == -np.inf
        assert np.isfinite(problem.dual_value([[0.5, 1e-6]], tol=1e-5))


class TestLowerBound:
    @pytest.mark.parametrize("case", cases(), ids=str)
    def test_valid_for_any_flow_and_attained_by_the_flow_it_returns(self, case):
        problem, rng = case.problem(), case.rng
        optimum = reference(case).value
        for scale in (0.0, 1e-3, 0.1, 10.0):
            u = scale * rng.standard_normal((problem.graph.n_edges, problem.dim))
            bound, flow = problem.lower_bound(u)
            assert bound <= optimum + 1e-7 * max(1.0, abs(optimum))
            dual = problem.dual_value(flow)
            assert bound <= dual + 1e-12
            np.testing.assert_allclose(bound, dual, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("case", cases(), ids=str)
    def test_tight_at_the_optimal_flow(self, case):
        best = reference(case)
        bound, _ = case.problem().lower_bound(best.u)
        assert best.value - bound <= 1e-6 * max(1.0, abs(best.value))

    @pytest.mark.parametrize("case", cases(penalties=["l2"]), ids=str)
    def test_repairing_twice_loses_nothing(self, case):
        problem = case.problem()
        bound, flow = problem.lower_bound(reference(case).u)
        again, _ = problem.lower_bound(flow)
        np.testing.assert_allclose(again, bound, rtol=1e-8, atol=1e-8)


class TestConstruction:
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)], nodes=["a", "b", "c"])
    losses = (gtv.PointLoss([1.0, 2.0]),) * 3

    @pytest.mark.parametrize("name", ["l1", "l2", "linf", "squared"])
    def test_penalty_by_name_is_the_object(self, name):
        named = gtv.GTVProblem(self.graph, self.losses, name, 0.3)
        made = gtv.GTVProblem(self.graph, self.losses, PENALTIES[name](2), 0.3)
        w = [[0.0, 1.0], [2.0, -1.0], [5.0, 0.5]]
        assert named.value(w) == made.value(w)

    def test_defaults_sizes_and_representation(self):
        problem = gtv.GTVProblem(self.graph, self.losses)
        assert (problem.penalty.name, problem.lam, problem.dim) == ("l2", 0.1, 2)
        np.testing.assert_allclose(problem.capacities, [0.1, 0.1])
        assert repr(problem) == "GTVProblem(n_nodes=3, n_edges=2, dim=2, penalty='l2', lam=0.1)"

    @given(st.floats(1e-6, 1e6))
    def test_with_lam(self, lam):
        problem = gtv.GTVProblem(self.graph, self.losses, "l1", 0.3)
        other = problem.with_lam(lam)
        w = np.array([[0.0, 1.0], [2.0, -1.0], [5.0, 0.5]])
        loss = np.sum(problem.losses.value(w))
        expected = loss + (problem.value(w) - loss) * lam / 0.3
        np.testing.assert_allclose(other.value(w), expected, rtol=1e-12)
        assert (problem.lam, other.lam) == (0.3, lam)

    @pytest.mark.parametrize("lam", [1, np.float32(0.5), np.array(2.0), np.int64(3)])
    def test_every_kind_of_number_for_lam(self, lam):
        assert gtv.GTVProblem(self.graph, self.losses, lam=lam).lam == float(lam)

    @pytest.mark.parametrize(
        ("lam", "error"),
        [
            (0.0, ValueError),
            (-1.0, ValueError),
            (np.nan, ValueError),
            (np.inf, ValueError),
            ("0.1", TypeError),
            (None, TypeError),
            (True, TypeError),
            ([0.1, 0.2], TypeError),
            (1j, TypeError),
        ],
    )
    def test_lam(self, lam, error):
        with pytest.raises(error, match="lam: a "):
            gtv.GTVProblem(self.graph, self.losses, lam=lam)

    @pytest.mark.parametrize(
        ("lam", "weight", "cap"), [(1e-200, 1e-200, 0.0), (1e200, 1e200, "inf")]
    )
    def test_capacity_out_of_range_names_its_edge(self, lam, weight, cap):
        graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)], [1.0, weight], nodes=["a", "b", "c"])
        with pytest.raises(ValueError, match=rf"lam: .* of edge \('b', 'c'\) it is {cap}"):
            gtv.GTVProblem(graph, self.losses, lam=lam)

    @pytest.mark.parametrize("graph", [None, [(0, 1)], "edges.csv"])
    def test_graph(self, graph):
        with pytest.raises(TypeError, match="graph: an EmpiricalGraph is expected"):
            gtv.GTVProblem(graph, self.losses)

    @pytest.mark.parametrize(
        ("penalty", "error"),
        [
            ("l3", ValueError),
            (None, TypeError),
            (2, TypeError),
            (gtv.Quadratic(np.eye(3)), ValueError),
        ],
    )
    def test_penalty(self, penalty, error):
        with pytest.raises(error, match=r"^penalty "):
            gtv.GTVProblem(self.graph, self.losses, penalty)


class TestNumberOfNodes:
    """A stacked loss that says how many nodes it is for is for no other graph."""

    X, y = np.ones((33, 2, 1)), np.ones((33, 2))
    node = np.repeat(np.arange(33), 2)

    @pytest.mark.parametrize(
        ("n", "message"),
        [
            (32, "losses: node 32 has a loss but the graph has 32 nodes"),
            (34, r"losses: those of 33 nodes, but the graph has 34 nodes; .* losses.completed\(34"),
        ],
    )
    @pytest.mark.parametrize(
        "losses",
        [
            gtv.SquaredLoss.stack(X, y),
            gtv.HuberLoss.stack(X, y, delta=1.0),
            gtv.SquaredLoss.stack(X, y, labelled=np.arange(33) < 20),
            gtv.PointLoss.stack(np.ones((33, 1))),
            gtv.Ridge(1.0).everywhere(33, 1),
            gtv.SquaredLoss.from_rows(X.reshape(-1, 1), y.ravel(), node, 33),
            gtv.SquaredLoss.from_rows(X.reshape(-1, 1), y.ravel(), node)
            + gtv.Ridge(1.0).everywhere(33, 1),
        ],
    )
    def test_another_number_is_refused(self, losses, n, message):
        assert losses.n_nodes == 33
        gtv.GTVProblem(gtv.EmpiricalGraph(33, [[0, 1]]), losses)
        with pytest.raises(ValueError, match=message):
            gtv.GTVProblem(gtv.EmpiricalGraph(n, [[0, 1]]), losses)

    def test_sums_of_two_numbers_are_refused(self):
        more = gtv.Ridge(1.0).everywhere(34, 1)
        with pytest.raises(ValueError, match="losses: those of 33 nodes, but"):
            gtv.SquaredLoss.stack(self.X, self.y) + more
        few = gtv.Ridge(1.0).everywhere(32, 1)
        table = gtv.SquaredLoss.from_rows(self.X.reshape(-1, 1), self.y.ravel(), self.node)
        with pytest.raises(ValueError, match="node 32 has a loss but the graph has 32 nodes"):
            few + table

    def test_a_single_loss_is_added_at_every_node(self):
        losses = gtv.SquaredLoss.stack(self.X, self.y, labelled=np.arange(33) < 20)
        w = np.linspace(-1.0, 2.0, 33)[:, None]
        expected = losses.value(w) + 0.05 * w[:, 0] ** 2 + 0.2 * np.abs(w[:, 0])
        both = gtv.Ridge(0.1) + losses + gtv.L1(0.2)
        assert both.n_nodes == 33
        np.testing.assert_allclose(both.value(w), expected)
        own = losses + gtv.SquaredLoss(np.ones((1, 1)), np.zeros(1))
        np.testing.assert_allclose(own.value(w), losses.value(w) + w[:, 0] ** 2)
        table = gtv.SquaredLoss.from_rows(self.X.reshape(-1, 1), self.y.ravel(), self.node)
        with pytest.raises(ValueError, match=r"cannot be added at all of them; .*completed\(n\)"):
            table + gtv.Ridge(0.1)
        whole = table.completed(33) + gtv.Ridge(0.1)
        np.testing.assert_allclose(
            whole.value(w) - table.completed(33).value(w), 0.05 * w[:, 0] ** 2
        )
        with pytest.raises(ValueError, match="dim: 2 is expected, got 1"):
            losses + gtv.PointLoss(np.ones(2))
        for wrong in (1.0, "ridge", np.ones(33)):
            with pytest.raises(TypeError):
                losses + wrong

    def test_fewer_nodes_can_be_said_to_be_meant(self):
        losses = gtv.SquaredLoss.stack(self.X, self.y).completed(34)
        assert gtv.GTVProblem(gtv.EmpiricalGraph(34, [[0, 33]]), losses).losses.n_nodes == 34

    def test_tables_may_leave_out_the_last_nodes(self):
        table = gtv.SquaredLoss.from_rows(self.X.reshape(-1, 1), self.y.ravel(), self.node)
        assert table.n_nodes is None
        assert (table + table).n_nodes is None
        for losses in (table, table + table):
            problem = gtv.GTVProblem(gtv.EmpiricalGraph(40, [[0, 39]]), losses)
            assert problem.losses.n_nodes == 40
        with pytest.raises(ValueError, match="node 32 has a loss but the graph has 32 nodes"):
            gtv.GTVProblem(gtv.EmpiricalGraph(32, [[0, 1]]), table)


class TestRefusedPoints:
    """w and u that are no arrays of the right shape, or not finite: by node and edge label."""

    problem = gtv.GTVProblem(
        gtv.EmpiricalGraph(3, [(0, 1), (2, 1)], nodes=["a", "b", "c"]),
        [gtv.PointLoss([1.0, 2.0])] * 3,
    )

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, bad):
        w, u = np.zeros((3, 2)), np.zeros((2, 2))
        w[2, 1] = u[1, 0] = bad
        with pytest.raises(ValueError, match="w: node 'c' has an entry that is not finite"):
            self.problem.value(w)
        for method in (self.problem.dual_value, self.problem.lower_bound):
            with pytest.raises(ValueError, match=r"u: edge \('b', 'c'\) has an entry"):
                method(u)

    @pytest.mark.parametrize("shape", [(3,), (2, 3), (6,), (4, 2), (3, 2, 1), (0,), ()])
    def test_shape(self, shape):
        with pytest.raises(ValueError, match=r"w: shape \(3, 2\) is expected"):
            self.problem.value(np.zeros(shape))
        for method in (self.problem.dual_value, self.problem.lower_bound):
            with pytest.raises(ValueError, match=r"u: shape \(2, 2\) is expected"):
                method(np.zeros(shape))

    @pytest.mark.parametrize("bad", [[["a", "b"]] * 3, None, [[1.0, 2.0], [3.0]], [[1j, 0.0]] * 3])
    def test_type(self, bad):
        with pytest.raises(TypeError, match="w: an array of numbers is expected"):
            self.problem.value(bad)

    @pytest.mark.parametrize("tol", [-1e-9, np.nan, np.inf])
    def test_tol(self, tol):
        with pytest.raises(ValueError, match="tol: a finite number >= 0"):
            self.problem.dual_value(np.zeros((2, 2)), tol=tol)
