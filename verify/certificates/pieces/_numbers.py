"""Numbers, in the whole, of edges and data rows, which follow those of their nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from verify._arrays import IntArray
from verify.certificates.pieces._piece import Piece, Team, Whole


class Numbers(NamedTuple):
    """Numbers in the whole, ascending, of what a piece writes.

    Attributes
    ----------
    nodes : ndarray of int64
        Of its own nodes.
    edges : ndarray of int64
        Of the edges that it counts.
    rows : list of ndarray of int64
        Per term of the whole, of the rows of the piece there.
    """

    nodes: IntArray
    edges: IntArray
    rows: list[IntArray]


def numbered(
    team: Team,
    whole: Whole,
    pieces: list[Piece],
    places: list[list[int]],
    n_terms: int,
    window: int,
) -> tuple[list[Numbers], list[int]]:
    """Return the numbers of each piece, and how many rows each term has.

    Parameters
    ----------
    places : list of list of int
        Per piece, which of the terms of the whole each of its terms is.
    n_terms : int
        How many the whole has.
    window : int
        Bytes that are sent at once.
    """
    owners = [_owners(piece, at, n_terms) for piece, at in zip(pieces, places, strict=True)]
    own = [piece.nodes[piece.own] for piece in pieces]
    counts = [
        np.stack([np.bincount(node, minlength=len(nodes)) for node in of], axis=1)
        for of, nodes in zip(owners, own, strict=True)
    ]
    at_once = max(1, window // (8 * (2 + n_terms)))
    first, total = _first(team, own, counts, whole.n_nodes, at_once)
    found = [
        Numbers(nodes, *_split([f[node, c] + _rank(node) for c, node in enumerate(of)]))
        for nodes, of, f in zip(own, owners, first, strict=True)
    ]
    return found, total[1:].tolist()


def _split(columns: list[IntArray]) -> tuple[IntArray, list[IntArray]]:
    return columns[0], columns[1:]


def _owners(piece: Piece, places: list[int], n_terms: int) -> list[IntArray]:
    """Return the own nodes, counted through, of counted edges and of the rows of each term."""
    place = np.cumsum(piece.own) - 1
    none = np.empty(0, dtype=np.int64)
    out = [place[piece.edges[piece.counted, 0]], *([none] * n_terms)]
    for t, term in zip(places, piece.terms, strict=True):
        out[1 + t] = place[np.asarray(term["node"], dtype=np.int64)]
    return out


def _rank(node: IntArray) -> IntArray:
    """Return the how manieth of its node each entry is, of nodes in order."""
    return np.arange(len(node)) - np.searchsorted(node, node)


def _first(
    team: Team, own: list[IntArray], counts: list[IntArray], n_nodes: int, at_once: int
) -> tuple[list[IntArray], IntArray]:
    """Return per piece what all nodes before each of its own have, and what all have."""
    out = [np.empty_like(c) for c in counts]
    before = np.zeros(counts[0].shape[1], dtype=np.int64)
    for start in range(0, n_nodes, at_once):
        some = [slice(*np.searchsorted(nodes, [start, start + at_once])) for nodes in own]
        pairs = zip(own, counts, some, strict=True)
        found = team.gather([a[at] for nodes, c, at in pairs for a in (nodes, c)])
        answer = None
        if found is not None:
            table = np.concatenate(found[1::2])[np.argsort(np.concatenate(found[::2]))]
            sums = before + np.cumsum(table, axis=0)
            answer = [sums - table, sums[-1]]
        sums, before = team.broadcast(answer)
        for nodes, at, o in zip(own, some, out, strict=True):
            o[at] = sums[nodes[at] - start]
    return out, before
