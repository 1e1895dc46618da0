"""Roots, null spaces and sweeps of small symmetric matrices, as the exact kernel wants them.

Nothing here is trusted: the kernel multiplies out what this finds. A root R of a positive definite
matrix A is short because it need not be exact: A - R^T R only has to stay diagonally dominant, so R
is the Cholesky factor of A - shift I, the shift about half of the least eigenvalue, rounded to
little less than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt, lcm

import numpy as np

from verify.instance import _integers as integers
from verify.kernel.matrices import EMPTY, Root, lower_diagonal

Vector = list[Fraction]
Matrix = list[Vector]

#: Shifts that are tried where the least eigenvalue is not known in floats, as shares of the largest
#: entry of the diagonal: from 2^-40, which floats often resolve, each about the square of the last.
#: Doubles in units that differ by all of their range need the last ones.
_SHARES = (40, 50, 60, 80, 120, 200, 360, 680, 1320, 2600, 5200)
#: A least eigenvalue above that share of the largest one is more than rounding in floats.
_KNOWN = 1e-9


def root_of(
    matrix: Sequence[Sequence[Fraction]], strict: bool = False, shares: Sequence[int] = _SHARES
) -> Root | None:
    """Return a root that leaves a diagonally dominant remainder, None if none is found.

    One is found if the matrix is positive definite; a positive semidefinite one may have one, for
    instance if it is diagonal. A strict one makes the remainder positive definite.
    """
    d = len(matrix)
    if _dominant(matrix, ([], 0), strict):
        return [], 0
    top = max(matrix[i][i] for i in range(d))
    for shift in _shifts(matrix, top, shares):
        # rounding moves an entry of R^T R by 2 sqrt(top) 2^-k, d of them in a row; and once more
        small = shift / (8 * d * d)
        k = max(0, _log2(top) // 2 + 2 - _log2(small), (1 - _log2(small)) // 2)
        rows = _factor([[_rounded(x, 2 * k) for x in row] for row in matrix], shift, k)
        if rows is not None and _dominant(matrix, (rows, k), strict):
            return rows, k
    return None


def _dominant(matrix: Sequence[Sequence[Fraction]], root: Root, strict: bool) -> bool:
    margin = min(lower_diagonal(matrix, root))
    return margin > 0 if strict else margin >= 0


def _shifts(
    matrix: Sequence[Sequence[Fraction]], top: Fraction, shares: Sequence[int]
) -> Iterator[Fraction]:
    """Try half of the least eigenvalue in floats, then less and less."""
    if top <= 0:
        return
    scaled = np.array([[float(x / top) for x in row] for row in matrix])
    least, largest = np.linalg.eigvalsh(scaled)[[0, -1]]
    if least > _KNOWN * largest:
        yield top * Fraction(float(least)) / 2
    for share in shares:
        yield top / (1 << share)


def _factor(a: list[list[int]], shift: Fraction, k: int) -> list[list[int]] | None:
    """Return the Cholesky factor R, upper, in units 2^-k, of `a` in units 2^-2k less the shift."""
    d, less = len(a), _rounded(shift, 2 * k)
    upper = [row[i:] for i, row in enumerate(a)]
    for row in upper:
        row[0] -= less
    out = []
    for i, row in enumerate(upper):
        if row[0] <= 0:
            return None
        pivot = isqrt(row[0]) or 1
        factors = [pivot, *((x + pivot // 2) // pivot for x in row[1:])]
        for j in range(1, d - i):
            if f := factors[j]:
                below = upper[i + j]
                upper[i + j] = [x - f * y for x, y in zip(below, factors[j:], strict=True)]
        out.append([0] * i + factors)
    return out


def _rounded(x: Fraction, k: int) -> int:
    """Return about x 2^k."""
    return (x.numerator << k) // x.denominator


def _log2(x: Fraction) -> int:
    """Return the logarithm of x > 0 to one."""
    return x.numerator.bit_length() - x.denominator.bit_length()


@dataclass(frozen=True)
class Semidefinite:
    """A positive semidefinite matrix with what proves it.

    Attributes
    ----------
    matrix : list of lists of Fraction
        Q.
    null_space : Root
        Rows that span the null space, about as large as a root of Q.
    root : Root
        A root of Q + N^T N with a margin.
    margin : Fraction
        A positive lower bound of Q on its range.
    """

    matrix: Matrix
    null_space: Root
    root: Root
    margin: Fraction

    @cached_property
    def swept(self) -> tuple[Matrix, list[int]]:
        """The sweep of Q, exact and long."""
        swept = sweep(self.matrix)
        assert swept is not None
        return swept


def semidefinite(matrix: Matrix) -> Semidefinite | None:
    """Return the matrix with its witness, None if it is not positive semidefinite."""
    root, null = root_of(matrix, strict=True, shares=_SHARES[:3]), EMPTY
    if root is None:
        swept = sweep(matrix)
        if swept is None:
            return None
        null = _null_space(matrix, *swept)
        root = root_of(_plus(matrix, null), strict=True)
    if root is None:
        return None
    return Semidefinite(matrix, null, root, min(lower_diagonal(matrix, root, null)))


def _plus(matrix: Matrix, null: Root) -> Matrix:
    """Return Q + N^T N."""
    rows, k = null
    return [
        [x + Fraction(sum(n[i] * n[j] for n in rows), 1 << (2 * k)) for j, x in enumerate(row)]
        for i, row in enumerate(matrix)
    ]


def _null_space(matrix: Matrix, swept: Matrix, pivots: list[int]) -> Root:
    """Return a basis of the null space, in integers on one power of two, from the sweep."""
    rows = []
    for j in sorted(set(range(len(swept))) - set(pivots)):
        scale = lcm(*(swept[j][i].denominator for i in pivots))
        row = [0] * len(swept)
        row[j] = scale
        for i in pivots:
            row[i] = -int(swept[j][i] * scale)
        rows.append(row)
    if not rows:
        return [], 0
    top = max((x for i, row in enumerate(matrix) for x in row[i : i + 1]), default=Fraction(0))
    size = max(abs(x) for row in rows for x in row).bit_length()
    k = size - (_log2(top) // 2 if top else 0)
    return [[x << max(0, -k) for x in row] for row in rows], max(0, k)


def sweep(q: Sequence[Sequence[Fraction]]) -> tuple[Matrix, list[int]] | None:
    """Sweep a symmetric matrix: invert it on its range. None if it is not positive semidefinite.

    Returns (S, J): J are the pivots, S_JJ = (Q_JJ)^-1 and S_NJ = Q_NJ (Q_JJ)^-1 for the others N;
    a vector v is in the range of Q iff v_N = S_NJ v_J, and then v^T Q^+ v = v_J^T S_JJ v_J.
    """
    d, pivots = len(q), list[int]()
    s = [list(row) for row in q]
    while left := [j for j in range(d) if j not in pivots]:
        k = max(left, key=lambda j: s[j][j])
        rest = [s[i][j] for i in left for j in left]
        if min(s[j][j] for j in left) < 0 or (s[k][k] == 0 and any(rest)):
            return None
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


def inverted(matrix: Matrix) -> Matrix | None:
    """Return the inverse of a symmetric positive definite matrix; None if it is not definite.

    Fraction-free elimination above and below the diagonal: all numbers are minors, all divisions
    exact, and the right half ends as the adjugate, the diagonal of the left one as the determinant.
    """
    d, scale = len(matrix), lcm(*(x.denominator for row in matrix for x in row))
    rows = [
        [*(int(x * scale) for x in row), *(int(i == j) for j in range(d))]
        for i, row in enumerate(matrix)
    ]
    previous = 1
    for k in range(d):
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
    return [[Fraction(scale * x, previous) for x in row[d:]] for row in rows]


def texts(root: Root) -> list[list[str]]:
    """Return the rows as witness numbers."""
    rows, k = root
    return [[integers.text(x, k) for x in row] for row in rows]
