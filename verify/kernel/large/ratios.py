"""What ratios among the witnesses add to the balance of the nodes, over one denominator.

Fractions are reduced at every step, which costs more than all else where they are long; here they
are integers over a common denominator. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from verify.kernel import work
from verify.kernel.large.tables import Columns, Table
from verify.kernel.matrices import common_denominator
from verify.kernel.numbers import Number
from verify.kernel.verdict import false


class RatioBalance:
    """Sums at nodes of ratios from tables, and of products with integers, in units 2^-k."""

    def __init__(self, tables: Iterable[Table], k: int, d: int) -> None:
        rows = [row for table in tables for row in table.ratios.values()]
        self.k, self.d = k, d
        self.common = common_denominator(Fraction(x) for row in rows for x in row)
        self.longest = max((work.length(x) for row in rows for x in row), default=0)
        self.sums: dict[int, list[int]] = {}

    def integers(self, row: list[Number]) -> list[int]:
        """Return ratios as integers over the common denominator."""
        work.charge(len(row) * work.fraction(self.longest + self.common.bit_length()))
        return [x.numerator * (self.common // x.denominator) for x in row]

    def add(self, node: int, row: list[int], scale: int) -> None:
        """Add integers over the common denominator, times a scale, at a node."""
        bits = self.common.bit_length() + self.longest + scale.bit_length()
        work.charge(2 * self.d * (1 + work.product(bits)))
        own = self.sums.setdefault(node, [0] * self.d)
        for c, x in enumerate(row):
            own[c] += x * scale

    def check(self, balance: Columns) -> None:
        """Check that balance and ratios together are zero, at every node and coordinate."""
        for i, row in self.sums.items():
            for column, x in zip(balance, row, strict=True):
                column[i] = column[i] * self.common + x
        for c, column in enumerate(balance):
            if any(column):
                i = next(i for i, x in enumerate(column) if x)
                raise false(f"the flow is not conserved at node {i}, coordinate {c}")
