"""Clusters and nodes: tables of the largest and the first, and every name somewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gtvcvx._diagnostics import labelled
from gtvcvx.cli._clusters import SHOWN_NODES
from gtvcvx.cli._report import counted, listed
from gtvcvx.cli.report._content import SHOWN_COLUMNS, Content
from gtvcvx.cli.report._page import Table

#: Clusters in the table, and with a list of their own.
SHOWN_CLUSTERS = 30
#: Characters of names in lists: those of a hundred thousand nodes, in a page that mail carries.
MOST_NAMES = 3_000_000
# Up to here the table of nodes is open from the start.
_OPEN = 40


@dataclass(frozen=True)
class Members:
    """A list of node names that is shown on demand."""

    title: str
    names: list[str]


@dataclass(frozen=True)
class ClusterSection:
    """The table of clusters.

    Attributes
    ----------
    count : str
    table : Table
    original : Table or None
        Coefficients in the units of the file, where the fit was made in others.
    notes : list of str
    """

    count: str
    table: Table
    original: Table | None
    notes: list[str]


@dataclass(frozen=True)
class NodeSection:
    """All nodes: a table of the first, lists of names by cluster, what is left out."""

    table: Table
    is_open: bool
    members: list[Members]
    notes: list[str]


def cluster_section(content: Content) -> ClusterSection:
    """Return what there is to say of the clusters, the largest first."""
    clusters = content.clusters
    order, sizes = clusters.by_size().tolist(), clusters.sizes
    shown = content.names[:SHOWN_COLUMNS]
    rows = [
        [
            c,
            sizes[c],
            *clusters.mean[c, : len(shown)].tolist(),
            float(clusters.spread[c]),
            listed(clusters.members[c], SHOWN_NODES),
        ]
        for c in order[:SHOWN_CLUSTERS]
    ]
    header = ["cluster", "nodes", *(f"mean of {name}" for name in shown), "spread", "members"]
    notes = [*_columns_note(content), "Spread: the largest range of a coefficient in the cluster."]
    rest = order[SHOWN_CLUSTERS:]
    if rest:
        largest = counted(sizes[rest[0]], "node")
        notes.append(f"{counted(len(rest), 'cluster')} more, the largest of {largest}.")
    table = Table("Clusters of nodes that share one parameter vector", header, rows)
    return ClusterSection(counted(len(order), "cluster"), table, _original(content, order), notes)


def _original(content: Content, order: list[int]) -> Table | None:
    """Return means over the clusters of what ``fit`` has converted back, if it has."""
    original = content.solution.info.get("original")
    if not original or len(original["w"]) != len(content.labels):
        return None
    shown = [str(name) for name in original["features"]][:SHOWN_COLUMNS]
    means = content.clusters.averages(np.asarray(original["w"])[:, : len(shown)])
    rows = [[c, *means[c].tolist()] for c in order[:SHOWN_CLUSTERS]]
    header = ["cluster", *(f"mean of {name}" for name in shown)]
    return Table("The same in the units of the file", header, rows)


def _columns_note(content: Content) -> list[str]:
    more = content.problem.dim - SHOWN_COLUMNS
    return [f"{counted(more, 'coefficient')} more of each are not shown."] if more > 0 else []


def node_section(content: Content, limit: int, rest_is_in: str) -> NodeSection:
    """Return the first nodes with their parameters, and the names of all."""
    w, labels, clusters = content.solution.w, content.labels, content.clusters.labels.tolist()
    has_data = labelled(content.problem)
    shown = content.names[:SHOWN_COLUMNS]
    count = min(limit, len(w))
    rows = [
        [labels[i], clusters[i], "yes" if has_data[i] else "no", *w[i, : len(shown)].tolist()]
        for i in range(count)
    ]
    table = Table("Parameter vectors", ["node", "cluster", "data", *shown], rows)
    notes = _columns_note(content)
    if count < len(w):
        more = counted(len(w) - count, "node")
        notes.append(f"{more} more have no row in this table; all of them are in {rest_is_in}.")
    members, left_out = _members(content)
    if left_out:
        notes.append(
            f"The names of {counted(left_out, 'node')} are in no list: lists of names take up to "
            f"{MOST_NAMES / 1e6:g} million characters of a page."
        )
    return NodeSection(table, len(w) <= _OPEN, members, notes)


def _members(content: Content) -> tuple[list[Members], int]:
    """Return the names of the largest clusters and of all others, and how many did not fit."""
    clusters, order = content.clusters, content.clusters.by_size().tolist()
    listable = [
        (f"Cluster {c}: {counted(clusters.sizes[c], 'node')}", list(map(str, clusters.members[c])))
        for c in order[:SHOWN_CLUSTERS]
        if clusters.sizes[c] > SHOWN_NODES  # else the table of clusters names them
    ]
    rest = order[SHOWN_CLUSTERS:]
    others = [f"{name} ({c})" for c in rest for name in clusters.members[c]]
    if others:
        listable.append((f"{counted(len(rest), 'other cluster')}, by number", others))
    found, room, left_out = [], MOST_NAMES, 0
    for title, names in listable:
        fitting = int(np.searchsorted(np.cumsum([len(name) for name in names]), room, "right"))
        room -= sum(map(len, names[:fitting]))
        left_out += len(names) - fitting
        if fitting:
            found.append(Members(title, names[:fitting]))
    return found, left_out
