"""Where the entries of a program's squares are: symbolic, once for all of its steps."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx._lazy import sp
from gtvcvx.solvers.interior_point.careful._asymmetric import AsymmetricCones
from gtvcvx.solvers.interior_point.careful._symmetric import SymmetricCones
from gtvcvx.solvers.interior_point.careful._twofold import (
    Cones,
    Pairs,
    Rows,
    locate,
    locate_entries,
    square,
)

# Pairs of columns between two looks at the deadline: .1 s.
A_LOOK = 3_000_000


class Layout(NamedTuple):
    """Entries of ``P + A^T D A``, upper triangle alone, and what adds up to them.

    Attributes
    ----------
    rows : Rows
        A.
    pairs : Pairs
    cones, triples : Cones
        Second-order cones in the order of their rows, and exponential and power cones in theirs.
    hessian, values : ndarray
        Where the entries of P go, and what they are.
    diagonal : ndarray, shape (N,)
        Places of the diagonal.
    beside : ndarray, shape (m,)
        And of the other entries.
    edges : ndarray, shape (m, 2)
        Rows and columns of these.
    size : int
        Number of all entries.
    """

    rows: Rows
    pairs: Pairs
    cones: Cones
    triples: Cones
    hessian: IntArray
    values: FloatArray
    diagonal: IntArray
    beside: IntArray
    edges: IntArray
    size: int

    @staticmethod
    def of(
        P: sp.csc_array, A: sp.csr_array, cones: SymmetricCones, others: AsymmetricCones
    ) -> Layout:
        """Lay out the squares of rows A, with P beside them."""
        rows = by_rows(A)
        single = np.sort(np.concatenate([cones.free, cones.signs]))
        seconds = Blocks.of(A, _in_order(cones))
        triples = Blocks.of(A, np.stack([others.at[:, 0], np.full(len(others), 3)], axis=1))
        own = A[single, :]
        lengths = np.concatenate([np.diff(own.indptr), seconds.lengths, triples.lengths])
        columns = np.concatenate([own.indices, seconds.columns, triples.columns])
        sets = Rows(_starts(lengths), columns.astype(np.int64), np.empty(0))
        upper = sp.triu(P, format="csr")
        pattern = _pattern(sets, upper)
        starts = _starts(lengths * (lengths + 1) // 2)
        places = np.empty(starts[-1], np.int64)
        for first, end in pairwise(_portions(starts)):
            look()
            locate(sets, first, end, pattern, starts, places)
        S, all_of_rows = len(single), starts[len(single)]
        all_of_cones = starts[len(single) + len(seconds.lengths)]
        second_order = seconds.laid_out(places[all_of_rows:all_of_cones])
        look()
        square(second_order)
        entries = by_rows(upper)
        hessian, diagonal = np.empty(upper.nnz, np.int64), pattern.starts[:-1].copy()
        locate_entries(entries, pattern, hessian)
        row = np.repeat(np.arange(A.shape[1]), np.diff(pattern.starts))
        beside = np.flatnonzero(row != pattern.columns)
        edges = np.stack([row, pattern.columns], axis=1)[beside]
        return Layout(
            rows,
            Pairs(single, starts[: S + 1], places[:all_of_rows]),
            second_order,
            triples.laid_out(places[all_of_cones:]),
            hessian,
            upper.data,
            diagonal,
            beside,
            edges,
            len(row),
        )


class Blocks(NamedTuple):
    """Cones of several rows with all columns that are in one of these.

    Attributes
    ----------
    each : ndarray, shape (K, 2)
        First row of each cone, and how many it has.
    lengths : ndarray, shape (K,)
        Of how many columns.
    columns : ndarray
        These, one cone's after the other's.
    starts, dense : ndarray
        Their rows.
    """

    each: IntArray
    lengths: IntArray
    columns: IntArray
    starts: IntArray
    dense: FloatArray

    @staticmethod
    def of(A: sp.csr_array, each: IntArray) -> Blocks:
        """Take cones out of a matrix."""
        N, counts = A.shape[1], each[:, 1]
        cone = np.repeat(np.arange(len(each)), counts)
        local = np.arange(len(cone)) - np.repeat(_starts(counts)[:-1], counts)
        part = A[each[cone, 0] + local, :].tocoo()
        found, at = np.unique(cone[part.row] * N + part.col, return_inverse=True)
        lengths = np.bincount(found // N, minlength=len(each))
        starts, own = _starts(counts * lengths), cone[part.row]
        dense = np.zeros(starts[-1])
        place = at - _starts(lengths)[own]
        dense[starts[own] + local[part.row] * lengths[own] + place] = part.data
        return Blocks(each, lengths, found % N, starts, dense)

    def laid_out(self, places: IntArray) -> Cones:
        """Lay them out, with the places of their squares, which are none yet."""
        return Cones(
            self.each[:, 0].copy(),
            self.each[:, 1].copy(),
            self.lengths,
            self.starts,
            self.dense,
            _starts(self.lengths * (self.lengths + 1) // 2),
            np.empty(len(places)),
            np.empty(len(places)),
            places,
        )


def _portions(starts: IntArray) -> list[int]:
    """Return sets between which to look at the deadline."""
    at = np.searchsorted(starts, np.arange(0, starts[-1], A_LOOK))
    return sorted({0, *at.tolist(), len(starts) - 1})


def by_rows(matrix: sp.csr_array) -> Rows:
    """Return a matrix as compiled functions know it."""
    return Rows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)


def _pattern(sets: Rows, upper: sp.csr_array) -> Rows:
    """Return the entries of the upper triangle of all squares: any two columns of each set."""
    N = upper.shape[1]
    members = sp.csr_array(
        (np.ones(len(sets.columns)), sets.columns, sets.starts), shape=(len(sets.starts) - 1, N)
    )
    squares = members.T @ members + abs(upper) + sp.eye_array(N)
    found = sp.csr_array(sp.triu(squares, format="csr"))
    found.sort_indices()
    return by_rows(found)


def _in_order(cones: SymmetricCones) -> IntArray:
    """Return the first row of each second-order cone, and how many it has, (K, 2)."""
    each = [(int(first), rows) for rows, at in cones.lengths.items() for first in at[:, 0]]
    return np.array(sorted(each), np.int64).reshape(-1, 2)


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
