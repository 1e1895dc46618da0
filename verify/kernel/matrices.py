"""Bounds of small symmetric matrices by witnesses that are multiplied out. Standard library only.

Nothing is eliminated or inverted here: what was, by whoever made the witness, is a *root* R, any
number of rows, with R^T R about as large as the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from verify.kernel import numbers, work
from verify.kernel.losses import dot
from verify.kernel.numbers import Number

Vector = list[Fraction]
Matrix = list[Vector]
Root = tuple[Sequence[Sequence[Number]], int]  # rows R_i 2^-k and k
EMPTY: Root = ([], 0)


def lower_diagonal(matrix: Sequence[Sequence[Number]], root: Root, plus: Root = EMPTY) -> Vector:
    """Return t with  v^T (M + N^T N) v >= sum_i t_i v_i^2  for all v, by a root R; N is `plus`.

    With G = M + N^T N - R^T R it is t_i = G_ii - sum_{j != i} |G_ij|: v^T G v is at least
    sum_i t_i v_i^2 because 2 |v_i v_j| <= v_i^2 + v_j^2, and R^T R is positive semidefinite.
    """
    d, rows = len(matrix), len(root[0]) + len(plus[0])
    work.operations(d * d * rows)
    work.fractions(8 * d * d)
    work.charge(8 * d * d * work.fraction(2 * max(root[1], plus[1])))
    work.rows(d * d if work.rational_rows([*root[0], *plus[0]]) else 0, rows)
    grams = [(numbers.unit(2 * k), list(zip(*r, strict=True)) or [()] * d) for r, k in (plus, root)]
    (one, n), (other, r) = grams
    out = []
    for i, entries in enumerate(matrix):
        columns = zip(entries, n, r, strict=True)
        g = [x + dot(n[i], a) * one - dot(r[i], b) * other for x, a, b in columns]
        out.append(Fraction(g[i] + abs(g[i]) - sum(map(abs, g))))
    return out
