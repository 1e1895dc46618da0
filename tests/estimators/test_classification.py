"""Logistic regression at the nodes of a graph: against CVXPY and scikit-learn."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import gtvcvx as gtv
import verify
from gtvcvx.estimators import NetworkLogisticRegression, NetworkLogisticRegressionCV

RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)]


def instance(seed=0, rows=(6, 12), unlabelled=(3,)):
    rng = np.random.default_rng(seed)
    graph = gtv.EmpiricalGraph(6, RING, rng.uniform(0.5, 2.0, len(RING)))
    counts = rng.integers(*rows, 6)
    counts[list(unlabelled)] = 0
    node = rng.permutation(np.repeat(np.arange(6), counts))
    X = rng.standard_normal((len(node), 2))
    slope = np.array([[2.0, 0.0], [-1.0, 2.0]])[node // 3]
    z = np.sum(X * slope, axis=1) + 0.3
    y = (rng.random(len(node)) < 1 / (1 + np.exp(-z))).astype(int)
    return graph, X, y, node


def by_cvxpy(graph, X, y, node, *, lam, ridge, intercept=True):
    n, d = graph.n_nodes, X.shape[1]
    w, b = cp.Variable((n, d)), cp.Variable(n)
    cost = 0.0
    for i in sorted(set(node.tolist())):
        at = node == i
        z = X[at] @ w[i] + b[i]
        cost += (cp.sum(cp.logistic(z)) - y[at] @ z) / at.sum()
        cost += ridge / 2 * cp.sum_squares(w[i])
    for (i, j), a in zip(graph.edges, graph.weights, strict=True):
        cost += lam * a * cp.norm(cp.hstack([w[i] - w[j], b[i] - b[j]]), 2)
    problem = cp.Problem(cp.Minimize(cost), [] if intercept else [b == 0])
    problem.solve(solver=cp.CLARABEL)
    return problem.value, w.value, b.value


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ridge", [0.01, 0.5])
def test_against_cvxpy(ridge, intercept):
    graph, X, y, node = instance()
    model = NetworkLogisticRegression(
        lam=0.05, ridge=ridge, fit_intercept=intercept, graph=graph, rtol=1e-8
    ).fit(X, y, node=node)
    value, w, b = by_cvxpy(graph, X, y, node, lam=0.05, ridge=ridge, intercept=intercept)
    assert model.solution_.value == pytest.approx(value, rel=1e-6)
    assert model.solution_.value - value <= model.dual_gap_ + 1e-6 * value
    np.testing.assert_allclose(model.coef_, w, atol=5e-3)
    np.testing.assert_allclose(model.intercept_, b, atol=5e-3)


def test_one_node_is_an_ordinary_model():
    _, X, y, _ = instance(1)
    m = len(y)
    for intercept in (True, False):
        ours = NetworkLogisticRegression(ridge=0.2, fit_intercept=intercept, rtol=1e-10).fit(X, y)
        theirs = LogisticRegression(C=1 / (0.2 * m), fit_intercept=intercept, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        assert ours.score(X, y) == theirs.score(X, y)


def test_large_lambda_is_one_model_of_all():
    graph, X, y, node = instance(2)
    model = NetworkLogisticRegression(lam=1e3, ridge=0.1, graph=graph).fit(X, y, node=node)
    # Each of the five nodes with rows counts once, and each of them has a ridge term.
    weight = 1.0 / np.bincount(node)[node]
    pooled = LogisticRegression(C=1 / (0.1 * 5), tol=1e-10).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, np.tile(pooled.coef_, (6, 1)), atol=2e-3)
    np.testing.assert_allclose(model.intercept_, np.full(6, pooled.intercept_), atol=2e-3)


class TestClasses:
    @pytest.mark.parametrize(
        "names", [("no", "yes"), (-1, 1), (False, True), (1.0, 2.0), (np.str_("a"), np.str_("b"))]
    )
    def test_any_two(self, names):
        graph, X, y, node = instance(3)
        codes = NetworkLogisticRegression(graph=graph).fit(X, y, node=node)
        target = np.array(names)[y]
        model = NetworkLogisticRegression(graph=graph).fit(X, target, node=node)
        assert model.classes_.tolist() == list(names)
        np.testing.assert_array_equal(model.coef_, codes.coef_)
        predicted = model.predict(X, node=node)
        assert predicted.dtype == target.dtype
        np.testing.assert_array_equal(predicted, np.array(names)[codes.predict(X, node=node)])
        assert model.score(X, target, node=node) == codes.score(X, y, node=node)

    def test_probabilities(self):
        graph, X, y, node = instance(4)
        model = NetworkLogisticRegression(graph=graph).fit(X, y, node=node)
        z = model.decision_function(X, node=node)
        probabilities = model.predict_proba(X, node=node)
        np.testing.assert_allclose(
            z, np.sum(X * model.coef_[node], axis=1) + model.intercept_[node], rtol=1e-12
        )
        np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-z)), rtol=1e-12)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(
            model.predict_log_proba(X, node=node), np.log(probabilities), rtol=1e-9
        )
        np.testing.assert_array_equal(model.predict(X, node=node), (z > 0).astype(int))
        assert np.isfinite(model.predict_log_proba(1e6 * X, node=node)).all()

    @pytest.mark.parametrize("form", [list, np.array, pd.Series])
    def test_missing_classes(self, form):
        graph, X, y, node = instance(5)
        missing = np.arange(len(y)) % 3 == 0
        names = np.array(["no", "yes"])[y]
        kept = NetworkLogisticRegression(graph=graph).fit(
            X[~missing], names[~missing], node=node[~missing]
        )
        gaps = [None if gap else str(name) for gap, name in zip(missing, names, strict=True)]
        model = NetworkLogisticRegression(graph=graph).fit(X, form(gaps), node=node)
        np.testing.assert_array_equal(model.coef_, kept.coef_)
        assert model.classes_.tolist() == ["no", "yes"]
        expected = kept.score(X[~missing], names[~missing], node=node[~missing])
        assert model.score(X, form(gaps), node=node) == expected

    def test_missing_numbers_and_pandas_na(self):
        graph, X, y, node = instance(6)
        missing = np.arange(len(y)) % 5 == 0
        floats = np.where(missing, np.nan, y)
        model = NetworkLogisticRegression(graph=graph).fit(X, floats, node=node)
        nullable = pd.Series(y, dtype="Int64").mask(missing)
        same = NetworkLogisticRegression(graph=graph).fit(X, nullable, node=node)
        np.testing.assert_array_equal(model.coef_, same.coef_)
        assert model.classes_.tolist() == [0.0, 1.0]

    def test_nodes_of_one_class_and_without_classes(self):
        """Neighbours keep the intercepts of such nodes finite."""
        graph, X, y, node = instance(7)
        y[node == 0] = 1
        target = y.astype(float)
        target[node == 1] = np.nan
        model = NetworkLogisticRegression(graph=graph).fit(X, target, node=node)
        assert np.abs(model.intercept_).max() < 20
        assert model.solution_.rel_gap <= 1e-6


def test_certified():
    """By decimal enclosures, with a node without rows."""
    graph, X, y, node = instance(8)
    model = NetworkLogisticRegression(graph=graph, lam=0.1).fit(X, y, node=node)
    certificate = verify.certify(model.problem_, model.solution_.w, rtol=1e-5)
    assert certificate.status == "CERTIFIED"


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1, 1], "y: two classes are expected, there is only one class, 1"),
        ([0.5, 1.5, 2.7, 0.1], "Unknown label type: continuous"),
        ([None] * 4, "y: no row has a class, all are missing"),
        ([0.0, np.inf, 1.0, 1.0], "y: row 1 is infinite, not a class"),
        ([0, 1, 0], "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
    ],
)
def test_bad_classes(y, message):
    with pytest.raises(ValueError, match=message):
        NetworkLogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], y)


def test_bad_ridge():
    with pytest.raises(ValueError, match="ridge: a finite number >= 0 is expected, got -1"):
        NetworkLogisticRegression(ridge=-1).fit([[0.0], [1.0]], [0, 1])


class TestSeveralClasses:
    def three(self, seed=0):
        graph, X, _, node = instance(seed, rows=(8, 14))
        rng = np.random.default_rng(seed)
        W = np.array(
            [[[2.0, 0.0], [0.0, 2.0], [-1.0, -1.0]], [[0.0, 2.0], [-2.0, 0.0], [1.0, 0.0]]]
        )
        z = np.einsum("nd,nkd->nk", X, W[node // 3]) + rng.gumbel(size=(len(X), 3))
        return graph, X, np.array(["a", "b", "c"])[z.argmax(axis=1)], node

    def test_one_node_is_an_ordinary_model(self):
        _, X, y, _ = self.three()
        ours = NetworkLogisticRegression(ridge=0.2, rtol=1e-10).fit(X, y)
        theirs = LogisticRegression(C=1 / (0.2 * len(y)), tol=1e-10).fit(X, y)
        assert ours.coef_.shape == (1, 3, 2)
        assert ours.intercept_.shape == (1, 3)
        np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        assert ours.score(X, y) == theirs.score(X, y)
        np.testing.assert_array_equal(ours.classes_, ["a", "b", "c"])

    @pytest.mark.parametrize("intercept", [True, False])
    def test_against_cvxpy(self, intercept):
        graph, X, y, node = self.three(1)
        model = NetworkLogisticRegression(
            lam=0.05, ridge=0.1, fit_intercept=intercept, graph=graph, rtol=1e-8
        ).fit(X, y, node=node)
        code = np.searchsorted(model.classes_, y)
        design = np.column_stack([X, np.ones(len(X))]) if intercept else X
        p = design.shape[1]
        W = [cp.Variable((p, 3)) for _ in range(6)]
        cost = 0.0
        for i in sorted(set(node.tolist())):
            at = node == i
            z = design[at] @ W[i]
            own = cp.sum(cp.multiply(np.eye(3)[code[at]], z))
            cost += (cp.sum(cp.log_sum_exp(z, axis=1)) - own) / at.sum()
            cost += 0.05 * cp.sum_squares(W[i][:2])
        for (i, j), a in zip(graph.edges, graph.weights, strict=True):
            cost += 0.05 * a * cp.norm(cp.vec(W[i] - W[j], order="F"), 2)
        problem = cp.Problem(cp.Minimize(cost))
        problem.solve(solver=cp.CLARABEL)
        assert model.solution_.value == pytest.approx(problem.value, rel=1e-6)
        exact = np.array([w.value[:2].T for w in W])
        np.testing.assert_allclose(model.coef_, exact, atol=5e-3)
        z = np.einsum("nd,nkd->nk", X, model.coef_[node]) + model.intercept_[node]
        np.testing.assert_allclose(model.decision_function(X, node=node), z, atol=1e-12)

    def test_labels_are_propagated(self):
        """Three regions of a path of nine, one label each; frames have names for everything."""
        path = gtv.EmpiricalGraph(9, [[i, i + 1] for i in range(8)], nodes=list("abcdefghi"))
        y = [None, "x", None, None, "y", None, None, "z", None]
        model = NetworkLogisticRegression(graph=path, lam=0.02).fit(None, y)
        assert model.predict(None)[[0, 1, 4, 7, 8]].tolist() == ["x", "x", "y", "z", "z"]
        assert model.predict_proba(None).shape == (9, 3)
        np.testing.assert_allclose(model.predict_proba(None).sum(axis=1), 1.0)

    def test_names(self):
        graph, X, y, node = self.three()
        frame = pd.DataFrame(X, columns=["u", "v"])
        model = NetworkLogisticRegression(graph=graph).fit(frame, y, node=node)
        names = model.solution_.info["features"]
        assert names[:4] == ["u of a", "u of b", "u of c", "v of a"]
        assert len(names) == model.solution_.w.shape[1] == 9

    def test_cross_validation(self):
        graph, X, y, node = self.three()
        folds = np.arange(len(y)) % 2
        lams = [0.3, 0.03]
        options = {"graph": graph, "ridge": 0.1, "rtol": 1e-7}
        model = NetworkLogisticRegressionCV(lams=lams, cv=folds, **options).fit(X, y, node=node)
        for k in range(2):
            out = folds == k
            alone = NetworkLogisticRegression(lam=0.03, **options)
            alone.fit(X[~out], y[~out], node=node[~out])
            own = np.searchsorted(alone.classes_, y[out])
            logs = alone.predict_log_proba(X[out], node=node[out])
            mean = -np.mean(logs[np.arange(len(own)), own])
            assert model.cv_path_.fold_errors[k, 1] == pytest.approx(mean, rel=2e-3)
