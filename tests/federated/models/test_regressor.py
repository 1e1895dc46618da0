"""Non-parametric FedRelax: the step in one regressor against the problem (50) that it solves."""

import pickle
import sys

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.federated.models import RegressorModel, fits_squared_loss, regressor_objective

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra ml)")

from sklearn.ensemble import GradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import HuberRegressor, Lasso, LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

LAM = 0.7
GRAPH = gtv.EmpiricalGraph(4, [(0, 1), (0, 2), (0, 3), (2, 3)], [0.5, 1.0, 2.0, 0.3])
RNG = np.random.default_rng(0)
ROWS = [(RNG.standard_normal((m, 2)), RNG.standard_normal(m)) for m in (7, 5, 9, 6)]
PUBLIC = RNG.standard_normal((11, 2))
# The edges of node 0.
WEIGHTS = np.array([0.5, 1.0, 2.0])


def models(regressor, **options):
    return [RegressorModel(X, y, regressor, **options).fit() for X, y in ROWS]


def labelled(fitted):
    return np.array([model.predict(PUBLIC) for model in fitted[1:]])


@pytest.mark.parametrize(
    "regressor",
    [
        DecisionTreeRegressor(max_depth=3, random_state=0),
        Ridge(0.3),
        LinearRegression(),
        KernelRidge(0.3),
        Lasso(0.01, tol=1e-12),
        GradientBoostingRegressor(n_estimators=5, random_state=0),
    ],
    ids=lambda regressor: type(regressor).__name__,
)
def test_one_copy_of_mean_labels_is_the_same_fit_as_all_copies(regressor):
    assert fits_squared_loss(regressor)
    fits = []
    for merge in (True, False):
        own, *_ = fitted = models(regressor, merge=merge)
        fits.append(own.refit(PUBLIC, labelled(fitted), WEIGHTS, LAM).predict(PUBLIC))
    np.testing.assert_allclose(*fits, atol=1e-10)
    assert np.abs(fits[0] - models(regressor)[0].predict(PUBLIC)).max() > 0.01


def test_other_losses_keep_all_copies():
    others = [HuberRegressor(), SVR(), DecisionTreeRegressor(criterion="absolute_error")]
    assert [fits_squared_loss(regressor) for regressor in others] == [False] * 3
    model = RegressorModel(*ROWS[0], others[2])
    assert not model.merge
    seen = recorded(model).refit(PUBLIC, labelled(models(Ridge())), WEIGHTS, LAM)
    assert len(seen._fitted.rows) == 7 + 3 * 11
    assert RegressorModel(*ROWS[0], others[2], merge=True).merge


class Recorder(LinearRegression):
    """Keeps what it is fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.rows, self.labels, self.shares = X, y, sample_weight
        return super().fit(X, y, sample_weight)


def recorded(model):
    return RegressorModel(model.X, model.y, Recorder(), merge=model.merge)


@pytest.mark.parametrize(("as_printed", "factor"), [(False, 1), (True, 2)])
def test_rows_and_weights(as_printed, factor):
    labels = labelled(models(Ridge()))
    X, y = ROWS[0]
    model = RegressorModel(X, y, Recorder())
    assert model.merge
    seen = model.refit(PUBLIC, labels, WEIGHTS, LAM, as_printed)._fitted
    np.testing.assert_array_equal(seen.rows, np.vstack([X, PUBLIC]))
    np.testing.assert_allclose(seen.labels[7:], (0.5 * labels[0] + labels[1] + 2 * labels[2]) / 3.5)
    np.testing.assert_allclose(
        seen.shares, np.r_[np.full(7, 1 / 7), [LAM * 3.5 / factor / 11] * 11]
    )


@pytest.mark.parametrize("merge", [True, False])
def test_refit_solves_its_block_of_the_problem(merge):
    fitted = models(LinearRegression(), merge=merge)

    def value(model):
        return regressor_objective([model, *fitted[1:]], GRAPH, PUBLIC, LAM)

    best = fitted[0].refit(PUBLIC, labelled(fitted), WEIGHTS, LAM)
    printed = fitted[0].refit(PUBLIC, labelled(fitted), WEIGHTS, LAM, as_printed=True)
    assert value(best) < value(printed) < value(fitted[0])
    moved = pickle.loads(pickle.dumps(best))
    for k in range(2):
        for step in (1e-4, -1e-4):
            moved._fitted.coef_[k] += step
            assert value(moved) > value(best)
            moved._fitted.coef_[k] -= step


def test_objective_is_the_formula():
    fitted = models(Ridge(0.1))
    h = [model.predict(PUBLIC) for model in fitted]
    value = sum(np.mean((y - m.predict(X)) ** 2) for m, (X, y) in zip(fitted, ROWS, strict=True))
    for i, j, a in [(0, 1, 0.5), (0, 2, 1.0), (0, 3, 2.0), (2, 3, 0.3)]:
        value += LAM * a * np.mean((h[i] - h[j]) ** 2)
    assert regressor_objective(fitted, GRAPH, PUBLIC, LAM) == pytest.approx(value, rel=1e-13)
    lonely = gtv.EmpiricalGraph(4, [])
    assert regressor_objective(fitted, lonely, PUBLIC, LAM) == pytest.approx(
        sum(model.local_error() for model in fitted)
    )


def test_no_neighbours_or_no_weight_is_the_local_fit():
    model = RegressorModel(*ROWS[0], Recorder(), merge=False)
    expected = model.fit().predict(PUBLIC)
    labels = labelled(models(Ridge()))
    for args in ([np.zeros((0, 11)), [], LAM], [[], [], LAM], [labels, WEIGHTS, 0.0]):
        alone = model.refit(PUBLIC, *args)
        assert len(alone._fitted.rows) == 7
        np.testing.assert_array_equal(alone.predict(PUBLIC), expected)
    assert len(model.refit(PUBLIC, labels, [0, 1, 0], LAM)._fitted.rows) == 7 + 11


def test_refit_leaves_model_and_template_as_they_are():
    template = Ridge(0.2)
    model = RegressorModel(*ROWS[0], template)
    other = model.fit()
    with pytest.raises(ValueError, match="model: it has not been fitted"):
        model.predict(PUBLIC)
    assert not hasattr(template, "coef_")
    again = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(again.predict(PUBLIC), other.predict(PUBLIC))


def test_regressors_without_sample_weight_are_refused_by_class():
    for regressor in (KNeighborsRegressor(), make_pipeline(StandardScaler(), Ridge())):
        name = type(regressor).__name__
        with pytest.raises(TypeError, match=f"fit of {name} has no parameter sample_weight"):
            RegressorModel(*ROWS[0], regressor)
    for what in (3, Ridge, StandardScaler()):
        with pytest.raises(TypeError, match="regressor: a regressor of scikit-learn"):
            RegressorModel(*ROWS[0], what)


def test_bad_input_is_refused_by_name():
    model = RegressorModel(*ROWS[0], Ridge())
    labels = np.zeros((3, 11))
    for args, message in (
        ((PUBLIC[:, :1], labels, WEIGHTS, LAM), "X_public: 2 columns are expected, got 1"),
        ((PUBLIC, labels[1:], WEIGHTS, LAM), r"neighbour_predictions: shape \(3, 11\)"),
        ((PUBLIC, labels * np.nan, WEIGHTS, LAM), r"neighbour_predictions: entry \(0, 0\) is nan"),
        ((PUBLIC, labels, -WEIGHTS, LAM), "weights: numbers >= 0"),
        ((PUBLIC, labels, WEIGHTS, -1), "lam: a finite number >= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            model.refit(*args)
    with pytest.raises(ValueError, match="y: a vector of length 7"):
        RegressorModel(ROWS[0][0], ROWS[1][1], Ridge())
    with pytest.raises(ValueError, match="models: 4 are expected"):
        regressor_objective(models(Ridge())[1:], GRAPH, PUBLIC, LAM)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ImportError, match="extra 'ml'"):
        RegressorModel(*ROWS[0], Ridge())
