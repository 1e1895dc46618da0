"""What the linear models of the nodes share: rows, graph, problem and its solution."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, is_number
from gtvcvx.estimators._rows import Rows, feature_names, node_positions, split_rows
from gtvcvx.estimators._solving import Solving
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.penalties import Penalty
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers import warn_if_consensus


# A dataclass writes the constructor that scikit-learn asks for: it stores its keywords, unchanged.
@dataclass(kw_only=True, repr=False, eq=False)
class NetworkModel(BaseEstimator):
    """Linear models <x, w_i> + b_i, one for each node i of a graph."""

    lam: float = 0.1
    penalty: str | Penalty = "l2"
    graph: EmpiricalGraph | None = None
    node_column: int | str | None = None
    fit_intercept: bool = True
    ridge: float = 0.0
    solver: str = "AUTO"
    rtol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    verbose: bool = False

    graph_: EmpiricalGraph = field(init=False)
    problem_: GTVProblem = field(init=False)
    solution_: Solution = field(init=False)
    coef_: FloatArray = field(init=False)
    intercept_: FloatArray = field(init=False)
    flows_: FloatArray = field(init=False)
    labels_: IntArray = field(init=False)
    dual_gap_: float = field(init=False)
    n_iter_: int = field(init=False)

    def fit(self, X: Any, y: Any, *, graph: EmpiricalGraph | None = None, node: Any = None) -> Self:
        """Fit the models of all nodes.

        Parameters
        ----------
        X : array_like or data frame, shape (N, d), or (N, d + 1) with a node column
            One row a data point.
        y : array_like, shape (N,)
            Targets, NaN where there is none; of a classifier classes, of two different values,
            NaN or None where it is missing.
        graph : EmpiricalGraph, optional
            Instead of the parameter ``graph``.
        node : array_like, shape (N,), optional
            Label of the node of each row, unless ``node_column`` names the column that holds it.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None"
            )
        design, at = self._prepare(X, graph, node)
        targets, known = self._targets(y)
        check_consistent_length(design, known)
        self._minimize(self._losses(design[known], targets, at[known]))
        return self

    def predict(self, X: Any, *, node: Any = None) -> NDArray[Any]:
        """Predict targets or classes (N,) by the models of the rows' nodes.

        Parameters
        ----------
        X : array_like or data frame
            Columns as in ``fit``.
        node : array_like, shape (N,), optional
            As in ``fit``.
        """
        return self._answers(self._linear_predictor(X, node))

    def _targets(self, y: Any) -> tuple[NDArray[Any], BoolArray]:
        """Return the targets that are there, and which of the rows have one (N,)."""
        raise NotImplementedError

    def _losses(self, design: FloatArray, targets: NDArray[Any], at: IntArray) -> StackedLoss:
        """Losses of rows (N, d) with targets (N,) at nodes (N,)."""
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

    def _prepare(
        self, X: Any, graph: EmpiricalGraph | None, node: Any
    ) -> tuple[FloatArray, IntArray]:
        """Check what is given to fit; return the design (N, d) and the node of each row (N,)."""
        rows = split_rows(self, X, self.node_column, reset=True)
        self.graph_ = self._chosen_graph(graph, node)
        design = rows.X
        if self.fit_intercept:
            design = np.column_stack([design, np.ones(len(design))])
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
        count = len(rows.X)
        if rows.labels is not None:
            if node is not None:
                raise ValueError("node: rows name their nodes already, in node_column")
            return node_positions(self.graph_, rows.labels, count, "node_column")
        if node is not None:
            return node_positions(self.graph_, node, count, "node")
        if self.graph_.n_nodes > 1:
            raise ValueError(
                f"node: the node of each row is expected, as the graph has {self.graph_.n_nodes} "
                "nodes; or name the column of X that holds it by node_column"
            )
        return np.zeros(count, dtype=np.int64)

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

    def _minimize(self, losses: StackedLoss) -> None:
        """Solve the problem of these losses and set the attributes that come of it."""
        self.problem_ = GTVProblem(self.graph_, losses, self.penalty, self.lam)
        solving = Solving(
            self.problem_,
            np.zeros((self.graph_.n_nodes, self.problem_.dim)),
            rtol=self.rtol,
            solver=self.solver,
            max_iter=self.max_iter,
            verbose=self.verbose,
            time_limit=self.time_limit,
        )
        self.solution_ = solving.solve(self.problem_)
        names = feature_names(self, self.node_column)
        if names is not None:
            self.solution_.info["features"] = names + ["intercept"] * bool(self.fit_intercept)
        w = self.solution_.w
        self.coef_ = w[:, :-1].copy() if self.fit_intercept else w.copy()
        self.intercept_ = w[:, -1].copy() if self.fit_intercept else np.zeros(len(w))
        self.flows_ = self.solution_.u
        self.labels_ = self.solution_.clusters()
        self.dual_gap_ = self.solution_.gap
        # Without edges there is nothing to iterate: each node's fit counts as one.
        self.n_iter_ = max(self.solution_.n_iter, 1)
        solving.warn(self.solution_, type(self).__name__, stacklevel=3)
        warn_if_consensus(self.problem_, self.solution_, stacklevel=3)

    def _linear_predictor(self, X: Any, node: Any) -> FloatArray:
        """Return <x, w_i> + b_i for each row, shape (N,)."""
        check_is_fitted(self)
        rows = split_rows(self, X, self.node_column, reset=False)
        at = self._positions(rows, node)
        return np.einsum("nd,nd->n", rows.X, self.coef_[at]) + self.intercept_[at]
