"""Pieces of problems that are all in one process, and what a team of one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import gtvcvx as gtv
from gtvcvx.distributed import Manifest, Shard, shard
from gtvcvx.losses.batched._terms import FIELDS
from verify.certificates.pieces import Piece, Whole


class Alone:
    """A `Team` of one process."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        #: The most bytes that were gathered at once.
        self.largest = 0
        self.gathers = 0

    def add(self, rows: Any) -> Any:
        return np.add.reduce([np.asarray(row, dtype=float) for row in rows])

    def most(self, rows: Any) -> Any:
        return np.maximum.reduce([np.asarray(row, dtype=float) for row in rows])

    def refresh(self, arrays: Any) -> None:
        whole: dict[int, Any] = {}
        for piece, a in zip(self.pieces, arrays, strict=True):
            whole |= dict(zip(piece.nodes[piece.own].tolist(), a[piece.own].copy(), strict=True))
        for piece, a in zip(self.pieces, arrays, strict=True):
            a[:] = np.array([whole[i] for i in piece.nodes.tolist()]).reshape(a.shape)

    def refresh_edges(self, arrays: Any) -> None:
        whole: dict[tuple[int, ...], Any] = {}
        for piece, a in zip(self.pieces, arrays, strict=True):
            ends = piece.nodes[piece.edges]
            for e in np.flatnonzero(piece.counted).tolist():
                whole[tuple(ends[e])] = a[e].copy()
        for piece, a in zip(self.pieces, arrays, strict=True):
            for e, (i, j) in enumerate(piece.nodes[piece.edges].tolist()):
                a[e] = whole[i, j]

    def gather(self, arrays: Any) -> Any:
        self.gathers += 1
        self.largest = max(self.largest, sum(a.nbytes for a in arrays))
        return [a.copy() for a in arrays]

    def broadcast(self, arrays: Any) -> Any:
        return [np.asarray(a) for a in arrays]


def pieces_of(
    problem: gtv.GTVProblem, w: Any, u: Any, folder: Path, shards: int | Any
) -> tuple[Whole, list[Piece]]:
    """Cut a problem and a pair (w, u)."""
    if isinstance(shards, int):
        manifest = shard(problem, folder, shards, partitioner="order")
    else:
        manifest = shard(problem, folder, int(np.max(shards)) + 1, partitioner=shards)
    parts = [manifest.shard(folder, k) for k in range(manifest.n_shards)]
    return whole_of(manifest), [_piece(part, problem, w, u) for part in parts]


def whole_of(manifest: Manifest) -> Whole:
    return Whole(
        n_nodes=manifest.n_nodes,
        n_edges=manifest.n_edges,
        dim=manifest.dim,
        lam=manifest.lam,
        penalty=manifest.penalty,
        labelled=manifest.labelled,
        kinds=tuple(FIELDS),
    )


def _piece(part: Shard, problem: gtv.GTVProblem, w: Any, u: Any) -> Piece:
    n, ends = problem.graph.n_nodes, part.nodes[part.edges]
    number = np.searchsorted(problem.graph.edges @ [n, 1], ends @ [n, 1])
    return Piece(
        number=part.number,
        nodes=part.nodes,
        owners=part.owners,
        edges=part.edges,
        weights=part.weights,
        terms=part.terms,
        labels=part.labels,
        w=w[part.nodes],
        u=u[number],
    )
