"""Logistic regression at the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.estimators._base import NetworkModel
from gtvcvx.estimators._lambda import CrossValidatedLambda, GivenLambda
from gtvcvx.estimators._rows import Data
from gtvcvx.losses import LogisticLoss, StackedLoss


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkClassifier(ClassifierMixin, NetworkModel):
    """Log-losses of classes, with a ridge term."""

    ridge: float = 0.01

    classes_: NDArray[Any] = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _targets(self, y: Any) -> tuple[NDArray[Any], BoolArray]:
        return _known_classes(y)

    def _numbers(self, targets: NDArray[Any]) -> FloatArray:
        self.classes_, code = _two_classes(targets)
        return code.astype(np.float64)

    def _losses(self, data: Data) -> StackedLoss:
        d = data.X.shape[1]
        # A label alone has no best intercept: it is the ridge term that keeps it finite.
        free = self._intercept_column(d) if d > 1 else None
        return LogisticLoss.from_rows(
            data.X,
            data.y,
            data.node,
            self.graph_.n_nodes,
            sample_weight=data.weight,
            ridge=self._strength("ridge"),
            intercept=free,
        )

    def _answers(self, predictor: FloatArray) -> NDArray[Any]:
        return self.classes_[(predictor > 0).astype(np.int64)]

    def decision_function(self, X: Any, *, node: Any = None) -> FloatArray:
        """Return x^T w_i + b_i for each row (N,): positive for the second class."""
        return self._linear_predictor(X, node)

    def predict_log_proba(self, X: Any, *, node: Any = None) -> FloatArray:
        """Logarithms of the probabilities of the two classes, shape (N, 2)."""
        z = self._linear_predictor(X, node)
        return np.column_stack([log_expit(-z), log_expit(z)])

    def predict_proba(self, X: Any, *, node: Any = None) -> FloatArray:
        """Probabilities of the two classes, shape (N, 2)."""
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
    Nodes without rows, or whose classes are all missing, are unlabelled: their neighbours
    determine their models.

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
    classes_ : ndarray, shape (2,)
        The two classes, sorted.
    lam_, coef_, intercept_, flows_, labels_, dual_gap_, n_iter_, graph_, problem_, solution_
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


def _two_classes(targets: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    check_classification_targets(targets)
    kind = type_of_target(targets, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target y is {kind}."
        )
    classes, code = np.unique(targets, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y: two classes are expected, there is only one class, {classes[0]}")
    return classes, code
