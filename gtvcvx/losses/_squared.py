"""Squared error loss of a linear model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx.losses._loss import Loss
from gtvcvx.losses._rows import Rows, rows_of_node, stacked_rows, table_rows
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.losses.batched._stacked import StackedLoss


class SquaredLoss(Loss):
    """Mean squared error of a linear model, ``L(w) = (1/m) ||X w - y||_2^2`` ([GTV] (38)).

    Parameters
    ----------
    X : array_like, shape (m, d)
        Features, one row a data point; m < d and rank-deficient X are fine.
    y : array_like, shape (m,)
        Targets.
    """

    def __init__(self, X: ArrayLike, y: ArrayLike) -> None:
        self.X, self.y = rows_of_node(X, y)
        self.dim: int = self.X.shape[1]

    @classmethod
    def batch(cls, losses: Sequence[SquaredLoss], dim: int) -> BatchedSquared:
        """Join squared losses of equal dimension; the numbers of rows may differ."""
        indptr = np.cumsum([0] + [len(loss.y) for loss in losses])
        return BatchedSquared(
            np.concatenate([loss.X for loss in losses]),
            np.concatenate([loss.y for loss in losses]),
            indptr,
        )

    @staticmethod
    def stack(X: ArrayLike, y: ArrayLike, labelled: ArrayLike | None = None) -> StackedLoss:
        """Losses of all nodes at once, with the same number of rows at every node.

        Parameters
        ----------
        X : array_like, shape (n, m, d)
        y : array_like, shape (n, m)
        labelled : array_like of bool, shape (n,), optional
            Nodes whose data are accessible; the others get the zero loss. Default: all.
        """
        return _stacked(stacked_rows(X, y, labelled))

    @staticmethod
    def from_rows(
        X: ArrayLike, y: ArrayLike, node: ArrayLike, n_nodes: int | None = None
    ) -> StackedLoss:
        """Losses of all nodes from one table of data points, any number of rows per node.

        Parameters
        ----------
        X : array_like, shape (N, d)
        y : array_like, shape (N,)
        node : array_like of int, shape (N,)
            Number of the node that holds each row. Nodes without rows get the zero loss.
        n_nodes : int, optional
            Number of nodes n of the graph. Default: as many as the graph that the losses meet.
        """
        return _stacked(table_rows(X, y, node, n_nodes))

    def __repr__(self) -> str:
        return f"SquaredLoss(X of shape {self.X.shape})"


def _stacked(rows: Rows) -> StackedLoss:
    counts = np.bincount(rows.node)
    nodes = np.flatnonzero(counts)
    indptr = np.concatenate([[0], np.cumsum(counts[nodes])])
    parts = [(nodes, BatchedSquared(rows.X, rows.y, indptr))] if len(nodes) else []
    losses = StackedLoss(parts, dim=rows.X.shape[1])
    return losses if rows.n_nodes is None else losses.completed(rows.n_nodes)
