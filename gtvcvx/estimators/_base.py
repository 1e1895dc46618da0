"""What the linear models of the nodes share: rows, graph, problem and its solution."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, is_number
from gtvcvx.estimators._rows import (
    Data,
    Rows,
    feature_names,
    node_positions,
    row_weights,
    split_rows,
)
from gtvcvx.estimators._solving import Solving
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.penalties import Penalty
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers import warn_if_consensus

WEIGHTING = ("nodes", "rows")


# A dataclass writes the constructor that scikit-learn asks for: it stores its keywords, unchanged.
@dataclass(kw_only=True, repr=False, eq=False)
class NetworkModel(BaseEstimator):
    """Linear models <x, w_i> + b_i, one for each node i of a graph.

    Subclasses say which losses the rows have, and where lambda comes from.
    """

    penalty: str | Penalty = "l2"
    graph: EmpiricalGraph | None = None
    node_column: int | str | None = None
    fit_intercept: bool = True
    ridge: float = 0.0
    weighting: str = "nodes"
    solver: str = "AUTO"
    rtol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    verbose: bool = False

    lam_: float = field(init=False)
    graph_: EmpiricalGraph = field(init=False)
    problem_: GTVProblem = field(init=False)
    solution_: Solution = field(init=False)
    coef_: FloatArray = field(init=False)
    intercept_: FloatArray = field(init=False)
    flows_: FloatArray = field(init=False)
    labels_: IntArray = field(init=False)
    dual_gap_: float = field(init=False)
    n_iter_: int = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        graph: EmpiricalGraph | None = None,
        node: Any = None,
    ) -> Self:
        """Fit the models of all nodes.

        Parameters
        ----------
        X : array_like, sparse matrix or data frame, (N, d), or (N, d + 1) with a node column; None
            One row a data point. None or no column but that of the nodes: models are intercepts.
        y : array_like, shape (N,)
            Targets, NaN where there is none; of a classifier classes, NaN or None where missing.
        sample_weight : array_like, shape (N,), optional
            Weights >= 0 of the rows, see ``weighting``; those of weight 0 are as if absent.
        graph : EmpiricalGraph, optional
            Instead of the parameter ``graph``.
        node : array_like, shape (N,), optional
            Label of the node of each row, unless ``node_column`` names the column that holds it.
            May be left out if there are as many rows as nodes: row i belongs to
            ``graph.nodes[i]``.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None"
            )
        design, at = self._prepare(X, graph, node, y)
        targets, known = self._targets(y)
        check_consistent_length(design, known)
        kept, weights = self._kept(known, sample_weight)
        data = Data(design[kept], self._numbers(targets[kept[known]]), at[kept], weights)
        problem = GTVProblem(self.graph_, self._weighed(self._losses(data), data), self.penalty)
        solving = self._solving(problem)
        solution = self._solved(problem, solving, data, kept, at)
        self._keep(solution)
        solving.warn(solution, type(self).__name__, stacklevel=2)
        warn_if_consensus(self.problem_, solution, stacklevel=2)
        return self

    def predict(self, X: Any, *, node: Any = None) -> NDArray[Any]:
        """Predict targets or classes (N,) by the models of the rows' nodes.

        Parameters
        ----------
        X : array_like, sparse matrix, data frame or None
            Columns as in ``fit``.
        node : array_like, shape (N,), optional
            As in ``fit``; with X None, too, it is every node once.
        """
        return self._answers(self._linear_predictor(X, node))

    def _targets(self, y: Any) -> tuple[NDArray[Any], BoolArray]:
        """Return the targets that are there, and which of the rows have one (N,)."""
        raise NotImplementedError

    def _numbers(self, targets: NDArray[Any]) -> NDArray[Any]:
        """Return the numbers that losses take for targets."""
        return targets

    def _losses(self, data: Data) -> StackedLoss:
        """Losses of rows with targets; means over the rows of each node."""
        raise NotImplementedError

    def _solved(
        self, problem: GTVProblem, solving: Solving, data: Data, kept: BoolArray, at: IntArray
    ) -> Solution:
        """Choose lambda and solve; set ``lam_`` and ``problem_``.

        ``kept`` (N,) says which of the rows are in the data, ``at`` (N,) where all of them are.
        """
        raise NotImplementedError

    def _answers(self, predictor: FloatArray) -> NDArray[Any]:
        """Return what the values <x, w_i> + b_i (N,) predict."""
        raise NotImplementedError

    def _known(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, node: Any
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        """Targets, predictions and weights of the rows that have a target."""
        predicted = self.predict(X, node=node)
        targets, known = self._targets(y)
        check_consistent_length(predicted, known, sample_weight)
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return targets, predicted[known], weights

    def _kept(
        self, known: BoolArray, sample_weight: ArrayLike | None
    ) -> tuple[BoolArray, FloatArray | None]:
        """Return which rows count (N,), and the weights of those, if they are not all equal."""
        weights = row_weights(sample_weight, len(known))
        if weights is None:
            return known, None
        kept = known & (weights > 0.0)
        if not kept.any():
            raise ValueError("sample_weight: the weights of all rows that have a target are zero")
        chosen = weights[kept]
        return kept, None if np.ptp(chosen) == 0.0 else chosen

    def _weighed(self, losses: StackedLoss, data: Data) -> StackedLoss:
        """Multiply the losses of nodes by what their rows weigh, if they are to count."""
        if self.weighting not in WEIGHTING:
            raise ValueError(f"weighting: one of {WEIGHTING} is expected, got {self.weighting!r}")
        if self.weighting == "rows":
            return losses * node_weights(data, self.graph_.n_nodes)
        if data.weight is not None:
            most, least = np.full((2, self.graph_.n_nodes), np.nan)
            np.fmax.at(most, data.node, data.weight)
            np.fmin.at(least, data.node, data.weight)
            if np.array_equal(most, least, equal_nan=True):
                warnings.warn(
                    "sample_weight: all rows of each node weigh the same, so that weights cancel "
                    "in the means of nodes; weighting='rows' makes nodes count by their rows",
                    stacklevel=3,
                )
        return losses

    def _prepare(
        self, X: Any, graph: EmpiricalGraph | None, node: Any, y: Any
    ) -> tuple[FloatArray, IntArray]:
        """Check what is given to fit; return the design (N, d) and the node of each row (N,)."""
        placed = graph is not None or self.graph is not None
        count = np.size(np.asarray(y)) if X is None else 0
        rows = split_rows(self, X, self.node_column, reset=True, n_rows=count, empty=placed)
        self.graph_ = self._chosen_graph(graph, node)
        design = rows.X
        if self.fit_intercept:
            design = np.column_stack([design, np.ones(len(design))])
        elif not design.shape[1]:
            raise ValueError("fit_intercept: a model without features is its intercept")
        return design, self._positions(rows, node)

    def _chosen_graph(self, graph: EmpiricalGraph | None, node: Any) -> EmpiricalGraph:
        chosen = self.graph if graph is None else graph
        if chosen is None:
            if node is not None or self.node_column is not None:
                raise ValueError("graph: one is expected, as rows are said to belong to nodes")
            return EmpiricalGraph(1, np.empty((0, 2), dtype=np.int64))
        if not isinstance(chosen, EmpiricalGraph):
            raise TypeError(
                f"graph: an EmpiricalGraph is expected, got {type(chosen).__name__}; see its "
                "constructors and gtvcvx.graph_construction"
            )
        return chosen

    def _positions(self, rows: Rows, node: Any) -> IntArray:
        count, n_nodes = len(rows.X), self.graph_.n_nodes
        if rows.labels is not None:
            if node is not None:
                raise ValueError("node: rows name their nodes already, in node_column")
            return node_positions(self.graph_, rows.labels, count, "node_column")
        if node is not None:
            return node_positions(self.graph_, node, count, "node")
        if n_nodes > 1 and count != n_nodes:
            raise ValueError(
                f"node: the node of each row is expected, as the graph has {n_nodes} nodes and "
                f"there are {count} rows; or name the column of X that holds it by node_column"
            )
        return np.zeros(count, dtype=np.int64) if n_nodes == 1 else np.arange(count)

    def _strength(self, name: str) -> float:
        """Return the parameter of a regularizer, a finite number >= 0."""
        value = getattr(self, name)
        if not is_number(value):
            raise TypeError(f"{name}: a number is expected, got {value!r}")
        if not 0 <= value < np.inf:
            raise ValueError(f"{name}: a finite number >= 0 is expected, got {value!r}")
        return float(value)

    def _intercept_column(self, d: int) -> int | None:
        """Column of ones in the design of d columns."""
        return d - 1 if self.fit_intercept else None

    def _solving(self, problem: GTVProblem) -> Solving:
        return Solving(
            problem,
            np.zeros((self.graph_.n_nodes, problem.dim)),
            rtol=self.rtol,
            solver=self.solver,
            max_iter=self.max_iter,
            verbose=self.verbose,
            time_limit=self.time_limit,
        )

    def _keep(self, solution: Solution) -> None:
        """Set the attributes that come of the solution."""
        self.solution_ = solution
        names = feature_names(self, self.node_column)
        if names is not None:
            columns = names + ["intercept"] * bool(self.fit_intercept)
            solution.info["features"] = self._parameter_names(columns)
        w = self._parameters(solution.w)
        free = self.fit_intercept
        self.coef_ = w[..., :-1].copy() if free else w.copy()
        self.intercept_ = w[..., -1].copy() if free else np.zeros(w.shape[:-1])
        self.flows_ = solution.u
        self.labels_ = solution.clusters()
        self.dual_gap_ = solution.gap
        # Without edges there is nothing to iterate: each node's fit counts as one.
        self.n_iter_ = max(solution.n_iter, 1)

    def _parameters(self, w: FloatArray) -> FloatArray:
        """Return the parameters of each column of the design, last, from w (n, ...)."""
        return w

    def _parameter_names(self, columns: list[str]) -> list[str]:
        """Return the names of the entries of w_i, from those of the columns of the design."""
        return columns

    def _linear_predictor(self, X: Any, node: Any) -> FloatArray:
        """Return <x, w_i> + b_i for each row, shape (N,), or (N, K) for K models a node."""
        check_is_fitted(self)
        count = self.graph_.n_nodes if node is None else np.size(node)
        rows = split_rows(self, X, self.node_column, reset=False, n_rows=count, empty=True)
        at = self._positions(rows, node)
        product = np.einsum("nd,n...d->n...", rows.X, self.coef_[at])
        return np.asarray(product + self.intercept_[at])


def node_weights(data: Data, n_nodes: int) -> FloatArray:
    """Sum of the weights of each node's rows (n,), in units of the mean over nodes with rows."""
    total = np.bincount(data.node, data.weight, n_nodes)
    return np.asarray(total / total[total > 0.0].mean())
