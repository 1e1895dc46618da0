"""Estimators among scikit-learn's own tools: checks, clones, pipelines, searches, routing."""

from __future__ import annotations

import io
import operator
import os
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gtvcvx as gtv
from gtvcvx import estimators
from gtvcvx.estimators import (
    ConvexClustering,
    NetworkHuberRegression,
    NetworkHuberRegressionCV,
    NetworkLasso,
    NetworkLinearRegression,
    NetworkLinearRegressionCV,
    NetworkLogisticRegression,
    NetworkLogisticRegressionCV,
    NetworkPoissonRegression,
    NetworkPoissonRegressionCV,
    NetworkQuantileRegression,
)

CLASSIFIERS = (NetworkLogisticRegression, NetworkLogisticRegressionCV)
COUNTS = (NetworkPoissonRegression, NetworkPoissonRegressionCV)
CHOOSING = (
    NetworkLinearRegressionCV,
    NetworkLogisticRegressionCV,
    NetworkPoissonRegressionCV,
    NetworkHuberRegressionCV,
)
ESTIMATORS = tuple(getattr(estimators, name) for name in estimators.__all__)

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
# A third of the time of all checks, and a class without code of its own, to which a test below
# holds it: what it inherits is checked with the classifier and with the choice of lambda.
NOTHING_OF_ITS_OWN = [NetworkLogisticRegressionCV(cv=2, lams=2)]


# All checks apply, those that need SCIPY_ARRAY_API in the environment are skipped without it.
# A short path: the checks fit many times, and points without any clusters.
@pytest.mark.filterwarnings("ignore:ConvexClustering. no clusters stand out")
@parametrize_with_checks(
    [
        NetworkLinearRegression(),
        NetworkLinearRegression(ridge=0.1, fit_intercept=False),
        NetworkLasso(),
        NetworkLogisticRegression(),
        NetworkPoissonRegression(),
        NetworkHuberRegression(),
        # Data with several best quantiles are among the checks.
        NetworkQuantileRegression(ridge=0.1),
        NetworkLinearRegressionCV(cv=2, lams=2),
        ConvexClustering(n_lams=8),
        *(NOTHING_OF_ITS_OWN if MULTIPLIER > 1 else []),
    ],
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_the_classifier_that_chooses_lambda_has_no_code_of_its_own():
    """All of it is inherited, from where the classifier and the choice of lambda are checked."""
    checked = {*NetworkLogisticRegression.__mro__, *NetworkLinearRegressionCV.__mro__}
    assert set(NetworkLogisticRegressionCV.__mro__[1:]) <= checked
    # dataclass and scikit-learn write the same into both, and pickle the names of slots into some.
    own = vars(NetworkLogisticRegressionCV).keys() - {"__slotnames__"}
    assert own == vars(NetworkLogisticRegression).keys() - {"__slotnames__"}


def stations(seed=0, rows=12):
    """Two groups of five nodes, a path each and an edge between; models differ by the group."""
    rng = np.random.default_rng(seed)
    names = [f"s{i}" for i in range(10)]
    edges = [(i, i + 1) for i in range(9)]
    graph = gtv.EmpiricalGraph(10, edges, [1.0] * 4 + [0.05] + [1.0] * 4, names)
    node = np.repeat(np.arange(10), rows)
    X = rng.standard_normal((len(node), 2)) * [1.0, 20.0] + [0.0, 100.0]
    slopes = np.array([[2.0, 0.1], [-1.0, 0.3]])[node // 5]
    y = np.sum(X * slopes, axis=1) + 1.0 + 0.1 * rng.standard_normal(len(node))
    order = rng.permutation(len(node))
    frame = pd.DataFrame(X, columns=["wind", "height"])
    frame.insert(1, "station", [names[i] for i in node])
    return graph, frame.iloc[order].reset_index(drop=True), y[order]


class TestParameters:
    @pytest.mark.parametrize("kind", ESTIMATORS)
    def test_clone_and_set(self, kind):
        graph = gtv.EmpiricalGraph(3, [[0, 1], [1, 2]])
        name = "min_ratio" if kind in CHOOSING else "lam"
        model = kind(penalty="l1", rtol=1e-4, max_iter=50).set_params(**{name: 0.3})
        if kind is not ConvexClustering:
            model.set_params(graph=graph, node_column=1)
        copy = clone(model)
        assert copy is not model
        given, found = model.get_params(), copy.get_params()
        assert list(given) == sorted(given)
        assert {**found, "graph": None} == {**given, "graph": None}
        assert getattr(copy.set_params(**{name: 2.0}), name) == 2.0
        assert getattr(model, name) == 0.3

    @pytest.mark.parametrize("kind", ESTIMATORS)
    def test_only_by_keyword(self, kind):
        with pytest.raises(TypeError, match="positional"):
            kind(0.1)


class TestNodeColumn:
    """Rows carry the label of their node, so nothing needs to know about nodes."""

    def test_search_over_lam_in_a_pipeline(self):
        graph, frame, y = stations()
        scaling = ColumnTransformer(
            [("scale", StandardScaler(), ["wind", "height"])],
            remainder="passthrough",
            verbose_feature_names_out=False,
        ).set_output(transform="pandas")
        pipeline = make_pipeline(
            scaling, NetworkLinearRegression(graph=graph, node_column="station")
        )
        name = "networklinearregression__lam"
        lams = [1e-3, 1e-1, 1e5]
        search = GridSearchCV(pipeline, {name: lams}, cv=KFold(3), error_score="raise", n_jobs=1)
        search.fit(frame, y)
        assert search.best_params_[name] < 1e5
        # For a huge lambda all nodes share one model, which fits neither group.
        scores = search.cv_results_["mean_test_score"]
        assert scores[2] < 0.9 < 0.99 < scores.max()
        assert search.score(frame, y) > 0.99
        best = search.best_estimator_[-1]
        assert best.n_features_in_ == 3
        assert best.feature_names_in_.tolist() == ["wind", "height", "station"]
        assert best.coef_.shape == (10, 2)
        assert best.solution_.info["features"] == ["wind", "height", "intercept"]

    def test_same_as_nodes_given_apart(self):
        graph, frame, y = stations()
        station = frame["station"]
        X = frame[["wind", "height"]]
        one = NetworkLinearRegression(graph=graph, node_column="station").fit(frame, y)
        two = NetworkLinearRegression().fit(X, y, graph=graph, node=station)
        np.testing.assert_array_equal(one.coef_, two.coef_)
        np.testing.assert_array_equal(one.predict(frame), two.predict(X, node=station))
        assert one.score(frame, y) == two.score(X, y, node=station.tolist())

    def test_by_position(self):
        graph, frame, y = stations()
        numbered = gtv.EmpiricalGraph(10, graph.edges, graph.weights)
        table = frame.assign(station=frame["station"].str[1:].astype(int))
        by_name = NetworkLasso(graph=graph, node_column="station").fit(frame, y)
        expected = by_name.predict(frame)
        values = table.to_numpy(dtype=float)
        for column, X in ((1, values), (-2, values), (1, values.tolist()), (1, table)):
            model = NetworkLasso(graph=numbered, node_column=column).fit(X, y)
            np.testing.assert_array_equal(model.predict(X), expected)
        objects = frame.to_numpy(dtype=object)
        model = NetworkLasso(graph=graph, node_column=1).fit(objects, y)
        np.testing.assert_array_equal(model.predict(objects.tolist()), expected)

    def test_cross_validation_of_a_classifier(self):
        graph, frame, y = stations()
        kind = np.where(y > np.median(y), "high", "low")
        model = NetworkLogisticRegression(graph=graph, node_column="station", lam=1e-2)
        scaled = frame.assign(height=(frame["height"] - 100.0) / 20.0)
        assert cross_val_score(model, scaled, kind, error_score="raise").mean() > 0.75

    @pytest.mark.parametrize(
        ("column", "error", "message"),
        [
            ("place", ValueError, "node_column: 'place' is not in X, which has columns"),
            (7, ValueError, "node_column: X has 3 columns, there is no column 7"),
            (1.0, TypeError, "node_column: a column name or position of X is expected, got 1.0"),
        ],
    )
    def test_bad_column(self, column, error, message):
        graph, frame, y = stations()
        with pytest.raises(error, match=message):
            NetworkLinearRegression(graph=graph, node_column=column).fit(frame, y)

    def test_names_need_a_frame(self):
        graph, frame, y = stations()
        with pytest.raises(ValueError, match="'station' is not in X, which has columns without"):
            NetworkLinearRegression(graph=graph, node_column="station").fit(frame.to_numpy(), y)

    def test_wrong_columns_when_predicting(self):
        graph, frame, y = stations()
        model = NetworkLinearRegression(graph=graph, node_column="station").fit(frame, y)
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(frame[["station", "wind", "height"]])
        with pytest.raises(ValueError, match="X has 2 features, but NetworkLinearRegression is"):
            NetworkLinearRegression(graph=graph, node_column=1).fit(
                frame.to_numpy(object), y
            ).predict(frame.to_numpy(object)[:, :2])
        with pytest.raises(ValueError, match="Input X contains NaN"):
            model.predict(frame.assign(wind=np.nan))


class TestMetadataRouting:
    """Nodes beside the rows, routed by scikit-learn."""

    @pytest.fixture(autouse=True)
    def _routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            yield

    def test_search_over_lam(self):
        graph, frame, y = stations()
        X, node = frame[["wind", "height"]].to_numpy(), frame["station"].to_numpy()
        model = (
            NetworkLinearRegression()
            .set_fit_request(node=True, graph=True)
            .set_score_request(node=True)
        )
        search = GridSearchCV(model, {"lam": [1e-3, 1e5]}, cv=3, error_score="raise")
        search.fit(X, y, node=node, graph=graph)
        assert search.best_params_ == {"lam": 1e-3}
        by_column = GridSearchCV(
            NetworkLinearRegression(graph=graph, node_column="station"),
            {"lam": [1e-3, 1e5]},
            cv=3,
        ).fit(frame, y)
        np.testing.assert_allclose(
            search.cv_results_["mean_test_score"], by_column.cv_results_["mean_test_score"]
        )

    def test_pipeline(self):
        graph, frame, y = stations()
        X, node = frame[["wind", "height"]], frame["station"]
        model = NetworkLogisticRegression(graph=graph)
        model.set_fit_request(node=True).set_predict_request(node=True)
        pipeline = make_pipeline(StandardScaler(), model)
        kind = y > np.median(y)
        fitted = pipeline.fit(X, kind, node=node)
        assert np.mean(fitted.predict(X, node=node) == kind) > 0.8


class TestPickling:
    @pytest.mark.parametrize("kind", ESTIMATORS)
    def test_round_trip(self, kind):
        graph, frame, y = stations()
        X = frame[["wind", "height"]]
        model = kind()
        if kind is ConvexClustering:
            model.set_params(n_clusters=3, n_lams=5).fit(X)
        else:
            if kind in CHOOSING:
                model.set_params(cv=2, lams=3)
            if kind in (*CLASSIFIERS, *COUNTS):
                # In units in which exponentials stay finite.
                X, y = (X - [0.0, 100.0]) / [1.0, 20.0], y > np.median(y)
            model.fit(X, y, graph=graph, node=frame["station"])
        file = io.BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        copy = joblib.load(file)
        np.testing.assert_array_equal(copy.labels_, model.labels_)
        np.testing.assert_array_equal(copy.flows_, model.flows_)
        if kind is ConvexClustering:
            np.testing.assert_array_equal(copy.dendrogram_, model.dendrogram_)
        else:
            at = {"node": frame["station"]}
            np.testing.assert_array_equal(copy.predict(X, **at), model.predict(X, **at))


class TestWarnings:
    @pytest.mark.parametrize("kind", [NetworkLinearRegression, NetworkLasso])
    def test_gap_that_is_not_met(self, kind):
        graph, frame, y = stations()
        model = kind(graph=graph, node_column="station", max_iter=2)
        with pytest.warns(ConvergenceWarning, match=f"{kind.__name__}: after 2 iterations") as seen:
            model.fit(frame, y)
        assert seen[0].filename == __file__
        assert model.n_iter_ == 2
        assert model.dual_gap_ > 1e-6 * model.solution_.value

    def test_clustering(self):
        X = np.random.default_rng(0).standard_normal((40, 2))
        with pytest.warns(ConvergenceWarning, match="ConvexClustering: after 1 iterations"):
            ConvexClustering(lam=1.0, max_iter=1).fit(X)

    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    def test_the_tolerance_is_in_the_scale_of_the_data(self, scale):
        graph, frame, y = stations()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = NetworkLinearRegression(lam=scale, graph=graph, node_column="station")
            model.fit(frame, scale * y)
        at_zero = model.problem_.value(np.zeros((10, 3)))
        assert model.dual_gap_ <= 1e-6 * max(min(1.0, at_zero), model.solution_.value)
        one = NetworkLinearRegression(lam=1.0, graph=graph, node_column="station").fit(frame, y)
        np.testing.assert_allclose(model.predict(frame) / scale, one.predict(frame), atol=2e-2)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_not_fitted(kind):
    method = "predict" if kind is not ConvexClustering else "clusterpath_"
    with pytest.raises(NotFittedError):
        operator.methodcaller(method, [[0.0]])(kind())


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_rest_does_not_import_scikit_learn():
    code = "import sys, gtvcvx, gtvcvx.graph_construction as g; sys.exit('sklearn' in sys.modules)"
    assert python(code).returncode == 0


def test_without_scikit_learn_the_extra_is_named():
    code = "import sys; sys.modules['sklearn'] = None; import gtvcvx.estimators"
    result = python(code)
    assert result.returncode == 1
    assert "ImportError: estimators need sklearn: install it, or gtvcvx with the extra" in (
        result.stderr
    )
    assert 'pip install "gtvcvx[ml]"' in result.stderr
