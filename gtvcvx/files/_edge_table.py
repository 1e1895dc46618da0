"""Edge lists: two node columns and an optional weight column, whole or piece by piece."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.files._csv import Chunk, CsvFile, Label, as_labels, is_integer, is_number
from gtvcvx.files._opening import open_csv

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
    parts: list[tuple[IntArray, FloatArray]] = []
    found = scan_edges(path, lambda ends, weights: parts.append((ends, weights)))
    if found.first_is_last:
        parts.insert(0, parts.pop())
    edges = np.concatenate([part[0] for part in parts]) - found.shift
    return EdgeTable(found.labels, edges, np.concatenate([part[1] for part in parts]))


class EdgeScan(NamedTuple):
    """What is known of an edge list once it has been read piece by piece.

    Attributes
    ----------
    labels : list of str or list of int, length n
        Node labels in order of first appearance.
    shift : int
        To be subtracted from all ends.
    first_is_last : bool
        Whether the edge of the first row was given last, when it was clear that it is one.
    """

    labels: list[Label]
    shift: int
    first_is_last: bool


def scan_edges(
    path: str | os.PathLike[str], take: Callable[[IntArray, FloatArray], None]
) -> EdgeScan:
    """Read an edge list as `read_edges` does, piece by piece, for files that do not fit in memory.

    Parameters
    ----------
    path : str or path-like
        The file.
    take : callable
        Is given ends (k, 2) and weights (k,) of every piece. Numbers of nodes are known up to a
        shift, which is returned.
    """
    # Positions in order of first appearance. The first row's labels are numbered first, so that
    # they can be taken away again if it turns out to be a header.
    positions: defaultdict[str, int] = defaultdict(count().__next__)
    n_edges, reused = 0, False
    with open_csv(path) as file:
        line, first = file.first()
        if len(first) not in (2, 3):
            expected = "2 or 3 cells (node, node, weight) separated by commas are expected"
            raise file.error(line, None, f"{expected}, found {len(first)}")
        file.refuse_empty(first, [line] * len(first), "names or first edge")
        n_first = 0 if file.named else len({positions[label] for label in first[:2]})
        for chunk in file.chunks(len(first)):
            ends, weights = _edge_arrays(file, chunk, positions)
            n_edges += len(ends)
            reused = reused or bool((ends < n_first).any())
            take(ends, weights)
    labels = list(positions)
    header = _is_edge_header(file, line, first, labels[n_first:], reused)
    shift = n_first if header else 0
    if not header:
        row = Chunk([line], [[cell] for cell in first])
        take(*_edge_arrays(file, row, positions))
        n_edges += 1
    if not n_edges:
        raise ValueError(f"{file.path}: there is no edge below the header")
    return EdgeScan(as_labels(labels[shift:]), shift, not header)


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
