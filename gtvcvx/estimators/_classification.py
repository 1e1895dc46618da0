"""Logistic regression at the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.estimators._base import NetworkModel
from gtvcvx.estimators._lambda import CrossValidatedLambda, GivenLambda
from gtvcvx.estimators._rows import Data
from gtvcvx.losses import LogisticLoss, MultinomialLogisticLoss, StackedLoss


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkClassifier(ClassifierMixin, NetworkModel):
    """Log-losses of classes, with a ridge term."""

    ridge: float = 0.01

    classes_: NDArray[Any] = field(init=False)

    def _targets(self, y: Any) -> tuple[NDArray[Any], BoolArray]:
        return _known_classes(y)

    def _numbers(self, targets: NDArray[Any]) -> FloatArray:
        self.classes_, code = _classes(targets)
        return code.astype(np.float64)

    @property
    def _several(self) -> bool:
        """Whether there are more than two classes, which have parameters each."""
        return len(self.classes_) > 2

    def _losses(self, data: Data) -> StackedLoss:
        d = data.X.shape[1]
        ridge = self._strength("ridge")
        # A label alone has no best intercept: it is the ridge term that keeps it finite.
        free = self._intercept_column(d) if d > 1 else None
        rows = (data.X, data.y, data.node, self.graph_.n_nodes)
        weights: dict[str, Any] = {} if data.weight is None else {"sample_weight": data.weight}
        if not self._several:
            return LogisticLoss.from_rows(*rows, ridge=ridge, intercept=free, **weights)
        K = len(self.classes_)
        return MultinomialLogisticLoss.from_rows(
            *rows, n_classes=K, ridge=ridge, intercept=free, **weights
        )

    def _parameters(self, w: FloatArray) -> FloatArray:
        if not self._several:
            return w
        return np.moveaxis(w.reshape(len(w), -1, len(self.classes_)), 1, 2)

    def _parameter_names(self, features: list[str]) -> list[str]:
        if not self._several:
            return features
        return [f"{name} of {value}" for name in features for value in self.classes_]

    def _answers(self, predictor: FloatArray) -> NDArray[Any]:
        best = predictor.argmax(axis=1) if self._several else (predictor > 0).astype(np.int64)
        return self.classes_[best]

    def decision_function(self, X: Any, *, node: Any = None) -> FloatArray:
        """Return x^T w_i + b_i for each row (N,): positive for the second class.

        Of several classes that of each, (N, K): largest for the class that is predicted.
        """
        return self._linear_predictor(X, node)

    def predict_log_proba(self, X: Any, *, node: Any = None) -> FloatArray:
        """Logarithms of the probabilities of the K classes, shape (N, K)."""
        z = self._linear_predictor(X, node)
        if self._several:
            return np.asarray(log_softmax(z, axis=1))
        return np.column_stack([log_expit(-z), log_expit(z)])

    def predict_proba(self, X: Any, *, node: Any = None) -> FloatArray:
        """Probabilities of the K classes, shape (N, K)."""
        return np.exp(self.predict_log_proba(X, node=node))

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, node: Any = None
    ) -> float:
        """Accuracy of the predictions; rows whose class is missing do not count."""
        targets, predicted, weights = self._known(X, y, sample_weight, node)
        return float(accuracy_score(targets, predicted, sample_weight=weights))


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkLogisticRegression(NetworkClassifier, GivenLambda):
    r"""Logistic regression at the nodes of a graph, joined by generalized total variation.

    .. math:: \min_{w, b} \sum_i \Big[ \frac{1}{m_i} \sum_{r \in i}
              \log(1 + e^{z_r}) - y_r z_r + \frac{\mu}{2} \|w_i\|_2^2 \Big]
              + \lambda \sum_{\{i, j\}} A_{ij} \phi((w_i, b_i) - (w_j, b_j)),
              \qquad z_r = x_r^T w_i + b_i

    for two classes, y_r = 1 for the second of ``classes_`` and 0 for the first ([nLasso] (23)).
    Several classes k have parameters each, W_i = (w_ik, b_ik)_k, and the losses

    .. math:: \log \sum_k e^{z_{rk}} - z_{r y_r}, \qquad z_{rk} = x_r^T w_{ik} + b_{ik}

    of rows; phi takes the differences of all of them as one vector. Nodes without rows, or whose
    classes are all missing, are unlabelled: their neighbours determine their models.

    Parameters
    ----------
    ridge : float
        mu >= 0, for nodes with data; intercepts are not penalized, unless there is nothing else
        (models without features: labels of nodes are propagated). Rows of one class at a node, or
        classes that a hyperplane separates, have no best model with mu = 0.
    lam, penalty, graph, node_column, fit_intercept, weighting, solver, rtol, max_iter
    time_limit, verbose
        See `NetworkLinearRegression`.

    Attributes
    ----------
    classes_ : ndarray, shape (K,)
        The classes, sorted.
    coef_ : ndarray, shape (n, d), or (n, K, d) of more than two classes
    intercept_ : ndarray, shape (n,) or (n, K)
        The same number may be added to the intercepts of all classes at all nodes of a component:
        they have no ridge term to choose it.
    flows_ : ndarray, shape (m, d + 1) or (m, (d + 1) K)
        Of all classes for the first feature, then for the next; without intercept, d in place of
        d + 1.
    lam_, labels_, dual_gap_, n_iter_, graph_, problem_, solution_
    n_features_in_, feature_names_in_
        See `NetworkLinearRegression`.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        The gap is larger than rtol allows.
    """


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkLogisticRegressionCV(NetworkClassifier, CrossValidatedLambda):
    """`NetworkLogisticRegression` with lambda chosen by K-fold cross-validation.

    The error of a row that was held out is its log-loss. Folds that are dealt out have the classes
    in equal shares.

    Parameters
    ----------
    lams, min_ratio, cv, over, rule, seed, n_jobs, time_limit
        See `NetworkLinearRegressionCV`.
    ridge, penalty, graph, node_column, fit_intercept, weighting, solver, rtol, max_iter, verbose
        See `NetworkLogisticRegression`.

    Attributes
    ----------
    classes_
        See `NetworkLogisticRegression`.
    lam_, cv_path_
        See `NetworkLinearRegressionCV`, and there for the others.
    """


def _known_classes(y: Any) -> tuple[NDArray[Any], BoolArray]:
    """Return the classes that are there, and which of the rows have one (N,)."""
    given = column_or_1d(y, warn=True)
    known = np.ones(len(given), dtype=bool)
    if given.dtype.kind == "f" and np.isinf(given).any():
        raise ValueError(f"y: row {int(np.argmax(np.isinf(given)))} is infinite, not a class")
    if given.dtype.kind in "fO":
        known = ~np.array([_is_missing(value) for value in given.tolist()], dtype=bool)
    if not known.any():
        raise ValueError("y: no row has a class, all are missing")
    return np.array(given[known].tolist()), known


def _is_missing(value: Any) -> bool:
    """Say whether this is None, NaN, or pandas' NA, which has no truth value to compare by."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _classes(targets: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return the classes, sorted, and the number of the class of each row (N,)."""
    check_classification_targets(targets)
    classes, code = np.unique(targets, return_inverse=True)
    if len(classes) == 1:
        raise ValueError(f"y: two classes are expected, there is only one class, {classes[0]}")
    return classes, code
