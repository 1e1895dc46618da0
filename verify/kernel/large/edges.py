"""The edges of a large document in pieces: variation, divergence of a flow, and its conjugates.

The table of SCHEMA.md as in `verify.kernel.checker`, for columns of integers instead of rows.
Standard library only.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import compress, repeat
from typing import Any, NamedTuple

from verify.kernel import numbers, work
from verify.kernel.data import NORM_OF_P
from verify.kernel.large.content import Content, numbers_of
from verify.kernel.large.layout import Head
from verify.kernel.large.ratios import RatioBalance
from verify.kernel.large.tables import Columns, Table, integers
from verify.kernel.matrices import common_denominator, sweep
from verify.kernel.numbers import Bounds, Number
from verify.kernel.verdict import Verdict, false

PIECE = 1 << 17  # numbers looked at together
# Different denominators that are kept apart until they are enclosed, more than `numbers.quotients`
# adds up exactly.
_DENOMINATORS = 1 << 12


class Piece(NamedTuple):
    """Edges that follow each other: their number, ends, and capacities in units 2^-k_caps."""

    start: int
    heads: array[int]
    tails: array[int]
    caps: list[int]


class Quotients:
    """A sum of quotients, enclosed as `numbers.quotients` does it, without keeping all of them."""

    def __init__(self, k: int) -> None:
        self.k, self.parts, self.done = k, dict[int, Number](), list[Bounds]()

    def add(self, pairs: Iterator[tuple[int, Number]]) -> None:
        """Add value / q for pairs (q, value), in units 2^-k."""
        parts = self.parts
        for q, value in pairs:
            parts[q] = parts.get(q, 0) + value
        if len(parts) > _DENOMINATORS:
            self.done.append(numbers.quotients(parts, self.k))
            self.parts = {}

    def bounds(self) -> Bounds:
        """Enclose the sum."""
        found = [*self.done, numbers.quotients(self.parts, self.k)]
        return Bounds(work.total(b.lo for b in found), work.total(b.hi for b in found))


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
        if self.phi == "quadratic":
            q = head.plain["penalty"]["Q"]
            self.q, self.k_q = numbers.table(q, head.d, head.d, "Q")
            self.inverse, self.pivots = sweep(self.q)
        work.read(1, self.weights.bits + int(self.lam).bit_length(), [], 0)

    def pieces(self) -> Iterator[Piece]:
        """Yield all edges."""
        fields = list(self.head.fields())[:3]
        streams = [self.content.stream(field.name) for field in fields]
        size = max(1, PIECE // (8 * self.head.d))
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
            squares = _squares(rows)
            # Where both ends are fused there is nothing to add, and that is nearly everywhere.
            chosen = list(compress(squares, squares)), list(compress(caps, squares))
            return numbers.roots(*chosen, k + self.k_caps)
        if self.phi == "squared":
            total = sum(map(operator.mul, caps, _squares(rows)))
            return numbers.exactly(total, self.k_caps + 2 * k + 1)
        if self.phi == "quadratic":
            forms = _forms(rows, self.q)
            total = sum(map(operator.mul, caps, forms))
            return numbers.exactly(total, self.k_caps + self.k_q + 2 * k + 1)
        norms = _sizes(rows, self.phi == "l1")
        return numbers.exactly(sum(map(operator.mul, caps, norms)), self.k_caps + k)

    # --- flow ----------------------------------------------------------------------------------

    def flow(self, u: Table, ratios: RatioBalance) -> tuple[Fraction, Columns]:
        """Return an upper bound of sum_e (lam A_e phi)*(u_e), and D^T u in units 2^-k of u.

        What ratios add to D^T u goes to the balance of ratios. A flow above a capacity is refused.
        """
        self._charge(0, 0)
        work.read(self.head.n * self.head.d, u.bits, [], 0)
        divergence: Columns = [[0] * self.head.n for _ in range(self.head.d)]
        quotients = self._quotients(u.k)
        reader = u.reader()
        for piece in self.pieces():
            columns = reader.take(len(piece.caps))
            for out, column in zip(divergence, columns, strict=True):
                _diverge(out, column, piece)
            self._diverge_ratios(u, piece, ratios)
            columns = u.with_ratios(columns, piece.start)
            if quotients is None:
                self._check_capacities(columns, piece, u.k)
            else:
                quotients.add(self._conjugates(columns, piece))
        return self._upper(quotients), divergence

    def _diverge_ratios(self, u: Table, piece: Piece, ratios: RatioBalance) -> None:
        """Add the ratios of the flow to the balance, and count what squares of them will take."""
        scale = 1 << (ratios.k - u.k)
        for e in u.rows_of_ratios(piece.start, len(piece.caps)):
            work.charge(8 * u.cost(e))
            ratios.add(piece.heads[e - piece.start], u.ratios[e], [scale] * self.head.d)
            ratios.add(piece.tails[e - piece.start], u.ratios[e], [-scale] * self.head.d)

    def _upper(self, quotients: Quotients | None) -> Fraction:
        if quotients is None:
            return Fraction(0)
        total = quotients.bounds().hi
        return total / self.common if self.phi == "quadratic" else total

    def _quotients(self, k: int) -> Quotients | None:
        """Return what sums up conjugates of penalties that have no capacity."""
        if self.phi == "squared":
            return Quotients(2 * k - self.k_caps + 1)
        if self.phi != "quadratic":
            return None
        pivots, inverse = self.pivots, self.inverse
        self.common = common_denominator([inverse[i][j] for i in pivots for j in pivots])
        self.form = [[int(inverse[i][j] * self.common) for j in pivots] for i in pivots]
        longest = max((x.bit_length() for row in self.form for x in row), default=0)
        work.charge(self.head.m * self.head.d**2 * work.product(longest))
        work.operations(self.head.m * self.head.d**2)
        return Quotients(2 * k - self.k_caps - self.k_q + 1)

    def _conjugates(self, columns: Columns, piece: Piece) -> Iterator[tuple[int, Number]]:
        """Return (capacity, numerator of the conjugate) of the edges."""
        if self.phi == "squared":
            return zip(piece.caps, _squares(columns), strict=True)
        for j in range(self.head.d):
            if j not in self.pivots:
                self._check_range(columns, j, piece)
        chosen = [columns[j] for j in self.pivots]
        forms = _forms(chosen, self.form) if chosen else [0] * len(piece.caps)
        return zip(piece.caps, forms, strict=True)

    def _check_range(self, columns: Columns, j: int, piece: Piece) -> None:
        rows = zip(*(columns[i] for i in self.pivots), strict=True)
        lift = [self.inverse[j][i] for i in self.pivots]
        lifted = rows if lift else repeat(())
        for e, (x, row) in enumerate(zip(columns[j], lifted, strict=False)):
            if x != sum(map(operator.mul, lift, row)):
                raise false(f"the flow on edge {piece.start + e} is not in the range of Q")

    def _check_capacities(self, columns: Columns, piece: Piece, k: int) -> None:
        """Compare with the capacities exactly: an integer is at most x iff it is at most floor(x).

        Ratios that are above the floor are compared once more.
        """
        down, up = max(0, self.k_caps - k), max(0, k - self.k_caps)
        power = 2 if self.phi == "l2" else 1
        sizes = _squares(columns) if power == 2 else _sizes(columns, self.phi == "linf")
        limits = [c << up for c in piece.caps] if up else piece.caps
        if power == 2:
            limits = list(map(operator.mul, limits, limits))
        floors = [x >> power * down for x in limits] if down else limits
        if all(map(operator.le, sizes, floors)):
            return
        for e, (size, limit) in enumerate(zip(sizes, limits, strict=True)):
            if size * (1 << power * down) > limit:
                ends = [piece.heads[e], piece.tails[e]]
                number = piece.start + e
                raise false(f"the flow on edge {number} {ends} is above its capacity")


def _norm_of(penalty: dict[str, Any], d: int) -> str:
    kind = str(penalty["kind"])
    if kind == "opaque":
        raise Verdict("UNPROVED", f"no exact rule for the penalty {penalty['name']!r}")
    if kind == "pnorm":
        kind = NORM_OF_P.get(penalty["p"], "l1" if d == 1 else "")
        if not kind:
            raise Verdict("UNPROVED", "no exact rule for the p-norm unless p is 1, 2 or inf")
    # In one dimension every norm is the absolute value.
    return "l1" if d == 1 and kind in ("l2", "linf") else kind


def _differences(column: list[Number], piece: Piece) -> list[Number]:
    ends = map(column.__getitem__, piece.heads), map(column.__getitem__, piece.tails)
    return list(map(operator.sub, *ends))


def _diverge(out: list[Number], column: list[Number], piece: Piece) -> None:
    for i, j, x in zip(piece.heads, piece.tails, column, strict=True):
        if x:
            out[i] += x
            out[j] -= x


def _squares(columns: Columns) -> list[Number]:
    """Return the sums of the squares of the rows."""
    total = [x * x for x in columns[0]]
    for column in columns[1:]:
        total = list(map(operator.add, total, [x * x for x in column]))
    return total


def _sizes(columns: Columns, summed: bool) -> list[Any]:
    """Return the sums, or else the largest, of the absolute values of the rows."""
    sizes = [list(map(abs, column)) for column in columns]
    if len(sizes) == 1:
        return sizes[0]
    rows = zip(*sizes, strict=True)
    return [sum(row) for row in rows] if summed else [max(row) for row in rows]


def _forms(columns: Columns, matrix: Sequence[Sequence[Number]]) -> list[Number]:
    """Return v^T A v of the rows v, A symmetric."""
    rows = zip(*columns, strict=True)
    return [sum(x * _dot(a, v) for x, a in zip(v, matrix, strict=True)) for v in rows]


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    return sum(map(operator.mul, a, b))
