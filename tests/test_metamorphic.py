"""What must not change, or must change in a known way, when a problem is written differently."""

import cvxpy as cp
import numpy as np
import pytest
from _instances import FAMILIES, NORMS, PENALTIES, Case, cases, reference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gtvcvx as gtv

some_cases = pytest.mark.parametrize("case", cases(families=["isolated", "d=6"]), ids=str)
seeds = given(seed=st.integers(0, 2**32 - 1))
few = settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])


def draw(case, seed):
    problem, rng = case.problem(), np.random.default_rng(seed)
    w = rng.standard_normal((problem.graph.n_nodes, problem.dim))
    return problem, w, rng


def small_flow(problem, rng):
    return 1e-2 * rng.standard_normal((problem.graph.n_edges, problem.dim))


def rebuilt(case, edges, weights, losses=None, n_nodes=None):
    graph = gtv.EmpiricalGraph(n_nodes or FAMILIES[case.family].n_nodes, edges, weights)
    penalty = PENALTIES[case.penalty](FAMILIES[case.family].dim)
    return gtv.GTVProblem(graph, losses or case.losses(), penalty, case.lam)


def optimum(problem):
    return problem.cvxpy().solve(solver=cp.CLARABEL)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


class TestGraph:
    @some_cases
    @seeds
    @few
    def test_renumbering_the_nodes(self, case, seed):
        problem, w, rng = draw(case, seed)
        u = small_flow(problem, rng)
        new = rng.permutation(problem.graph.n_nodes)  # new[i]: the new number of node i
        old = np.argsort(new)
        losses = [case.losses()[i] for i in old]
        edges = new[problem.graph.edges]
        other = rebuilt(case, edges, problem.graph.weights, losses)
        close(other.value(w[old]), problem.value(w))
        # An edge whose ends change places carries minus its flow.
        order = np.lexsort(np.sort(edges, axis=1).T[::-1])
        sign = np.where(edges[:, 0] < edges[:, 1], 1.0, -1.0)
        bound, flow = other.lower_bound((sign[:, None] * u)[order])
        expected, expected_flow = problem.lower_bound(u)
        np.testing.assert_allclose(bound, expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(flow, (sign[:, None] * expected_flow)[order], atol=1e-6)

    @some_cases
    @seeds
    @few
    def test_turning_edges_round(self, case, seed):
        problem, w, rng = draw(case, seed)
        edges = problem.graph.edges.copy()
        turned = rng.random(len(edges)) < 0.5
        edges[turned] = edges[turned, ::-1]
        order = rng.permutation(len(edges))
        other = rebuilt(case, edges[order], problem.graph.weights[order])
        u = small_flow(problem, rng)
        assert other.value(w) == problem.value(w)
        assert other.dual_value(u) == problem.dual_value(u)

    @pytest.mark.filterwarnings("ignore::gtvcvx.DoubledEdgesWarning")
    @some_cases
    @seeds
    @few
    def test_splitting_a_weight_over_parallel_edges(self, case, seed):
        problem, w, rng = draw(case, seed)
        edges, weights = problem.graph.edges, problem.graph.weights
        share = rng.uniform(0.1, 0.9, len(edges))
        other = rebuilt(
            case,
            np.concatenate([edges, edges[:, ::-1]]),
            np.concatenate([share * weights, (1.0 - share) * weights]),
        )
        assert other.graph.n_edges == problem.graph.n_edges
        close(other.value(w), problem.value(w))

    @some_cases
    @seeds
    @few
    def test_lambda_against_weights(self, case, seed):
        problem, w, rng = draw(case, seed)
        c = rng.uniform(0.1, 10.0)
        other = rebuilt(case, problem.graph.edges, c * problem.graph.weights).with_lam(case.lam / c)
        u = small_flow(problem, rng)
        close(other.value(w), problem.value(w))
        np.testing.assert_allclose(other.lower_bound(u)[0], problem.lower_bound(u)[0], rtol=1e-8)

    @some_cases
    @seeds
    @few
    def test_side_by_side(self, case, seed):
        """Two graphs without a common edge: values and bounds of feasible flows add up."""
        problem, w, rng = draw(case, seed)
        n = problem.graph.n_nodes
        twice = rebuilt(
            case,
            np.concatenate([problem.graph.edges, problem.graph.edges + n]),
            np.tile(problem.graph.weights, 2),
            case.losses() * 2,
            2 * n,
        )
        w2 = rng.standard_normal(w.shape)
        close(twice.value(np.concatenate([w, w2])), problem.value(w) + problem.value(w2))
        _, u = problem.lower_bound(small_flow(problem, rng))
        close(twice.dual_value(np.concatenate([u, u])), 2 * problem.dual_value(u))


class TestData:
    @some_cases
    @seeds
    @few
    def test_writing_every_data_point_twice(self, case, seed):
        problem, w, _ = draw(case, seed)
        losses = [
            gtv.SquaredLoss(np.tile(x.X, (2, 1)), np.tile(x.y, 2))
            if isinstance(x, gtv.SquaredLoss)
            else x
            for x in case.losses()
        ]
        other = rebuilt(case, problem.graph.edges, problem.graph.weights, losses)
        close(other.value(w), problem.value(w))
        s = problem.losses.gradient(w)
        atol = np.full(len(w), 1e-9)
        np.testing.assert_allclose(
            other.losses.conjugate(s, atol), problem.losses.conjugate(s, atol), atol=1e-9
        )

    @pytest.mark.parametrize("penalty", PENALTIES)
    @seeds
    @few
    def test_moving_all_points(self, penalty, seed):
        case = Case("connected", "point", penalty)
        problem, w, rng = draw(case, seed)
        shift = rng.standard_normal(problem.dim)
        losses = [gtv.PointLoss(loss.a + shift) for loss in case.losses()]
        other = rebuilt(case, problem.graph.edges, problem.graph.weights, losses)
        close(other.value(w + shift), problem.value(w))

    @pytest.mark.parametrize("penalty", NORMS)
    @seeds
    @few
    def test_other_units(self, penalty, seed):
        """Points and w times c, lambda times c: everything times c squared."""
        case = Case("connected", "point", penalty)
        problem, w, rng = draw(case, seed)
        c = rng.uniform(0.1, 10.0)
        losses = [gtv.PointLoss(c * loss.a) for loss in case.losses()]
        other = rebuilt(case, problem.graph.edges, problem.graph.weights, losses)
        close(other.with_lam(c * case.lam).value(c * w), c**2 * problem.value(w))

    @pytest.mark.parametrize("penalty", [*NORMS, "squared"])
    @seeds
    @few
    def test_other_order_and_sign_of_the_features(self, penalty, seed):
        case = Case("d=6", "squared", penalty)
        problem, w, rng = draw(case, seed)
        order, sign = rng.permutation(6), rng.choice([-1.0, 1.0], 6)
        losses = [
            gtv.SquaredLoss((sign * x.X)[:, order], x.y) if isinstance(x, gtv.SquaredLoss) else x
            for x in case.losses()
        ]
        other = rebuilt(case, problem.graph.edges, problem.graph.weights, losses)
        close(other.value((sign * w)[:, order]), problem.value(w))


class TestOptimum:
    """Relations of optimal values, by CVXPY."""

    @pytest.mark.parametrize("penalty", PENALTIES)
    def test_a_node_without_data_on_one_edge_changes_nothing(self, penalty):
        case = Case("connected", "mix", penalty)
        graph = case.graph()
        n = graph.n_nodes
        edges = np.concatenate([graph.edges, [[1, n]]])
        longer = rebuilt(
            case, edges, np.append(graph.weights, 3.0), [*case.losses(), gtv.ZeroLoss()], n + 1
        )
        np.testing.assert_allclose(optimum(longer), reference(case).value, rtol=1e-6)

    @pytest.mark.parametrize("penalty", NORMS)
    def test_a_node_without_data_in_the_middle_of_an_edge(self, penalty):
        """Two edges of the same capacity one after the other are one edge, for norms."""
        case = Case("connected", "mix", penalty)
        graph = case.graph()
        n = graph.n_nodes
        (head, tail), weight = graph.edges[0], graph.weights[0]
        edges = np.concatenate([graph.edges[1:], [[head, n], [n, tail]]])
        weights = np.concatenate([graph.weights[1:], [weight, weight]])
        longer = rebuilt(case, edges, weights, [*case.losses(), gtv.ZeroLoss()], n + 1)
        np.testing.assert_allclose(optimum(longer), reference(case).value, rtol=1e-6)

    @pytest.mark.parametrize("penalty", PENALTIES)
    def test_monotone_and_concave_in_lambda(self, penalty):
        lams = [0.05, 0.15, 0.25]
        low, middle, high = (
            reference(Case("connected", "mix", penalty, lam=lam)).value for lam in lams
        )
        assert low < middle < high
        assert middle >= 0.5 * (low + high) - 1e-6
