"""The clusters that a solution found: summary, text, CSV."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.cli._report import listed, table
from gtvcvx.files._atomic import atomic_write
from gtvcvx.solution import Solution

SHOWN_CLUSTERS, SHOWN_FEATURES, SHOWN_NODES = 12, 6, 5


@dataclass(frozen=True)
class Clusters:
    """Nodes that share a parameter vector.

    Attributes
    ----------
    labels : ndarray, shape (n,)
        Cluster of each node, numbered from 0.
    members : list of list
        Node labels of each cluster.
    mean : ndarray, shape (k, d)
        Mean parameter vector of each cluster.
    spread : ndarray, shape (k,)
        Largest range of a coefficient within each cluster.
    """

    labels: IntArray
    members: list[list[Any]]
    mean: FloatArray
    spread: FloatArray

    @property
    def sizes(self) -> list[int]:
        """Number of nodes of each cluster."""
        return list(map(len, self.members))

    def by_size(self) -> IntArray:
        """Numbers of the clusters, the largest first."""
        return np.argsort([-size for size in self.sizes], kind="stable")

    def averages(self, values: FloatArray) -> FloatArray:
        """Means over the clusters (k, p) of values (n, p) at the nodes."""
        sums = np.zeros((len(self.members), values.shape[1]))
        np.add.at(sums, self.labels, values)
        return np.asarray(sums / np.array(self.sizes)[:, None])

    def lines(self, features: Sequence[str]) -> list[str]:
        """Return a table of the largest clusters."""
        order = self.by_size()
        wide = len(features) > SHOWN_FEATURES
        shown = list(features[:SHOWN_FEATURES])
        rows = [
            [
                str(c),
                str(len(self.members[c])),
                *(f"{x:.5g}" for x in self.mean[c, : len(shown)]),
                *["..."] * wide,
                listed(self.members[c], SHOWN_NODES),
            ]
            for c in order[:SHOWN_CLUSTERS].tolist()
        ]
        text = table(["cluster", "nodes", *shown, *["..."] * wide, "members"], rows)
        rest = order[SHOWN_CLUSTERS:]
        if len(rest):
            text.append(f"  ... {len(rest)} more, the largest of {self.sizes[rest[0]]} nodes")
        return text

    def data(self) -> list[dict[str, Any]]:
        """Return one dict a cluster, for JSON."""
        return [
            {
                "cluster": c,
                "size": len(nodes),
                "coefficients": self.mean[c],
                "spread": self.spread[c],
                "nodes": nodes,
            }
            for c, nodes in enumerate(self.members)
        ]


def find_clusters(solution: Solution, labels: IntArray | None = None) -> Clusters:
    """Summarize the clusters of a solution, or those given by labels (n,) from 0 on."""
    labels = solution.clusters() if labels is None else labels
    order = np.argsort(labels, kind="stable")
    first = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    rows = solution.w[order]
    size = np.diff(np.append(first, len(labels)))
    mean = np.add.reduceat(rows, first, axis=0) / size[:, None]
    spread = np.maximum.reduceat(rows, first, axis=0) - np.minimum.reduceat(rows, first, axis=0)
    members = [[solution.nodes[i] for i in part.tolist()] for part in np.split(order, first[1:])]
    return Clusters(labels, members, mean, spread.max(axis=1))


def write_partition(path: str, node: str, solution: Solution, labels: IntArray) -> None:
    """Write node and cluster of each node as CSV, as ``well-connected --partition`` reads it."""
    # A header must not read like a node, or it would be taken for one.
    header = [_unused(node, set(map(str, solution.nodes))), "cluster"]
    rows = zip(solution.nodes, labels.tolist(), strict=True)
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_coefficients(
    path: str,
    node: str,
    features: Sequence[str],
    solution: Solution,
    labels: IntArray,
    original: tuple[list[str], FloatArray] | None = None,
) -> None:
    """Write node, cluster and parameter vector of each node as CSV, to the last digit.

    ``original``: names and values (n, p) of coefficients in other units, for columns of their own.
    """
    header = [node, _unused("cluster", {node, *features}), *features]
    w = solution.w
    if original is not None:
        for name in original[0]:
            header.append(_unused(f"{name}_original", set(header)))
        w = np.column_stack([w, original[1]])
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for label, cluster, row in zip(solution.nodes, labels.tolist(), w.tolist(), strict=True):
            writer.writerow([label, cluster, *row])


def _unused(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
