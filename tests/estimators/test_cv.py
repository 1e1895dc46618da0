"""Estimators that choose lambda: against loops over folds, with cold fits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    TimeSeriesSplit,
)

import gtvcvx as gtv
from gtvcvx.estimators import (
    NetworkHuberRegression,
    NetworkHuberRegressionCV,
    NetworkLinearRegression,
    NetworkLinearRegressionCV,
    NetworkLogisticRegression,
    NetworkLogisticRegressionCV,
    NetworkPoissonRegression,
    NetworkPoissonRegressionCV,
)
from gtvcvx.model_selection import CrossValidation

LAMS = [1.0, 0.1, 0.01]
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)]
# No two edges of a node weigh the same: where it has no data, its model is one neighbour's.
GRAPH = gtv.EmpiricalGraph(6, EDGES, [1.0, 0.5, 2.0, 1.1, 1.5, 1.3, 0.7], list("abcdef"))
COUNTS = (4, 5, 3, 0, 6, 4)


def rows(seed=0):
    """Rows in no order, with the labels of their nodes; one node has none."""
    rng = np.random.default_rng(seed)
    node = rng.permutation(np.repeat(np.arange(6), COUNTS))
    X = rng.standard_normal((len(node), 2))
    z = np.sum(X * np.array([[1.0, 0.5], [-1.0, 1.0]])[node // 3], axis=1)
    return X, z + 0.3 * rng.standard_normal(len(node)), np.array(list("abcdef"))[node]


def spread(node):
    """Three folds, each with rows of every node: a ridge term stays where all rows are gone."""
    rank = np.array([np.sum(node[:r] == node[r]) for r in range(len(node))])
    return rank % 3


FOLDS = spread(rows()[2])


def squares(model, X, y, node):
    return (model.predict(X, node=node) - y) ** 2


def log_losses(model, X, y, node):
    return -model.predict_log_proba(X, node=node)[np.arange(len(y)), y]


def deviances(model, X, y, node):
    rates = model.predict(X, node=node)
    return rates - y * np.log(rates)


def huber(model, X, y, node):
    size = np.abs(model.predict(X, node=node) - y)
    return np.where(size <= model.delta_, size**2, 2.0 * model.delta_ * size - model.delta_**2)


FAMILIES = [
    (NetworkLinearRegressionCV, NetworkLinearRegression, lambda y: y, squares, {}),
    (
        NetworkLogisticRegressionCV,
        NetworkLogisticRegression,
        lambda y: (y > 0).astype(int),
        log_losses,
        {"ridge": 0.1},
    ),
    (
        NetworkPoissonRegressionCV,
        NetworkPoissonRegression,
        lambda y: np.round(np.exp(y)),
        deviances,
        {},
    ),
    (NetworkHuberRegressionCV, NetworkHuberRegression, lambda y: y, huber, {"delta": 0.4}),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("choosing", "given", "of", "errors", "options"), FAMILIES)
def test_against_a_loop_with_cold_fits(choosing, given, of, errors, options, weighted):
    X, y, node = rows()
    y = of(y)
    weight = np.random.default_rng(3).uniform(0.2, 2.0, len(y)) if weighted else np.ones(len(y))
    weight[4] = 0.0  # as if absent
    folds = FOLDS
    options = {**options, "graph": GRAPH, "rtol": 1e-8}
    model = choosing(lams=LAMS, cv=folds, **options).fit(X, y, weight, node=node)
    for k in range(3):
        out = folds == k
        for j, lam in enumerate(LAMS):
            alone = given(lam=lam, **options)
            alone.fit(X[~out], y[~out], weight[~out], node=node[~out])
            mean = np.average(errors(alone, X[out], y[out], node[out]), weights=weight[out])
            assert model.cv_path_.fold_errors[k, j] == pytest.approx(mean, rel=2e-3, abs=1e-4)
        assert model.cv_path_.fold_weights[k] == pytest.approx(weight[out].sum())
    chosen = given(lam=model.lam_, **options).fit(X, y, weight, node=node)
    assert model.lam_ in LAMS
    np.testing.assert_allclose(model.coef_, chosen.coef_, atol=2e-3)
    assert model.problem_.lam == model.lam_ == model.cv_path_.lam
    assert isinstance(model.cv_path_, CrossValidation)
    assert model.score(X, y, node=node) == pytest.approx(chosen.score(X, y, node=node), abs=1e-3)


def fitted(**options):
    X, y, node = rows()
    options = {"lams": LAMS, "cv": 3, "graph": GRAPH, **options}
    return NetworkLinearRegressionCV(**options).fit(X, y, node=node)


class TestFolds:
    """Whatever scikit-learn takes for folds."""

    @pytest.mark.parametrize(
        "cv",
        [
            FOLDS.tolist(),
            PredefinedSplit(FOLDS),
            [(np.flatnonzero(k != FOLDS), np.flatnonzero(k == FOLDS)) for k in range(3)],
            [(k != FOLDS, k == FOLDS) for k in range(3)],
        ],
        ids=["list", "splitter", "pairs", "masks"],
    )
    def test_forms(self, cv):
        same = fitted(cv=FOLDS).cv_path_
        found = fitted(cv=cv).cv_path_
        np.testing.assert_array_equal(found.folds, same.folds)
        np.testing.assert_array_equal(found.fold_errors, same.fold_errors)

    def test_rows_that_nobody_holds_out(self):
        some = np.where(np.arange(22) < 5, -1, FOLDS)
        found = fitted(cv=PredefinedSplit(some)).cv_path_
        assert found.fold_sizes.sum() == np.sum(some >= 0) < 22

    def test_over_nodes(self):
        found = fitted(cv=KFold(2), over="nodes").cv_path_
        assert found.folds.tolist() == [0, 0, 0, -1, 1, 1]
        by_groups = fitted(cv=GroupKFold(5)).cv_path_
        assert sorted(by_groups.fold_sizes.tolist()) == sorted(c for c in COUNTS if c)

    def test_random_ones(self):
        one, two, other = fitted(), fitted(), fitted(seed=1)
        np.testing.assert_array_equal(one.cv_path_.folds, two.cv_path_.folds)
        assert not np.array_equal(one.cv_path_.folds, other.cv_path_.folds)

    def test_classes_are_spread(self):
        X, _, node = rows()
        target = np.where(np.arange(22) % 7 == 0, "rare", "common")
        model = NetworkLogisticRegressionCV(lams=LAMS, cv=4, graph=GRAPH)
        model.fit(X, target, node=node)
        (term,) = [t for t in model.problem_.losses.terms() if t["kind"] == "logistic"]
        rare = model.cv_path_.folds[term["y"] == 1.0]
        assert sorted(rare.tolist()) == [0, 1, 2, 3]

    @pytest.mark.parametrize(
        ("cv", "error", "message"),
        [
            (ShuffleSplit(3, random_state=0), ValueError, "cv: item .* is held out by folds "),
            (TimeSeriesSplit(3), ValueError, "cv: fold 0 has to train on all that it does not"),
            ([0, 1], ValueError, "cv: the fold of each of 22 items is expected, got 2"),
            (1, ValueError, "cv: at least 2 folds"),
            ("five", TypeError, "cv: a number of folds, .* got 'five'"),
            (2.5, TypeError, "cv: a number of folds, .* got 2.5"),
        ],
    )
    def test_refused(self, cv, error, message):
        with pytest.raises(error, match=message):
            fitted(cv=cv)


class TestChoice:
    def test_grid_and_rules(self):
        least, simpler = fitted(lams=7), fitted(lams=7, rule="1se", min_ratio=0.01)
        assert len(least.cv_path_.lams) == 7
        assert least.cv_path_.lams[0] == pytest.approx(gtv.lambda_max(least.problem_), rel=2e-3)
        assert simpler.cv_path_.lams[-1] == pytest.approx(0.01 * simpler.cv_path_.lams[0])
        assert simpler.lam_ == simpler.cv_path_.lam_1se
        assert least.lam_ == least.cv_path_.lam_min

    def test_processes(self):
        one, two = fitted(), fitted(n_jobs=2)
        assert one.cv_path_.fold_errors.tobytes() == two.cv_path_.fold_errors.tobytes()
        assert one.coef_.tobytes() == two.coef_.tobytes()

    def test_rows_count_by_their_weight(self):
        X, y, node = rows()
        weight = np.random.default_rng(5).uniform(0.5, 2.0, 22)
        options = {"weighting": "rows", "graph": GRAPH, "rtol": 1e-8}
        model = NetworkLinearRegressionCV(lams=LAMS, cv=FOLDS, **options)
        model.fit(X, y, weight, node=node)
        same = NetworkLinearRegression(lam=model.lam_, **options).fit(X, y, weight, node=node)
        np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-4)
        sizes = [weight[k == FOLDS].sum() for k in range(3)]
        np.testing.assert_allclose(model.cv_path_.fold_weights, sizes)

    def test_nothing_to_choose(self):
        """Constant targets: every lambda gives the same."""
        X, _, node = rows()
        model = NetworkLinearRegressionCV(cv=3, graph=GRAPH).fit(X, np.full(22, 3.0), node=node)
        assert model.lam_ == 1.0
        np.testing.assert_allclose(model.predict(X, node=node), 3.0)

    def test_one_row_a_node(self):
        """Held-out rows and nodes are the same."""
        y = [1.0, 1.2, 0.9, 4.0, 4.1, np.nan]
        by_rows, by_nodes = (
            NetworkLinearRegressionCV(lams=LAMS, cv=[0, 1, 2, 1, 2, 0], over=over, graph=GRAPH).fit(
                None, y
            )
            for over in ("points", "nodes")
        )
        np.testing.assert_array_equal(by_rows.cv_path_.fold_errors, by_nodes.cv_path_.fold_errors)

    def test_time_limit(self):
        assert len(fitted(time_limit=60.0).cv_path_.lams) == 3
        with pytest.raises(ValueError, match="time_limit: a positive finite number"):
            fitted(time_limit=-1.0)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"rule": "2se"}, "rule: one of"),
            ({"over": "edges"}, "over: one of"),
            ({"lams": [0.0, 1.0]}, "lams: positive values"),
            ({"lams": 1}, "n_lams: an integer of at least 2"),
            ({"penalty": "squared", "lams": 5}, "lams: values are expected for the penalty"),
            ({"n_jobs": 0}, "n_jobs: a number of processes"),
        ],
    )
    def test_bad_parameters(self, options, message):
        with pytest.raises(ValueError, match=message):
            fitted(**options)
