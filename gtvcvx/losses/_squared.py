"""Squared error loss of a linear model."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx.losses._loss import Loss
from gtvcvx.losses._rows import Rows, rows_of_node, stacked_rows, table_rows
from gtvcvx.losses.batched._quadratic import BatchedQuadratic
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.losses.batched._stacked import StackedLoss, stacked_terms
from gtvcvx.losses.batched._terms import WEIGHT, Term


class SquaredLoss(Loss):
    r"""Mean squared error of a linear model ([GTV] (38)).

    .. math:: L(w) = \tfrac1{\sum_r s_r} \sum_r s_r (x_r^T w - y_r)^2, \quad
        \text{without weights } \tfrac1m \lVert X w - y \rVert_2^2

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point; m < d and rank-deficient X are fine. None: no features but
        the constant 1, so that w is one number, the mean's.
    y : array_like, shape (m,)
        Targets.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, of which only the ratios count; those of weight 0 are as
        if absent, and one at least must not be. Default: all weigh the same.
    """

    def __init__(
        self, X: ArrayLike | None, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> None:
        rows = rows_of_node(X, y, sample_weight)
        self.X, self.y, self._share = rows.X, rows.y, rows.share
        self.dim: int = self.X.shape[1]

    @property
    def kind(self) -> Hashable:
        """Means make one batch, weighted means another."""
        return SquaredLoss, self._share is None

    @classmethod
    def batch(cls, losses: Sequence[SquaredLoss], dim: int) -> BatchedSquared:
        """Join squared losses of equal dimension; the numbers of rows may differ."""
        counts = [len(loss.y) for loss in losses]
        X, y = (np.concatenate([getattr(loss, name) for loss in losses]) for name in ("X", "y"))
        shares = [loss._share for loss in losses if loss._share is not None]
        if not shares:
            return BatchedSquared(X, y, np.cumsum([0, *counts]))
        node = np.repeat(np.arange(len(losses)), counts)
        term: Term = {"kind": "squared", "node": node, "X": X, "y": y}
        return BatchedQuadratic([{**term, WEIGHT: np.concatenate(shares)}], len(losses), dim)

    @staticmethod
    def stack(
        X: ArrayLike | None,
        y: ArrayLike,
        labelled: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> StackedLoss:
        """Losses of all nodes at once, with the same number of rows at every node.

        Parameters
        ----------
        X : array_like, shape (n, m, d), or None
            None: no features but the constant 1.
        y : array_like, shape (n, m)
            Or, with X of shape (n, d), of shape (n,): one data point a node.
        labelled : array_like of bool, shape (n,), optional
            Nodes whose data are accessible; the others get the zero loss, and may have NaN.
            Default: all.
        sample_weight : array_like, shaped like y, optional
            Weights >= 0, see `SquaredLoss`; a node whose weights are all 0 gets the zero loss.
        """
        return _stacked(stacked_rows(X, y, labelled, sample_weight))

    @staticmethod
    def from_rows(
        X: ArrayLike | None,
        y: ArrayLike,
        node: ArrayLike,
        n_nodes: int | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> StackedLoss:
        """Losses of all nodes from one table of data points, any number of rows per node.

        Parameters
        ----------
        X : array_like, shape (N, d), or None
            None: no features but the constant 1.
        y : array_like, shape (N,)
        node : array_like of int, shape (N,)
            Number of the node that holds each row. Nodes without rows get the zero loss.
        n_nodes : int, optional
            Number of nodes n of the graph. Default: as many as the graph that the losses meet.
        sample_weight : array_like, shape (N,), optional
            Weights >= 0, see `SquaredLoss`; a node whose weights are all 0 gets the zero loss.
        """
        return _stacked(table_rows(X, y, node, n_nodes, sample_weight))

    def __repr__(self) -> str:
        weighted = "" if self._share is None else ", weighted"
        return f"SquaredLoss(X of shape {self.X.shape}{weighted})"


def _stacked(rows: Rows) -> StackedLoss:
    d = rows.X.shape[1]
    if rows.share is not None:
        return stacked_terms(rows.terms("squared", {}), d, rows.n_nodes)
    counts = np.bincount(rows.node)
    nodes = np.flatnonzero(counts)
    indptr = np.concatenate([[0], np.cumsum(counts[nodes])])
    parts = [(nodes, BatchedSquared(rows.X, rows.y, indptr))] if len(nodes) else []
    losses = StackedLoss(parts, dim=d)
    return losses if rows.n_nodes is None else losses.completed(rows.n_nodes)
