"""Rules of blocks of one number: the value of a loss, and its conjugate with the domain.

The tables of SCHEMA.md in exact arithmetic, or in outward enclosures where roots, exponentials and
logarithms occur. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from verify.kernel import exponentials, numbers
from verify.kernel.exponentials import x_log_x
from verify.kernel.grid_powers import GRID, ONE
from verify.kernel.numbers import Number

Slopes = tuple[Number, Number] | None

# A block of these kinds is h(z) = (1/m) max over s of s (z - y) - c s^2/4, s between two slopes
# (None: any s), with c = 1 for the CURVED ones and 0 otherwise. Hence h*(r) = r y + c (m/4) r^2,
# with m r between the slopes. Arguments: y, the block's delta, level or kappa, and one, in one
# unit. (Of pseudohuber, which has a rule of its own, the ends of m r alone are as here.)
SLOPES: dict[str, Callable[[Number, Number, int], Slopes]] = {
    "squared": lambda y, extra, one: None,
    "point": lambda y, extra, one: None,
    "huber": lambda y, delta, one: (-2 * delta, 2 * delta),
    "absolute": lambda y, extra, one: (-one, one),
    "l1": lambda y, kappa, one: (-kappa, kappa),
    "quantile": lambda y, level, one: (-level, one - level),
    "hinge": lambda y, extra, one: (-one, 0) if y > 0 else (0, one),
    "pseudohuber": lambda y, delta, one: (-delta, delta),
}
CURVED = ("squared", "point", "huber")
# What is enclosed, roots and exponentials, is so in units of at most 2^-256 before it is divided
# by m: 2 FINE + 2.
FINE = 127
ENCLOSED = ("pseudohuber", "logistic", "poisson")


class Rule(NamedTuple):
    """A block h(z) = (1/m) f(z), hence h*(r) = (1/m) f*(p) with p = m r, 1/m being any c > 0.

    Arguments are z or p, y, delta or level or kappa, and one = 2^k, all in units 2^-k; results are
    in units 2^-(2 k + 2).

    Attributes
    ----------
    value : callable
        Lower and upper bound of f(z); None where that is too large.
    upper_conjugate : callable
        An upper bound of f*(p), None outside its domain.
    """

    value: Callable[[Number, Number, Number, int], tuple[Number, Number] | None]
    upper_conjugate: Callable[[Number, Number, Number, int], Number | None]


def _between(kind: str) -> Rule:
    """Return the rule of a kind with `SLOPES`."""
    slopes, curved = SLOPES[kind], kind in CURVED

    def value(z: Number, y: Number, extra: Number, one: int) -> tuple[Number, Number]:
        t = z - y
        s, ends = 2 * t, slopes(y, extra, one)
        if ends is not None:
            s = min(max(s, ends[0]), ends[1]) if curved else ends[t > 0]
        exact = 4 * s * t - s * s * curved
        return exact, exact

    def upper_conjugate(p: Number, y: Number, extra: Number, one: int) -> Number | None:
        ends = slopes(y, extra, one)
        inside = ends is None or ends[0] <= p <= ends[1]
        return 4 * p * y + p * p * curved if inside else None

    return Rule(value, upper_conjugate)


def _pseudohuber(z: Number, y: Number, delta: Number, one: int) -> tuple[Number, Number]:
    """f(z) = delta (sqrt(delta^2 + (z - y)^2) - delta)."""
    square, t = delta * delta, z - y
    low, high = numbers.root(square * (square + t * t), 2)
    return low - 4 * square, high - 4 * square


def _upper_pseudohuber(p: Number, y: Number, delta: Number, one: int) -> Number | None:
    """f*(p) = p y + delta (delta - sqrt(delta^2 - p^2)) where |p| <= delta: the root from below."""
    if not -delta <= p <= delta:
        return None
    square = delta * delta
    return 4 * (p * y + square) - numbers.root(square * (square - p * p), 2)[0]


def _exponential(
    function: Callable[[Number], tuple[int, int] | None],
    upper: Callable[[Number], Number | None],
) -> Rule:
    """Return the rule of f(z) = g(z) - y z, hence f*(p) = g*(p + y), with g and g* on the grid."""

    def value(z: Number, y: Number, extra: Number, one: int) -> tuple[Number, Number] | None:
        bounds, unit, linear = function(Fraction(z, one)), 4 * one * one, 4 * y * z
        if bounds is None:
            return None
        return (bounds[0] * unit >> GRID) - linear, -(-bounds[1] * unit >> GRID) - linear

    def upper_conjugate(p: Number, y: Number, extra: Number, one: int) -> Number | None:
        bound = upper(Fraction(p + y, one))
        return None if bound is None else -(-bound * 4 * one * one // ONE)

    return Rule(value, upper_conjugate)


RULES = {kind: _between(kind) for kind in SLOPES} | {
    "pseudohuber": Rule(_pseudohuber, _upper_pseudohuber),
    "logistic": _exponential(
        exponentials.softplus,
        lambda p: x_log_x(p)[1] + x_log_x(1 - p)[1] if 0 <= p <= 1 else None,
    ),
    "poisson": _exponential(
        lambda z: None if z > exponentials.LARGEST else exponentials.exponential(z),
        lambda p: None if p < 0 else x_log_x(p)[1] - p * ONE,
    ),
}
