"""Enclosures of exp(z), ln(1 + exp z), ln(sum of exp z_k) and x ln x, in units of 2^-120.

They are integers from the logarithms and exponentials of `grid_powers`, with what these may be off
on the outer side. Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence

from verify.kernel import grid_powers
from verify.kernel.grid_powers import GRID, ONE
from verify.kernel.numbers import Number

LARGEST = 1 << 14  # exp of more has tens of thousands of digits


def exponential(z: Number) -> tuple[int, int]:
    """Enclose exp(z), z <= `LARGEST`.

    z lies between units y and y + 1, and exp(x + e) <= exp(x) (1 + 2 e) for 0 <= e <= 1.
    """
    low, high = grid_powers.exponential((z.numerator << GRID) // z.denominator)
    return low, high + (2 * high >> GRID) + 1


def softplus(z: Number) -> tuple[int, int]:
    """Enclose ln(1 + exp(z)), as max(z, 0) + ln(1 + exp(-|z|)) with 0 <= ln(1 + t) <= t."""
    least, most = exponential(-z if z > 0 else z)
    value, error = grid_powers.logarithm(ONE + least, ONE)
    # ln(1 + t + e) <= ln(1 + t) + e
    lo, hi = max(value - error, 0), min(value + error + most - least, most)
    if z > 0:
        base = z.numerator << GRID
        return lo + base // z.denominator, hi - (-base // z.denominator)
    return lo, hi


def log_sum_exp(z: Sequence[Number]) -> tuple[int, int]:
    """Enclose ln(sum of exp(z_k)), as max z + ln(sum of exp(z_k - max z)): a sum above 1."""
    most = max(z)
    parts = [exponential(x - most) for x in z]
    least, total = (max(sum(part[j] for part in parts), ONE) for j in (0, 1))
    value, error = grid_powers.logarithm(least, ONE)
    base, rest = divmod(most.numerator << GRID, most.denominator)
    # ln(s + e) <= ln(s) + e for s >= 1
    return base + max(value - error, 0), base + value + error + total - least + (rest > 0)


def x_log_x(x: Number) -> tuple[Number, Number]:
    """Enclose x ln(x), x >= 0."""
    if x in (0, 1):
        return 0, 0
    value, error = grid_powers.logarithm(x.numerator, x.denominator)
    return x * (value - error), x * (value + error)
