"""Definiteness, inverses and sign forms of small symmetric matrices, for partitions alone.

Standard library only.
"""

from __future__ import annotations

from fractions import Fraction

from verify.kernel import work
from verify.kernel.matrices import Matrix, common_denominator, longest


def definite(matrix: Matrix) -> tuple[bool, bool]:
    """Whether a symmetric matrix is positive semidefinite, and whether it is definite.

    Fraction-free elimination: the pivots are those of L D L^T, each times the one before it.
    """
    rows = _integers(matrix)[0]
    bits, d = longest(rows), len(rows)
    previous, singular = 1, False
    for k, row in enumerate(rows):
        # entries are minors of that order
        steps = 2 * work.product((k + 1) * bits) + work.fraction((k + 1) * bits)
        work.charge((d - k) * (d - k) * steps)
        pivot = row[k]
        if pivot < 0:
            return False, False
        if pivot == 0:
            if any(row[k:]):
                return False, False
            singular = True
            continue
        for i in range(k + 1, d):
            below = rows[i]
            factor = below[k]
            for j in range(i, d):
                below[j] = (below[j] * pivot - factor * row[j]) // previous
                rows[j][i] = below[j]
        previous = pivot
    return True, not singular


def inverted(matrix: Matrix) -> Matrix | None:
    """Return the inverse of a symmetric positive definite matrix; None if it is not definite.

    Fraction-free elimination above and below the diagonal: all numbers are minors, all divisions
    exact, and the right half ends as the adjugate, the diagonal of the left one as the determinant.
    """
    integers, scale = _integers(matrix)
    d, bits = len(integers), longest(integers)
    work.charge(2 * d * d)
    rows = [[*row, *(int(i == j) for j in range(d))] for i, row in enumerate(integers)]
    previous = 1
    for k in range(d):
        steps = 2 * work.product((k + 1) * bits) + work.fraction((k + 1) * bits)
        work.charge(2 * d * d * steps)
        row = rows[k]
        pivot = row[k]
        if pivot <= 0:
            return None
        for i in range(d):
            if i != k:
                factor = rows[i][k]
                pairs = zip(rows[i], row, strict=True)
                rows[i] = [(x * pivot - factor * y) // previous for x, y in pairs]
        previous = pivot
    work.charge(d * d * work.fraction(d * bits))
    return [[Fraction(scale * x, previous) for x in row[d:]] for row in rows]


def _integers(matrix: Matrix) -> tuple[list[list[int]], int]:
    """Return the entries as integers over one denominator, and that."""
    scale = common_denominator(x for row in matrix for x in row)
    work.charge(len(matrix) ** 2 * work.addition(scale.bit_length(), longest(matrix)))
    return [[x.numerator * (scale // x.denominator) for x in row] for row in matrix], scale


def largest_sign_form(matrix: Matrix) -> Fraction:
    """max_s s^T M s over the sign vectors s, one sign changed at a time (Gray code)."""
    d = len(matrix)
    m, scale = _integers(matrix)
    work.charge((1 << (d - 1)) * d * work.product(longest(m)))
    s, image = [1] * d, [sum(row) for row in m]
    value = best = sum(image)
    for step in range(1, 1 << (d - 1)):
        j = (step & -step).bit_length() - 1
        value -= 4 * (s[j] * image[j] - m[j][j])
        s[j] = -s[j]
        image = [x + 2 * s[j] * row[j] for x, row in zip(image, m, strict=True)]
        best = max(best, value)
    return Fraction(best, scale)
