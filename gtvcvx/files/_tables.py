"""The three files of the command line: edges, data and partition, read into arrays and labels.

A node label is the cell's text without surrounding blanks. If all labels of a file are integers in
their usual form they become ``int``; one that is not (``'01'``, ``'1.0'``, ``'A7'``) leaves all of
them strings. Labels of different files are compared by their text, so it does not matter if one
file holds only integers and the other does not.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.files._csv import (
    Chunk,
    CsvFile,
    Label,
    as_labels,
    node_positions,
)
from gtvcvx.files._edge_table import EdgeTable, read_edges, scan_edges
from gtvcvx.files._opening import open_csv
from gtvcvx.files._partition import read_labels
from gtvcvx.files._targets import Numbers

__all__ = [
    "DataTable",
    "EdgeTable",
    "Label",
    "match_nodes",
    "positions_of",
    "read_data",
    "read_edges",
    "read_labels",
    "scan_data",
    "scan_edges",
]


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
    pieces = list(scan_data(path, node=node, target=target, features=features, targets=targets))
    lines = np.concatenate([piece.lines for piece in pieces])
    file, kept = os.fspath(path), len(lines)
    if not kept and target is None:
        raise ValueError(f"{file}: there is no row below the header")
    if not kept:
        raise ValueError(f"{file}: no row has a value in the target column {target!r}")
    y = np.concatenate([piece.y for piece in pieces])
    return DataTable(
        file,
        as_labels(str(label) for piece in pieces for label in piece.node),
        lines,
        np.ascontiguousarray(np.concatenate([piece.X for piece in pieces])),
        y if target is None else targets.finished(y),
        pieces[0].features,
        sum(piece.n_skipped for piece in pieces),
        targets.labels,
    )


def scan_data(
    path: str | os.PathLike[str],
    *,
    node: str | None,
    target: str | None,
    features: Sequence[str] | None = None,
    targets: Numbers | None = None,
) -> Generator[DataTable, None, None]:
    """Read data points as `read_data` does, piece by piece, for files that do not fit in memory.

    The first piece is empty and says which features there are. Targets are as they are read,
    before they are finished.
    """
    targets = Numbers() if targets is None else targets
    n_lines = 0
    with open_csv(path) as file:
        line, header = file.first()
        names = _feature_names(file, line, header, node, target, features)
        place = {name: k for k, name in enumerate(header)}
        nothing = np.empty(0, np.int64)
        yield DataTable(file.path, [], nothing, np.empty((0, len(names))), np.empty(0), names, 0)
        for chunk in file.chunks(len(header)):
            kept = chunk if target is None else _with_target(chunk, place[target])
            n_kept = len(kept.lines)
            if node is None:
                labels = list(map(str, range(n_lines + 1, n_lines + n_kept + 1)))
            else:
                labels = kept.columns[place[node]]
                file.refuse_empty(labels, kept.lines, repr(node))
            n_lines += n_kept
            y = np.zeros(n_kept)
            if target is not None:
                y = targets.read(file, kept.columns[place[target]], kept.lines, repr(target))
            columns = [
                file.floats(kept.columns[place[name]], kept.lines, repr(name)) for name in names
            ]
            X = np.array(columns).reshape(len(names), n_kept).T
            lines = np.array(kept.lines, np.int64)
            yield DataTable(file.path, list(labels), lines, X, y, names, len(chunk.lines) - n_kept)


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
    return positions_of(table, node_positions(nodes), whose)


def positions_of(
    table: DataTable, positions: Mapping[str, int], whose: str = "the graph"
) -> IntArray:
    """Do the same with positions that are known by the labels' text."""
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
