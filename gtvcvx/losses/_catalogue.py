"""Losses of data points, one class each: means over the rows of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx.losses._regularizers import entries_but_intercept
from gtvcvx.losses._row_loss import RowLoss
from gtvcvx.losses.batched._terms import Term


def _penalty(kind: str, name: str, parameters: Mapping[str, Any], dim: int) -> list[Term]:
    """Return a ridge or l1 term at node 0, zero at the intercept; none if it is zero."""
    values = entries_but_intercept(name, parameters[name], dim, parameters["intercept"])
    node = np.zeros(1, dtype=np.int64)
    return [{"kind": kind, "node": node, name: values[None, :]}] if values.any() else []


class LogisticLoss(RowLoss):
    r"""Mean log-loss of a linear classifier, with a ridge term ([nLasso] (23)).

    .. math:: L(w) = \tfrac1m \sum_r \log(1 + e^{x_r^T w}) - y_r x_r^T w
              + \tfrac\rho2 \lVert w \rVert_2^2

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like, shape (m,)
        Labels, 0 or 1.
    ridge : float or array_like of shape (d,), default 0.0
        rho >= 0, for all entries of w or for each.
    intercept : int or sequence of int, optional
        Column of X that is constant; its entry of w is left out of the ridge term.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, which make the mean a weighted one,
        ``sum_r s_r (...) / sum_r s_r``; those of weight 0 are as if absent.
    """

    _kind = "logistic"
    _defaults: ClassVar[Mapping[str, Any]] = {"ridge": 0.0, "intercept": None}

    def __init__(
        self,
        X: ArrayLike | None,
        y: ArrayLike,
        ridge: ArrayLike = 0.0,
        intercept: int | Sequence[int] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        super().__init__(X, y, sample_weight=sample_weight, ridge=ridge, intercept=intercept)

    @classmethod
    def _beside(cls, parameters: Mapping[str, Any], dim: int) -> list[Term]:
        given = {"mu": parameters["ridge"], "intercept": parameters["intercept"]}
        return _penalty("ridge", "mu", given, dim)


class LassoLoss(RowLoss):
    r"""Mean squared error of a linear model, with an l1 term ([nLasso] (22)).

    .. math:: L(w) = \tfrac1m \lVert X w - y \rVert_2^2 + \kappa \lVert w \rVert_1

    kappa is the paper's second use of the letter lambda.

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like, shape (m,)
        Targets.
    kappa : float or array_like of shape (d,)
        kappa >= 0, for all entries of w or for each.
    intercept : int or sequence of int, optional
        Column of X that is constant; its entry of w is left out of the l1 term.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, which make the mean a weighted one,
        ``sum_r s_r (...) / sum_r s_r``; those of weight 0 are as if absent.
    """

    _kind = "squared"
    _defaults: ClassVar[Mapping[str, Any]] = {"kappa": 0.0, "intercept": None}

    def __init__(
        self,
        X: ArrayLike | None,
        y: ArrayLike,
        kappa: ArrayLike,
        intercept: int | Sequence[int] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        super().__init__(X, y, sample_weight=sample_weight, kappa=kappa, intercept=intercept)

    @classmethod
    def _beside(cls, parameters: Mapping[str, Any], dim: int) -> list[Term]:
        return _penalty("l1", "kappa", parameters, dim)


class HuberLoss(RowLoss):
    r"""Mean Huber loss of a linear model, squared near zero and linear beyond delta.

    .. math:: L(w) = \tfrac1m \sum_r h(x_r^T w - y_r), \quad
        h(z) = z^2 \text{ where } |z| \le \delta, \text{ else } 2 \delta |z| - \delta^2

    which is `cvxpy.huber`.

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like, shape (m,)
        Targets.
    delta : float or array_like of shape (m,)
        Residual, > 0, from which on a data point counts as an outlier.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, which make the mean a weighted one,
        ``sum_r s_r (...) / sum_r s_r``; those of weight 0 are as if absent.
    """

    _kind = "huber"

    def __init__(
        self,
        X: ArrayLike | None,
        y: ArrayLike,
        delta: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        super().__init__(X, y, sample_weight=sample_weight, delta=delta)


class PseudoHuberLoss(RowLoss):
    r"""Mean pseudo-Huber loss of a linear model, like Huber's and smooth everywhere.

    .. math:: L(w) = \tfrac1m \sum_r h(x_r^T w - y_r), \quad
        h(z) = \delta^2 \left( \sqrt{1 + (z / \delta)^2} - 1 \right)

    which is about :math:`z^2 / 2` for small z and :math:`\delta |z| - \delta^2` for large z:
    `scipy.special.pseudo_huber`.

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like, shape (m,)
        Targets.
    delta : float or array_like of shape (m,)
        Residual, > 0, about from which on a data point counts as an outlier.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, which make the mean a weighted one,
        ``sum_r s_r (...) / sum_r s_r``; those of weight 0 are as if absent.
    """

    _kind = "pseudohuber"

    def __init__(
        self,
        X: ArrayLike | None,
        y: ArrayLike,
        delta: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        super().__init__(X, y, sample_weight=sample_weight, delta=delta)


class PoissonLoss(RowLoss):
    r"""Mean negative log-likelihood of counts with the rates exp(x.w), but for log y!.

    .. math:: L(w) = \tfrac1m \sum_r e^{x_r^T w} - y_r x_r^T w

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like, shape (m,)
        Counts, >= 0.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, which make the mean a weighted one,
        ``sum_r s_r (...) / sum_r s_r``; those of weight 0 are as if absent.
    """

    _kind = "poisson"


class AbsoluteLoss(RowLoss):
    r"""Mean absolute error of a linear model.

    .. math:: L(w) = \tfrac1m \sum_r | x_r^T w - y_r |

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like, shape (m,)
        Targets.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, which make the mean a weighted one,
        ``sum_r s_r (...) / sum_r s_r``; those of weight 0 are as if absent.
    """

    _kind = "absolute"


class QuantileLoss(RowLoss):
    r"""Mean pinball loss, whose minimizer is the quantile of level q.

    .. math:: L(w) = \tfrac1m \sum_r \max(q (y_r - x_r^T w), (q - 1)(y_r - x_r^T w))

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like, shape (m,)
        Targets.
    level : float or array_like of shape (m,)
        q, strictly between 0 and 1.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, which make the mean a weighted one,
        ``sum_r s_r (...) / sum_r s_r``; those of weight 0 are as if absent.
    """

    _kind = "quantile"

    def __init__(
        self,
        X: ArrayLike | None,
        y: ArrayLike,
        level: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        super().__init__(X, y, sample_weight=sample_weight, level=level)


class HingeLoss(RowLoss):
    r"""Mean hinge loss of a linear classifier, that of support vector machines.

    .. math:: L(w) = \tfrac1m \sum_r \max(0, 1 - y_r x_r^T w)

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like, shape (m,)
        Labels, -1 or 1.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, which make the mean a weighted one,
        ``sum_r s_r (...) / sum_r s_r``; those of weight 0 are as if absent.
    """

    _kind = "hinge"
