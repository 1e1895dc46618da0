"""Rows (x, y) of data as users give them: of one node, of all nodes, or in one table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, finite_array, integer_array, real_array


class Rows(NamedTuple):
    """Rows of some nodes, sorted by node."""

    X: FloatArray  # (N, d)
    y: FloatArray  # (N,)
    node: IntArray  # (N,)
    order: IntArray  # (N,), where each row was in the flattened targets that were given
    n_nodes: int | None


def rows_of_node(X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Check and copy the rows of one node, X (m, d) and y (m,)."""
    features = finite_array(X, "X", 2).copy()
    targets = finite_array(y, "y", 1).copy()
    if len(features) != len(targets):
        raise ValueError(
            f"y: {len(features)} targets are expected, as X has rows, got {len(targets)}"
        )
    if features.size == 0:
        raise ValueError(
            f"X: at least one row and one column, got {features.shape}; "
            "a node without data has the loss ZeroLoss()"
        )
    return features, targets


def stacked_rows(X: ArrayLike, y: ArrayLike, labelled: ArrayLike | None) -> Rows:
    """Check rows of all nodes, X (n, m, d) and y (n, m); keep those of labelled nodes (n,)."""
    features = finite_array(X, "X", 3)
    targets = finite_array(y, "y", 2)
    n, m, d = features.shape
    if targets.shape != (n, m):
        raise ValueError(f"y: shape {(n, m)} is expected, got {targets.shape}")
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
    return Rows(
        features[nodes].reshape(-1, d), targets[nodes].ravel(), np.repeat(nodes, m), order, n
    )


def table_rows(X: ArrayLike, y: ArrayLike, node: ArrayLike, n_nodes: int | None) -> Rows:
    """Check one table of rows, X (N, d), y (N,) and node (N,), and sort it by node."""
    features = finite_array(X, "X", 2)
    targets = finite_array(y, "y", 1)
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
    order = np.argsort(owner, kind="stable")
    return Rows(features[order], targets[order], owner[order].astype(np.int64), order, n_nodes)


def row_parameter(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return a parameter for each row, flattened: one number, or an array like the targets."""
    array = real_array(value, name)
    if array.shape not in ((), shape):
        raise ValueError(
            f"{name}: a number or an array of shape {shape} is expected, got {array.shape}"
        )
    return finite_array(np.broadcast_to(array, shape).ravel(), name, 1).copy()
