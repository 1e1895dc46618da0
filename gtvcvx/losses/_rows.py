"""Rows (x, y) of data as users give them: of one node, of all nodes, or in one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import (
    FloatArray,
    IntArray,
    array_of_axes,
    finite_array,
    integer_array,
    real_array,
)
from gtvcvx.losses.batched._terms import LEAST_WEIGHT, WEIGHT, Term, check_parameter


class Rows(NamedTuple):
    """Rows of some nodes, sorted by node; those of weight 0 are left out."""

    X: FloatArray  # (N, d)
    y: FloatArray  # (N,)
    node: IntArray  # (N,)
    order: IntArray  # (N,), where each row was in the flattened targets that were given
    n_nodes: int | None
    shape: tuple[int, ...]  # of these targets
    # Shares (N,) of the rows in the weight of their nodes, 0 at nodes whose rows weigh the same;
    # None where that is so everywhere.
    share: FloatArray | None = None

    def place(self, at: tuple[int, ...]) -> tuple[int, ...]:
        """Return where the target of a row (its number alone) was in those that were given."""
        return tuple(int(k) for k in np.unravel_index(self.order[at], self.shape))

    def terms(self, kind: str, parameters: Mapping[str, FloatArray]) -> list[Term]:
        """Return the rows as terms: means, and weighted sums of nodes with weights.

        Parameters
        ----------
        kind : str
        parameters : mapping of str to ndarray
            Of the rows as they were given, flattened.
        """
        fields = {"node": self.node, "X": self.X, "y": self.y}
        fields |= {name: values[self.order] for name, values in parameters.items()}
        if self.share is None:
            return [{"kind": kind, **fields}]
        terms: list[Term] = []
        for kept, weighted in ((self.share == 0.0, False), (self.share > 0.0, True)):
            chosen = {**fields, WEIGHT: self.share} if weighted else fields
            if kept.any():
                terms.append({"kind": kind} | {name: x[kept] for name, x in chosen.items()})
        return terms

    def weighted(self, weights: FloatArray | None) -> Rows:
        """Return the rows of positive weight, for weights (N,) of the rows as given, flattened.

        A mean has shares in the total weight of its node. A share that is no normal number counts
        as none.
        """
        if weights is None or not len(self.node):
            return self
        share = _shares(weights[self.order], self.node)
        kept = share >= LEAST_WEIGHT
        X, y, node, order = self.X[kept], self.y[kept], self.node[kept], self.order[kept]
        uneven = _uneven(share[kept], node)
        return self._replace(X=X, y=y, node=node, order=order, share=uneven)


def _starts(node: IntArray) -> IntArray:
    """Return where each node's rows begin, for sorted node (N,)."""
    return np.flatnonzero(np.concatenate([[True], node[1:] != node[:-1]])[: len(node)])


def _uneven(share: FloatArray, node: IntArray) -> FloatArray | None:
    """Return shares > 0 (N,), zero at nodes where all are equal; None if that is everywhere."""
    if not len(node):
        return None
    first = _starts(node)
    least, most = np.minimum.reduceat(share, first), np.maximum.reduceat(share, first)
    uniform = np.repeat(least == most, np.diff([*first, len(node)]))
    return None if uniform.all() else np.where(uniform, 0.0, share)


def _shares(weights: FloatArray, node: IntArray) -> FloatArray:
    """Return weights (N,) over the sums of their nodes, sorted; zero where a sum is zero."""
    first = _starts(node)
    count = np.diff([*first, len(node)])
    # Over the largest first: sums may be infinite, or have lost their digits.
    largest = np.repeat(np.maximum.reduceat(weights, first), count)
    share = np.divide(weights, largest, np.zeros_like(weights), where=largest > 0.0)
    total = np.repeat(np.add.reduceat(share, first), count)
    return np.divide(share, total, np.zeros_like(share), where=total > 0.0)


def sample_weights(value: ArrayLike | None, shape: tuple[int, ...]) -> FloatArray | None:
    """Check weights >= 0 of data points, shaped like the targets; return them flattened."""
    if value is None:
        return None
    weights = finite_array(value, "sample_weight", len(shape))
    if weights.shape != shape:
        raise ValueError(f"sample_weight: shape {shape} is expected, got {weights.shape}")
    wrong = np.argwhere(weights < 0.0)
    if len(wrong):
        at = tuple(int(k) for k in wrong[0])
        raise ValueError(f"sample_weight: entry {at} is {weights[at]}, a number >= 0 is expected")
    return weights.ravel()


def rows_of_node(X: ArrayLike | None, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Rows:
    """Check and copy the rows of one node, X (m, d) or none and y (m,)."""
    targets = finite_array(y, "y", 1).copy()
    features = np.ones((len(targets), 1)) if X is None else finite_array(X, "X", 2).copy()
    if len(features) != len(targets):
        raise ValueError(
            f"y: {len(features)} targets are expected, as X has rows, got {len(targets)}"
        )
    if features.size == 0:
        raise ValueError(
            f"X: at least one row and one column, got {features.shape}; "
            "a node without data has the loss ZeroLoss()"
        )
    m = len(targets)
    rows = Rows(features, targets, np.zeros(m, dtype=np.int64), np.arange(m), 1, (m,))
    rows = rows.weighted(sample_weights(sample_weight, targets.shape))
    if not len(rows.y):
        raise ValueError(
            "sample_weight: all are 0, at least one > 0 is expected; "
            "a node without data has the loss ZeroLoss()"
        )
    return rows


def stacked_rows(
    X: ArrayLike | None,
    y: ArrayLike,
    labelled: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
) -> Rows:
    """Check rows of all nodes, X (n, m, d) or none and y (n, m); keep those of labelled nodes (n,).

    Targets (n,), with X (n, d), are one data point a node. What others have need not be finite.
    """
    targets = real_array(y, "y")
    single, shape = targets.ndim == 1, targets.shape
    targets = array_of_axes(targets, "y", 1 if single else 2)
    weights = sample_weights(sample_weight, shape)
    if single:
        targets = targets[:, None]
    if X is None:
        features = np.ones((*targets.shape, 1))
    else:
        features = array_of_axes(X, "X", 2 if single else 3)
        features = features[:, None, :] if single else features
    n, m, d = features.shape
    if targets.shape != (n, m):
        raise ValueError(f"y: shape {(n,) if single else (n, m)} is expected, got {np.shape(y)}")
    if d == 0:
        raise ValueError("X: at least one feature column is expected")
    mask = np.ones(n, dtype=bool) if labelled is None else np.asarray(labelled)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        raise ValueError(
            f"labelled: a Boolean array of shape ({n},) is expected, "
            f"got {mask.dtype} of shape {mask.shape}"
        )
    nodes = np.flatnonzero(mask)
    order = (nodes[:, None] * m + np.arange(m)).ravel()
    features = _finite_at(nodes, features, "X", single).reshape(-1, d)
    targets = _finite_at(nodes, targets, "y", single).ravel()
    return Rows(features, targets, np.repeat(nodes, m), order, n, shape).weighted(weights)


def _finite_at(nodes: IntArray, array: FloatArray, name: str, single: bool) -> FloatArray:
    """Return the rows of some nodes, (k, m, ...), which have to be finite.

    Single rows (n, 1, ...) were given without their axis.
    """
    chosen = array[nodes]
    if not np.isfinite(chosen).all():
        others = np.zeros_like(array)
        others[nodes] = chosen
        others = others[:, 0] if single else others
        finite_array(others, name, others.ndim)  # says where
    return chosen


def table_rows(
    X: ArrayLike | None,
    y: ArrayLike,
    node: ArrayLike,
    n_nodes: int | None,
    sample_weight: ArrayLike | None = None,
) -> Rows:
    """Check one table of rows, X (N, d) or none, y (N,) and node (N,), and sort it by node."""
    targets = finite_array(y, "y", 1)
    features = np.ones((len(targets), 1)) if X is None else finite_array(X, "X", 2)
    owner = integer_array(node, "node")
    for name, array in (("y", targets), ("node", owner)):
        if array.shape != (len(features),):
            raise ValueError(f"{name}: shape ({len(features)},) is expected, got {array.shape}")
    if features.shape[1] == 0:
        raise ValueError("X: at least one feature column is expected")
    if n_nodes is not None and (not isinstance(n_nodes, (int, np.integer)) or n_nodes < 1):
        raise ValueError(f"n_nodes: a positive integer is expected, got {n_nodes!r}")
    wrong = np.flatnonzero((owner < 0) | (owner >= (np.inf if n_nodes is None else n_nodes)))
    if wrong.size:
        k = int(wrong[0])
        last = "n-1" if n_nodes is None else n_nodes - 1
        raise ValueError(f"node: row {k} names node {int(owner[k])}, outside 0..{last}")
    weights = sample_weights(sample_weight, targets.shape)
    order = np.argsort(owner, kind="stable")
    owner = owner[order].astype(np.int64)
    rows = Rows(features[order], targets[order], owner, order, n_nodes, targets.shape)
    return rows.weighted(weights)


def row_parameter(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """Check a parameter, one number or an array like the targets; return each row's, flattened."""
    array = real_array(value, name)
    if array.shape not in ((), shape):
        raise ValueError(
            f"{name}: a number or an array of shape {shape} is expected, got {array.shape}"
        )
    finite_array(array, name, array.ndim)
    check_parameter(name, array)
    return np.broadcast_to(array, shape).flatten()
