"""Tables of witness numbers whose rows are in pieces: what the manifest says, and the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify._arrays import IntArray
from verify.certificates.arrays._archive import Array
from verify.certificates.arrays._convert import words_of
from verify.certificates.arrays._grid_flow import trimmed
from verify.certificates.arrays._root import ratio
from verify.certificates.pieces._exact_point import PieceAbsorber
from verify.certificates.pieces._float_point import Read, own_nodes
from verify.certificates.pieces._numbers import Numbers
from verify.certificates.pieces._piece import Team, gathered

Layers = list[dict[str, Any]]


class Member(NamedTuple):
    """A member of a file, its rows in pieces.

    Attributes
    ----------
    name : str
    numbers : list of ndarray of int64
        Per piece of this process the numbers of its rows, ascending.
    values : list of ndarray
        Per piece these rows, as the file has them.
    total : int
        All numbers are below.
    """

    name: str
    numbers: list[IntArray]
    values: list[Array]
    total: int


class OwnTable(NamedTuple):
    """What a piece has of a table of integers: it is the sum of three layers.

    Attributes
    ----------
    numbers : ndarray of int64, shape (k,)
        Of its rows in the whole.
    dense : ndarray of int64, shape (k, columns)
        In units 2^-exponent; all of them are 0 where there is no such layer.
    rows, long : ndarray, shapes (some,) and (some, columns, words)
        Numbers in the whole, ascending, and long integers in units 2^-fine.
    ratios : list of (int, list of str)
        Numbers in the whole, ascending, and witness numbers.
    """

    numbers: IntArray
    dense: Array
    rows: IntArray
    long: Array
    ratios: list[tuple[int, list[str]]]


def table(
    team: Team, name: str, own: list[OwnTable], exponent: int, fine: int, total: int
) -> tuple[Layers, list[Member]]:
    """Return the layers of a table of so many rows, and their arrays; ratios at the first only."""
    long = [trimmed(one.long) for one in own]
    found = team.most(
        [[one.dense.any(), len(one.rows), x.shape[-1]] for one, x in zip(own, long, strict=True)]
    )
    dense, some, words = found.tolist()
    count = int(team.add([len(one.rows) for one in own]))
    layers: Layers = []
    members = []
    if dense:
        values = [one.dense.astype("<i8") for one in own]
        members.append(Member(f"{name}/0", [one.numbers for one in own], values, total))
        layers.append({"type": "int", "words": 1, "exponent": exponent})
    if some:
        at = f"{name}/{len(layers)}"
        numbers = [one.rows for one in own]
        wide = [_extended(x, int(words)) for x in long]
        members.append(Member(f"{at}/rows", numbers, [x.astype("<u4") for x in numbers], total))
        members.append(Member(at, numbers, wide, total))
        layers.append({"type": "int", "words": int(words), "exponent": fine, "rows": count})
    ratios = gathered(team, [one.ratios for one in own])
    if ratios and any(ratios):
        every = sorted(row for rows in ratios for row in rows)
        rows, texts = [row for row, _ in every], [text for _, text in every]
        layers.append({"type": "ratio", "rows": rows, "values": texts})
    return layers, members


def _extended(long: Array, words: int) -> Array:
    """Return long integers with more words, which repeat the sign."""
    more = words - long.shape[-1]
    sign = np.where(long[..., -1:] >> np.uint64(63), ~np.uint64(0), np.uint64(0))
    return np.concatenate([long, np.repeat(sign, more, axis=-1)], axis=-1).astype("<u8")


def flow(absorber: PieceAbsorber, numbers: Numbers) -> OwnTable:
    """Return what a piece has of the flow: the edges that it counts."""
    piece, point = absorber.one.piece, absorber.grid
    number = np.full(len(piece.edges), -1)
    number[piece.counted] = numbers.edges
    there = np.flatnonzero((absorber.parent_edge >= 0) & absorber.flow.any(axis=(1, 2)))
    crossing = {e: x for e, x in absorber.crossing.items() if number[e] >= 0 and x.any()}
    edges = np.concatenate([absorber.parent_edge[there], np.array(list(crossing), dtype=np.int64)])
    long = absorber.flow[there]
    if crossing:
        long = np.concatenate([long, np.stack(list(crossing.values()))])
    order = np.argsort(number[edges])
    ratios = [(int(number[e]), [ratio(x, point.k) for x in row]) for e, row in absorber.u.items()]
    dense = point.u[piece.counted]
    return OwnTable(numbers.edges, dense, number[edges][order], long[order], ratios)


def multipliers(
    absorber: PieceAbsorber, numbers: Numbers, places: list[int], t: int, columns: int
) -> OwnTable:
    """Return what a piece has of the multipliers of term t of the whole."""
    point, number = absorber.grid, numbers.rows[t]
    if t not in places:
        none = np.zeros((0, columns), dtype=np.int64)
        return OwnTable(number, none, number, np.zeros((0, columns, 1), dtype=np.uint64), [])
    own = places.index(t)
    values, (rows, long) = point.r[own], absorber.taken[own]
    if point.k_r[own] == point.k and len(rows):  # whole units: nothing is lost
        values = values.copy()
        values[rows] += long[..., 0].astype(np.int64)
        rows, long = rows[:0], long[:0]
    unit = absorber.view.k_r(own)
    ratios = [(int(number[b]), [ratio(x, unit) for x in row]) for b, row in absorber.r[own].items()]
    dense = values.reshape(len(number), columns)
    return OwnTable(number, dense, number[rows], long, ratios)


def points(
    team: Team, pieces: list[Read], numbers: list[Numbers], total: int
) -> tuple[Layers, list[Member]]:
    """Return the layers of w: doubles, and what these miss of sums that have to be exact."""
    own = [own_nodes(one) for one in pieces]
    doubles = [one.point[at].astype("<f8") for one, at in zip(pieces, own, strict=True)]
    layers: Layers = [{"type": "float64"}]
    members = [Member("w/0", [x.nodes for x in numbers], doubles, total)]
    missed = [_missed(one, at) for one, at in zip(pieces, own, strict=True)]
    k = int(team.most([_unit(rows) for rows in missed]))
    scaled = {}
    for p, rows in enumerate(missed):
        scaled[p] = [[int(x * (1 << k)) for x in row] for row in rows.values()]
    bits = team.most([_bits(rows) for rows in scaled.values()])
    count = int(team.add([len(rows) for rows in missed]))
    if count:
        words = int(bits) // 64 + 1
        at = [x.nodes[list(rows)] for x, rows in zip(numbers, missed, strict=True)]
        long = [_words(rows, words, pieces[0].inst.d) for rows in scaled.values()]
        members.append(Member("w/1/rows", at, [x.astype("<u4") for x in at], total))
        members.append(Member("w/1", at, long, total))
        layers.append({"type": "int", "words": words, "exponent": k, "rows": count})
    return layers, members


def _missed(one: Read, own: IntArray) -> dict[int, list[Fraction]]:
    """Return per own node, counted through, what doubles miss of the point."""
    if one.exact is None:
        return {}
    out = {}
    for i, (row, point) in enumerate(zip(one.exact[own], one.point[own].tolist(), strict=True)):
        rest = [Fraction(x) - Fraction(y) for x, y in zip(row, point, strict=True)]
        if any(rest):
            out[i] = rest
    return out


def _unit(rows: dict[int, list[Fraction]]) -> int:
    """Return the k for which all are integers times 2^-k; they are doubles' sums."""
    return max((x.denominator.bit_length() - 1 for row in rows.values() for x in row), default=0)


def _bits(rows: list[list[int]]) -> int:
    return max((x.bit_length() for row in rows for x in row), default=0)


def _words(rows: list[list[int]], words: int, columns: int) -> Array:
    if not rows:
        return np.zeros((0, columns, words), dtype="<u8")
    flat: Sequence[int] = [x for row in rows for x in row]
    return words_of(flat, words).reshape(len(rows), columns, words)
