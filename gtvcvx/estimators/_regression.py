"""Regression models of the nodes of a graph, trained together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, column_or_1d

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.estimators._base import NetworkModel
from gtvcvx.losses import LassoLoss, SquaredLoss, StackedLoss, stacked_from_terms


class _NetworkRegressor(RegressorMixin, NetworkModel):
    """Squared error with regularizers."""

    def _targets(self, y: Any) -> tuple[FloatArray, BoolArray]:
        targets = np.asarray(
            check_array(
                column_or_1d(y, warn=True),
                dtype=np.float64,
                ensure_2d=False,
                ensure_all_finite="allow-nan",
                input_name="y",
            )
        )
        known = ~np.isnan(targets)
        if not known.any():
            raise ValueError("y: no row has a target, all are NaN")
        return targets[known], known

    def _losses(self, design: FloatArray, targets: FloatArray, at: IntArray) -> StackedLoss:
        losses = self._data_losses(design, targets, at)
        return losses + self._ridge_terms(np.unique(at), losses.dim)

    def _data_losses(self, design: FloatArray, y: FloatArray, at: IntArray) -> StackedLoss:
        return SquaredLoss.from_rows(design, y, at, self.graph_.n_nodes)

    def _ridge_terms(self, nodes: IntArray, d: int) -> StackedLoss:
        """Ridge terms of the coefficients, not of the intercepts, at these nodes."""
        strength = self._strength("ridge")
        if strength == 0:
            return StackedLoss([], d)
        mu = np.full((len(nodes), d), strength)
        if self.fit_intercept:
            mu[:, -1] = 0.0
        return stacked_from_terms([{"kind": "ridge", "node": nodes, "mu": mu}], d)

    def _answers(self, predictor: FloatArray) -> FloatArray:
        return predictor

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, node: Any = None
    ) -> float:
        """Coefficient of determination R^2 of the predictions; rows whose y is NaN do not count."""
        targets, predicted, weights = self._known(X, y, sample_weight, node)
        return float(r2_score(targets, predicted, sample_weight=weights))


class NetworkLinearRegression(_NetworkRegressor):
    r"""Linear regression at the nodes of a graph, joined by generalized total variation.

    .. math:: \min_{w, b} \sum_i \Big[ \frac{1}{m_i} \sum_{r \in i} (x_r^T w_i + b_i - y_r)^2
              + \frac{\mu}{2} \|w_i\|_2^2 \Big]
              + \lambda \sum_{\{i, j\}} A_{ij} \phi((w_i, b_i) - (w_j, b_j))

    with the m_i rows of node i ([GTV] (16), (38)). Nodes without rows, or whose targets are all
    NaN, are unlabelled: their neighbours determine their models. For lambda to 0 every node with
    data is fitted alone; for a large lambda all nodes of a connected component share one model.
    Components without any target have no model of their own: theirs is arbitrary.

    Parameters
    ----------
    lam : float
        The regularization parameter lambda, > 0.
    penalty : {"l2", "l1", "linf", "squared"} or Penalty
        The penalty phi of differences across edges, intercepts included.
    graph : EmpiricalGraph, optional
        The graph, unless it is given to ``fit``. Default: one node, to which all rows belong,
        which makes an ordinary model.
    node_column : str or int, optional
        Column of X, by its name in a data frame or its position, that holds the label of the node
        of each row; it is no feature. So rows keep their node wherever scikit-learn splits or
        shuffles them. Default: nodes are given by the argument ``node``.
    fit_intercept : bool
        Whether there are intercepts b_i.
    ridge : float
        mu >= 0, for nodes with data; intercepts are not penalized.
    solver : str
        See `GTVProblem.solve`.
    rtol : float
        Relative gap to reach: the gap is at most rtol max(min(1, P(0)), P(w)).
    max_iter : int, optional
        Limit of iterations.
    time_limit : float, optional
        Seconds for the solve; the best that is known by then is taken, with a warning.
    verbose : bool
        Show progress.

    Attributes
    ----------
    coef_ : ndarray, shape (n, d)
        Coefficients w_i of the n nodes, in the order of ``graph_.nodes``.
    intercept_ : ndarray, shape (n,)
        Intercepts b_i, zeros without ``fit_intercept``.
    flows_ : ndarray, shape (m, d + 1), or (m, d) without intercept
        Dual flows along ``graph_.edges``, see `Solution.u`.
    labels_ : ndarray of int64, shape (n,)
        Clusters of nodes that share one model, see `Solution.clusters`.
    dual_gap_ : float
        Upper bound on how far the objective is from its optimum.
    n_iter_ : int
        Iterations; 1 if the graph has no edge.
    graph_ : EmpiricalGraph
    problem_, solution_
        `GTVProblem` and `Solution`, which ``verify.certify``, files and pictures take.
    n_features_in_ : int
        Number of columns of X, the node column included.
    feature_names_in_ : ndarray of str
        Their names, if X is a data frame.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        The gap is larger than rtol allows.

    Examples
    --------
    >>> import gtvcvx as gtv
    >>> graph = gtv.EmpiricalGraph(3, [[0, 1], [1, 2]], nodes=["a", "b", "c"])
    >>> X = [[0.0], [1.0], [2.0], [0.0], [2.0]]
    >>> y = [1.0, 2.0, 3.0, 1.0, 3.0]
    >>> model = NetworkLinearRegression(lam=0.1, graph=graph)
    >>> model.fit(X, y, node=["a", "a", "a", "c", "c"]).predict([[5.0]], node=["b"]).round(3)
    array([6.])
    """


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkLasso(_NetworkRegressor):
    r"""Sparse linear regression at the nodes of a graph, joined by generalized total variation.

    The model of `NetworkLinearRegression` with another term :math:`\kappa \|w_i\|_1` at every node
    with data, which makes coefficients zero ([nLasso] (22)).

    Parameters
    ----------
    kappa : float
        >= 0, for nodes with data; intercepts are not penalized.
    lam, penalty, graph, node_column, fit_intercept, ridge, solver, rtol, max_iter
    time_limit, verbose
        See `NetworkLinearRegression`, and there for the attributes.
    """

    kappa: float = 0.1

    def _data_losses(self, design: FloatArray, y: FloatArray, at: IntArray) -> StackedLoss:
        return LassoLoss.from_rows(
            design,
            y,
            at,
            self.graph_.n_nodes,
            kappa=self._strength("kappa"),
            intercept=self._intercept_column(design.shape[1]),
        )
