"""Log-loss of a linear classifier with several classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array, is_integer
from gtvcvx.losses._loss import PlainLoss
from gtvcvx.losses._regularizers import entries_but_intercept
from gtvcvx.losses._rows import Rows, rows_of_node, stacked_rows, table_rows
from gtvcvx.losses.batched._stacked import StackedLoss, stacked_terms
from gtvcvx.losses.batched._terms import MULTINOMIAL, Term, check_classes
from gtvcvx.losses.batched.multinomial._softmax import probabilities


class MultinomialLogisticLoss(PlainLoss):
    r"""Mean log-loss of a linear classifier with K classes (softmax), with a ridge term.

    .. math:: L(W) = \tfrac1m \sum_r \log \sum_k e^{x_r^T W_k} - x_r^T W_{y_r}
              + \tfrac\rho2 \lVert W \rVert_F^2, \quad W = w.reshape(p, K)

    w has d = p K entries, those of W row by row: the first K belong to the first feature. Class k
    has the probability ``exp(x^T W_k) / sum_j exp(x^T W_j)``.

    Moving the parameters of a feature by one number for all classes changes no probability. Without
    a ridge term the loss is flat in these p directions, W is one solution of many, and flow is
    conserved there: over the classes of a feature the dual variables of a node add up to zero.
    With two classes and the ridge rho this is `LogisticLoss` with the ridge rho / 2 for
    ``w = W_1 - W_0``, but for the jumps across edges, which see both columns.

    Nothing but ridge terms, the same for all classes of a feature, and `PointLoss` can be added.

    Parameters
    ----------
    X : array_like, shape (m, p), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like of int, shape (m,)
        Classes, 0, ..., K - 1.
    n_classes : int, optional
        K >= 2. Default: the largest class in y, and one more; nodes of one graph need the same.
    ridge : float or array_like of shape (p,), default 0.0
        rho >= 0, for all entries of W or for those of each feature.
    intercept : int or sequence of int, optional
        Column of X that is constant; its row of W is left out of the ridge term.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, of which only the ratios count.
    """

    def __init__(
        self,
        X: ArrayLike | None,
        y: ArrayLike,
        n_classes: int | None = None,
        ridge: ArrayLike = 0.0,
        intercept: int | Sequence[int] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self._rows = rows_of_node(X, y, sample_weight)
        self.X, self.y = self._rows.X, self._rows.y
        self.n_classes = _classes(self._rows, n_classes)
        p = self.X.shape[1]
        self.dim: int = p * self.n_classes
        self._ridge = np.repeat(entries_but_intercept("ridge", ridge, p, intercept), self.n_classes)

    def plain_terms(self, dim: int) -> list[Term]:
        """Return the rows, and the ridge term, at node 0."""
        rows = self._rows.terms(MULTINOMIAL, {})
        if not self._ridge.any():
            return rows
        node = np.zeros(1, dtype=np.int64)
        return [*rows, {"kind": "ridge", "node": node, "mu": self._ridge[None, :]}]

    @staticmethod
    def stack(
        X: ArrayLike | None,
        y: ArrayLike,
        labelled: ArrayLike | None = None,
        n_classes: int | None = None,
        ridge: ArrayLike = 0.0,
        intercept: int | Sequence[int] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> StackedLoss:
        """Losses of all nodes at once, with the same number of rows at every node.

        Parameters
        ----------
        X : array_like, shape (n, m, p), (n, p) with y (n,), or None
        y : array_like of int, shape (n, m) or (n,)
        labelled : array_like of bool, shape (n,), optional
            Nodes whose data are accessible; the others get the zero loss, and may have NaN.
            Default: all.
        n_classes : int, optional
            K >= 2. Default: the largest class of all nodes, and one more.
        ridge, intercept
            Those of the single loss.
        sample_weight : array_like, optional
            Weights of the data points, of the shape of y: means are weighted, node by node.
        """
        return _stacked(stacked_rows(X, y, labelled, sample_weight), n_classes, ridge, intercept)

    @staticmethod
    def from_rows(
        X: ArrayLike | None,
        y: ArrayLike,
        node: ArrayLike,
        n_nodes: int | None = None,
        n_classes: int | None = None,
        ridge: ArrayLike = 0.0,
        intercept: int | Sequence[int] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> StackedLoss:
        """Losses of all nodes from one table of data points, any number of rows per node.

        Parameters
        ----------
        X : array_like, shape (N, p), or None
        y : array_like of int, shape (N,)
        node : array_like of int, shape (N,)
            Number of the node that holds each row. Nodes without rows get the zero loss.
        n_nodes : int, optional
            Number of nodes n of the graph. Default: as many as the graph that the losses meet.
        n_classes : int, optional
            K >= 2. Default: the largest class of all nodes, and one more.
        ridge, intercept
            Those of the single loss.
        sample_weight : array_like, optional
            Weights of the data points, of the shape of y: means are weighted, node by node.
        """
        return _stacked(table_rows(X, y, node, n_nodes, sample_weight), n_classes, ridge, intercept)

    def probabilities(self, w: ArrayLike) -> FloatArray:
        """Probabilities (m, K) of the classes of the rows, for parameters w (d,)."""
        w = finite_array(w, "w", 1)
        if len(w) != self.dim:
            raise ValueError(f"w: a vector of length {self.dim} is expected, got {len(w)}")
        return probabilities(self.X @ w.reshape(-1, self.n_classes))

    def __repr__(self) -> str:
        return f"MultinomialLogisticLoss(X of shape {self.X.shape}, n_classes={self.n_classes})"


def _classes(rows: Rows, n_classes: int | None) -> int:
    """Return the number of classes, and refuse labels that are none."""
    if n_classes is not None and (not is_integer(n_classes) or n_classes < 2):
        raise ValueError(f"n_classes: an integer >= 2 is expected, got {n_classes!r}")
    y = rows.y
    if n_classes is None and not len(y):
        raise ValueError("n_classes: is needed where there is no row of data")
    K = max(int(y.max()) + 1, 2) if n_classes is None else int(n_classes)
    check_classes(y, K, rows.place)
    return K


def _stacked(
    rows: Rows, n_classes: int | None, ridge: ArrayLike, intercept: int | Sequence[int] | None
) -> StackedLoss:
    K, p = _classes(rows, n_classes), rows.X.shape[1]
    mu = np.repeat(entries_but_intercept("ridge", ridge, p, intercept), K)
    nodes = np.unique(rows.node)
    terms = rows.terms(MULTINOMIAL, {})
    if mu.any():
        terms.append({"kind": "ridge", "node": nodes, "mu": np.tile(mu, (len(nodes), 1))})
    return stacked_terms(terms, p * K, rows.n_nodes)
