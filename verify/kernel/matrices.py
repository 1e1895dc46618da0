"""Exact linear algebra of small symmetric matrices. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from verify.kernel.numbers import Number, Verdict

Vector = list[Fraction]
Matrix = list[Vector]


def sweep(q: Sequence[Sequence[Number]]) -> tuple[list[list[Fraction]], list[int]]:
    """Sweep a symmetric matrix: prove it positive semidefinite and invert it on its range.

    Returns (S, J): J are the pivots, S_JJ = (Q_JJ)^-1 and S_NJ = Q_NJ (Q_JJ)^-1 for the others N;
    a vector v is in the range of Q iff v_N = S_NJ v_J, and then v^T Q^+ v = v_J^T S_JJ v_J.
    """
    d, pivots = len(q), []
    s = [[Fraction(x) for x in row] for row in q]
    while left := [j for j in range(d) if j not in pivots]:
        k = max(left, key=lambda j: s[j][j])
        rest = [s[i][j] for i in left for j in left]
        if min(s[j][j] for j in left) < 0 or (s[k][k] == 0 and any(rest)):
            raise Verdict("UNPROVED", "Q is not positive semidefinite in exact arithmetic")
        if s[k][k] == 0:
            break
        pivot, column = s[k][k], [s[i][k] for i in range(d)]
        row = list(s[k])
        for i in range(d):
            for j in range(d):
                if i != k and j != k:
                    s[i][j] -= column[i] * row[j] / pivot
            s[i][k] = column[i] / pivot
        s[k] = [x / pivot for x in row]
        s[k][k] = -1 / pivot
        pivots.append(k)
    for i in pivots:
        for j in pivots:
            s[i][j] = -s[i][j]
    return s, sorted(pivots)


def definite(matrix: Matrix) -> tuple[bool, bool]:
    """Whether a symmetric matrix is positive semidefinite, and whether it is definite.

    Fraction-free elimination: the pivots are those of L D L^T, each times the one before it.
    """
    scale = lcm(*(x.denominator for row in matrix for x in row))
    work = [[x.numerator * (scale // x.denominator) for x in row] for row in matrix]
    previous, singular = 1, False
    for k, row in enumerate(work):
        pivot = row[k]
        if pivot < 0:
            return False, False
        if pivot == 0:
            if any(row[k:]):
                return False, False
            singular = True
            continue
        for i in range(k + 1, len(work)):
            below = work[i]
            factor = below[k]
            for j in range(i, len(work)):
                below[j] = (below[j] * pivot - factor * row[j]) // previous
                work[j][i] = below[j]
        previous = pivot
    return True, not singular


def inverted(matrix: Matrix) -> Matrix | None:
    """Return the inverse of a symmetric positive definite matrix; None if it is not definite."""
    d = len(matrix)
    work = [[*row, *(Fraction(i == j) for j in range(d))] for i, row in enumerate(matrix)]
    for i in range(d):
        pivot = work[i][i]
        if pivot <= 0:
            return None
        work[i] = [x / pivot for x in work[i]]
        for k in range(d):
            factor = work[k][i]
            if k != i and factor:
                work[k] = [x - factor * y for x, y in zip(work[k], work[i], strict=True)]
    return [row[d:] for row in work]


def largest_sign_form(matrix: Matrix) -> Fraction:
    """max_s s^T M s over the sign vectors s, one sign changed at a time (Gray code)."""
    d = len(matrix)
    scale = lcm(*(x.denominator for row in matrix for x in row))
    m = [[x.numerator * (scale // x.denominator) for x in row] for row in matrix]
    s, image = [1] * d, [sum(row) for row in m]
    value = best = sum(image)
    for step in range(1, 1 << (d - 1)):
        j = (step & -step).bit_length() - 1
        value -= 4 * (s[j] * image[j] - m[j][j])
        s[j] = -s[j]
        image = [x + 2 * s[j] * row[j] for x, row in zip(image, m, strict=True)]
        best = max(best, value)
    return Fraction(best, scale)
