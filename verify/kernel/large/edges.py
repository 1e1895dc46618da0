"""The edges of a large document in pieces: the variation of a point, the divergence of a flow.

The table of SCHEMA.md as in `verify.kernel.checker`, for columns of integers instead of rows.
Standard library only.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import compress, repeat
from typing import Any

from verify.kernel import numbers, work
from verify.kernel.data import NORM_OF_P
from verify.kernel.large.conjugates import (
    Capacities,
    Conjugate,
    OverCommon,
    Piece,
    PowerCapacities,
    QuadraticConjugate,
    SquaredConjugate,
    sizes_of,
    squares_of,
)
from verify.kernel.large.content import Content, numbers_of
from verify.kernel.large.layout import Head, Quadratic
from verify.kernel.large.ratios import RatioBalance, over_common
from verify.kernel.large.tables import Columns, Table, integers
from verify.kernel.matrices import Semidefinite
from verify.kernel.numbers import Bounds, Number
from verify.kernel.powers import PowerNorm
from verify.kernel.verdict import Verdict

PIECE = 1 << 17  # numbers looked at together
AT_LEAST = 32  # edges, unless their numbers are more


class Edges:
    """The penalty of a problem: its value at a point, and what a flow proves.

    Raises `Verdict` (UNPROVED) for a penalty that has no rule.
    """

    def __init__(self, content: Content, head: Head) -> None:
        self.content, self.head = content, head
        (self.lam,), self.k_lam = numbers.scaled([head.plain["lam"]])
        self.weights = content.scales["weights"]
        self.k_caps = self.k_lam + self.weights.exponent
        self.phi = _norm_of(head.plain["penalty"], head.d)
        if self.phi == "pnorm":
            self.norm = PowerNorm(head.plain["penalty"]["p"])
        if self.phi == "quadratic":
            q = head.plain["penalty"]["Q"]
            self.q, self.k_q = numbers.table(q, head.d, head.d, "Q")
        work.read(1, self.weights.bits + int(self.lam).bit_length(), [], 0)

    def pieces(self) -> Iterator[Piece]:
        """Yield all edges."""
        fields = list(self.head.fields())[:3]
        streams = [self.content.stream(field.name) for field in fields]
        # Columns cost something by themselves: in many dimensions some edges share that.
        size = max(1, PIECE // (8 * self.head.d), min(AT_LEAST, PIECE // self.head.d))
        for start in range(0, self.head.m, size):
            count = min(size, self.head.m - start)
            work.charge(24 * count)
            heads, tails, weights = (
                numbers_of(stream.read(count * field.width), field.code)
                for stream, field in zip(streams, fields, strict=True)
            )
            scaled = integers(weights, self.weights, self.weights.exponent)
            caps = list(map(operator.mul, scaled, repeat(int(self.lam))))
            yield Piece(start, heads, tails, caps)

    # --- value ---------------------------------------------------------------------------------

    def value(self, w: Columns, k: int, rational: int) -> Bounds:
        """Enclose sum_e lam A_e phi(w_head - w_tail) at the point with columns w_j 2^-k."""
        self._charge(min(rational, 1) * self.head.m, 0)
        found = []
        for piece in self.pieces():
            rows = [_differences(column, piece) for column in w]
            found.append(self._variation(rows, piece.caps, k))
        return Bounds(work.total(b.lo for b in found), work.total(b.hi for b in found))

    def _charge(self, rational: int, sums: int) -> None:
        """Count one pass over the edges, roots with 64 bits more included."""
        d, m = self.head.d, self.head.m
        squares = d if self.phi == "quadratic" else 1
        work.operations((8 * squares * d + 16) * m)
        work.charge(40 * m)
        work.rows(squares * rational, d)
        work.sums(rational * sums)

    def _variation(self, rows: Columns, caps: list[int], k: int) -> Bounds:
        if self.phi == "l2":
            squares = squares_of(rows)
            # Where both ends are fused there is nothing to add, and that is nearly everywhere.
            chosen = list(compress(squares, squares)), list(compress(caps, squares))
            return numbers.roots(*chosen, k + self.k_caps)
        if self.phi == "squared":
            total = sum(map(operator.mul, caps, squares_of(rows)))
            return numbers.exactly(total, self.k_caps + 2 * k + 1)
        if self.phi == "pnorm":
            return self.norm.total(list(zip(*rows, strict=True)), caps, k + self.k_caps)
        if self.phi == "quadratic":
            forms = _forms(rows, self.q)
            total = sum(map(operator.mul, caps, forms))
            return numbers.exactly(total, self.k_caps + self.k_q + 2 * k + 1)
        norms = sizes_of(rows, self.phi == "l1")
        return numbers.exactly(sum(map(operator.mul, caps, norms)), self.k_caps + k)

    # --- flow ----------------------------------------------------------------------------------

    def flow(
        self, u: Table, ratios: RatioBalance, witness: Quadratic | None
    ) -> tuple[Fraction | None, Columns]:
        """Return an upper bound of sum_e (lam A_e phi)*(u_e), and D^T u in units 2^-k of u.

        What ratios add to D^T u goes to the balance of ratios. A flow above a capacity is refused;
        None is the bound for a quadratic penalty without a witness.
        """
        self._charge(0, 0)
        work.read(self.head.n * self.head.d, u.bits, [], 0)
        divergence: Columns = [[0] * self.head.n for _ in range(self.head.d)]
        conjugate = self._conjugate(u, witness)
        reader = u.reader()
        for piece in self.pieces():
            columns = reader.take(len(piece.caps))
            for out, column in zip(divergence, columns, strict=True):
                _diverge(out, column, piece)
            self._diverge_ratios(u, piece, ratios)
            if isinstance(conjugate, Capacities):
                conjugate.add(columns, piece, _taken_out(u, columns, piece))
            else:
                conjugate.add(_with_ratios(u, columns, piece), piece)
        return conjugate.upper(), divergence

    def _conjugate(self, u: Table, witness: Quadratic | None) -> Conjugate:
        if self.phi == "squared":
            return SquaredConjugate(2 * u.k - self.k_caps + 1)
        if self.phi == "pnorm":
            return PowerCapacities(self.norm, self.k_caps, u.k)
        if self.phi != "quadratic":
            return Capacities(self.phi, self.k_caps, u.k)
        if witness is None:
            return Conjugate()
        q = Semidefinite(self.q, self.k_q, witness.null_space, witness.root)
        x = Table(self.content, witness.x)
        q.charge(self.head.m, len(u.ratios) + len(x.ratios), max(u.k, x.k + q.k))
        return QuadraticConjugate(q, u.k, x, self.k_caps)

    def _diverge_ratios(self, u: Table, piece: Piece, ratios: RatioBalance) -> None:
        """Add the ratios of the flow to the balance."""
        scale = 1 << (ratios.k - u.k)
        for e in u.rows_of_ratios(piece.start, len(piece.caps)):
            ratios.add(piece.heads[e - piece.start], u.ratios[e], [scale] * self.head.d)
            ratios.add(piece.tails[e - piece.start], u.ratios[e], [-scale] * self.head.d)


def _with_ratios(u: Table, columns: Columns, piece: Piece) -> Columns:
    """Add the ratios of the flow to some edges' columns, and count what squares of them take."""
    for e in u.rows_of_ratios(piece.start, len(piece.caps)):
        work.charge(8 * u.cost(e))
        u.charge_sums(e)
    return u.with_ratios(columns, piece.start)


def _taken_out(u: Table, columns: Columns, piece: Piece) -> Iterator[OverCommon]:
    """Take the edges with ratios out of the columns, and yield each over a common denominator."""
    for e in u.rows_of_ratios(piece.start, len(piece.caps)):
        at = e - piece.start
        common, numerators = over_common(u.ratios[e])
        longest = max([common.bit_length(), *(c[at].numerator.bit_length() for c in columns)])
        work.charge(len(columns) * (2 + work.product(longest)))
        row = [c[at] * common + x for c, x in zip(columns, numerators, strict=True)]
        for column in columns:
            column[at] = 0
        yield OverCommon(at, common, row)


def _norm_of(penalty: dict[str, Any], d: int) -> str:
    kind = str(penalty["kind"])
    if kind == "opaque":
        raise Verdict("UNPROVED", f"no exact rule for the penalty {penalty['name']!r}")
    if kind == "pnorm":
        kind = NORM_OF_P.get(penalty["p"], kind)
    # In one dimension every norm is the absolute value.
    return "l1" if d == 1 and kind in ("l2", "linf", "pnorm") else kind


def _differences(column: list[Number], piece: Piece) -> list[Number]:
    ends = map(column.__getitem__, piece.heads), map(column.__getitem__, piece.tails)
    return list(map(operator.sub, *ends))


def _diverge(out: list[Number], column: list[Number], piece: Piece) -> None:
    for i, j, x in zip(piece.heads, piece.tails, column, strict=True):
        if x:
            out[i] += x
            out[j] -= x


def _forms(columns: Columns, matrix: Sequence[Sequence[Number]]) -> list[Number]:
    """Return v^T A v of the rows v, A symmetric."""
    rows = zip(*columns, strict=True)
    return [sum(x * _dot(a, v) for x, a in zip(v, matrix, strict=True)) for v in rows]


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    return sum(map(operator.mul, a, b))
