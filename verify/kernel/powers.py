"""p-norms with roots and powers: a norm from both sides, and a dual norm against a capacity.

p > 1 is the rational that its double is, and q = p/(p - 1) another. Powers with short exponents a/b
are b-th roots of integers, others exponentials of logarithms. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from verify.kernel import numbers, work
from verify.kernel.numbers import TEN50, Bounds, Number
from verify.kernel.verdict import Verdict, false

Enclosure = tuple[Number, Number]
SHORT = 16  # the largest a and b of a power a/b that is a root
BITS = 64  # of such a root behind the point
STEPS = 1200  # of other powers: a logarithm and two exponentials of 60 digits


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
        lo, hi = Fraction(0), Fraction(0)
        for v, a in zip(rows, weights, strict=True):
            if any(v):  # where both ends are fused there is nothing to add
                low, high = self.value(v)
                lo, hi = lo + a * low, hi + a * high
        return Bounds(lo * numbers.unit(k), hi * numbers.unit(k))

    def value(self, v: Sequence[Number]) -> Enclosure:
        """Enclose ||v||_p, v not zero, as t (sum of (|v_j|/t)^p)^(1/p) with t the largest |v_j|."""
        sizes = _sizes(v)
        most = max(sizes)
        if len(sizes) == 1:
            return most, most
        parts, top = powers(sizes, most, self.p)
        low, high = (sum(part[j] for part in parts) for j in (0, 1))
        # The largest part is one of the sum, which is between 1 and d times as much.
        ratios = max(Fraction(1), Fraction(low) / top[1]), Fraction(high) / top[0]
        roots = [powers([x], 1, 1 / self.p) for x in ratios]
        (((low, _),), (_, one)), (((_, high),), (least, _)) = roots
        return most * Fraction(low) / one, most * Fraction(high) / least

    def is_within(self, u: Sequence[Number], cap: int) -> bool | None:
        """Whether ||u||_q <= cap, for cap > 0; None where the enclosure does not tell.

        ||u||_q is between the largest |u_j| and the sum of them, which are compared exactly.
        """
        sizes = _sizes(u)
        if sum(sizes) <= cap:
            return True
        if max(sizes) > cap:
            return False
        parts, (least, most) = powers(sizes, cap, self.q)
        if sum(high for _, high in parts) <= least:
            return True
        return False if sum(low for low, _ in parts) > most else None

    def check(self, u: Sequence[Number], scale: int, cap: int, edge: str) -> None:
        """Raise `Verdict` unless scale ||u||_q <= cap is proved."""
        within = self.is_within([x * scale for x in u], cap)
        if within is None:
            reason = f"the flow on {edge} is too close to its capacity for powers to be compared"
            raise Verdict("UNPROVED", reason)
        if not within:
            raise false(f"the flow on {edge} is above its capacity")


def powers(values: Sequence[Number], top: Number, s: Fraction) -> tuple[list[Enclosure], Enclosure]:
    """Enclose x^s for values x > 0, and top^s, in one unit; x <= top, or s <= 1 = top <= x."""
    if max(s.numerator, s.denominator) <= SHORT:
        return [short_power(x, s) for x in values], short_power(top, s)
    return [power(Fraction(x) / top, s) for x in values], (TEN50, TEN50)


def short_power(x: Number, s: Fraction) -> tuple[Number, Number]:
    """Enclose 2^64 x^(a/b): exactly for b = 1, else by the largest integer below and the next."""
    a, b = s.numerator, s.denominator
    length = work.length(x) * a + BITS * b
    work.charge(10 * b * work.product(length) + work.fraction(length))
    exact = x**a
    if b == 1:
        return exact * (1 << BITS), exact * (1 << BITS)
    whole, rest = divmod(exact * (1 << BITS * b), 1)
    low = numbers.integer_root(int(whole), b)
    return low, low + (rest != 0 or low**b != whole)


def power(x: Fraction, s: Fraction) -> tuple[int, int]:
    """Enclose x^s in units of 10^-50, for 0 < x <= 1 and s > 0, or x >= 1 and 0 < s <= 1.

    Rounding x moves ln(x) by less than 1e-59, rounding ln(x) by less than 1e-59 |ln(x)|. What is
    allowed for is ten times as much, times s; for large s too, where it is no longer small.
    """
    work.charge(STEPS + 4 * work.fraction(work.length(x)))
    if x == 1:
        return TEN50, TEN50
    logarithm = numbers.logarithm(x)
    error = (1 + abs(logarithm)) / 10**58
    low, high = s * (logarithm - error), s * (logarithm + error)
    if x < 1:
        high = min(high, Fraction(0))
    return max(numbers.exponential(low)[0], 0), numbers.exponential(high)[1]


def _sizes(v: Sequence[Number]) -> list[Number]:
    """Return the absolute values of all entries but zeros."""
    return [-x if x < 0 else x for x in v if x] or [0]
