"""What ratios among the witnesses add to the balance of the nodes.

Fractions are reduced at every step, which costs more than all else where they are long. Here they
are integers over one denominator a node: those of a component are alike, those of others are not.
Standard library only.
"""

from __future__ import annotations

from math import lcm

from verify.kernel import work
from verify.kernel.large.tables import Columns
from verify.kernel.numbers import Number
from verify.kernel.verdict import false


class RatioBalance:
    """Sums at nodes of rows of ratios, in units 2^-k."""

    def __init__(self, k: int, d: int) -> None:
        self.k, self.d = k, d
        self.sums: dict[int, tuple[int, list[int]]] = {}

    def add(self, node: int, row: list[Number], factors: list[int]) -> None:
        """Add ratios at a node, each times its factor; one ratio goes with all factors."""
        ratios = row * self.d if len(row) == 1 else row
        known, own = self.sums.get(node, (1, [0] * self.d))
        common = self._common([known, *(x.denominator for x in row)])
        grown = common // known
        for c, (x, factor) in enumerate(zip(ratios, factors, strict=True)):
            own[c] = own[c] * grown + x.numerator * (common // x.denominator) * factor
        self.sums[node] = common, own

    def _common(self, denominators: list[int]) -> int:
        """Return a common denominator, and count what it takes to find and to use it."""
        common = 1
        for q in denominators:
            work.charge(work.addition(common.bit_length(), q.bit_length()))
            common = common if common % q == 0 else lcm(common, q)
        work.charge(3 * self.d * work.fraction(2 * common.bit_length()))
        return common

    def check(self, balance: Columns) -> None:
        """Check that balance and ratios together are zero, at every node and coordinate."""
        for i, (common, row) in self.sums.items():
            for column, x in zip(balance, row, strict=True):
                column[i] = column[i] * common + x
        for c, column in enumerate(balance):
            if any(column):
                i = next(i for i, x in enumerate(column) if x)
                raise false(f"the flow is not conserved at node {i}, coordinate {c}")
