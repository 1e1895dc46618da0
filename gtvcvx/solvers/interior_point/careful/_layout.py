"""Where the entries of a program's squares are: symbolic, once for all of its steps."""

from __future__ import annotations

from collections.abc import Sequence
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
        seconds, triples = _in_order(cones), [(int(first), 3) for first in others.at[:, 0]]
        blocks = [_block(A, first, count) for first, count in seconds + triples]
        own = A[single, :]
        lengths = np.concatenate([np.diff(own.indptr), [len(columns) for columns, _ in blocks]])
        columns = np.concatenate([own.indices, *(columns for columns, _ in blocks)])
        sets = Rows(_starts(lengths), columns.astype(np.int64), np.empty(0))
        upper = sp.triu(P, format="csr")
        pattern = _pattern(sets, upper)
        starts = _starts(lengths * (lengths + 1) // 2)
        places = np.empty(starts[-1], np.int64)
        for first, end in pairwise(_portions(starts)):
            look()
            locate(sets, first, end, pattern, starts, places)
        S, all_of_rows = len(single), starts[len(single)]
        all_of_cones, K = starts[len(single) + len(seconds)], len(seconds)
        second_order = _laid_out(seconds, blocks[:K], places[all_of_rows:all_of_cones])
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
            _laid_out(triples, blocks[K:], places[all_of_cones:]),
            hessian,
            upper.data,
            diagonal,
            beside,
            edges,
            len(row),
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


def _in_order(cones: SymmetricCones) -> list[tuple[int, int]]:
    """Return the first row of each second-order cone, and how many it has."""
    each = [(int(first), rows) for rows, at in cones.lengths.items() for first in at[:, 0]]
    return sorted(each)


def _block(A: sp.csr_array, first: int, count: int) -> tuple[IntArray, FloatArray]:
    """Return the columns that are in some rows, and the rows with all of these."""
    starts = A.indptr[first : first + count + 1]
    columns, at = np.unique(A.indices[starts[0] : starts[-1]], return_inverse=True)
    block = np.zeros((count, len(columns)))
    block[np.repeat(np.arange(count), np.diff(starts)), at] = A.data[starts[0] : starts[-1]]
    return columns.astype(np.int64), block


def _starts(lengths: IntArray | Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _laid_out(
    cones: Sequence[tuple[int, int]],
    blocks: Sequence[tuple[IntArray, FloatArray]],
    places: IntArray,
) -> Cones:
    """Lay out cones, given by first rows and how many they have; their squares are none yet."""
    each = np.array(cones, np.int64).reshape(-1, 2)
    columns = np.array([len(own) for own, _ in blocks], np.int64)
    dense = np.concatenate([np.empty(0), *(block.ravel() for _, block in blocks)])
    return Cones(
        each[:, 0].copy(),
        each[:, 1].copy(),
        columns,
        _starts(each[:, 1] * columns),
        dense,
        _starts(columns * (columns + 1) // 2),
        np.empty(len(places)),
        np.empty(len(places)),
        places,
    )
