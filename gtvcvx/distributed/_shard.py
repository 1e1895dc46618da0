"""One shard: its nodes with their losses, all edges that end there, and the far ends of these."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, integer_array, real_array
from gtvcvx.files import _storage
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss, stacked_from_terms
from gtvcvx.losses.batched._terms import Term, checked, selected
from verify._display import fields_text

SCHEMA = "gtv-shard/1"


@dataclass(frozen=True)
class Shard:
    """A part of a problem that one process can work on.

    Nodes keep their order, so that edges keep their direction: the head is the lower end.
    An edge between two shards is in both; the one that owns its head counts it.

    Attributes
    ----------
    sharding : str
        Name of the sharding that it belongs to, the same for all its shards.
    number : int
    dim : int
    nodes : ndarray of int64, shape (k,)
        Numbers, in the whole graph, of the shard's own nodes and of ghosts, which are neighbours
        that other shards own; ascending.
    owners : ndarray of int64, shape (k,)
        Shard that owns each of them.
    edges : ndarray of int64, shape (l, 2)
        Ends as positions in ``nodes``, head first, in lexicographic order.
    weights : ndarray, shape (l,)
    terms : list of dict
        Losses of the own nodes, as plain data; ``node`` is a position in ``nodes``.
    labels : list, or None
        Of the own nodes, in order; None where they are their numbers.
    """

    sharding: str
    number: int
    dim: int
    nodes: IntArray
    owners: IntArray
    edges: IntArray
    weights: FloatArray
    terms: list[Term]
    labels: list[Any] | None = None

    __repr__ = fields_text

    @staticmethod
    def cut(
        sharding: str,
        number: int,
        dim: int,
        owners: IntArray,
        ends: IntArray,
        weights: FloatArray,
        terms: Sequence[Term],
        labels: Sequence[Any] | None,
    ) -> Shard:
        """Return a shard of the whole graph.

        Parameters
        ----------
        sharding, number, dim
            See the attributes.
        owners : ndarray of int64, shape (n,)
            Shard of each node.
        ends, weights : ndarray, shapes (l, 2) and (l,)
            The edges with an end that this shard owns, in lexicographic order.
        terms : sequence of dict
            Losses, of these nodes at least.
        labels : sequence, or None
            Of all nodes.
        """
        own = np.flatnonzero(owners == number)
        nodes = np.union1d(own, ends)
        place = np.full(len(owners), -1, np.int64)
        place[nodes] = np.arange(len(nodes))
        of_own = np.where(owners == number, place, -1)
        some = [selected(term, of_own) for term in terms]
        return Shard(
            sharding=sharding,
            number=number,
            dim=dim,
            nodes=nodes,
            owners=owners[nodes],
            edges=place[ends],
            weights=weights,
            terms=[term for term in some if len(term["node"])],
            labels=None if labels is None else [labels[i] for i in own.tolist()],
        )

    @property
    def own(self) -> BoolArray:
        """Which of the nodes (k,) are not ghosts."""
        return self.owners == self.number

    @property
    def own_edges(self) -> BoolArray:
        """Which edges (l,) are counted here."""
        return self.own[self.edges[:, 0]]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [self.nodes, self.owners, self.edges, self.weights]
        arrays += [value for term in self.terms for value in term.values() if _is_array(value)]
        return sum(array.nbytes for array in arrays)

    def ghosts_of(self, other: int) -> IntArray:
        """Return the positions of the ghosts that another shard owns."""
        return np.flatnonzero(self.owners == other)

    def boundary_with(self, other: int) -> IntArray:
        """Return the positions of the own nodes that are ghosts of another shard.

        In the order in which that one has them.
        """
        far = self.owners[self.edges] == other
        return np.unique(self.edges[far[:, ::-1]])

    def cut_with(self, other: int) -> IntArray:
        """Return the edges to another shard that are counted here."""
        ends = self.owners[self.edges]
        return np.flatnonzero((ends[:, 0] == self.number) & (ends[:, 1] == other))

    def cut_of(self, other: int) -> IntArray:
        """Return the edges to another shard that are counted there, in the same order."""
        ends = self.owners[self.edges]
        return np.flatnonzero((ends[:, 1] == self.number) & (ends[:, 0] == other))

    @property
    def neighbours(self) -> list[int]:
        """Shards with which this one shares edges."""
        return [int(k) for k in np.unique(self.owners) if k != self.number]

    def graph(self) -> EmpiricalGraph:
        """Return the graph of own nodes and ghosts."""
        return EmpiricalGraph(len(self.nodes), self.edges, self.weights)

    def losses(self) -> StackedLoss:
        """Return the losses of all of them, zero at ghosts."""
        return stacked_from_terms(self.terms, self.dim).completed(len(self.nodes))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an npz file, atomically."""
        data: dict[str, Any] = {"schema": SCHEMA, **self.__dict__}
        _storage.save(path, data)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Shard:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            Naming the file: it is damaged, of another kind, or says what cannot be.
        """
        data = _storage.load(path, SCHEMA)
        try:
            return _checked(data)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}: not a complete shard ({error})") from error


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _checked(data: Mapping[str, Any]) -> Shard:
    nodes, owners = (_integers(data, name, 1) for name in ("nodes", "owners"))
    edges, weights = _integers(data, "edges", 2), real_array(data["weights"], "weights")
    if not (len(nodes) == len(owners) and edges.shape == (len(weights), 2)):
        raise ValueError("arrays of different lengths")
    if np.any(np.diff(nodes) <= 0):
        raise ValueError("nodes: ascending numbers are expected")
    if len(edges) and not 0 <= edges.min() <= edges.max() < len(nodes):
        raise ValueError("edges: an end is none of the nodes")
    number, dim, labels = int(data["number"]), int(data["dim"]), data["labels"]
    own = owners == number
    if not (own[edges].any(axis=1).all() and np.isin(np.flatnonzero(~own), edges).all()):
        raise ValueError("edges: each has an end that the shard owns, and each ghost an edge")
    if labels is not None and len(labels) != np.count_nonzero(own):
        raise ValueError("labels: one for each node of its own is expected")
    terms = [checked(term, dim) for term in data["terms"]]
    for term in terms:
        node = term["node"]
        if len(node) and not (node.max() < len(nodes) and own[node].all()):
            raise ValueError("terms: a loss of a node that the shard does not own")
    return Shard(str(data["sharding"]), number, dim, nodes, owners, edges, weights, terms, labels)


def _integers(data: Mapping[str, Any], name: str, axes: int) -> IntArray:
    array = integer_array(data[name], name).astype(np.int64)
    if array.ndim != axes:
        raise ValueError(f"{name}: {axes} axes are expected, got {array.ndim}")
    return array
