"""Graphs of the battery of `verify.conformance`, with the clusters that share parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from verify._arrays import BoolArray, IntArray

Pairs = Iterable[tuple[int, int]]


@dataclass(frozen=True)
class Shape:
    """A graph.

    Attributes
    ----------
    edges : ndarray of int, shape (m, 2)
        Head < tail, sorted.
    cluster : ndarray of int, shape (n,)
        Number of the cluster of each node.
    silent : ndarray of bool, shape (n,)
        Nodes that may not have data.
    """

    edges: IntArray
    cluster: IntArray
    silent: BoolArray

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.cluster)


def _shape(pairs: Pairs, cluster: Iterable[int], silent: Iterable[int] = ()) -> Shape:
    labels = np.array(list(cluster), dtype=np.int64)
    mask = np.zeros(len(labels), dtype=np.bool_)
    mask[list(silent)] = True
    ordered = sorted({(min(i, j), max(i, j)) for i, j in pairs})
    return Shape(np.array(ordered, dtype=np.int64).reshape(-1, 2), labels, mask)


def _tree_and_more(nodes: range, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return a random spanning tree of the nodes and about as many random edges again."""
    tree = [(int(rng.integers(nodes.start, j)), j) for j in nodes[1:]]
    ends = rng.integers(nodes.start, nodes.stop, (len(nodes), 2))
    return tree + [(int(i), int(j)) for i, j in ends if i != j]


def connected(rng: np.random.Generator) -> Shape:
    """Join 14 nodes in two clusters."""
    return _shape(_tree_and_more(range(14), rng), np.repeat([0, 1], 7))


def components(rng: np.random.Generator) -> Shape:
    """Make three components, the first of two clusters."""
    parts = (range(6), range(6, 11), range(11, 13))
    pairs = [pair for part in parts for pair in _tree_and_more(part, rng)]
    return _shape(pairs, np.repeat([0, 1, 2, 3], [3, 3, 5, 2]))


def isolated(rng: np.random.Generator) -> Shape:
    """Join nine nodes and leave three without neighbours, the last of them without data."""
    return _shape(_tree_and_more(range(9), rng), np.repeat([0, 1, 2, 3, 4], [5, 4, 1, 1, 1]), [11])


def silent_component(rng: np.random.Generator) -> Shape:
    """Make two components that may have data, and one of four nodes that has none."""
    parts = (range(8), range(8, 13), range(13, 17))
    pairs = [pair for part in parts for pair in _tree_and_more(part, rng)]
    return _shape(pairs, np.repeat([0, 1, 2, 3], [4, 4, 5, 4]), parts[2])


def chain(rng: np.random.Generator) -> Shape:
    """Make a path of 20 nodes in two clusters ([GTV] section VI-B)."""
    return _shape([(i, i + 1) for i in range(19)], np.repeat([0, 1], 10))


def star(rng: np.random.Generator) -> Shape:
    """Join a centre to 12 leaves ([GTV] section IX-B3)."""
    return _shape([(0, i) for i in range(1, 13)], np.repeat([0, 1], [7, 6]))


def sbm(rng: np.random.Generator) -> Shape:
    """Draw a stochastic block model of two clusters of 12 nodes ([GTV] section VI-A)."""
    label = np.repeat([0, 1], 12)
    chance = np.where(label[:, None] == label, 0.5, 0.05)
    i, j = np.nonzero(np.triu(rng.random(chance.shape) < chance, 1))
    return _shape(zip(i.tolist(), j.tolist(), strict=True), label)


def grid(rng: np.random.Generator) -> Shape:
    """Join five by five nodes, the first two columns one cluster."""
    number = np.arange(25).reshape(5, 5)
    down = zip(number[:-1].ravel().tolist(), number[1:].ravel().tolist(), strict=True)
    right = zip(number[:, :-1].ravel().tolist(), number[:, 1:].ravel().tolist(), strict=True)
    return _shape([*down, *right], np.tile([0, 0, 1, 1, 1], 5))


def two_cliques(rng: np.random.Generator) -> Shape:
    """Join two complete graphs of five nodes by two edges."""
    cliques = [(i + o, j + o) for o in (0, 5) for j in range(5) for i in range(j)]
    return _shape([*cliques, (0, 5), (1, 6)], np.repeat([0, 1], 5))
