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


def longest(matrix: Sequence[Sequence[Number]]) -> int:
    """Return the most bits of an entry, with some for sums of products of such entries."""
    return max((work.length(x) for row in matrix for x in row), default=0) + 8


def sweep(q: Sequence[Sequence[Number]]) -> tuple[list[list[Fraction]], list[int]]:
    """Sweep a symmetric matrix: prove it positive semidefinite and invert it on its range.

    Returns (S, J): J are the pivots, S_JJ = (Q_JJ)^-1 and S_NJ = Q_NJ (Q_JJ)^-1 for the others N;
    a vector v is in the range of Q iff v_N = S_NJ v_J, and then v^T Q^+ v = v_J^T S_JJ v_J.
    """
    d, pivots = len(q), list[int]()
    bits = longest(q)
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
