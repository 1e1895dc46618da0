"""Exact linear algebra of small symmetric matrices. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

from verify.kernel import work
from verify.kernel.numbers import Number
from verify.kernel.verdict import Verdict

Vector = list[Fraction]
Matrix = list[Vector]


def common_denominator(values: Iterable[Fraction]) -> int:
    """Return the least common multiple of the denominators."""
    out = 1
    for x in values:
        if out % x.denominator:
            work.charge(2 * work.addition(out.bit_length(), x.denominator.bit_length()))
            out = lcm(out, x.denominator)
    return out


def _longest(matrix: Sequence[Sequence[Number]]) -> int:
    """Return the most bits of an entry, with some for sums of products of such entries."""
    return max((work.length(x) for row in matrix for x in row), default=0) + 8


def sweep(q: Sequence[Sequence[Number]]) -> tuple[list[list[Fraction]], list[int]]:
    """Sweep a symmetric matrix: prove it positive semidefinite and invert it on its range.

    Returns (S, J): J are the pivots, S_JJ = (Q_JJ)^-1 and S_NJ = Q_NJ (Q_JJ)^-1 for the others N;
    a vector v is in the range of Q iff v_N = S_NJ v_J, and then v^T Q^+ v = v_J^T S_JJ v_J.
    """
    d, pivots = len(q), list[int]()
    bits = _longest(q)
    s = [[Fraction(x) for x in row] for row in q]
    while left := [j for j in range(d) if j not in pivots]:
        # entries are minors of that order over each other
        work.charge(3 * d * d * work.fraction(2 * (len(pivots) + 1) * bits))
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
    rows = _integers(matrix)[0]
    bits, d = _longest(rows), len(rows)
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
    """Return the inverse of a symmetric positive definite matrix; None if it is not definite."""
    d, bits = len(matrix), _longest(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(d))] for i, row in enumerate(matrix)]
    for i in range(d):
        work.charge(4 * d * d * work.fraction(2 * (i + 1) * bits))
        pivot = rows[i][i]
        if pivot <= 0:
            return None
        rows[i] = [x / pivot for x in rows[i]]
        for k in range(d):
            factor = rows[k][i]
            if k != i and factor:
                rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[d:] for row in rows]


def _integers(matrix: Matrix) -> tuple[list[list[int]], int]:
    """Return the entries as integers over one denominator, and that."""
    scale = common_denominator(x for row in matrix for x in row)
    work.charge(len(matrix) ** 2 * work.addition(scale.bit_length(), _longest(matrix)))
    return [[x.numerator * (scale // x.denominator) for x in row] for row in matrix], scale


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
