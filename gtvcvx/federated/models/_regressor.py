"""Non-parametric FedRelax: clients exchange predictions on public points [Notes, Algorithm 2]."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array
from gtvcvx._extras import extra_module
from gtvcvx.federated.models._checks import nonnegative, table, vector
from gtvcvx.graph import EmpiricalGraph


class RegressorModel:
    r"""A regressor of scikit-learn at one node, trained on own rows and on what neighbours predict.

    Nodes that share m' public points X' solve together [Notes (50)]

    .. math:: \min_{h_1, \dots, h_n} \sum_i \frac{1}{m_i} \sum_r (y_{ir} - h_i(x_{ir}))^2
        + \frac{\lambda}{m'} \sum_{\{i, j\}} A_{ij} \sum_{x \in X'} (h_i(x) - h_j(x))^2

    and `refit` is the step in one h_i, exact for regressors that minimize a weighted sum of
    squares. Not convex in parameters, if there are any: `regressor_objective` reports the value,
    and nothing is certified.

    Parameters
    ----------
    X : array_like of shape (m, p)
        Own features, m >= 1.
    y : array_like of shape (m,)
        Own labels.
    regressor : object
        Any regressor of scikit-learn whose ``fit`` takes ``sample_weight``. It is cloned, never
        fitted itself; give it a ``random_state`` where it draws, or runs will not repeat.
    merge : bool, optional
        Whether the k predictions for a public point become one row: their mean weighted by A, with
        the sum of their weights. That is the same fit for squared loss, and only for that. None:
        as `fits_squared_loss` says.

    Raises
    ------
    ImportError
        scikit-learn is not installed; the message names the extra.
    TypeError
        ``fit`` takes no ``sample_weight``; names the class.
    ValueError
        Shapes do not fit, or a number is not finite.

    Notes
    -----
    What counts rows instead of weights, such as ``min_samples_leaf`` of trees or bootstrap samples
    of forests, sees one row a public point where rows are merged, else one for each neighbour.
    """

    def __init__(
        self, X: ArrayLike, y: ArrayLike, regressor: Any, *, merge: bool | None = None
    ) -> None:
        self.X = table(X, "X")
        self.y = vector(y, "y", len(self.X)).copy()
        if not _takes_weights(regressor):
            raise TypeError(
                f"regressor: fit of {type(regressor).__name__} has no parameter sample_weight"
            )
        self.regressor = _clone(regressor)
        self.merge = fits_squared_loss(regressor) if merge is None else bool(merge)
        self._fitted: Any = None

    def fit(self) -> RegressorModel:
        """Return the model fitted to its own rows alone, each of weight 1/m."""
        return self._fit(self.X, self.y, self._own_weights())

    def refit(
        self,
        X_public: ArrayLike,
        neighbour_predictions: ArrayLike,
        weights: ArrayLike,
        lam: float,
        as_printed: bool = False,
    ) -> RegressorModel:
        """Return the model fitted to own rows and to public points that neighbours have labelled.

        Own rows weigh 1/m, public points labelled by neighbour j ``lam A_ij / m'``. What has no
        weight is left out.

        Parameters
        ----------
        X_public : array_like of shape (m', p)
            The public points, m' >= 1.
        neighbour_predictions : array_like of shape (k, m')
            What each neighbour predicts for them; k may be zero.
        weights : array_like of shape (k,)
            Weights A_ij >= 0 of the edges to these neighbours.
        lam : float
            lambda >= 0 of (50).
        as_printed : bool
            Weigh with ``lam A_ij / (2 m')`` as (56) does: the step of (50) for half its lambda.

        Returns
        -------
        RegressorModel
            A new one; this one stays as it is.

        Raises
        ------
        ValueError
            Naming the argument.
        """
        public = table(X_public, "X_public", self.X.shape[1])
        edges = finite_array(weights, "weights", 1)
        if (edges < 0).any():
            raise ValueError(f"weights: numbers >= 0 are expected, got {edges.min()}")
        labels = _predictions(neighbour_predictions, len(edges), len(public))
        share = nonnegative(lam, "lam") * edges / (2 if as_printed else 1) / len(public)
        labels, share = labels[share > 0], share[share > 0]
        if self.merge and len(share):
            labels, share = share[None, :] @ labels / share.sum(), share.sum(keepdims=True)
        return self._fit(
            np.vstack([self.X, np.tile(public, (len(share), 1))]),
            np.concatenate([self.y, labels.ravel()]),
            np.concatenate([self._own_weights(), np.repeat(share, len(public))]),
        )

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predictions (m,) for rows X (m, p).

        Parameters
        ----------
        X : array_like of shape (m, p)

        Raises
        ------
        ValueError
            The model has not been fitted, or predicts what is not finite.
        """
        if self._fitted is None:
            raise ValueError("model: it has not been fitted; call fit or refit")
        rows = table(X, "X", self.X.shape[1])
        return vector(self._fitted.predict(rows), "predictions", len(rows))

    def local_error(self) -> float:
        """Mean squared error on own rows."""
        return float(np.mean((self.y - self.predict(self.X)) ** 2))

    def _own_weights(self) -> FloatArray:
        return np.full(len(self.y), 1 / len(self.y))

    def _fit(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> RegressorModel:
        model = copy.copy(self)
        model._fitted = _clone(self.regressor).fit(X, y, sample_weight=weights)
        return model


def fits_squared_loss(regressor: Any) -> bool:
    """Whether a regressor minimizes a weighted sum of squares, as far as can be told.

    That is so if its parameter ``loss``, or where it has none its parameter ``criterion``, names
    the squared error, or if it is a LinearRegression, Ridge, Lasso, ElasticNet or KernelRidge. Of
    what cannot be told, such as support vector machines and users' own classes, it is not assumed.

    Parameters
    ----------
    regressor : object
        A regressor of scikit-learn.
    """
    parameters = regressor.get_params(deep=False)
    for name in ("loss", "criterion"):
        if name in parameters:
            return str(parameters[name]) in ("squared_error", "friedman_mse")
    linear = extra_module("sklearn.linear_model", "ml", "regressors")
    kernel = extra_module("sklearn.kernel_ridge", "ml", "regressors")
    known = (linear.LinearRegression, linear.Ridge, linear.ElasticNet, kernel.KernelRidge)
    return isinstance(regressor, known)


def regressor_objective(
    models: Sequence[RegressorModel], graph: EmpiricalGraph, X_public: ArrayLike, lam: float
) -> float:
    """Value of (50) of [Notes], see `RegressorModel`: each edge counts once.

    Parameters
    ----------
    models : sequence of RegressorModel
        One for each node of the graph, in its order, all of them fitted.
    graph : EmpiricalGraph
    X_public : array_like of shape (m', p)
    lam : float
        lambda >= 0.

    Raises
    ------
    ValueError
        Numbers of models and nodes differ, or a model has not been fitted.
    """
    if len(models) != graph.n_nodes:
        raise ValueError(f"models: {graph.n_nodes} are expected, one a node, got {len(models)}")
    public = table(X_public, "X_public")
    predictions = np.array([model.predict(public) for model in models])
    across = predictions[graph.edges[:, 0]] - predictions[graph.edges[:, 1]]
    coupling = float(graph.weights @ np.mean(across**2, axis=1)) if graph.n_edges else 0.0
    return sum(model.local_error() for model in models) + nonnegative(lam, "lam") * coupling


def _clone(regressor: Any) -> Any:
    return extra_module("sklearn.base", "ml", "regressors").clone(regressor)


def _takes_weights(regressor: Any) -> bool:
    base = extra_module("sklearn.base", "ml", "regressors")
    validation = extra_module("sklearn.utils.validation", "ml", "regressors")
    estimator = hasattr(regressor, "get_params") and not isinstance(regressor, type)
    if not (estimator and base.is_regressor(regressor)):
        raise TypeError(f"regressor: a regressor of scikit-learn is expected, got {regressor!r}")
    return bool(validation.has_fit_parameter(regressor, "sample_weight"))


def _predictions(values: ArrayLike, k: int, points: int) -> FloatArray:
    shaped = np.zeros((0, points)) if k == 0 and np.size(values) == 0 else values
    array = finite_array(shaped, "neighbour_predictions", 2)
    if array.shape != (k, points):
        raise ValueError(
            f"neighbour_predictions: shape {(k, points)} is expected, got {array.shape}"
        )
    return array
