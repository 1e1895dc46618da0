"""p-norms with roots and powers: a norm from both sides, and a dual norm against a capacity.

p > 1 is the rational that its double is, and q = p/(p - 1) another. Powers are enclosed on the grid
of `grid_powers`; short integer powers of flows are multiplied out. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from verify.kernel import grid_powers, numbers, work
from verify.kernel.grid_powers import GRID, ONE
from verify.kernel.numbers import Bounds, Number
from verify.kernel.verdict import Verdict, false

SHORT = 16  # the largest exponent that is multiplied out


class PowerNorm:
    """||v||_p = (sum of |v_j|^p)^(1/p), and its dual norm ||u||_q.

    Parameters
    ----------
    p : str or float
        The canonical text of p, or p itself; finite and above 1.
    """

    def __init__(self, p: str | float) -> None:
        self.p = Fraction(float.fromhex(p) if isinstance(p, str) else p)
        self.q = self.p / (self.p - 1)

    def total(self, rows: Iterable[Sequence[Number]], weights: Sequence[int], k: int) -> Bounds:
        """Enclose sum of weights_i ||v_i||_p 2^-k, weights_i >= 0."""
        lo: Number = 0
        hi: Number = 0
        for v, a in zip(rows, weights, strict=True):
            if any(v):  # where both ends are fused there is nothing to add
                low, high = self.value(v)
                lo, hi = lo + a * low, hi + a * high
        return Bounds(lo * numbers.unit(k + GRID), hi * numbers.unit(k + GRID))

    def value(self, v: Sequence[Number]) -> tuple[Number, Number]:
        """Enclose ||v||_p, v not zero, in units of the grid.

        It is t s^(1/p) with t the largest |v_j| and s = sum of (|v_j|/t)^p, one of which is 1.
        """
        sizes = _sizes(v)
        most = max(sizes)
        if len(sizes) == 1:
            return most * ONE, most * ONE
        low, high = _sum(sizes, most, self.p)
        low = max(low, ONE)
        a, b = self.p.denominator, self.p.numerator
        root, above = grid_powers.power(low, ONE, a, b)
        # (s + x)^(1/p) <= s^(1/p) (1 + x / (p s))
        above += above * (high - low) * a // (b * low) + 1
        return most * root, most * above

    def is_within(self, u: Sequence[Number], cap: int) -> bool | None:
        """Whether ||u||_q <= cap, for cap > 0; None where the enclosure does not tell.

        ||u||_q is between the largest |u_j| and the sum of them, which are compared exactly.
        """
        sizes = _sizes(u)
        if sum(sizes) <= cap:
            return True
        if max(sizes) > cap:
            return False
        if self.q.denominator == 1 and self.q <= SHORT:
            q = self.q.numerator
            work.charge(sum(10 * work.fraction(q * work.length(x)) for x in (*sizes, cap)))
            return sum(x**q for x in sizes) <= cap**q
        low, high = _sum(sizes, cap, self.q)
        if high <= ONE:
            return True
        return False if low > ONE else None

    def check(self, u: Sequence[Number], scale: int, cap: int, edge: str) -> None:
        """Raise `Verdict` unless scale ||u||_q <= cap is proved."""
        within = self.is_within([x * scale for x in u], cap)
        if within is None:
            reason = f"the flow on {edge} is too close to its capacity for powers to be compared"
            raise Verdict("UNPROVED", reason)
        if not within:
            raise false(f"the flow on {edge} is above its capacity")


def _sum(sizes: Sequence[Number], top: Number, s: Fraction) -> tuple[int, int]:
    """Enclose the sum of (x / top)^s for 0 < x <= top, in units of the grid."""
    found = []
    for x in sizes:
        n, d = x.numerator * top.denominator, x.denominator * top.numerator
        work.charge(grid_powers.STEPS + work.fraction(work.length(x) + work.length(top)))
        found.append(grid_powers.power(n, d, s.numerator, s.denominator))
    return sum(low for low, _ in found), sum(high for _, high in found)


def _sizes(v: Sequence[Number]) -> list[Number]:
    """Return the absolute values of all entries but zeros."""
    return [-x if x < 0 else x for x in v if x] or [0]
