"""Graphs and data points from data frames, with the checks that CSV files go through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.files._csv import node_positions
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.interop._checked_frame import CheckedFrame
from verify._display import fields_text


@dataclass(frozen=True)
class Rows:
    """Data points of a data frame, as ``SquaredLoss.from_rows`` and its like take them.

    Attributes
    ----------
    X : ndarray, shape (N, d)
        Feature columns, as they are.
    y : ndarray, shape (N,)
        Target.
    node : ndarray of int64, shape (N,)
        Number of the node that holds each row.
    features : list of str, length d
        Names of the feature columns.
    n_skipped : int
        Rows left out because their target is missing.
    """

    X: FloatArray
    y: FloatArray
    node: IntArray
    features: list[str]
    n_skipped: int

    __repr__ = fields_text


def graph_from_frame(
    edges: Any,
    ends: tuple[Any, Any] | None = None,
    weight: Any = None,
    nodes: Sequence[Any] | None = None,
) -> EmpiricalGraph:
    """Take a graph from a data frame with one row an edge.

    Parameters
    ----------
    edges : pandas.DataFrame or polars.DataFrame
        Two columns of node labels, strings or integers, and perhaps one of weights. Parallel
        edges are merged by adding their weights.
    ends : pair of column names, optional
        The two node columns. Default: the first two of a frame that has two or three columns; a
        third one holds the weights.
    weight : column name, optional
        Column of the weights A_e, positive and finite. Default: with ``ends``, all weigh 1.
    nodes : sequence, optional
        All node labels, in the order wanted; isolated nodes may be among them. Default: those of
        the edges, in order of appearance.

    Returns
    -------
    EmpiricalGraph

    Raises
    ------
    TypeError, ValueError
        Naming row and column: a column that is missing or there twice, a label that is missing,
        empty, or neither a string nor an integer, a self-loop, a weight that is not a positive
        finite number; no edge; two labels with the same text; a node that is not in ``nodes``.
    """
    table = CheckedFrame.of(edges, "edges")
    if ends is None:
        if weight is not None:
            raise ValueError("weight: the two node columns are expected as well, as ends")
        if len(table.names) not in (2, 3):
            raise ValueError(
                f"edges: 2 or 3 columns (node, node, weight) are expected, found "
                f"{len(table.names)}; name the two node columns by ends"
            )
        ends, weight = tuple(table.names[:2]), [*table.names, None][2]
    if isinstance(ends, str) or len(ends) != 2:
        raise ValueError(f"ends: two column names are expected, got {ends!r}")
    sides = [table.labels(column) for column in ends]
    weights = np.ones(len(sides[0])) if weight is None else table.numbers(weight)
    if not len(weights):
        raise ValueError("edges: there is no row")
    if (weights <= 0).any():
        k = int(np.argmax(weights <= 0))
        raise table.error(k, weight, f"a positive weight is expected, got {weights[k]:g}")
    labels = list(dict.fromkeys(x for pair in zip(*sides, strict=True) for x in pair))
    positions = node_positions(labels if nodes is None else nodes)
    numbers = [table.positions(positions, side, end) for side, end in zip(sides, ends, strict=True)]
    loops = np.flatnonzero(numbers[0] == numbers[1])
    if loops.size:
        k = int(loops[0])
        raise table.error(k, None, f"the edge joins node {sides[0][k]!r} to itself")
    return EmpiricalGraph(
        len(positions), np.column_stack(numbers), weights, labels if nodes is None else nodes
    )


def rows_from_frame(
    data: Any,
    graph: EmpiricalGraph,
    *,
    node: Any,
    target: Any,
    features: Sequence[Any] | None = None,
) -> Rows:
    """Take data points from a data frame with one row each.

    A row whose target is missing (None, NaN, NA) is a point without a label: it is left out and
    counted. Labels are compared with those of the graph by their text, as in CSV files.

    Parameters
    ----------
    data : pandas.DataFrame or polars.DataFrame
    graph : EmpiricalGraph
        It must have all the nodes that hold rows; the others are unlabelled.
    node, target : column name
        Columns of the nodes and of the targets.
    features : sequence of column names, optional
        Feature columns, in the order wanted. Default: every other column, in the frame's order.

    Returns
    -------
    Rows
        ``SquaredLoss.from_rows(rows.X, rows.y, rows.node, graph.n_nodes)`` makes losses of them.

    Raises
    ------
    TypeError, ValueError
        Naming row and column: a column that is missing, there twice or named twice, a node that
        is missing or not in the graph, a feature that is missing, a value that is not a finite
        number; no row with a target, no feature.
    """
    table = CheckedFrame.of(data, "data")
    names = _feature_names(table, node, target, features)
    y = table.numbers(target, missing=True)
    kept = np.flatnonzero(~np.isnan(y))
    if not len(kept):
        raise ValueError(f"data: no row has a value in the target column {target!r}")
    table = table.rows(kept)
    labels = table.labels(node)
    return Rows(
        np.column_stack([table.numbers(name) for name in names]),
        y[kept],
        table.positions(node_positions(graph.nodes), labels, node),
        [str(name) for name in names],
        len(y) - len(kept),
    )


def _feature_names(
    table: CheckedFrame, node: Any, target: Any, features: Sequence[Any] | None
) -> list[Any]:
    """Check the names of the columns and return those of the features."""
    for argument, name in (("node", node), ("target", target)):
        table.check(name, argument)
    if node == target:
        raise ValueError(f"target: the column {target!r} is already the node column")
    if isinstance(features, str):
        raise TypeError(f"features: a list of column names is expected, got {features!r}")
    given = table.names if features is None else list(features)
    for k, name in enumerate(given):
        table.check(name, "features")
        if features is not None and (name in (node, target) or name in given[:k]):
            raise ValueError(f"features: {name!r} is the node or target column, or occurs twice")
    names = [name for name in given if name not in (node, target)]
    if not names:
        raise ValueError(f"features: no column besides {node!r} and {target!r}")
    return names
