"""Reading a partition of the nodes into clusters; part of ``gtvcvx.files._tables``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gtvcvx.files._csv import Chunk, Label, as_labels, is_integer, node_positions
from gtvcvx.files._opening import open_csv

# Names in a first cell that make the row a header whatever follows.
_NODE_HEADER = frozenset({"node", "id", "name", "label", "vertex"})


def read_labels(
    path: str | os.PathLike[str], nodes: Sequence[Label] | None = None
) -> dict[Label, Label]:
    """Read a partition: a node column and a column that names each node's cluster.

    A header row may be absent. With ``nodes`` the first row is a header if its first cell is none
    of them; without, if that cell is a usual name (``node``, ``id``, ``label``, ...) or the only
    one in its column that is not an integer.

    Parameters
    ----------
    path : str or path-like
        The file.
    nodes : sequence of str or int, length n, optional
        The graph's node labels. If given, the file must name each of them and no other, and the
        result is keyed by them and in their order.

    Returns
    -------
    dict
        Cluster label (str, or int if all are integers) of each node.

    Raises
    ------
    ValueError
        Naming file, line and node: no such file, empty file, 2 cells expected, an empty cell, a
        node listed twice, not in the graph, or left out.
    """
    cells: tuple[list[str], list[str]] = ([], [])
    lines: list[int] = []
    with open_csv(path) as file:
        line, first = file.first()
        if len(first) != 2:
            raise file.error(
                line, None, f"2 cells (node, cluster) are expected, found {len(first)}"
            )
        for chunk in [Chunk([line], [[cell] for cell in first]), *file.chunks(2)]:
            lines += chunk.lines
            for k, column in enumerate(("1 (node)", "2 (cluster)")):
                file.refuse_empty(chunk.columns[k], chunk.lines, column)
                cells[k].extend(chunk.columns[k])
    known = None if nodes is None else node_positions(nodes)
    skip = int(file.named or _is_label_header(cells[0], known))
    node, cluster, lines = cells[0][skip:], as_labels(cells[1][skip:]), lines[skip:]
    if not node:
        raise ValueError(f"{file.path}: there is no row below the header")
    seen: dict[str, int] = {}
    for label, at in zip(node, lines, strict=True):
        if label in seen:
            raise file.error(at, None, f"node {label!r} is listed already on line {seen[label]}")
        if known is not None and label not in known:
            raise file.error(at, None, f"node {label!r} is not in the graph")
        seen[label] = at
    if nodes is None:
        return dict(zip(as_labels(node), cluster, strict=True))
    missing = [label for label in nodes if str(label) not in seen]
    if missing:
        raise ValueError(
            f"{file.path}: no cluster for {len(missing)} of {len(nodes)} nodes, "
            f"the first of them {str(missing[0])!r}"
        )
    of = dict(zip(node, cluster, strict=True))
    return {label: of[str(label)] for label in nodes}


def _is_label_header(column: list[str], known: dict[str, int] | None) -> bool:
    if known is not None:
        return column[0] not in known
    if is_integer(column[0]):
        return False
    below = column[1:]
    return column[0].lower() in _NODE_HEADER or (bool(below) and all(map(is_integer, below)))
