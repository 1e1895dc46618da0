"""What is enclosed on the grid is rounded outwards once more, to units of two."""

from __future__ import annotations

from fractions import Fraction

import pytest

from verify.kernel.exponentials import exponential, softplus, x_log_x
from verify.kernel.grid_powers import ONE
from verify.kernel.losses import term_of
from verify.kernel.rules import RULES


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_units_of_exponentials_are_rounded_outwards(kind: str) -> None:
    """From units of 2^-120 to those of two, the last of them each to its own side."""
    one, rule = 1 << 50, RULES[kind]
    g = {"logistic": softplus, "poisson": exponential}[kind]
    for z in (Fraction(3, 8), Fraction(-5, 16)):
        bounds = rule.value(int(z * one), one // 4, 0, one)
        assert bounds is not None
        low, high = (Fraction(x, 4 * one**2) + z / 4 for x in bounds)
        exact = [Fraction(x, ONE) for x in g(z)]
        assert exact[0] - Fraction(1, one**2) <= low < exact[0]
        assert exact[1] < high <= exact[1] + Fraction(1, one**2)
    found = rule.upper_conjugate(one // 8, one // 4, 0, one)
    assert found is not None
    p = Fraction(3, 8)
    upper = Fraction(x_log_x(p)[1]) / ONE - (p if kind == "poisson" else 0)
    if kind == "logistic":
        upper += Fraction(x_log_x(1 - p)[1]) / ONE
    assert upper < Fraction(found, 4 * one**2) <= upper + Fraction(1, one**2)


def test_means_over_many_numbers_of_rows_are_enclosed() -> None:
    """With 70 different numbers of rows: the value from both sides, the conjugate from above."""
    n = 70
    node = [i for i in range(n) for _ in range(i + 1)]
    first = [int(not p or node[p - 1] != i) for p, i in enumerate(node)]
    ones, targets = [[(1.0).hex()]] * len(node), [float(x).hex() for x in first]
    term = term_of({"kind": "squared", "node": node, "X": ones, "y": targets}, 1)
    exact = sum(Fraction(1, i + 1) for i in range(n))
    value = term.value([[0]] * n, 0)
    assert exact - Fraction(1, 2**250) < value.lo < exact < value.hi < exact + Fraction(1, 2**250)
    r = [f"{x:#x}/{i + 1:#x}" for i, x in zip(node, first, strict=True)]
    upper, _, _ = term.dual(r, "r")  # f*(1) = y + 1/4 at y = 1
    assert exact * 5 / 4 < upper < exact * 5 / 4 + Fraction(1, 2**250)
