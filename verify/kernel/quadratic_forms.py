"""Bounds of inverses and sign forms of small symmetric matrices, for partitions alone.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

from verify.kernel import work
from verify.kernel.matrices import Matrix, Root, Vector, lower_diagonal
from verify.kernel.numbers import Number


def common_denominator(values: Iterable[Number]) -> int:
    """Return the least common multiple of the denominators."""
    out = 1
    for x in values:
        if out % x.denominator:
            work.charge(2 * work.addition(out.bit_length(), x.denominator.bit_length()))
            out = lcm(out, x.denominator)
    return out


def upper_diagonal(matrix: Matrix, root: Root) -> Vector:
    """Return t with  v^T M v <= sum_i t_i v_i^2  for all v, by a root R.

    With G = M + R^T R it is t_i = G_ii + sum_{j != i} |G_ij|.
    """
    return [-x for x in lower_diagonal([[-x for x in row] for row in matrix], root)]


def upper_inverse(matrix: Matrix, guess: Root, mu: Fraction) -> Matrix:
    """Return M with  v^T H^-1 v <= v^T M v  for all v, for H >= mu I > 0 and any guess X of H^-1.

    M = X + X^T - X^T H X + S^T S / mu with S = I - H X, which is H^-1 + S^T (I / mu - H^-1) S.
    """
    (h, a), (x, b) = _integers(matrix), _integers(guess[0])
    d, b = len(h), b << guess[1]
    work.charge(3 * d**3 * work.product(2 * (_longest(h) + _longest(x) + b.bit_length())))
    work.charge(3 * d * d * work.fraction(4 * (a.bit_length() + b.bit_length()) + work.length(mu)))
    columns = list(zip(*x, strict=True))
    one = a * b
    s = [[(i == j) * one - _dot(row, c) for j, c in enumerate(columns)] for i, row in enumerate(h)]
    rest = list(zip(*s, strict=True))
    return [
        [
            Fraction(x[i][j], b)
            + Fraction(_dot(columns[i], rest[j]), one * b)
            + Fraction(_dot(rest[i], rest[j]), one**2) / mu
            for j in range(d)
        ]
        for i in range(d)
    ]


def largest_sign_form(matrix: Matrix) -> Fraction:
    """max_s s^T M s over the sign vectors s, one sign changed at a time (Gray code)."""
    d = len(matrix)
    m, scale = _integers(matrix)
    work.charge((1 << (d - 1)) * d * work.product(_longest(m)))
    s, image = [1] * d, [sum(row) for row in m]
    value = best = sum(image)
    for step in range(1, 1 << (d - 1)):
        j = (step & -step).bit_length() - 1
        value -= 4 * (s[j] * image[j] - m[j][j])
        s[j] = -s[j]
        image = [x + 2 * s[j] * row[j] for x, row in zip(image, m, strict=True)]
        best = max(best, value)
    return Fraction(best, scale)


def _integers(matrix: Sequence[Sequence[Number]]) -> tuple[list[list[int]], int]:
    """Return the entries as integers over one denominator, and that."""
    scale = common_denominator(x for row in matrix for x in row)
    work.charge(len(matrix) ** 2 * work.addition(scale.bit_length(), _longest(matrix)))
    return [[x.numerator * (scale // x.denominator) for x in row] for row in matrix], scale


def _longest(matrix: Sequence[Sequence[Number]]) -> int:
    """Return the most bits of an entry, with some for sums of products of such entries."""
    return max((work.length(x) for row in matrix for x in row), default=0) + 8


def _dot(a: Iterable[int], b: Iterable[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))
