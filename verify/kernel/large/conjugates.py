"""What a flow on the edges costs, and whether it is allowed: conjugates of the penalty, in pieces.

The table of SCHEMA.md as in `verify.kernel.checker`, for columns of integers instead of rows.
Standard library only.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from verify.kernel import numbers, work
from verify.kernel.large.tables import Columns, Table
from verify.kernel.matrices import Semidefinite
from verify.kernel.numbers import Bounds, Number
from verify.kernel.powers import PowerNorm
from verify.kernel.verdict import Verdict, false

# Different denominators that are kept apart until they are enclosed, more than `numbers.quotients`
# adds up exactly.
_DENOMINATORS = 1 << 12


class Piece(NamedTuple):
    """Edges that follow each other: their number, ends, and capacities in units 2^-k_caps."""

    start: int
    heads: array[int]
    tails: array[int]
    caps: list[int]


class OverCommon(NamedTuple):
    """The flow on an edge of a piece: numerators, in units 2^-k, over a common denominator."""

    at: int
    common: int
    row: list[Number]


class Quotients:
    """A sum of quotients, enclosed as `numbers.quotients` does it, without keeping all of them."""

    def __init__(self, k: int) -> None:
        self.k, self.parts, self.done = k, dict[int, Number](), list[Bounds]()

    def add(self, pairs: Iterable[tuple[int, Number]]) -> None:
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


class Conjugate:
    """An upper bound of sum_e (lam A_e phi)*(u_e): here there is none."""

    def add(self, columns: Columns, piece: Piece) -> None:
        """Add the flow on some edges."""

    def upper(self) -> Fraction | None:
        """Return the bound."""
        return None


class SquaredConjugate(Conjugate):
    """Sum of ||u_e||^2 / (2 lam A_e)."""

    def __init__(self, k: int) -> None:
        self.sum = Quotients(k)

    def add(self, columns: Columns, piece: Piece) -> None:
        """Add the squares."""
        self.sum.add(zip(piece.caps, squares_of(columns), strict=True))

    def upper(self) -> Fraction:
        """Return the sum, enclosed from above."""
        return self.sum.bounds().hi


class QuadraticConjugate(Conjugate):
    """Sum of u_e^T Q^+ u_e / (2 lam A_e), by a witness for Q and an x for every edge."""

    def __init__(self, q: Semidefinite, k: int, x: Table, k_caps: int) -> None:
        self.q, self.k, self.x, self.reader = q, k, x, x.reader()
        linear, square = q.units(k, x.k)
        self.linear, self.square = Quotients(linear + 1 - k_caps), Quotients(square + 1 - k_caps)

    def add(self, columns: Columns, piece: Piece) -> None:
        """Add the forms; a flow outside the range of Q is refused."""
        x = self.x.with_ratios(self.reader.take(len(piece.caps)), piece.start)
        rows = (list(map(list, zip(*table, strict=True))) for table in (columns, x))
        u, points = rows
        forms = list(self.q.upper_forms(u, self.k, points, self.x.k, piece.start))
        self.linear.add(zip(piece.caps, (form[0] for form in forms), strict=True))
        self.square.add(zip(piece.caps, (form[1] for form in forms), strict=True))

    def upper(self) -> Fraction:
        """Return the sum, enclosed from above."""
        return self.linear.bounds().hi + self.square.bounds().hi / self.q.lower_margin


class Capacities(Conjugate):
    """Zero, where no flow is above its capacity; others are refused."""

    def __init__(self, phi: str, k_caps: int, k: int) -> None:
        self.phi, self.power = phi, 2 if phi == "l2" else 1
        self.down, self.up = max(0, k_caps - k), max(0, k - k_caps)

    def upper(self) -> Fraction:
        """Return zero."""
        return Fraction(0)

    def add(self, columns: Columns, piece: Piece, others: Iterable[OverCommon] = ()) -> None:
        """Compare with the capacities: an integer is at most x iff it is at most floor(x).

        The edges of the others, which are ratios, are zero in the columns once these have been
        gone through.
        """
        for other in others:
            self._add_ratios(other, piece)
        down = self.power * self.down
        linf = self.phi == "linf"
        sizes = squares_of(columns) if self.power == 2 else sizes_of(columns, linf)
        limits = [c << self.up for c in piece.caps] if self.up else piece.caps
        if self.power == 2:
            limits = list(map(operator.mul, limits, limits))
        floors = [x >> down for x in limits] if down else limits
        if all(map(operator.le, sizes, floors)):
            return
        for e, (size, limit) in enumerate(zip(sizes, limits, strict=True)):
            if size * (1 << down) > limit:
                raise _above(e, piece)

    def _add_ratios(self, other: OverCommon, piece: Piece) -> None:
        """Compare the flow on an edge, and the capacity, both times the denominator."""
        at, common, row = other
        longest = max([common.bit_length(), *(x.numerator.bit_length() for x in row)])
        work.charge((len(row) + 2) * (4 + work.product(longest + self.down)))
        columns, limit = [[x] for x in row], (piece.caps[at] << self.up) * common
        if self.power == 2:
            size, limit = squares_of(columns)[0], limit * limit
        else:
            size = sizes_of(columns, self.phi == "linf")[0]
        if size * (1 << self.power * self.down) > limit:
            raise _above(at, piece)


def _above(at: int, piece: Piece) -> Verdict:
    """Refuse the flow on an edge."""
    ends = [piece.heads[at], piece.tails[at]]
    return false(f"the flow on edge {piece.start + at} {ends} is above its capacity")


class PowerCapacities(Conjugate):
    """Zero, where no flow is above its capacity, whose dual norm has powers."""

    def __init__(self, norm: PowerNorm, k_caps: int, k: int) -> None:
        self.norm = norm
        self.scale, self.up = 1 << max(0, k_caps - k), max(0, k - k_caps)

    def upper(self) -> Fraction:
        """Return zero."""
        return Fraction(0)

    def add(self, columns: Columns, piece: Piece) -> None:
        """Compare with the capacities."""
        for e, (flow, cap) in enumerate(zip(zip(*columns, strict=True), piece.caps, strict=True)):
            edge = f"edge {piece.start + e} {[piece.heads[e], piece.tails[e]]}"
            self.norm.check(flow, self.scale, cap << self.up, edge)


def squares_of(columns: Columns) -> list[Number]:
    """Return the sums of the squares of the rows."""
    total = [x * x for x in columns[0]]
    for column in columns[1:]:
        total = list(map(operator.add, total, [x * x for x in column]))
    return total


def sizes_of(columns: Columns, summed: bool) -> list[Any]:
    """Return the sums, or else the largest, of the absolute values of the rows."""
    sizes = [list(map(abs, column)) for column in columns]
    if len(sizes) == 1:
        return sizes[0]
    rows = zip(*sizes, strict=True)
    return [sum(row) for row in rows] if summed else [max(row) for row in rows]
