"""A piece of a problem, and what its owner needs of the others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.certificates.arrays._archive import Array


@dataclass(frozen=True)
class Whole:
    """What all processes know of the problem.

    Attributes
    ----------
    n_nodes, n_edges, dim : int
    lam : float
    penalty : mapping
        Plain data.
    labelled : bool
        Whether nodes have labels; without, they are their numbers.
    kinds : tuple of str
        The order of the terms' kinds.
    """

    n_nodes: int
    n_edges: int
    dim: int
    lam: float
    penalty: Mapping[str, Any]
    labelled: bool
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Piece:
    """Some nodes with their losses, all edges that end there, and the far ends of these: ghosts.

    Attributes
    ----------
    number : int
    nodes : ndarray of int64, shape (k,)
        Numbers of its own nodes and of ghosts, ascending.
    owners : ndarray of int64, shape (k,)
        The piece that each belongs to.
    edges : ndarray of int64, shape (l, 2)
        Ends as positions in `nodes`, in lexicographic order.
    weights : ndarray, shape (l,)
    terms : sequence of mapping
        Plain data; `node` has positions of own nodes.
    labels : sequence or None
        Of the own nodes.
    w, u : ndarray, shapes (k, d) and (l, d)
    """

    number: int
    nodes: IntArray
    owners: IntArray
    edges: IntArray
    weights: FloatArray
    terms: Sequence[Mapping[str, Any]]
    labels: Sequence[Any] | None
    w: FloatArray
    u: FloatArray

    @property
    def own(self) -> BoolArray:
        """Nodes (k,) that are no ghosts."""
        return self.owners == self.number

    @property
    def counted(self) -> BoolArray:
        """Edges (l,) whose head is its own: they are no other piece's."""
        return self.own[self.edges[:, 0]]

    def data(self, whole: Whole) -> dict[str, Any]:
        """Return plain data of its nodes and ghosts as a problem of their own."""
        return {
            "schema": "gtv-problem/1",
            "n_nodes": len(self.nodes),
            "dim": whole.dim,
            "edges": self.edges,
            "weights": self.weights,
            "lam": whole.lam,
            "penalty": whole.penalty,
            "terms": list(self.terms),
        }


class Team(Protocol):
    """The way of a process to the others; all make the same calls in the same order.

    Lists have one array for each piece of this process.
    """

    def add(self, rows: Sequence[ArrayLike]) -> FloatArray:
        """Return the sum over all pieces of arrays of one shape, the same everywhere."""

    def most(self, rows: Sequence[ArrayLike]) -> FloatArray:
        """Return the entrywise maximum over all pieces."""

    def refresh(self, arrays: Sequence[FloatArray]) -> None:
        """Copy rows (k, q) of nodes to their ghosts in other pieces, in place."""

    def refresh_edges(self, arrays: Sequence[FloatArray]) -> None:
        """Copy rows (l, q) of cut edges from the piece that counts them to the other, in place."""

    def gather(self, arrays: Sequence[Any]) -> list[Any] | None:
        """Return the arrays that all processes give, in order, at the first; None elsewhere."""

    def broadcast(self, arrays: Sequence[Any] | None) -> list[Any]:
        """Return the arrays that the first process gives; others give None."""


def gathered(team: Team, values: Sequence[Any]) -> list[Any] | None:
    """Return what pieces say in JSON, at the first process."""
    found = team.gather([_text(value) for value in values])
    return None if found is None else [json.loads(text.tobytes()) for text in found]


def told(team: Team, value: Any) -> Any:
    """Return what the first process says in JSON; others give None."""
    (text,) = team.broadcast(None if value is None else [_text(value)])
    return json.loads(text.tobytes())


def _text(value: Any) -> Array:
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
