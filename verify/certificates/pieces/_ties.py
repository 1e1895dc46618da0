"""Trees that span several pieces: how what a piece cannot absorb gets to one that can.

The nodes of a piece fall into components of the edges inside; cut edges tie components of different
pieces together. The graph of tied components is small: one process chooses its spanning forest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.certificates._forest import components, spanning_forest
from verify.certificates.arrays import _limbs as limbs
from verify.certificates.arrays._archive import Array
from verify.certificates.arrays._convert import words_of

_MASK = (1 << 64) - 1


class Found(NamedTuple):
    """What a piece says of its components that cut edges end at.

    Attributes
    ----------
    components : ndarray of int64, shape (c, 3)
        Piece, label, and how good a root it has: 4 a node that absorbs all that comes, 3 one whose
        rows can, 2 several nodes whose rows can together, 1 any rows, 0 none.
    edges : ndarray of int64, shape (q, 6)
        Of the cut edges that the piece counts, those of most slack for each pair of components:
        piece and label of the head's and of the tail's, head and tail.
    slack : ndarray, shape (q,)
    """

    components: IntArray
    edges: IntArray
    slack: FloatArray


class Ties(NamedTuple):
    """Which components are to give what they have to another, and over which edge.

    Attributes
    ----------
    table : ndarray of int64, shape (t, 6)
        Piece and label of the component that gives and of the one that takes; head and tail of the
        edge. Those that give come before those that they give to.
    """

    table: IntArray

    def totals(self, loads: list[IntArray], words: list[Array]) -> Array:
        """Return what crosses each edge, (t, d, W).

        Parameters
        ----------
        loads : list of ndarray of int64
            Places in the table, of what follows.
        words : list of ndarray of uint64, shape (some, d, W)
            What components have themselves.
        """
        place, own = np.concatenate(loads), np.concatenate(words)
        own = own[np.argsort(place)]
        d, size = own.shape[1:]
        total = [[limbs.integer(own[k, j]) for j in range(d)] for k in range(len(own))]
        giver = {(p, c): k for k, (p, c) in enumerate(self.table[:, :2].tolist())}
        for k, (p, c) in enumerate(self.table[:, 2:4].tolist()):
            if (after := giver.get((p, c))) is not None:
                total[after] = [x + y for x, y in zip(total[after], total[k], strict=True)]
        flat = [x & ((1 << 64 * size) - 1) for row in total for x in row]
        return words_of(flat, size).reshape(len(own), d, size)


def thinned(edges: IntArray, slack: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the edge of most slack for each pair of components (columns 0 to 3)."""
    order = np.lexsort((-slack, *edges[:, 3::-1].T))
    edges, slack = edges[order], slack[order]
    first = np.any(np.diff(edges[:, :4], axis=0, prepend=-1) != 0, axis=1)
    return edges[first], slack[first]


def choose(found: list[Found]) -> Ties:
    """Choose trees of most slack, towards components that absorb, else to the best there is."""
    every = np.concatenate([one.components for one in found])
    edges = np.concatenate([one.edges for one in found])
    slack = np.concatenate([one.slack for one in found])
    if not len(edges):
        return Ties(np.empty((0, 6), dtype=np.int64))
    # Components by their places in the order of (piece, label).
    every = every[np.lexsort((every[:, 1], every[:, 0]))]
    place = {(p, c): k for k, (p, c) in enumerate(every[:, :2].tolist())}
    ends = np.array([[place[a, b], place[c, e]] for a, b, c, e in edges[:, :4].tolist()])
    ends.sort(axis=1)
    order = np.lexsort((-slack, ends[:, 1], ends[:, 0]))
    ends, edges, slack = ends[order], edges[order], slack[order]
    first = np.any(np.diff(ends, axis=0, prepend=-1) != 0, axis=1)
    ends, edges, slack = ends[first], edges[first], slack[first]
    _, label = components(ends, len(every))
    roots = _roots(every[:, 2], label)
    forest = spanning_forest(ends, slack, np.ones(len(ends), dtype=bool), roots, label)
    rows = [
        [*every[k, :2], *every[forest.parent[k], :2], *edges[forest.parent_edge[k], 4:]]
        for k in reversed(forest.order)
        if forest.parent_edge[k] >= 0
    ]
    return Ties(np.array(rows, dtype=np.int64).reshape(-1, 6))


def _roots(quality: IntArray, label: IntArray) -> np.ndarray:
    """Return the components (c,) that are roots: all that absorb, else the best of each tree."""
    roots = quality == 4
    served = np.zeros(int(label.max()) + 1, dtype=bool)
    served[label[roots]] = True
    order = np.argsort(quality, kind="stable")
    first = np.zeros(len(served), dtype=np.int64)
    first[label[order]] = order  # the last write is the best
    roots[first[~served]] = True
    return roots
