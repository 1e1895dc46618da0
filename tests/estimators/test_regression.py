"""Linear models at the nodes of a graph: against CVXPY, the library, and scikit-learn's models."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import Lasso, LinearRegression, Ridge

import gtvcvx as gtv
import verify
from gtvcvx import interop
from gtvcvx.estimators import NetworkLasso, NetworkLinearRegression

RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)]


def instance(seed=0, d=3, rows=(2, 7), unlabelled=(3,)):
    """A ring with a chord, its rows in any order, and nodes without rows."""
    rng = np.random.default_rng(seed)
    graph = gtv.EmpiricalGraph(6, RING, rng.uniform(0.5, 2.0, len(RING)))
    counts = rng.integers(*rows, 6)
    counts[list(unlabelled)] = 0
    node = rng.permutation(np.repeat(np.arange(6), counts))
    X = rng.standard_normal((len(node), d))
    truth = np.array([[1.0, -2.0, 0.0], [0.0, 1.0, 3.0]])[:, :d]
    y = np.sum(X * truth[node // 3], axis=1) + 0.5 + 0.3 * rng.standard_normal(len(node))
    return graph, X, y, node


def by_cvxpy(graph, X, y, node, *, lam, norm=2, ridge=0.0, kappa=0.0, intercept=True):
    """Optimum of the model as the docstring writes it, row by row."""
    n, d = graph.n_nodes, X.shape[1]
    w, b = cp.Variable((n, d)), cp.Variable(n)
    cost = 0.0
    for i in sorted(set(node.tolist())):
        at = node == i
        residual = X[at] @ w[i] + b[i] - y[at]
        cost += cp.sum_squares(residual) / at.sum()
        cost += ridge / 2 * cp.sum_squares(w[i]) + kappa * cp.norm1(w[i])
    for (i, j), a in zip(graph.edges, graph.weights, strict=True):
        jump = cp.hstack([w[i] - w[j], b[i] - b[j]])
        cost += lam * a * (cp.sum_squares(jump) / 2 if norm is None else cp.norm(jump, norm))
    problem = cp.Problem(cp.Minimize(cost), [] if intercept else [b == 0])
    problem.solve(solver=cp.CLARABEL)
    return problem.value, w.value, b.value


class TestAgainstCvxpy:
    @pytest.mark.parametrize(
        ("penalty", "norm"), [("l2", 2), ("l1", 1), ("linf", "inf"), ("squared", None)]
    )
    @pytest.mark.parametrize("intercept", [True, False])
    def test_regression(self, penalty, norm, intercept):
        graph, X, y, node = instance()
        model = NetworkLinearRegression(
            lam=0.2, penalty=penalty, ridge=0.3, fit_intercept=intercept, graph=graph, rtol=1e-9
        ).fit(X, y, node=node)
        value, w, b = by_cvxpy(
            graph, X, y, node, lam=0.2, norm=norm, ridge=0.3, intercept=intercept
        )
        assert model.solution_.value == pytest.approx(value, rel=1e-6)
        assert model.solution_.value - value <= model.dual_gap_ + 1e-6 * value
        np.testing.assert_allclose(model.coef_, w, atol=1e-3)
        np.testing.assert_allclose(model.intercept_, b, atol=1e-3)

    @pytest.mark.parametrize("ridge", [0.0, 0.2])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_lasso(self, ridge, intercept):
        graph, X, y, node = instance(1)
        model = NetworkLasso(
            lam=0.1, kappa=0.4, ridge=ridge, fit_intercept=intercept, graph=graph, rtol=1e-8
        ).fit(X, y, node=node)
        value, w, _ = by_cvxpy(
            graph, X, y, node, lam=0.1, ridge=ridge, kappa=0.4, intercept=intercept
        )
        assert model.solution_.value == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(model.coef_, w, atol=2e-3)
        assert (np.abs(model.coef_) < 1e-6).any()


class TestAgainstTheLibrary:
    def test_same_problem(self):
        graph, X, y, node = instance(2)
        model = NetworkLinearRegression(lam=0.3, penalty="l1", fit_intercept=False)
        model.fit(X, y, graph=graph, node=node)
        problem = gtv.GTVProblem(graph, gtv.SquaredLoss.from_rows(X, y, node, 6), "l1", 0.3)
        solution = problem.solve(rtol=1e-6)
        np.testing.assert_allclose(model.coef_, solution.w, atol=1e-4)
        np.testing.assert_array_equal(model.labels_, solution.clusters())
        assert model.flows_.shape == (7, 3)
        assert problem.value(model.coef_) == pytest.approx(model.solution_.value, rel=1e-12)
        np.testing.assert_array_equal(model.intercept_, np.zeros(6))

    @pytest.mark.parametrize("solver", ["CLARABEL", "PDHG"])
    def test_other_solvers(self, solver):
        graph, X, y, node = instance(3)
        options = {"lam": 0.3, "graph": graph, "rtol": 1e-5}
        model = NetworkLinearRegression(solver=solver, **options).fit(X, y, node=node)
        auto = NetworkLinearRegression(**options).fit(X, y, node=node)
        assert model.solution_.solver == solver
        assert model.solution_.value == pytest.approx(auto.solution_.value, rel=2e-5)

    def test_certified(self):
        graph, X, y, node = instance(4)
        model = NetworkLinearRegression(lam=0.3, ridge=0.1, graph=graph).fit(X, y, node=node)
        certificate = verify.certify(model.problem_, model.solution_.w, rtol=1e-5)
        assert certificate.status == "CERTIFIED"

    def test_flows_of_the_intercept(self):
        graph, X, y, node = instance(5)
        model = NetworkLinearRegression(graph=graph).fit(X, y, node=node)
        assert model.flows_.shape == (7, 4)
        # The sum of the residuals of a node is what its intercept's flow carries away.
        injection = -(graph.divergence @ model.flows_)[:, -1]
        residual = model.predict(X, node=node) - y
        means = np.bincount(node, residual, 6) / np.maximum(np.bincount(node, minlength=6), 1)
        np.testing.assert_allclose(injection, 2.0 * means, atol=1e-3)

    def test_labels_are_clusters_of_nodes(self):
        graph, X, y, node = instance(6)
        model = NetworkLinearRegression(lam=1e4, graph=graph).fit(X, y, node=node)
        assert model.labels_.tolist() == [0] * 6


class TestLimits:
    """One node, very small and very large lambda."""

    def test_one_node_is_an_ordinary_model(self):
        _, X, y, _ = instance(7, rows=(5, 9))
        m = len(y)
        for ours, theirs in (
            (NetworkLinearRegression(), LinearRegression()),
            (NetworkLinearRegression(fit_intercept=False), LinearRegression(fit_intercept=False)),
            (NetworkLinearRegression(ridge=0.8), Ridge(alpha=0.4 * m)),
            (NetworkLasso(kappa=0.5, rtol=1e-10), Lasso(alpha=0.25, tol=1e-12)),
        ):
            ours.fit(X, y)
            theirs.fit(X, y)
            np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-5)
            np.testing.assert_allclose(ours.intercept_[0], theirs.intercept_, atol=1e-5)
            np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
            assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-5)
            assert ours.labels_.tolist() == [0]
            assert ours.flows_.shape[0] == 0
            assert ours.n_iter_ >= 1

    def test_small_lambda_is_one_model_a_node(self):
        graph, X, y, node = instance(8, rows=(6, 9))
        model = NetworkLinearRegression(lam=1e-7, ridge=0.1, graph=graph).fit(X, y, node=node)
        for i in (0, 1, 2, 4, 5):
            at = node == i
            own = Ridge(alpha=0.05 * at.sum()).fit(X[at], y[at])
            np.testing.assert_allclose(model.coef_[i], own.coef_, atol=1e-3)
            np.testing.assert_allclose(model.intercept_[i], own.intercept_, atol=1e-3)

    def test_large_lambda_is_one_model_of_all(self):
        graph, X, y, node = instance(9)
        model = NetworkLinearRegression(lam=1e3, graph=graph, rtol=1e-9).fit(X, y, node=node)
        # Each node's mean counts once, so a row weighs 1 / m_i.
        weight = 1.0 / np.bincount(node)[node]
        pooled = LinearRegression().fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(model.coef_, np.tile(pooled.coef_, (6, 1)), atol=1e-4)
        np.testing.assert_allclose(model.intercept_, np.full(6, pooled.intercept_), atol=1e-4)
        # The node without rows has the model as well.
        np.testing.assert_allclose(
            model.predict(X, node=np.full(len(X), 3)), pooled.predict(X), atol=1e-3
        )


class TestMissingTargets:
    def test_rows_without_target_do_not_count(self):
        graph, X, y, node = instance(10)
        missing = np.arange(len(y)) % 4 == 0
        with_gaps = np.where(missing, np.nan, y)
        model = NetworkLinearRegression(graph=graph).fit(X, with_gaps, node=node)
        other = NetworkLinearRegression(graph=graph).fit(
            X[~missing], y[~missing], node=node[~missing]
        )
        np.testing.assert_array_equal(model.coef_, other.coef_)
        assert model.score(X, with_gaps, node=node) == other.score(
            X[~missing], y[~missing], node=node[~missing]
        )
        objects = [None if gap else value for gap, value in zip(missing, y, strict=True)]
        same = NetworkLinearRegression(graph=graph).fit(X, objects, node=node)
        np.testing.assert_array_equal(model.coef_, same.coef_)

    def test_no_target_at_all(self):
        graph, X, y, node = instance()
        for model in (NetworkLinearRegression(graph=graph), NetworkLasso(graph=graph)):
            with pytest.raises(ValueError, match="y: no row has a target, all are NaN"):
                model.fit(X, np.full_like(y, np.nan), node=node)
            model.fit(X, y, node=node)
            with pytest.raises(ValueError, match="y: no row has a target, all are NaN"):
                model.score(X, np.full_like(y, np.nan), node=node)

    def test_weights_of_the_score(self):
        graph, X, y, node = instance()
        model = NetworkLinearRegression(graph=graph).fit(X, y, node=node)
        weight = (node == 0).astype(float)
        expected = model.score(X[node == 0], y[node == 0], node=node[node == 0])
        assert model.score(X, y, weight, node=node) == pytest.approx(expected, rel=1e-12)


class TestNodes:
    def test_labels_of_any_kind(self):
        graph, X, y, node = instance()
        numbers = NetworkLinearRegression(graph=graph).fit(X, y, node=node)
        expected = numbers.predict(X, node=node)
        assert (numbers.predict(X, node=node.astype(float)) == expected).all()
        assert (numbers.predict(X, node=pd.Series(node)) == expected).all()
        for names in (list("abcdef"), [(0, i) for i in range(6)]):
            named = gtv.EmpiricalGraph(6, graph.edges, graph.weights, names)
            at = [names[i] for i in node]
            model = NetworkLinearRegression(graph=named).fit(X, y, node=at)
            assert (model.predict(X, node=at) == expected).all()

    def test_graph_of_fit_comes_first(self):
        graph, X, y, node = instance()
        model = NetworkLinearRegression(graph=gtv.EmpiricalGraph(6, [])).fit(X, y, node=node)
        assert model.graph_.n_edges == 0
        model.fit(X, y, node=node, graph=graph)
        assert model.graph_ is graph
        assert model.graph.n_edges == 0

    def test_frames_of_results(self):
        graph, X, y, node = instance()
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        model = NetworkLinearRegression(graph=graph).fit(frame, pd.Series(y), node=node)
        nodes, edges = interop.to_frames(model.solution_, model.problem_)
        np.testing.assert_array_equal(nodes[["w_a", "w_b", "w_c"]], model.coef_)
        np.testing.assert_array_equal(nodes["w_intercept"], model.intercept_)
        assert "flow_intercept" in edges

    @pytest.mark.parametrize(
        ("options", "given", "error", "message"),
        [
            ({}, {}, ValueError, "node: the node of each row is expected, as the graph has 6"),
            ({}, {"node": [0, 1]}, ValueError, r"node: one node for each of the 4 rows .* got 2"),
            ({}, {"node": 3}, ValueError, r"node: one node for each of the 4 rows .* got 3"),
            ({}, {"node": [0, 1, 9, 2]}, ValueError, "node: row 2 names node 9, which the graph"),
            ({}, {"node": [0, None, 1, 2]}, ValueError, "node: row 1 names node None"),
            ({}, {"node": [0, [], 1, 2]}, TypeError, "node: node labels are expected"),
            ({"graph": None}, {"node": [0] * 4}, ValueError, "graph: one is expected, as rows"),
            ({"graph": None, "node_column": 0}, {}, ValueError, "graph: one is expected, as rows"),
            ({"graph": nx.Graph()}, {}, TypeError, "graph: an EmpiricalGraph is expected, got Gr"),
            ({"node_column": 0}, {"node": [0] * 4}, ValueError, "node: rows name their nodes alr"),
            ({"node_column": 0}, {}, ValueError, "node_column: row 0 names node 0.5"),
            ({"ridge": -1.0}, {"node": [0] * 4}, ValueError, "ridge: a finite number >= 0"),
            ({"ridge": "1"}, {"node": [0] * 4}, TypeError, "ridge: a number is expected, got '1'"),
            ({"lam": 0.0}, {"node": [0] * 4}, ValueError, "lam: a positive finite number"),
            ({"penalty": "l3"}, {"node": [0] * 4}, ValueError, "penalty"),
            ({"rtol": 0.0}, {"node": [0] * 4}, ValueError, "rtol: a positive number is expected"),
            ({"rtol": None}, {"node": [0] * 4}, ValueError, "rtol: a positive number is expected"),
            ({"time_limit": 0.0}, {"node": [0] * 4}, ValueError, "time_limit"),
            ({"max_iter": 0}, {"node": [0] * 4}, ValueError, "max_iter"),
        ],
    )
    def test_bad_input(self, options, given, error, message):
        graph = gtv.EmpiricalGraph(6, RING)
        X = np.array([[0.5, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 5.0]])
        model = NetworkLinearRegression(**{"graph": graph, **options})
        with pytest.raises(error, match=message):
            model.fit(X, [1.0, 2.0, 3.0, 4.0], **given)

    def test_kappa(self):
        with pytest.raises(ValueError, match="kappa: a finite number >= 0 is expected, got nan"):
            NetworkLasso(kappa=np.nan).fit([[0.0], [1.0]], [0.0, 1.0])

    def test_y(self):
        X = [[0.0], [1.0]]
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            NetworkLinearRegression().fit(X, [1.0])
        with pytest.raises(ValueError, match="could not convert string to float"):
            NetworkLinearRegression().fit(X, ["a", "b"])
        with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
            NetworkLinearRegression().fit(X, [[1.0], [2.0]])
