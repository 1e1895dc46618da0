"""Rows of data and the nodes that they belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, validate_data

from gtvcvx._arrays import FloatArray, IntArray, finite_array, is_integer
from gtvcvx.graph import EmpiricalGraph

# Sparse features are filled up: every node has dense parameters for them anyway, and a node's rows
# are few. Beyond so many bytes that is hardly what somebody wants; the copies of a fit come on top.
LARGEST_DENSE = 2**30


class Rows(NamedTuple):
    """Features (N, d), and the labels of their nodes (list of length N) if they are in X."""

    X: FloatArray
    labels: list[Any] | None


class Data(NamedTuple):
    """Rows with targets, and the nodes that hold them."""

    X: FloatArray  # (N, d), the column of ones of an intercept included
    y: FloatArray  # (N,)
    node: IntArray  # (N,), positions in the graph
    weight: FloatArray | None  # (N,) > 0; None if all weigh the same


def split_rows(
    estimator: Any, X: Any, node_column: Any, *, reset: bool, n_rows: int, empty: bool
) -> Rows:
    """Check X (N, columns) as scikit-learn does, and take the node column out of it.

    Parameters
    ----------
    estimator : object
        That remembers the columns.
    X : array_like, sparse matrix, data frame or None
        None: ``n_rows`` rows without features.
    node_column : int, str or None
    reset : bool
        Remember the number of columns and their names, instead of comparing them.
    n_rows : int
    empty : bool
        Whether there may be no feature at all.
    """
    if X is None:
        return _without_features(estimator, node_column, reset, n_rows)
    X = _dense(X)
    least = 0 if empty else 1
    if node_column is None:
        options = {"dtype": np.float64, "reset": reset, "ensure_min_features": least}
        return Rows(validate_data(estimator, X, **options), None)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    position = _position(estimator, node_column)
    if hasattr(X, "iloc"):
        labels = X.iloc[:, position].tolist()
        features = X.iloc[:, [k for k in range(X.shape[1]) if k != position]]
    else:
        table = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
        labels = table[:, position].tolist()
        features = np.delete(table, position, axis=1)
    if empty and features.shape[1] == 0:
        return Rows(np.empty((len(labels), 0)), labels)
    return Rows(
        check_array(features, dtype=np.float64, estimator=estimator, input_name="X"), labels
    )


def _without_features(estimator: Any, node_column: Any, reset: bool, n_rows: int) -> Rows:
    if node_column is not None:
        raise ValueError("node_column: X is expected, which has the column; it is None")
    if reset:
        estimator.n_features_in_ = 0
    elif estimator.n_features_in_:
        raise ValueError(
            f"X: {estimator.n_features_in_} features are expected, as in fit, but it is None"
        )
    return Rows(np.empty((n_rows, 0)), None)


def _dense(X: Any) -> Any:
    if not sp.issparse(X):
        return X
    size = 8 * int(np.prod(X.shape, dtype=object))
    if size > LARGEST_DENSE:
        raise ValueError(
            f"X: a sparse matrix is filled up, and shape {X.shape} takes {size / 2**30:.1f} GiB "
            f"of at most {LARGEST_DENSE / 2**30:g}; every node has parameters for all of its "
            f"{X.shape[1]} columns: take fewer, as by TruncatedSVD or SelectKBest"
        )
    return X.toarray()


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


def row_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Check weights >= 0 of rows, shape (N,); None if there are none."""
    if sample_weight is None:
        return None
    weights = finite_array(sample_weight, "sample_weight", 1)
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight: one number for each of the {n_rows} rows is expected, got "
            f"{len(weights)}"
        )
    wrong = np.flatnonzero(weights < 0.0)
    if wrong.size:
        raise ValueError(
            f"sample_weight: row {wrong[0]} has {weights[wrong[0]]}, a number >= 0 is expected"
        )
    return weights
