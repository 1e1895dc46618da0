"""The members of the problem data, their rows in pieces."""

from __future__ import annotations

import numpy as np

from verify.certificates.arrays._archive import Array
from verify.certificates.arrays._convert import json_text
from verify.certificates.pieces._float_point import Read
from verify.certificates.pieces._numbers import Numbers
from verify.certificates.pieces._piece import Piece, Whole
from verify.certificates.pieces._tables import Member
from verify.certificates.pieces._terms import TermForm

#: The member whose rows are texts, one behind the other.
LABELS = "nodes.json"


def members_of(
    whole: Whole,
    parts: list[Read],
    numbers: list[Numbers],
    forms: list[TermForm],
    places: list[list[int]],
    rows: list[int],
    labelled: bool,
) -> list[Member]:
    """Return the members in their order.

    Parameters
    ----------
    forms, places, rows : list
        The terms of the whole, which of them the pieces' terms are, and how many rows each has.
    labelled : bool
        Whether there are labels, if only numbers.
    """
    edges, m = [one.edges for one in numbers], whole.n_edges
    out = [
        Member(name, edges, [_ends(one.piece, side) for one in parts], m)
        for side, name in enumerate(("head", "tail"))
    ]
    weights = [one.members["weights"][one.piece.counted] for one in parts]
    out.append(Member("weights", edges, weights, m))
    if labelled:
        texts = [_labels(one.piece) for one in parts]
        out.append(Member(LABELS, [one.nodes for one in numbers], texts, whole.n_nodes))
    for t, form in enumerate(forms):
        own = [of.index(t) if t in of else None for of in places]
        at = [one.rows[t] for one in numbers]
        nodes = [_nodes(one, k) for one, k in zip(parts, own, strict=True)]
        out.append(Member(f"terms/{t}/node", at, nodes, rows[t]))
        for key in form.arrays:
            columns = form.columns(key, whole.dim)
            values = [_field(one, k, key, columns) for one, k in zip(parts, own, strict=True)]
            out.append(Member(f"terms/{t}/{key}", at, values, rows[t]))
    return out


def _ends(piece: Piece, side: int) -> Array:
    return piece.nodes[piece.edges[piece.counted, side]].astype("<u4")


def _nodes(one: Read, term: int | None) -> Array:
    """Return the nodes, in the whole, of the rows of a term."""
    if term is None:
        return np.empty(0, dtype="<u4")
    return one.piece.nodes[one.members[f"terms/{term}/node"]].astype("<u4")


def _field(one: Read, term: int | None, key: str, columns: int) -> Array:
    if term is None:
        return np.empty((0, columns))
    return one.members[f"terms/{term}/{key}"].reshape(-1, columns)


def _labels(piece: Piece) -> Array:
    """Return the JSON texts of the labels of own nodes."""
    labels = piece.nodes[piece.own].tolist() if piece.labels is None else piece.labels
    texts = [json_text(x if isinstance(x, str) else int(x)).encode("ascii") for x in labels]
    return np.array(texts, dtype=np.bytes_)
