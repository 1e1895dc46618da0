"""How large solutions may be where no loss tells, by the rows of all shards.

The formulas are those of `gtvcvx.duality._lengths`: components of the graph are problems of their
own. Those inside a shard are looked at there; of those that reach over a cut, everybody knows sums
and triangles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.distributed._groups import Groups
from gtvcvx.distributed._parts import Parts
from gtvcvx.duality._lengths import PIECE, Lengths, PooledRows, lengths_of_sets, triangle
from gtvcvx.losses.batched._terms import Term


def largest_lengths(parts: Parts, tables: Sequence[Sequence[Term]]) -> FloatArray:
    """Return how large each coordinate may be in any component of the graph, (d,).

    Parameters
    ----------
    parts : Parts
    tables : sequence of sequence of dict
        Terms with rows in all coordinates, of each part.
    """
    groups = Groups.of_graph(parts)
    inside = [np.zeros(parts.dim) for _ in parts]
    shared: list[PooledRows] = []
    for at, (terms, own) in enumerate(zip(tables, groups.alone(), strict=True)):
        labels, count = groups.labels[at], groups.counts[at]
        rows = PooledRows.of(terms, parts.dim, _numbered(count, own, np.arange(len(own)))[labels])
        inside[at] = lengths_of_sets(rows, len(own)).max(axis=0, initial=0.0)
        shared.append(PooledRows.of(terms, parts.dim, _numbered(count, *groups.shared(at))[labels]))
    out: FloatArray = parts.most(inside)
    for some in _pieces(groups.n_shared, parts.dim):
        out = np.maximum(out, _lengths_over_cuts(parts, shared, some).max(axis=0))
    return out


def _numbered(count: int, some: IntArray, numbers: IntArray) -> IntArray:
    """Return the numbers of some of the local components, and -1 for the others, (count,)."""
    out = np.full(count, -1)
    out[some] = numbers
    return out


def _pieces(count: int, d: int) -> Iterator[IntArray]:
    """Yield so many numbers, as many at a time as have triangles of a bounded size."""
    step = max(PIECE // d**2, 1)
    for start in range(0, count, step):
        yield np.arange(start, min(start + step, count))


def _lengths_over_cuts(parts: Parts, rows: Sequence[PooledRows], some: IntArray) -> FloatArray:
    """Return how large each coordinate may be in some of the groups over cuts, (k, d)."""
    k, d = len(some), parts.dim
    inside = [r.some((r.owner >= some[0]) & (r.owner <= some[-1])) for r in rows]
    mine = [r._replace(owner=r.owner - some[0]) for r in inside]
    lengths = Lengths(parts.add([r.totals(k) for r in mine]))
    upper, nothing = np.zeros((k, 0, d)), np.zeros((k, d, d))
    for number in range(parts.manifest.n_shards):
        # Only those of one shard are told to all, which keep what they make of those before.
        shares = [
            _triangles(r, lengths.units) if part.number == number else nothing
            for part, r in zip(parts, mine, strict=True)
        ]
        stacked = np.concatenate([upper, parts.add(shares)], axis=1)
        upper = np.asarray(np.linalg.qr(stacked, mode="r"))
    return lengths.together(upper)


def _triangles(rows: PooledRows, units: FloatArray) -> FloatArray:
    """Return the triangle of each set's rows, columns in units (k, d), filled up: (k, d, d)."""
    k, d = units.shape
    out, (X, first, many) = np.zeros((k, d, d)), rows.in_order(k)
    for owner in np.flatnonzero(many):
        upper = triangle([X[first[owner] : first[owner] + many[owner]]], units[owner])
        out[owner, : len(upper)] = upper
    return out
