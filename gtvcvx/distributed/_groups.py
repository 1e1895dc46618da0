"""Connected components over shards, of graphs that have some of the edges.

Each shard finds its own components. Only those that reach over a cut are told to others, as pairs
of a component here and one there; the first worker joins them and tells everybody.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.distributed._parts import Part, Parts
from gtvcvx.graph import connected_components

# What `Groups.combined` begins with.
_START: dict[np.ufunc, float] = {np.add: 0.0, np.minimum: np.inf}


class Groups:
    """Nodes that are joined by some of the edges, across shards.

    Parameters
    ----------
    parts : Parts
    joining : sequence of ndarray of bool, shape (l,)
        Edges that join, the same on both sides of a cut.

    Attributes
    ----------
    labels : list of ndarray of int, shape (k,)
        Local component of each node. That of a ghost is its own alone if no edge here joins it.
    counts : list of int
        Numbers of local components.
    n_shared : int
        Number of groups that reach over a cut.
    """

    def __init__(self, parts: Parts, joining: Sequence[BoolArray]) -> None:
        self._parts = parts
        self.labels: list[IntArray] = [
            connected_components(len(part.own), part.shard.edges[some])
            for part, some in zip(parts, joining, strict=True)
        ]
        self.counts = [int(labels.max(initial=-1)) + 1 for labels in self.labels]
        pairs = self._pairs(joining)
        found = parts.gather(pairs)
        told = parts.broadcast(None if found is None else _joined(np.concatenate(found)))
        shards, locals_, groups = (np.asarray(array, dtype=np.int64) for array in told)
        self.n_shared = int(groups.max(initial=-1)) + 1
        # Local components that reach over a cut, and their groups.
        self._shared = [locals_[shards == part.number] for part in parts]
        self._groups = [groups[shards == part.number] for part in parts]

    @classmethod
    def of_graph(cls, parts: Parts) -> Groups:
        """Return the connected components of the graph."""
        return cls(parts, [np.ones(len(part.counted), bool) for part in parts])

    def shared(self, at: int) -> tuple[IntArray, IntArray]:
        """Return components of a part that reach over a cut, and the numbers of their groups."""
        return self._shared[at], self._groups[at]

    def alone(self) -> list[IntArray]:
        """Return the local components of each part that are groups of their own."""
        out = []
        for part, labels, shared in zip(self._parts, self.labels, self._shared, strict=True):
            out.append(np.setdiff1d(labels[part.own], shared))
        return out

    def _pairs(self, joining: Sequence[BoolArray]) -> list[IntArray]:
        """Return, a part, rows of (shard, component) here and there that are the same."""
        there = [labels[:, None].astype(np.float64) for labels in self.labels]
        self._parts.refresh(there)
        given = zip(self._parts, joining, self.labels, there, strict=True)
        return [_pairs_of(part, some, here, far[:, 0]) for part, some, here, far in given]

    def combined(self, rows: Sequence[FloatArray], how: np.ufunc) -> list[FloatArray]:
        """Combine what local components (c, q) of one group have; return it in place of theirs.

        By ``np.add``, in the order of shards, or ``np.minimum``.
        """
        if not self.n_shared:
            return list(rows)
        parts, shared = self._parts, self._shared
        mine = [a[at] for a, at in zip(rows, shared, strict=True)]
        values, groups = parts.gather(mine), parts.gather(self._groups)
        total: list[FloatArray] | None = None
        if values is not None and groups is not None:
            out = np.full((self.n_shared, mine[0].shape[1]), _START[how])
            how.at(out, np.concatenate(groups), np.concatenate(values))
            total = [out]
        (found,) = parts.broadcast(total)
        combined = [np.array(a) for a in rows]
        for a, at, group in zip(combined, shared, self._groups, strict=True):
            a[at] = found[group]
        return combined

    def means(self, w: Sequence[FloatArray]) -> list[FloatArray]:
        """Return the mean of each node's group, fresh, for arrays (k, d)."""
        sums = [
            _sums(labels, count, part.own, rows)
            for labels, count, part, rows in zip(
                self.labels, self.counts, self._parts, w, strict=True
            )
        ]
        out = []
        for labels, total in zip(self.labels, self.combined(sums, np.add), strict=True):
            # Ghosts that nothing joins here have no members, and get what their owners know.
            means = total[:, 1:] / np.maximum(total[:, :1], 1.0)
            out.append(means[labels])
        self._parts.refresh(out)
        return out


def _pairs_of(part: Part, joining: BoolArray, here: IntArray, there: FloatArray) -> IntArray:
    """Return rows of this shard, its component, and the shard and the component it continues in."""
    ghost = np.zeros(len(part.own), dtype=bool)
    ghost[part.shard.edges[joining]] = True
    at = np.flatnonzero(ghost & ~part.own)
    number = np.full(len(at), part.number)
    rows = np.column_stack([number, here[at], part.shard.owners[at], there[at].astype(np.int64)])
    return np.unique(rows, axis=0)


def _joined(pairs: IntArray) -> list[IntArray]:
    """Return the shards and the components of all pairs (N, 4), and numbers of their groups."""
    both = np.concatenate([pairs[:, :2], pairs[:, 2:]])
    known, at = np.unique(both, axis=0, return_inverse=True)
    n = len(pairs)
    at = at.reshape(-1)
    groups = connected_components(len(known), np.column_stack([at[:n], at[n:]]))
    return [known[:, 0], known[:, 1], groups]


def _sums(labels: IntArray, count: int, own: BoolArray, rows: FloatArray) -> FloatArray:
    """Return the number of own nodes and the sums of their rows, by component: (c, 1 + d)."""
    labels = labels[own]
    columns = [np.bincount(labels, minlength=count)]
    columns += [np.bincount(labels, column, count) for column in rows[own].T]
    return np.column_stack(columns).astype(np.float64)
