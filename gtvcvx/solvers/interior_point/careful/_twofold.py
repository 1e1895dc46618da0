"""Compiled sums over the rows of a cone program in twice the digits: each number is a sum of two.

Scalings of cones differ by more than the sixteen digits of one number: the squares of scaled rows
are added up, and multipliers are read off steps, in all digits that sums of two have. The twins of
these functions are in the tests.
"""

from __future__ import annotations

from typing import NamedTuple

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.block_cholesky._digits import over, plus, product_of, times
from gtvcvx.compiled import compiled


class Rows(NamedTuple):
    """A sparse matrix (M, N) by rows."""

    starts: IntArray
    columns: IntArray
    values: FloatArray


class Pairs(NamedTuple):
    """Where the squares of rows go, among all entries of their matrix.

    Ragged lists are stored one after the other, with the place where each begins.

    Attributes
    ----------
    single : ndarray, shape (S,)
        Rows of their own.
    starts, places : ndarray
        Places of the products of two entries of each: of the first one with itself and all after
        it, of the second one, and so on.
    """

    single: IntArray
    starts: IntArray
    places: IntArray


class Cones(NamedTuple):
    """Cones of more rows: these with all columns that are in one of them, and the squares.

    Attributes
    ----------
    first, counts, columns : ndarray, shape (K,)
        First row of each cone, how many it has, and of how many columns.
    dense_starts, dense : ndarray
        Its rows.
    starts, squares, rests, places : ndarray
        Products of any two of its columns, which do not change, and where they go; `square` writes
        those of second-order cones, which alone need them.
    """

    first: IntArray
    counts: IntArray
    columns: IntArray
    dense_starts: IntArray
    dense: FloatArray
    starts: IntArray
    squares: FloatArray
    rests: FloatArray
    places: IntArray


@compiled(small=True, allocates=False, inner=True)
def _place(pattern: Rows, row: int, column: int) -> int:
    """Return the place of an entry in a pattern whose columns ascend in each row."""
    low, high = pattern.starts[row], pattern.starts[row + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if pattern.columns[middle] > column:
            high = middle
        else:
            low = middle
    return low


@compiled(small=True, allocates=False)
def locate(
    sets: Rows, first: int, end: int, pattern: Rows, starts: IntArray, places: IntArray
) -> None:
    """Write the places of any two columns of some sets, which ascend, in an upper triangle."""
    for k in range(first, end):
        at = starts[k]
        for i in range(sets.starts[k], sets.starts[k + 1]):
            for j in range(i, sets.starts[k + 1]):
                places[at] = _place(pattern, sets.columns[i], sets.columns[j])
                at += 1


@compiled(small=True, allocates=False)
def locate_entries(rows: Rows, pattern: Rows, places: IntArray) -> None:
    """Write the place of each entry of some rows."""
    for r in range(len(rows.starts) - 1):
        for i in range(rows.starts[r], rows.starts[r + 1]):
            places[i] = _place(pattern, r, rows.columns[i])


@compiled(small=True, allocates=False)
def square(cones: Cones) -> None:
    """Write the products of any two columns of each cone."""
    for k in range(len(cones.first)):
        columns, dense, at = cones.columns[k], cones.dense_starts[k], cones.starts[k]
        for i in range(columns):
            for j in range(i, columns):
                total, rest = 0.0, 0.0
                for r in range(cones.counts[k]):
                    a = cones.dense[dense + r * columns + i]
                    b = cones.dense[dense + r * columns + j]
                    if a != 0.0 and b != 0.0:
                        c, c_rest = product_of(a, b)
                        total, rest = plus(total, rest, c, c_rest)
                cones.squares[at], cones.rests[at] = total, rest
                at += 1


@compiled(small=True, allocates=False)
def add_rows(
    rows: Rows, pairs: Pairs, some: BoolArray, inverse: FloatArray, out: FloatArray
) -> None:
    """Add the squares of `some` (M,) of the rows of their own, times `inverse` (M,)."""
    for k in range(len(pairs.single)):
        r = pairs.single[k]
        if not some[r] or inverse[r] == 0.0:
            continue
        weight, weight_rest = product_of(inverse[r], inverse[r])
        at, end = pairs.starts[k], rows.starts[r + 1]
        for i in range(rows.starts[r], end):
            a, a_rest = times(weight, weight_rest, rows.values[i], 0.0)
            for j in range(i, end):
                b, b_rest = times(a, a_rest, rows.values[j], 0.0)
                e = pairs.places[at]
                out[0, e], out[1, e] = plus(out[0, e], out[1, e], b, b_rest)
                at += 1


@compiled(allocates=False)
def add_cones(
    cones: Cones, u: FloatArray, sizes: FloatArray, out: FloatArray, space: FloatArray
) -> None:
    """Add the squares of the cones' rows times ``(2 u u^T - J) / size``.

    With p = A^T u, q = A^T J u and t = 2 (u^T u) p - 2 q they are ``A^T A + p t^T + t p^T``.
    """
    p, p_rest, t, t_rest = space[0], space[1], space[2], space[3]
    for k in range(len(cones.first)):
        first, columns, dense = cones.first[k], cones.columns[k], cones.dense_starts[k]
        total, rest = 0.0, 0.0
        for i in range(columns):
            p[i] = p_rest[i] = 0.0
        for r in range(cones.counts[k]):
            a, a_rest = product_of(u[first + r], u[first + r])
            total, rest = plus(total, rest, a, a_rest)
            for i in range(columns):
                a, a_rest = product_of(cones.dense[dense + r * columns + i], u[first + r])
                p[i], p_rest[i] = plus(p[i], p_rest[i], a, a_rest)
        for i in range(columns):
            # q is twice the first row's share of p, less p.
            a, a_rest = product_of(cones.dense[dense + i], 2.0 * u[first])
            a, a_rest = plus(a, a_rest, -p[i], -p_rest[i])
            b, b_rest = times(total, rest, p[i], p_rest[i])
            b, b_rest = plus(b, b_rest, -a, -a_rest)
            t[i], t_rest[i] = 2.0 * b, 2.0 * b_rest
        size, size_rest = product_of(sizes[k], sizes[k])
        weight, weight_rest = over(1.0, 0.0, size, size_rest)
        at = cones.starts[k]
        for i in range(columns):
            for j in range(i, columns):
                a, a_rest = times(p[i], p_rest[i], t[j], t_rest[j])
                b, b_rest = times(t[i], t_rest[i], p[j], p_rest[j])
                a, a_rest = plus(a, a_rest, b, b_rest)
                a, a_rest = plus(a, a_rest, cones.squares[at], cones.rests[at])
                a, a_rest = times(a, a_rest, weight, weight_rest)
                e = cones.places[at]
                out[0, e], out[1, e] = plus(out[0, e], out[1, e], a, a_rest)
                at += 1


@compiled(allocates=False)
def add_triples(cones: Cones, roots: FloatArray, out: FloatArray, space: FloatArray) -> None:
    """Add the squares of the rows of cones with three of them, times `roots` (K, 3, 3)."""
    for k in range(len(cones.first)):
        columns, dense = cones.columns[k], cones.dense_starts[k]
        for r in range(3):
            for i in range(columns):
                total, rest = 0.0, 0.0
                for j in range(3):
                    b = cones.dense[dense + j * columns + i]
                    if b != 0.0:
                        a, a_rest = product_of(roots[k, r, j], b)
                        total, rest = plus(total, rest, a, a_rest)
                space[r, i], space[3 + r, i] = total, rest
        at = cones.starts[k]
        for i in range(columns):
            for j in range(i, columns):
                e = cones.places[at]
                total, rest = out[0, e], out[1, e]
                for r in range(3):
                    a, a_rest = times(space[r, i], space[3 + r, i], space[r, j], space[3 + r, j])
                    total, rest = plus(total, rest, a, a_rest)
                out[0, e], out[1, e] = total, rest
                at += 1


@compiled(small=True, allocates=False)
def scale_triples(first: IntArray, roots: FloatArray, y: FloatArray) -> None:
    """Multiply three rows of y (2, M) each, from `first` (K,) on, by `roots` (K, 3, 3)."""
    for k in range(len(first)):
        at = first[k]
        x, x_rest, v, v_rest = y[0, at], y[1, at], y[0, at + 1], y[1, at + 1]
        t, t_rest = y[0, at + 2], y[1, at + 2]
        for i in range(3):
            total, rest = times(x, x_rest, roots[k, i, 0], 0.0)
            a, a_rest = times(v, v_rest, roots[k, i, 1], 0.0)
            total, rest = plus(total, rest, a, a_rest)
            a, a_rest = times(t, t_rest, roots[k, i, 2], 0.0)
            y[0, at + i], y[1, at + i] = plus(total, rest, a, a_rest)


@compiled(small=True, allocates=False)
def scale(
    pairs: Pairs, cones: Cones, inverse: FloatArray, u: FloatArray, sizes: FloatArray, y: FloatArray
) -> None:
    """Multiply y (2, M) by `inverse` at rows of their own, else by ``(2 u u^T - J) / size``."""
    for k in range(len(pairs.single)):
        r = pairs.single[k]
        y[0, r], y[1, r] = times(y[0, r], y[1, r], inverse[r], 0.0)
    for k in range(len(cones.first)):
        first, total, rest = cones.first[k], 0.0, 0.0
        end = first + cones.counts[k]
        for r in range(first, end):
            a, a_rest = times(y[0, r], y[1, r], u[r], 0.0)
            total, rest = plus(total, rest, a, a_rest)
        for r in range(first, end):
            sign = -1.0 if r == first else 1.0
            a, a_rest = times(total, rest, 2.0 * u[r], 0.0)
            a, a_rest = plus(a, a_rest, sign * y[0, r], sign * y[1, r])
            y[0, r], y[1, r] = over(a, a_rest, sizes[k], 0.0)


@compiled(small=True, allocates=False)
def add_products(rows: Rows, x: FloatArray, y: FloatArray) -> None:
    """Add A x, of x (2, N), to y (2, M)."""
    for r in range(len(rows.starts) - 1):
        total, rest = y[0, r], y[1, r]
        for i in range(rows.starts[r], rows.starts[r + 1]):
            c = rows.columns[i]
            a, a_rest = times(x[0, c], x[1, c], rows.values[i], 0.0)
            total, rest = plus(total, rest, a, a_rest)
        y[0, r], y[1, r] = total, rest


@compiled(small=True, allocates=False)
def add_transposed(rows: Rows, y: FloatArray, x: FloatArray) -> None:
    """Add A^T y, of y (2, M), to x (2, N)."""
    for r in range(len(rows.starts) - 1):
        for i in range(rows.starts[r], rows.starts[r + 1]):
            c = rows.columns[i]
            a, a_rest = times(y[0, r], y[1, r], rows.values[i], 0.0)
            x[0, c], x[1, c] = plus(x[0, c], x[1, c], a, a_rest)


@compiled(small=True, allocates=False)
def divide(x: FloatArray, by: FloatArray) -> None:
    """Divide x (2, n) by numbers (n,)."""
    for k in range(len(by)):
        x[0, k], x[1, k] = over(x[0, k], x[1, k], by[k], 0.0)


@compiled(small=True, allocates=False)
def add(x: FloatArray, y: FloatArray, sign: float) -> None:
    """Add y (2, n), times 1 or -1, to x (2, n)."""
    for k in range(x.shape[1]):
        x[0, k], x[1, k] = plus(x[0, k], x[1, k], sign * y[0, k], sign * y[1, k])
