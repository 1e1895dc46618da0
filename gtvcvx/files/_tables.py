"""The three files of the command line: edges, data and partition, read into arrays and labels.

A node label is the cell's text without surrounding blanks. If all labels of a file are integers in
their usual form they become ``int``; one that is not (``'01'``, ``'1.0'``, ``'A7'``) leaves all of
them strings. Labels of different files are compared by their text, so it does not matter if one
file holds only integers and the other does not.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.files._csv import (
    Chunk,
    CsvFile,
    Label,
    as_labels,
    is_integer,
    is_number,
    node_positions,
)
from gtvcvx.files._opening import open_csv
from gtvcvx.files._partition import read_labels
from gtvcvx.files._targets import Numbers

__all__ = [
    "DataTable",
    "EdgeTable",
    "Label",
    "match_nodes",
    "read_data",
    "read_edges",
    "read_labels",
]


# First rows that are headers whatever follows. No single letters: those are also node names.
_EDGE_HEADER = frozenset(
    {
        *("source", "target", "from", "to", "head", "tail", "src", "dst", "start", "end"),
        *("node", "node1", "node2", "node_1", "node_2", "node_a", "node_b"),
        *("neighbour", "neighbor"),
    }
)


@dataclass(frozen=True)
class EdgeTable:
    """Content of an edge file.

    Attributes
    ----------
    labels : list of str or list of int, length n
        Node labels in order of first appearance.
    edges : ndarray of int64, shape (m, 2)
        Ends of each row's edge as positions in ``labels``; parallel edges are kept.
    weights : ndarray of float64, shape (m,)
        Positive and finite; ones if the file has no weight column.
    """

    labels: list[Label]
    edges: IntArray
    weights: FloatArray


@dataclass(frozen=True)
class DataTable:
    """Content of a data file: one row a data point.

    Attributes
    ----------
    path : str
        The file, for messages.
    node : list of str or list of int, length N
        Node label of each row.
    lines : ndarray of int64, shape (N,)
        Line number of each row.
    X : ndarray of float64, shape (N, d)
        Feature columns in file order, as they are; d is 0 if there are none.
    y : ndarray of float64, shape (N,)
        Target; zeros if none was asked for.
    features : list of str, length d
        Names of the feature columns.
    n_skipped : int
        Rows left out because their target cell is empty.
    labels : list of str, or None
        Where targets are labels: the one of the smallest value in ``y``, and so on.
    """

    path: str
    node: list[Label]
    lines: IntArray
    X: FloatArray
    y: FloatArray
    features: list[str]
    n_skipped: int
    labels: list[str] | None = None


def read_edges(path: str | os.PathLike[str]) -> EdgeTable:
    """Read an edge list: two node columns and an optional weight column.

    A header row is recognised, and may be absent. With a weight column the first row is a header
    if its third cell is not a number. With two columns it is one if both cells are usual names
    (``source,target``, ``from,to``, ``node1,node2``, ...), or if no cell of it is an integer while
    all nodes below are. A row whose labels occur below is an edge. A first row that could be
    either is refused rather than guessed.

    Raises
    ------
    ValueError
        Naming file, line and column: no such file, empty file, no edge, 2 or 3 cells expected, an
        empty cell, a self-loop, a weight that is not a positive finite number.
    """
    # Positions in order of first appearance. The first row's labels are numbered first, so that
    # they can be taken away again if it turns out to be a header.
    positions: defaultdict[str, int] = defaultdict(count().__next__)
    with open_csv(path) as file:
        line, first = file.first()
        if len(first) not in (2, 3):
            expected = "2 or 3 cells (node, node, weight) separated by commas are expected"
            raise file.error(line, None, f"{expected}, found {len(first)}")
        file.refuse_empty(first, [line] * len(first), "names or first edge")
        n_first = 0 if file.named else len({positions[label] for label in first[:2]})
        parts = [_edge_arrays(file, chunk, positions) for chunk in file.chunks(len(first))]
    edges = np.concatenate([np.empty((0, 2), dtype=np.int64), *(part[0] for part in parts)])
    weights = np.concatenate([np.empty(0), *(part[1] for part in parts)])
    labels = list(positions)
    reused = bool((edges < n_first).any())
    if _is_edge_header(file, line, first, labels[n_first:], reused):
        labels, edges = labels[n_first:], edges - n_first
    else:
        row = Chunk([line], [[cell] for cell in first])
        first_edge, first_weight = _edge_arrays(file, row, positions)
        edges = np.concatenate([first_edge, edges])
        weights = np.concatenate([first_weight, weights])
    if not len(edges):
        raise ValueError(f"{file.path}: there is no edge below the header")
    return EdgeTable(as_labels(labels), edges, weights)


def _edge_arrays(
    file: CsvFile, chunk: Chunk, positions: defaultdict[str, int]
) -> tuple[IntArray, FloatArray]:
    """Give ends (k, 2) and weights (k,) of a chunk's rows; new labels enter ``positions``."""
    ends = np.empty((len(chunk.lines), 2), dtype=np.int64)
    for side in (0, 1):
        cells = chunk.columns[side]
        file.refuse_empty(cells, chunk.lines, f"{side + 1} (node)")
        ends[:, side] = np.fromiter(map(positions.__getitem__, cells), np.int64, len(cells))
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if loops.size:
        k = int(loops[0])
        label = chunk.columns[0][k]
        raise file.error(chunk.lines[k], None, f"the edge joins node {label!r} to itself")
    if len(chunk.columns) == 2:
        return ends, np.ones(len(ends))
    weights = file.floats(chunk.columns[2], chunk.lines, "3 (weight)")
    wrong = np.flatnonzero(weights <= 0)
    if wrong.size:
        k = int(wrong[0])
        problem = f"a positive weight is expected, got {chunk.columns[2][k]!r}"
        raise file.error(chunk.lines[k], "3 (weight)", problem)
    return ends, weights


def _is_edge_header(
    file: CsvFile, line: int, first: list[str], below: list[str], reused: bool
) -> bool:
    """Whether the first row is a header.

    ``below``: the labels that the other rows add; ``reused``: they also use one of the first row's.
    """
    if file.named:
        return True
    if len(first) == 3:
        if reused and not is_number(first[2]):
            raise file.error(line, "3 (weight)", f"{first[2]!r} is not a number")
        return not is_number(first[2])
    names = first[:2]
    if reused or any(map(is_integer, names)):
        return False
    if all(name.lower() in _EDGE_HEADER for name in names):
        return True
    if below and all(map(is_integer, below)):
        return True
    raise file.error(
        line,
        None,
        f"{names[0]!r}, {names[1]!r} may be a header or an edge that is a component of its own; "
        "make the first row 'source,target' to tell",
    )


def read_data(
    path: str | os.PathLike[str],
    *,
    node: str | None,
    target: str | None,
    features: Sequence[str] | None = None,
    targets: Numbers | None = None,
) -> DataTable:
    """Read data points: a header row, then one row a data point.

    A row whose target cell is empty is a point without a label: it is left out and counted. Text
    such as ``NA`` or ``nan`` is refused, because it may as well be the mark of a broken column.

    Parameters
    ----------
    path : str or path-like
        The file.
    node : str or None
        Name of the node column; None: there is none, rows are numbered from 1.
    target : str or None
        Name of the target column; None: there is none, and all rows are read.
    features : sequence of str, optional
        Names of the feature columns, in the order wanted. Default: every other column, in file
        order.
    targets : Numbers, optional
        What the target column may hold. Default: any finite number.

    Raises
    ------
    ValueError
        Naming file, line and column: no such file, empty file, a column that is missing, named
        twice or has no name, a row with too few or too many cells, an empty cell (but for the
        target), a cell that is not a finite number, no row with a target.
    """
    targets = Numbers() if targets is None else targets
    nodes: list[str] = []
    lines: list[int] = []
    X, y = [], []
    n_rows = 0
    with open_csv(path) as file:
        line, header = file.first()
        names = _feature_names(file, line, header, node, target, features)
        place = {name: k for k, name in enumerate(header)}
        for chunk in file.chunks(len(header)):
            n_rows += len(chunk.lines)
            kept = chunk if target is None else _with_target(chunk, place[target])
            if node is None:
                nodes += map(str, range(len(lines) + 1, len(lines) + len(kept.lines) + 1))
            else:
                file.refuse_empty(kept.columns[place[node]], kept.lines, repr(node))
                nodes += kept.columns[place[node]]
            lines += kept.lines
            if target is not None:
                cells = kept.columns[place[target]]
                y.append(targets.read(file, cells, kept.lines, repr(target)))
            columns = [
                file.floats(kept.columns[place[name]], kept.lines, repr(name)) for name in names
            ]
            X.append(np.array(columns).reshape(len(names), len(kept.lines)).T)
    if not lines and target is None:
        raise ValueError(f"{file.path}: there is no row below the header")
    if not lines:
        raise ValueError(f"{file.path}: no row has a value in the target column {target!r}")
    return DataTable(
        file.path,
        as_labels(nodes),
        np.array(lines, dtype=np.int64),
        np.ascontiguousarray(np.concatenate(X)),
        np.zeros(len(lines)) if target is None else targets.finished(np.concatenate(y)),
        names,
        n_rows - len(lines),
        targets.labels,
    )


def _feature_names(
    file: CsvFile,
    line: int,
    header: list[str],
    node: str | None,
    target: str | None,
    features: Sequence[str] | None,
) -> list[str]:
    """Check the header and return the names of the feature columns."""
    for k, name in enumerate(header):
        if not name:
            last = "; does the line end in a separator?" if k and k == len(header) - 1 else ""
            raise file.error(line, str(k + 1), f"the column has no name{last}")
        if name in header[:k]:
            raise file.error(line, str(k + 1), f"the column name {name!r} occurs twice")
    if isinstance(features, str):
        raise TypeError(f"features: a list of column names is expected, got {features!r}")
    if node == target and node is not None:
        raise ValueError(f"target: the column {target!r} is already the node column")
    wanted = {
        "node": [] if node is None else [node],
        "target": [] if target is None else [target],
        "features": list(features or []),
    }
    for argument, names in wanted.items():
        for name in names:
            if name not in header:
                there = ", ".join(map(repr, header))
                raise file.error(line, None, f"no column {name!r} ({argument}), only {there}")
    if features is None:
        return [name for name in header if name not in (node, target)]
    for k, name in enumerate(features):
        if name in (node, target):
            raise ValueError(f"features: {name!r} is the node or target column")
        if name in features[:k]:
            raise ValueError(f"features: {name!r} occurs twice")
    return list(features)


def _with_target(chunk: Chunk, target: int) -> Chunk:
    """Keep the rows of a chunk whose target cell is not empty."""
    cells = chunk.columns[target]
    if "" not in cells:
        return chunk
    keep = [k for k, cell in enumerate(cells) if cell]
    columns = [[column[k] for k in keep] for column in chunk.columns]
    return Chunk([chunk.lines[k] for k in keep], columns)


def match_nodes(nodes: Sequence[Label], table: DataTable, whose: str = "the graph") -> IntArray:
    """Position in ``nodes`` of the node of each data row, shape (N,).

    Parameters
    ----------
    nodes : sequence of str or int, length n
        The graph's node labels; compared by their text.
    table : DataTable
        What ``read_data`` returned.
    whose : str
        What the nodes are of, for the message.

    Raises
    ------
    ValueError
        Naming file, line and node of the first row whose node is not in the graph, and two labels
        of the graph that have the same text.
    """
    positions = node_positions(nodes)
    where = np.fromiter(
        (positions.get(str(label), -1) for label in table.node), np.int64, len(table.node)
    )
    unknown = np.flatnonzero(where < 0)
    if unknown.size:
        k = int(unknown[0])
        raise ValueError(
            f"{table.path}, line {table.lines[k]}: node {str(table.node[k])!r} is not in {whose}"
        )
    return where
