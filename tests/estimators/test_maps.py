"""Models of every kind on maps: one value a node, weights, counts, outliers, sparse features."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from scipy.stats import median_abs_deviation
from sklearn.linear_model import PoissonRegressor, QuantileRegressor
from sklearn.metrics import d2_pinball_score, d2_tweedie_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gtvcvx as gtv
from gtvcvx.estimators import (
    NetworkHuberRegression,
    NetworkLinearRegression,
    NetworkLinearRegressionCV,
    NetworkLogisticRegression,
    NetworkPoissonRegression,
    NetworkQuantileRegression,
)
from gtvcvx.estimators import _rows as rows_module

GRID = gtv.generators.grid(4, 5)
NAMES = [f"n{i}" for i in range(20)]
MAP = gtv.EmpiricalGraph(20, GRID.edges, nodes=NAMES)
LEFT = np.arange(20) % 5 < 2


def values(seed=0, noise=0.3):
    return np.where(LEFT, 1.0, 4.0) + noise * np.random.default_rng(seed).standard_normal(20)


def minimum(cost, lam, x):
    """Optimal value and x (20,) of a cost with total variation on the grid."""
    jumps = x[MAP.edges[:, 0]] - x[MAP.edges[:, 1]]
    problem = cp.Problem(cp.Minimize(cost + lam * cp.norm1(jumps)))
    problem.solve(solver=cp.CLARABEL)
    return problem.value, x.value


class TestWithoutFeatures:
    def test_smoothing_against_cvxpy(self):
        y, x = values(), cp.Variable(20)
        y[3] = np.nan
        known = ~np.isnan(y)
        value, smooth = minimum(cp.sum_squares(x[known] - y[known]), 0.4, x)
        model = NetworkLinearRegression(lam=0.4, graph=MAP, rtol=1e-9).fit(None, y)
        assert model.solution_.value == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(model.predict(None), smooth, atol=1e-3)
        assert model.coef_.shape == (20, 0)
        assert model.intercept_.shape == (20,)
        assert model.n_features_in_ == 0

    def test_all_ways_to_say_it(self):
        y = values()
        shuffled = np.random.default_rng(1).permutation(20)
        labels = [NAMES[i] for i in shuffled]
        expected = NetworkLinearRegression(lam=0.4, graph=MAP).fit(None, y).predict(None)
        column = pd.DataFrame({"county": labels})
        by_column = NetworkLinearRegression(lam=0.4, graph=MAP, node_column="county")
        for model, X, given in (
            (NetworkLinearRegression(lam=0.4, graph=MAP), None, {"node": labels}),
            (NetworkLinearRegression(lam=0.4, graph=MAP), np.empty((20, 0)), {"node": labels}),
            (by_column, column, {}),
            (by_column, column.to_numpy(dtype=object), {}),
        ):
            if X is not None and not hasattr(X, "columns") and model is by_column:
                model = NetworkLinearRegression(lam=0.4, graph=MAP, node_column=0)
            model.fit(X, y[shuffled], **given)
            np.testing.assert_allclose(model.predict(X, **given), expected[shuffled], atol=1e-5)
            assert model.score(X, y[shuffled], **given) > 0.9
        assert NetworkLinearRegression(lam=0.4).fit(None, y, graph=MAP).predict(None).shape == (20,)

    def test_labels_are_propagated(self):
        """Six labels on a map of twenty; and a component with one class alone."""
        labels = np.full(20, None, dtype=object)
        labels[[0, 5, 11]], labels[[3, 9, 18]] = "west", "east"
        model = NetworkLogisticRegression(lam=0.05, graph=MAP).fit(None, labels)
        predicted = model.predict(None)
        assert predicted.shape == (20,)
        assert (predicted[LEFT] == "west").mean() > 0.9
        assert model.predict_proba(None).shape == (20, 2)
        assert model.score(None, labels) == 1.0
        two = gtv.EmpiricalGraph(5, [[0, 1], [1, 2], [3, 4]])
        alone = NetworkLogisticRegression(lam=0.1, graph=two).fit(None, [0, None, 1, 1, None])
        assert alone.predict(None)[3:].tolist() == [1, 1]
        assert np.abs(alone.intercept_).max() < 10.0

    def test_in_a_search(self):
        frame = pd.DataFrame({"county": NAMES})
        model = NetworkLinearRegression(graph=MAP, node_column="county")
        search = GridSearchCV(
            model, {"lam": [0.3, 1e4]}, cv=KFold(5, shuffle=True, random_state=0), scoring="r2"
        ).fit(frame, values())
        assert search.best_params_ == {"lam": 0.3}
        guess = cross_val_predict(search.best_estimator_, frame, values(), cv=5)
        assert guess.shape == (20,)

    def test_refused(self):
        y = values()
        with pytest.raises(ValueError, match="fit_intercept: a model without features is its"):
            NetworkLinearRegression(fit_intercept=False, graph=MAP).fit(None, y)
        with pytest.raises(ValueError, match="node_column: X is expected"):
            NetworkLinearRegression(node_column="county", graph=MAP).fit(None, y)
        model = NetworkLinearRegression(graph=MAP).fit(np.ones((20, 1)), y)
        with pytest.raises(ValueError, match="X: 1 features are expected, as in fit"):
            model.predict(None)
        model.fit(None, y)
        with pytest.raises(ValueError, match="X has 1 features, but NetworkLinearRegression is"):
            model.predict(np.ones((20, 1)))
        with pytest.raises(ValueError, match=r"node: the node of each row .* there are 19 rows"):
            model.fit(None, y[1:])


class TestAutomaticLambda:
    def test_share(self):
        model = NetworkLinearRegression(graph=MAP).fit(None, values())
        assert model.lam_ == pytest.approx(0.1 * gtv.lambda_max(model.problem_), rel=0.06)
        node = np.repeat(np.arange(20), 4)
        y = np.repeat(values(), 4)
        four = NetworkLinearRegression(graph=GRID).fit(None, y, node=node)
        assert four.lam_ == pytest.approx(0.5 * model.lam_, rel=0.06)

    @pytest.mark.parametrize("unit", [1e-4, 1e6])
    def test_units_do_not_matter(self, unit):
        one = NetworkLinearRegression(graph=MAP).fit(None, values())
        other = NetworkLinearRegression(graph=MAP).fit(None, unit * values())
        np.testing.assert_allclose(other.predict(None) / unit, one.predict(None), rtol=0.05)
        np.testing.assert_array_equal(other.labels_, one.labels_)
        again = NetworkLinearRegression(graph=MAP).fit(None, values())
        assert again.lam_ == one.lam_

    def test_where_any_value_will_do(self):
        assert NetworkLinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]).lam_ == 1.0
        assert NetworkLinearRegression(graph=MAP).fit(None, np.ones(20)).lam_ == 1.0

    def test_refused(self):
        with pytest.raises(ValueError, match="lam: a number is expected for the penalty 'squared'"):
            NetworkLinearRegression(graph=MAP, penalty="squared").fit(None, values())
        with pytest.raises(ValueError, match="lam: a number > 0 or 'auto' is expected, got 'cv'"):
            NetworkLinearRegression(graph=MAP, lam="cv").fit(None, values())


class TestWeights:
    node = np.repeat(np.arange(20), 2)
    X = np.random.default_rng(2).standard_normal((40, 1))
    y = np.repeat(values(), 2) + X[:, 0]

    def fit(self, weight, kind=NetworkLinearRegression, **options):
        options = {"lam": 0.3, "graph": GRID, "rtol": 1e-9, **options}
        return kind(**options).fit(self.X, self.y, weight, node=self.node)

    def test_weights_are_repetitions(self):
        weight = np.random.default_rng(3).integers(0, 4, 40)
        model = self.fit(weight)
        twice = np.repeat(np.arange(40), weight)
        other = NetworkLinearRegression(lam=0.3, graph=GRID, rtol=1e-9).fit(
            self.X[twice], self.y[twice], node=self.node[twice]
        )
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
        # Of node 0 nothing is left: it is unlabelled.
        weight[:2] = 0
        gone = self.fit(weight)
        assert 0 not in gone.problem_.losses.nodes_with_loss

    def test_one_unit_for_all(self):
        np.testing.assert_array_equal(self.fit(np.full(40, 7.0)).coef_, self.fit(None).coef_)

    def test_weights_that_cancel_are_said_to(self):
        weight = 1.0 + self.node
        with pytest.warns(UserWarning, match="sample_weight: all rows of each node weigh") as seen:
            model = self.fit(weight)
        assert seen[0].filename == __file__
        np.testing.assert_allclose(model.coef_, self.fit(None).coef_, atol=1e-4)

    def test_nodes_count_by_their_rows(self):
        weight = 1.0 + np.arange(20.0)
        x = cp.Variable(20)
        y = values()
        share = weight / weight.mean()
        value, smooth = minimum(cp.sum(cp.multiply(share, cp.square(x - y))), 0.4, x)
        model = NetworkLinearRegression(lam=0.4, graph=MAP, weighting="rows", rtol=1e-9)
        model.fit(None, y, weight)
        assert model.solution_.value == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(model.predict(None), smooth, atol=1e-3)

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.ones(3), "sample_weight: one number for each of the 40 rows is expected, got 3"),
            (np.full(40, -1.0), "sample_weight: row 0 has -1.0, a number >= 0 is expected"),
            (np.zeros(40), "sample_weight: the weights of all rows that have a target are zero"),
            (np.full(40, np.nan), "sample_weight: entry"),
        ],
    )
    def test_refused(self, weight, message):
        with pytest.raises(ValueError, match=message):
            self.fit(weight)

    def test_weighting(self):
        with pytest.raises(ValueError, match=r"weighting: one of .* is expected, got 'all'"):
            self.fit(None, weighting="all")

    def test_routed_through_a_search_in_a_pipeline(self):
        """Nodes and weights beside the rows."""
        with sklearn.config_context(enable_metadata_routing=True):
            model = NetworkLinearRegressionCV(lams=3, cv=2, graph=GRID)
            model.set_fit_request(node=True, sample_weight=True)
            model.set_score_request(node=True, sample_weight=True)
            model.set_predict_request(node=True)
            scaler = StandardScaler().set_fit_request(sample_weight=False)
            search = GridSearchCV(
                make_pipeline(scaler, model),
                {"networklinearregressioncv__rule": ["min", "1se"]},
                cv=3,
                error_score="raise",
            )
            weight = np.random.default_rng(4).uniform(0.5, 2.0, 40)
            search.fit(self.X, self.y, node=self.node, sample_weight=weight)
            best = search.best_estimator_
            assert best.predict(self.X, node=self.node).shape == (40,)
            assert search.score(self.X, self.y, node=self.node, sample_weight=weight) > 0.5


class TestCounts:
    def test_one_node_is_an_ordinary_model(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 2))
        y = rng.poisson(np.exp(0.5 + X @ [0.3, -0.2]))
        weight = rng.uniform(0.5, 2.0, 60)
        ours = NetworkPoissonRegression(ridge=0.1, rtol=1e-10).fit(X, y, weight)
        theirs = PoissonRegressor(alpha=0.1, tol=1e-10).fit(X, y, weight)
        np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4)
        assert ours.score(X, y, weight) == pytest.approx(theirs.score(X, y, weight), abs=1e-5)
        assert ours.score(X, y) == pytest.approx(d2_tweedie_score(y, ours.predict(X), power=1))

    def test_exposures(self):
        """Rates by exposure with weights are the likelihood of the counts."""
        rng = np.random.default_rng(1)
        exposure = rng.uniform(1.0, 50.0, 20)
        counts = rng.poisson(exposure * np.where(LEFT, 0.2, 0.6)).astype(float)
        x = cp.Variable(20)
        terms = cp.multiply(exposure, cp.exp(x)) - cp.multiply(counts, x)
        _, smooth = minimum(cp.sum(terms) / exposure.mean(), 0.2, x)
        model = NetworkPoissonRegression(lam=0.2, weighting="rows", graph=MAP, rtol=1e-9)
        model.fit(None, counts / exposure, exposure)
        np.testing.assert_allclose(model.predict(None), np.exp(smooth), rtol=1e-2)

    def test_refused(self):
        with pytest.raises(ValueError, match="y: row 1 is -2, a count is expected"):
            NetworkPoissonRegression().fit([[0.0], [1.0]], [np.nan, -2.0])
        with pytest.raises(ValueError, match="y: a count > 0 is expected, all are 0"):
            NetworkPoissonRegression().fit([[0.0], [1.0]], [0, 0])


class TestOutliers:
    def test_huber_against_cvxpy(self):
        y, x = values(), cp.Variable(20)
        y[7] = 50.0
        value, smooth = minimum(cp.sum(cp.huber(x - y, 0.5)), 0.3, x)
        model = NetworkHuberRegression(delta=0.5, lam=0.3, graph=MAP, rtol=1e-9).fit(None, y)
        assert model.delta_ == 0.5
        assert model.solution_.value == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(model.predict(None), smooth, atol=5e-3)
        assert abs(model.predict(None)[7] - 4.0) < 1.0

    @pytest.mark.parametrize("unit", [1.0, 1e-5, 1e7])
    def test_delta_is_in_units_of_y(self, unit):
        y = values()
        model = NetworkHuberRegression(graph=MAP).fit(None, unit * y)
        low = np.sort(y)[9]  # of two middle ones
        expected = 1.35 * 1.4826 * np.sort(np.abs(y - low)[np.abs(y - low) > 0])[9]
        assert model.delta_ == pytest.approx(unit * expected, rel=1e-9)
        assert expected == pytest.approx(1.35 * median_abs_deviation(y, scale="normal"), rel=0.2)

    def test_delta_is_that_of_residuals(self):
        """Features explain most; a tenth of the rows are far away."""
        rng = np.random.default_rng(0)
        X = 100.0 * rng.standard_normal((300, 2))
        y = X @ [3.0, -1.0] + rng.standard_normal(300)
        y[:30] += 1e4
        model = NetworkHuberRegression().fit(X, y)
        assert 1.2 < model.delta_ < 1.8
        np.testing.assert_allclose(model.coef_[0], [3.0, -1.0], atol=0.01)
        assert NetworkHuberRegression().fit([[0.0], [1.0]], [0.0, 2.0]).delta_ == 1.35 * 2.0
        assert NetworkHuberRegression().fit([[0.0], [1.0]], [0.0, 0.0]).delta_ == 1.35

    def test_weights_count_as_rows(self):
        y = values()
        weight = np.random.default_rng(1).integers(0, 3, 20)
        node = np.repeat(np.arange(20), weight)
        one = NetworkHuberRegression(graph=MAP, weighting="rows").fit(None, y, weight)
        two = NetworkHuberRegression(graph=GRID, weighting="rows").fit(None, y[node], node=node)
        assert one.delta_ == two.delta_
        np.testing.assert_allclose(
            one.set_params(lam=0.3).fit(None, y, weight).predict(None),
            two.set_params(lam=0.3).fit(None, y[node], node=node).predict(None),
            atol=1e-3,
        )

    @pytest.mark.parametrize("level", [0.5, 0.9])
    def test_quantile_of_one_node(self, level):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((51, 2))
        y = X @ [1.0, 2.0] + rng.standard_normal(51)
        ours = NetworkQuantileRegression(quantile=level, rtol=1e-10).fit(X, y)
        theirs = QuantileRegressor(quantile=level, alpha=0.0).fit(X, y)
        np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-4)
        expected = d2_pinball_score(y, theirs.predict(X), alpha=level)
        assert ours.score(X, y) == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (NetworkHuberRegression(epsilon=0.0), "epsilon: a finite number > 0 is expected"),
            (NetworkHuberRegression(delta="1"), "delta: a finite number > 0 is expected, got '1'"),
            (NetworkQuantileRegression(quantile=1.0), "quantile: a number strictly between 0 and"),
        ],
    )
    def test_refused(self, model, message):
        with pytest.raises(ValueError, match=message):
            model.fit([[0.0], [1.0]], [0.0, 2.0])


class TestSparse:
    def test_same_as_dense(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((40, 3)) * (rng.random((40, 3)) < 0.4)
        node = np.repeat(np.arange(20), 2)
        y = np.repeat(values(), 2)
        dense = NetworkLinearRegression(lam=0.3, graph=GRID).fit(X, y, node=node)
        for X_sparse in (sp.csr_array(X), sp.coo_matrix(X)):
            model = NetworkLinearRegression(lam=0.3, graph=GRID).fit(X_sparse, y, node=node)
            np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-12)
            found = model.predict(X_sparse, node=node)
            np.testing.assert_allclose(found, dense.predict(X, node=node), atol=1e-12)
        table = sp.csr_array(np.column_stack([X, node]))
        model = NetworkLinearRegression(lam=0.3, graph=GRID, node_column=3).fit(table, y)
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-12)

    def test_too_large(self, monkeypatch):
        X = sp.csr_array((10**6, 10**4))
        with pytest.raises(ValueError, match=r"X: a sparse matrix is filled up, .* 74.5 GiB of at"):
            NetworkLinearRegression().fit(X, np.zeros(10**6))
        monkeypatch.setattr(rows_module, "LARGEST_DENSE", 79)
        with pytest.raises(ValueError, match="sparse"):
            NetworkLinearRegression().fit(sp.eye(4, 3).tocsr(), np.zeros(4))


def test_a_graph_of_one_row_a_node_needs_no_node():
    """Row i is node i; a searched subset of the rows is not taken for all."""
    X, y = np.random.default_rng(0).standard_normal((20, 1)), values()
    model = NetworkLinearRegression(lam=0.2, graph=MAP).fit(X, y)
    named = NetworkLinearRegression(lam=0.2, graph=MAP).fit(X, y, node=NAMES)
    np.testing.assert_array_equal(model.coef_, named.coef_)
    np.testing.assert_array_equal(model.predict(X), named.predict(X, node=NAMES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="the graph has 20 nodes and there are 10 rows"):
            cross_val_predict(model, X, y, cv=2)
