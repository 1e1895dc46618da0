"""Linear regression by squared errors at the nodes of a graph."""

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
from gtvcvx.estimators._lambda import CrossValidatedLambda, GivenLambda
from gtvcvx.estimators._rows import Data
from gtvcvx.losses import LassoLoss, SquaredLoss, StackedLoss, stacked_from_terms


class NetworkRegressor(RegressorMixin, NetworkModel):
    """Errors of predictions, with regularizers."""

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

    def _losses(self, data: Data) -> StackedLoss:
        losses = self._data_losses(data)
        return losses + self._ridge_terms(np.unique(data.node), losses.dim)

    def _data_losses(self, data: Data) -> StackedLoss:
        """Errors of the predictor <x, w_i> + b_i, without the ridge terms."""
        raise NotImplementedError

    def _rows_of(self, kind: Any, data: Data, **parameters: Any) -> StackedLoss:
        """Losses of one kind, for all rows."""
        return kind.from_rows(
            data.X,
            data.y,
            data.node,
            self.graph_.n_nodes,
            sample_weight=data.weight,
            **parameters,
        )

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

    def _quality(self, y: FloatArray, predicted: FloatArray, weights: FloatArray | None) -> float:
        """Share of the errors of a constant that predictions do without: 1 at best."""
        return float(r2_score(y, predicted, sample_weight=weights))

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, node: Any = None
    ) -> float:
        """Coefficient of determination R^2 of the predictions; rows whose y is NaN do not count."""
        return self._quality(*self._known(X, y, sample_weight, node))


class _LeastSquares(NetworkRegressor):
    """Squared errors."""

    def _data_losses(self, data: Data) -> StackedLoss:
        return self._rows_of(SquaredLoss, data)


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkLinearRegression(_LeastSquares, GivenLambda):
    r"""Linear regression at the nodes of a graph, joined by generalized total variation.

    .. math:: \min_{w, b} \sum_i \Big[ \frac{1}{m_i} \sum_{r \in i} (x_r^T w_i + b_i - y_r)^2
              + \frac{\mu}{2} \|w_i\|_2^2 \Big]
              + \lambda \sum_{\{i, j\}} A_{ij} \phi((w_i, b_i) - (w_j, b_j))

    with the m_i rows of node i ([GTV] (16), (38)), or their weighted mean. Nodes without rows, or
    whose targets are all NaN, are unlabelled: their neighbours determine their models. For lambda
    to 0 every node with data is fitted alone; for a large lambda all nodes of a connected component
    share one model.
    Components without any target have no model of their own: theirs is arbitrary.

    Parameters
    ----------
    lam : float or "auto"
        The regularization parameter lambda, > 0, in units of the losses over the parameters. By
        default it is a share of `gtvcvx.lambda_max`, from which on all nodes agree:
        0.1 lambda_max / sqrt(m), for m rows a node on average, whatever the units of y. That is a
        start; `NetworkLinearRegressionCV` chooses one by what it predicts.
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
        Whether there are intercepts b_i. Without features they are all there is: ``X=None``, or no
        column but that of the nodes, smooths y over the graph.
    ridge : float
        mu >= 0, for nodes with data; intercepts are not penalized.
    weighting : {"nodes", "rows"}
        What the means are multiplied by: "nodes", 1 for each node with data; "rows", the number of
        the node's rows, or the sum of their weights, over the mean of that over the nodes with
        data. So one row a node with a weight counts by it.
    solver : str
        See `GTVProblem.solve`.
    rtol : float
        Relative gap to reach: the gap is at most rtol max(min(1, P(0)), P(w)).
    max_iter : int, optional
        Limit of iterations.
    time_limit : float, optional
        Seconds for the solve, and for lambda_max if it is needed; the best that is known by then is
        taken, with a warning.
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
    lam_ : float
        The value of lambda.
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
    gtvcvx.ConsensusWarning
        ``lam`` is far above lambda_max.
    UserWarning
        Weights of rows have no effect, see ``weighting``.

    Examples
    --------
    >>> import gtvcvx as gtv
    >>> graph = gtv.EmpiricalGraph(3, [[0, 1], [1, 2]], nodes=["a", "b", "c"])
    >>> X = [[0.0], [1.0], [2.0], [0.0], [2.0]]
    >>> y = [1.0, 2.0, 3.0, 1.0, 3.0]
    >>> model = NetworkLinearRegression(lam=0.1, graph=graph)
    >>> model.fit(X, y, node=["a", "a", "a", "c", "c"]).predict([[5.0]], node=["b"]).round(3)
    array([6.])

    Without features, a value for each node:

    >>> NetworkLinearRegression(lam=0.5, graph=graph).fit(None, [1.0, 2.0, 5.0]).predict(None)
    array([1.25, 2.  , 4.75])
    """


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkLinearRegressionCV(_LeastSquares, CrossValidatedLambda):
    r"""`NetworkLinearRegression` with lambda chosen by K-fold cross-validation.

    For each fold the models of the other data are computed along a path of decreasing lambda, each
    from those before; what the fold holds out is predicted, and lambda has the least mean error,

    .. math:: \frac{\sum_r s_r \ell(x_r^T w_i^{(r)} + b_i^{(r)}, y_r)}{\sum_r s_r}

    with the models without the fold of row r, the loss l of the model (squared errors here) and
    the weights s_r of the rows. The models of all data at this lambda are kept.

    Parameters
    ----------
    lams : int or array_like
        Values of lambda, or their number: a geometric sequence downwards from lambda_max.
    min_ratio : float
        The smallest value of that sequence over lambda_max.
    cv : int, splitter, iterable or array_like of int
        Number of folds; or one of scikit-learn's splitters, of which each item must be held out
        once at most, and trained on else; or pairs of positions (train, test) as a splitter gives
        them; or the fold 0, 1, ... of each item, -1 for none. Items are the rows, or the nodes in
        the order of ``graph_.nodes`` for ``over="nodes"``. Splitters get the nodes of the rows as
        groups.
    over : {"points", "nodes"}
        What is held out: rows, which are predicted from other rows of their node and from
        neighbours, or nodes with all of their rows, predicted from neighbours alone (the ridge
        term of a node stays). With one row a node it is the same.
    rule : {"min", "1se"}
        The lambda with the least mean error, or the largest one within its standard error.
    seed : int
        Of the random folds, if their number is given.
    n_jobs : int, optional
        Processes that work on folds at the same time, -1 for one a core. The result is the same.
        Default: 1, or what `joblib.parallel_config` says.
    time_limit : float, optional
        Seconds for all of it; values of lambda that were not reached are left out.
    penalty, graph, node_column, fit_intercept, ridge, weighting, solver, rtol, max_iter, verbose
        See `NetworkLinearRegression`. A penalty that is no norm needs values ``lams``.

    Attributes
    ----------
    lam_ : float
        The value chosen.
    cv_path_ : CrossValidation
        Errors of all folds for each lambda, and the path of the models of all data. Its ``folds``
        are those of the data points in the order of ``problem_.to_data()``, or of the nodes.
    coef_, intercept_, flows_, labels_, dual_gap_, n_iter_, graph_, problem_, solution_
    n_features_in_, feature_names_in_
        See `NetworkLinearRegression`.

    See Also
    --------
    gtvcvx.cross_validate : the same for any problem.
    """


@dataclass(kw_only=True, repr=False, eq=False)
class NetworkLasso(NetworkRegressor, GivenLambda):
    r"""Sparse linear regression at the nodes of a graph, joined by generalized total variation.

    The model of `NetworkLinearRegression` with another term :math:`\kappa \|w_i\|_1` at every node
    with data, which makes coefficients zero ([nLasso] (22)).

    Parameters
    ----------
    kappa : float
        >= 0, for nodes with data; intercepts are not penalized.
    lam, penalty, graph, node_column, fit_intercept, ridge, weighting, solver, rtol, max_iter
    time_limit, verbose
        See `NetworkLinearRegression`, and there for the attributes.
    """

    kappa: float = 0.1

    def _data_losses(self, data: Data) -> StackedLoss:
        return self._rows_of(
            LassoLoss,
            data,
            kappa=self._strength("kappa"),
            intercept=self._intercept_column(data.X.shape[1]),
        )
