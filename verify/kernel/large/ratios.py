"""What ratios among the witnesses add to the balance of the nodes.

Fractions are reduced at every step, which costs more than all else where they are long. Here they
are integers over one denominator a node: those of a component are alike, those of others are not.
Standard library only.
"""

from __future__ import annotations

from verify.kernel import work
from verify.kernel.large.tables import Columns, common_denominator
from verify.kernel.numbers import Number
from verify.kernel.verdict import false


def over_common(row: list[Number], known: int = 1) -> tuple[int, list[int]]:
    """Return a common denominator of ratios, a multiple of one that is known, and numerators.

    What it takes is counted first, by how long these numbers are.
    """
    common = common_denominator([known, *(x.denominator for x in row)])
    size = common.bit_length()
    for x in row:
        by, longest = x.denominator.bit_length(), x.numerator.bit_length()
        work.charge(work.division(size, by) + work.product(max(longest, size - by)))
    return common, [x.numerator * (common // x.denominator) for x in row]


class RatioBalance:
    """Sums at nodes of rows of ratios, in units 2^-k."""

    def __init__(self, k: int, d: int) -> None:
        self.k, self.d = k, d
        self.sums: dict[int, tuple[int, list[int]]] = {}

    def add(self, node: int, row: list[Number], factors: list[int]) -> None:
        """Add ratios at a node, each times its factor; one ratio goes with all factors."""
        known, own = self.sums.get(node, (1, [0] * self.d))
        common, numerators = over_common(row, known)
        work.charge(work.division(common.bit_length(), known.bit_length()))
        grown = common // known
        longest = [max(map(int.bit_length, numbers)) for numbers in (own, numerators, factors)]
        steps = work.times(longest[0], grown.bit_length()) + work.times(*longest[1:])
        work.charge(self.d * steps)
        if len(numerators) == 1:
            numerators *= self.d
        for c, (x, factor) in enumerate(zip(numerators, factors, strict=True)):
            own[c] = own[c] * grown + x * factor
        self.sums[node] = common, own

    def check(self, balance: Columns) -> None:
        """Check that balance and ratios together are zero, at every node and coordinate."""
        for i, (common, row) in self.sums.items():
            entries = (column[i].numerator.bit_length() for column in balance)
            longest = max([common.bit_length(), *entries])
            work.charge(self.d * (2 + work.product(longest)))
            for column, x in zip(balance, row, strict=True):
                column[i] = column[i] * common + x
        for c, column in enumerate(balance):
            if any(column):
                i = next(i for i, x in enumerate(column) if x)
                raise false(f"the flow is not conserved at node {i}, coordinate {c}")
