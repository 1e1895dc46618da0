"""Bounds of small symmetric matrices by witnesses that are multiplied out. Standard library only.

Nothing is eliminated or inverted here: what was, by whoever made the witness, is a *root* R, any
number of rows, with R^T R about as large as the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from verify.kernel import numbers, work
from verify.kernel.losses import Table, dot
from verify.kernel.numbers import Number
from verify.kernel.verdict import false

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
    work.divisions(8 * d * d)
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


class Semidefinite:
    """A positive semidefinite Q, in units 2^-k, with a witness: a root R of Q + N^T N, and N.

    Q N^T = 0 and the margin of the remainder, mu = min_i t_i > 0 with t the lower diagonal of
    Q + N^T N, prove that v^T Q v >= mu ||v||^2 on the range of Q, which is where N v = 0.

    Raises `Verdict` (REFUTED) for a witness that does not.
    """

    def __init__(self, q: Table, k: int, null: Root, root: Root) -> None:
        self.q, self.k, self.null, d = q, k, null[0], len(q)
        work.operations(d * (d + 5) * len(self.null))
        work.rows(d * work.rational_rows(self.null), d)
        if any(dot(row, n) for row in q for n in self.null):
            raise false("a row of null_space is not in the null space of Q")
        unit = numbers.unit(k)
        self.lower_margin = min(lower_diagonal([[x * unit for x in v] for v in q], root, null))
        if self.lower_margin <= 0:
            raise false("root and null_space do not prove that Q is positive semidefinite")

    def charge(self, rows: int, rational: int, k: int) -> None:
        """Count the work of `upper_forms`, so many rows with rationals, in units 2^-k."""
        d, products = len(self.q), (len(self.q) + len(self.null)) * rows
        everywhere = rows * (work.rational_rows(self.null) > 0)
        work.operations((products + 4 * rows) * d)
        work.charge(5 * products)
        work.charge(4 * d * rows * work.product(2 * k))
        work.rows((d + len(self.null)) * (rational + everywhere), d)

    def units(self, k: int, k_x: int) -> tuple[int, int]:
        """Return the exponents of what `upper_forms` returns."""
        fine = max(k, k_x + self.k)
        return k_x + fine, 2 * fine

    def upper_forms(
        self, u: Table, k: int, points: Table, k_x: int, start: int = 0
    ) -> Iterator[tuple[Number, Number]]:
        """Yield x^T (u + s) and ||s||^2, s = u - Q x, for the flow u and the x of each edge.

        For any x  u^T Q^+ u <= x^T (u + s) + ||s||^2 / mu  where u is in the range, and elsewhere
        the flow is refused. Units are 2^-k of u, 2^-k_x of x, and `units` of what is returned; the
        edges are numbered from ``start``.
        """
        fine = max(k, k_x + self.k)
        a, b = 1 << (fine - k), 1 << (fine - k_x - self.k)
        for e, (flow, x) in enumerate(zip(u, points, strict=True), start):
            if any(dot(n, flow) for n in self.null):
                raise false(f"the flow on edge {e} is not in the range of Q")
            v = [a * z for z in flow]
            s = [z - b * dot(q, x) for z, q in zip(v, self.q, strict=True)]
            yield dot(x, map(sum, zip(v, s, strict=True))), dot(s, s)
