"""Poisson regression of counts at the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import d2_tweedie_score

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.estimators._lambda import CrossValidatedLambda, GivenLambda
from gtvcvx.estimators._regression import NetworkRegressor
from gtvcvx.estimators._rows import Data
from gtvcvx.losses import PoissonLoss, StackedLoss


@dataclass(kw_only=True, repr=False, eq=False)
class _Poisson(NetworkRegressor):
    """Negative log-likelihood of counts."""

    ridge: float = 0.01

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _targets(self, y: Any) -> tuple[FloatArray, BoolArray]:
        targets, known = super()._targets(y)
        if np.any(targets < 0.0):
            row = int(np.flatnonzero(known)[np.argmax(targets < 0.0)])
            raise ValueError(f"y: row {row} is {targets[targets < 0.0][0]:g}, a count is expected")
        return targets, known

    def _data_losses(self, data: Data) -> StackedLoss:
        if not data.y.any():
            raise ValueError("y: a count > 0 is expected, all are 0: rates have no best logarithm")
        return self._rows_of(PoissonLoss, data)

    def _answers(self, predictor: FloatArray) -> FloatArray:
        return np.exp(predictor)

    def _quality(self, y: FloatArray, predicted: FloatArray, weights: FloatArray | None) -> float:
        """D^2: the share of a constant's deviance that predictions do without."""
        least = np.finfo(np.float64).tiny  # a rate that has underflowed has no deviance
        return float(
            d2_tweedie_score(y, np.maximum(predicted, least), sample_weight=weights, power=1)
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node: Any = None) -> float:
        """Share D^2 of the deviance that is explained; rows whose y is NaN do not count."""
        return super().score(X, y, sample_weight, node=node)


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkPoissonRegression(_Poisson, GivenLambda):
    r"""Poisson regression at the nodes of a graph, joined by generalized total variation.

    .. math:: \min_{w, b} \sum_i \Big[ \frac{1}{m_i} \sum_{r \in i} e^{z_r} - y_r z_r
              + \frac{\mu}{2} \|w_i\|_2^2 \Big]
              + \lambda \sum_{\{i, j\}} A_{ij} \phi((w_i, b_i) - (w_j, b_j)),
              \qquad z_r = x_r^T w_i + b_i

    for counts y_r with the rates exp(z_r): the mean negative log-likelihood, but for log y_r!.
    ``predict`` gives rates.

    Counts of different exposures E_r (inhabitants, days) are rates y_r / E_r with the sample
    weights E_r and ``weighting="rows"``, which is their likelihood.

    Parameters
    ----------
    ridge : float
        mu >= 0, for nodes with data; intercepts are not penalized.
    lam, penalty, graph, node_column, fit_intercept, weighting, solver, rtol, max_iter
    time_limit, verbose
        See `NetworkLinearRegression`, and there for the attributes.

    Examples
    --------
    >>> import gtvcvx as gtv
    >>> graph = gtv.EmpiricalGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> model = NetworkPoissonRegression(lam=2.0, graph=graph).fit(None, [1, 3, 12, 10])
    >>> model.predict(None).round(2)
    array([ 3.,  3., 10., 10.])
    """


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkPoissonRegressionCV(_Poisson, CrossValidatedLambda):
    """`NetworkPoissonRegression` with lambda chosen by K-fold cross-validation.

    The error of a row that was held out is its negative log-likelihood, but for log y!.

    Parameters
    ----------
    lams, min_ratio, cv, over, rule, seed, n_jobs, time_limit
        See `NetworkLinearRegressionCV`.
    ridge, lam, penalty, graph, node_column, fit_intercept, weighting, solver, rtol, max_iter
    verbose
        See `NetworkPoissonRegression`.

    Attributes
    ----------
    lam_, cv_path_
        See `NetworkLinearRegressionCV`, and there for the others.
    """
