"""Rows of data and the nodes that they belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from gtvcvx._arrays import FloatArray, IntArray, is_integer
from gtvcvx.graph import EmpiricalGraph


class Rows(NamedTuple):
    """Features (N, d), and the labels of their nodes (list of length N) if they are in X."""

    X: FloatArray
    labels: list[Any] | None


def split_rows(estimator: Any, X: Any, node_column: Any, *, reset: bool) -> Rows:
    """Check X (N, columns) as scikit-learn does, and take the node column out of it.

    ``reset``: remember the number of columns and their names, instead of comparing them.
    """
    if node_column is None:
        return Rows(validate_data(estimator, X, dtype=np.float64, reset=reset), None)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    position = _position(estimator, node_column)
    if hasattr(X, "iloc"):
        labels = X.iloc[:, position].tolist()
        features = X.iloc[:, [k for k in range(X.shape[1]) if k != position]]
    else:
        table = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
        labels = table[:, position].tolist()
        features = np.delete(table, position, axis=1)
    return Rows(
        check_array(features, dtype=np.float64, estimator=estimator, input_name="X"), labels
    )


def _position(estimator: Any, node_column: Any) -> int:
    count = estimator.n_features_in_
    if isinstance(node_column, str):
        names = list(getattr(estimator, "feature_names_in_", []))
        if node_column not in names:
            found = f"columns {names}" if names else "columns without names"
            raise ValueError(f"node_column: {node_column!r} is not in X, which has {found}")
        return names.index(node_column)
    if not is_integer(node_column):
        raise TypeError(
            f"node_column: a column name or position of X is expected, got {node_column!r}"
        )
    if not -count <= node_column < count:
        raise ValueError(f"node_column: X has {count} columns, there is no column {node_column}")
    return int(node_column) % count


def feature_names(estimator: Any, node_column: Any) -> list[str] | None:
    """Names of the features without the node column, or None if they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return None
    skip = None if node_column is None else _position(estimator, node_column)
    return [str(name) for k, name in enumerate(names) if k != skip]


def node_positions(graph: EmpiricalGraph, node: Any, n_rows: int, name: str) -> IntArray:
    """Position in the graph of the node of each row, shape (N,).

    Raises
    ------
    ValueError
        Naming the row: a label that the graph does not have.
    """
    labels = node if isinstance(node, list) else np.asarray(node).tolist()
    if not isinstance(labels, list) or len(labels) != n_rows:
        found = f"{len(labels)}" if isinstance(labels, list) else repr(labels)
        raise ValueError(f"{name}: one node for each of the {n_rows} rows is expected, got {found}")
    try:
        found_at = [graph.index.get(label, -1) for label in labels]
    except TypeError as error:
        raise TypeError(f"{name}: node labels are expected ({error})") from error
    positions = np.array(found_at, dtype=np.int64)
    unknown = np.flatnonzero(positions < 0)
    if unknown.size:
        k = int(unknown[0])
        raise ValueError(f"{name}: row {k} names node {labels[k]!r}, which the graph does not have")
    return positions
