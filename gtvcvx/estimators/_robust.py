"""Regression that outliers do not pull: Huber's loss, and quantiles."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.metrics import d2_pinball_score

from gtvcvx._arrays import FloatArray, is_number
from gtvcvx.estimators._lambda import CrossValidatedLambda, GivenLambda
from gtvcvx.estimators._regression import NetworkRegressor
from gtvcvx.estimators._rows import Data
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import AbsoluteLoss, HuberLoss, QuantileLoss, StackedLoss
from gtvcvx.problem import GTVProblem

# The standard deviation of normal errors over their median size.
NORMAL = 1.4826
# Residuals below this share of the targets are zero, for models that are exact to less.
ZERO, SCALE_RTOL = 1e-8, 1e-9


@dataclass(kw_only=True, repr=False, eq=False)
class _Huber(NetworkRegressor):
    """Huber's loss."""

    epsilon: float = 1.35
    delta: float | None = None

    delta_: float = field(init=False)

    def _data_losses(self, data: Data) -> StackedLoss:
        self.delta_ = self._chosen_delta(data)
        return self._rows_of(HuberLoss, data, delta=self.delta_)

    def _chosen_delta(self, data: Data) -> float:
        name = "epsilon" if self.delta is None else "delta"
        value = getattr(self, name)
        if not is_number(value) or not 0.0 < value < np.inf:
            raise ValueError(f"{name}: a finite number > 0 is expected, got {value!r}")
        return float(value) * (robust_scale(data) if self.delta is None else 1.0)


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkHuberRegression(_Huber, GivenLambda):
    r"""Regression by Huber's loss at the nodes of a graph, which outliers do not pull.

    The model of `NetworkLinearRegression` with the errors of rows

    .. math:: h(z) = z^2 \text{ where } |z| \le \delta, \text{ else } 2 \delta |z| - \delta^2

    instead of their squares (Huber, "Robust Estimation of a Location Parameter", 1964).

    Parameters
    ----------
    epsilon : float
        > 0; delta in units of the scale of errors: beyond, a row counts as an outlier. With 1.35
        normal errors are used to 95 percent.
    delta : float, optional
        > 0, in units of y, instead. Default: epsilon times the scale, 1.4826 times the median size
        of the residuals (but for zeros) of the one model of all rows with the least absolute
        errors; without features, of the distances of y from its median. Where nodes differ much
        that is more than the errors of each: then give ``delta``.
    lam, penalty, graph, node_column, fit_intercept, ridge, weighting, solver, rtol, max_iter
    time_limit, verbose
        See `NetworkLinearRegression`.

    Attributes
    ----------
    delta_ : float
        delta, in units of y.
    lam_, coef_, intercept_, flows_, labels_, dual_gap_, n_iter_, graph_, problem_, solution_
    n_features_in_, feature_names_in_
        See `NetworkLinearRegression`.

    Examples
    --------
    >>> import gtvcvx as gtv
    >>> graph = gtv.EmpiricalGraph(5, [[0, 1], [1, 2], [2, 3], [3, 4]])
    >>> y = [1.0, 1.2, 90.0, 0.8, 1.0]
    >>> model = NetworkHuberRegression(lam=2.0, graph=graph).fit(None, y)
    >>> model.predict(None).round(2)
    array([1.1, 1.1, 1.1, 1.1, 1.1])
    """


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkHuberRegressionCV(_Huber, CrossValidatedLambda):
    """`NetworkHuberRegression` with lambda chosen by K-fold cross-validation.

    The error of a row that was held out is its Huber loss; ``delta_`` is that of all rows.

    Parameters
    ----------
    epsilon, delta
        See `NetworkHuberRegression`.
    lams, min_ratio, cv, over, rule, seed, n_jobs, time_limit
        See `NetworkLinearRegressionCV`, and there for the attributes.
    penalty, graph, node_column, fit_intercept, ridge, weighting, solver, rtol, max_iter, verbose
        See `NetworkLinearRegression`.

    Attributes
    ----------
    delta_ : float
        delta, in units of y.
    """


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkQuantileRegression(NetworkRegressor, GivenLambda):
    r"""Regression of a quantile at the nodes of a graph.

    The model of `NetworkLinearRegression` with the pinball losses of rows

    .. math:: \max(q (y_r - z_r), (q - 1) (y_r - z_r)), \qquad z_r = x_r^T w_i + b_i

    instead of squares (Koenker and Bassett, "Regression Quantiles", 1978).

    Parameters
    ----------
    quantile : float
        q, strictly between 0 and 1. One half: the median.
    lam, penalty, graph, node_column, fit_intercept, ridge, weighting, solver, rtol, max_iter
    time_limit, verbose
        See `NetworkLinearRegression`, and there for the attributes.
    """

    quantile: float = 0.5

    def _data_losses(self, data: Data) -> StackedLoss:
        level = self.quantile
        if not is_number(level) or not 0.0 < level < 1.0:
            raise ValueError(
                f"quantile: a number strictly between 0 and 1 is expected, got {level!r}"
            )
        return self._rows_of(QuantileLoss, data, level=float(level))

    def _quality(self, y: FloatArray, predicted: FloatArray, weights: FloatArray | None) -> float:
        """D^2: the share of a constant's pinball loss that predictions do without."""
        return float(d2_pinball_score(y, predicted, sample_weight=weights, alpha=self.quantile))


def robust_scale(data: Data) -> float:
    """Return 1.4826 times the median size of the residuals of one model of all rows.

    It has the least absolute errors. As many residuals are zero as it has parameters, because of
    that; they do not count (Maronna, Martin, Yohai, "Robust Statistics", section 4.4). Where all
    are zero it is the size of y.
    """
    sizes = np.abs(data.y - data.X @ _least_absolute(data))
    most = float(np.abs(data.y).max())
    kept = sizes > ZERO * most
    if not kept.any():
        return most or 1.0
    weights = None if data.weight is None else data.weight[kept]
    return NORMAL * weighted_median(sizes[kept], weights)


def _least_absolute(data: Data) -> FloatArray:
    """Parameters (d,) of the one model of all rows that has the least absolute errors."""
    if data.X.shape[1] == 1 and np.ptp(data.X) == 0.0:
        return np.array([weighted_median(data.y, data.weight) / data.X[0, 0]])
    unit = float(np.abs(data.y).max(initial=0.0)) or 1.0
    losses = AbsoluteLoss.from_rows(
        data.X, data.y / unit, np.zeros(len(data.y), np.int64), 1, sample_weight=data.weight
    )
    alone = GTVProblem(EmpiricalGraph(1, np.empty((0, 2), dtype=np.int64)), losses)
    return np.asarray(unit * alone.solve(rtol=SCALE_RTOL, atol=SCALE_RTOL, verbose=False).w[0])


def weighted_median(values: FloatArray, weights: FloatArray | None) -> float:
    """Return the least of the values (N,) up to which half of the weight is."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(np.ones(len(values)) if weights is None else weights[order])
    return float(values[order[np.searchsorted(total, 0.5 * total[-1])]])
