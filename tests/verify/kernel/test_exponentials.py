"""Exponentials, logarithms of sums of them and x ln x hold what an oracle of 150 digits says."""

from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.kernel import exponentials
from verify.kernel.grid_powers import ONE

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ORACLE = Context(prec=150, Emin=-(10**9), Emax=10**9)


def _exact(x: Fraction | int) -> Decimal:
    return ORACLE.divide(Decimal(x.numerator), Decimal(x.denominator))


@given(st.one_of(FLOATS.map(Fraction), st.fractions(-250, 250)))
def test_softplus_is_enclosed(z: Fraction) -> None:
    lo, hi = exponentials.softplus(z)
    if abs(z) < 5000:
        t = ORACLE.exp(_exact(-abs(z)))
        exact = Fraction(ORACLE.ln(ORACLE.add(1, t))) + max(z, 0)
        slack = Fraction(1, 10**100)
    else:
        exact, slack = max(z, Fraction(0)), Fraction(1, 10**1000)
    assert lo <= (exact + slack) * ONE
    assert (exact - slack) * ONE <= hi
    assert hi - lo <= 64


@given(st.one_of(st.floats(0, 1).map(Fraction), st.fractions(0, 1)))
def test_x_log_x_is_enclosed(x: Fraction) -> None:
    lo, hi = exponentials.x_log_x(x)
    exact = x * Fraction(ORACLE.ln(_exact(x))) if x else Fraction(0)
    slack = Fraction(1, 10**90)
    assert lo <= (exact + slack) * ONE
    assert (exact - slack) * ONE <= hi
    assert hi - lo <= 2 + 16 * x.denominator.bit_length()


@given(st.one_of(st.floats(1, 1e300).map(Fraction), st.fractions(1, 10**6)))
def test_x_log_x_beyond_one_is_enclosed(x: Fraction) -> None:
    lo, hi = exponentials.x_log_x(x)
    exact = x * Fraction(ORACLE.ln(_exact(x)))
    slack = x * Fraction(1, 10**90)
    assert lo <= (exact + slack) * ONE
    assert (exact - slack) * ONE <= hi
    assert hi - lo <= (16 + 2 * (int(x).bit_length() + 1)) * x


@given(st.one_of(st.floats(-1e300, 16384).map(Fraction), st.fractions(-250, 250)))
def test_exponential_is_enclosed(z: Fraction) -> None:
    lo, hi = exponentials.exponential(z)
    exact = Fraction(ORACLE.exp(_exact(max(z, Fraction(-5000)))))
    slack = exact * Fraction(1, 10**90)
    assert lo <= (exact + slack) * ONE
    assert (exact - slack) * ONE <= hi
    assert hi - lo <= 24 + (32 + 8 * abs(z)) * exact


@pytest.mark.parametrize("x", [Fraction(1, 2 ** (10**5)), Fraction(2 ** (10**5) + 1, 3)])
def test_ratios_beyond_every_float_do_not_overflow(x: Fraction) -> None:
    """A hostile file may hold them; the answer stays an enclosure."""
    lo, hi = exponentials.x_log_x(x)
    bits = x.numerator.bit_length() - x.denominator.bit_length()
    near = x * bits * Fraction(693147180559945, 10**15) * ONE
    assert min(lo, hi) <= max(near * Fraction(99, 100), near * Fraction(101, 100))
    assert max(lo, hi) >= min(near * Fraction(99, 100), near * Fraction(101, 100))


@pytest.mark.parametrize("x", [Fraction(1, 2**1074), 1 - Fraction(1, 10**70), Fraction(1, 10**400)])
def test_x_log_x_at_the_ends(x: Fraction) -> None:
    lo, hi = exponentials.x_log_x(x)
    exact = x * Fraction(ORACLE.ln(_exact(x))) * ONE
    assert lo <= exact <= hi


@pytest.fixture
def sharp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let exponentials and logarithms of the grid be off by their last unit at most.

    Their own margins hide what is missing in those of the functions that call them.
    """

    def exponential(y: int) -> tuple[int, int]:
        low = int(Fraction(ORACLE.exp(_exact(Fraction(y, ONE)))) * ONE)
        return low, low + 1

    def logarithm(n: int, d: int) -> tuple[int, int]:
        return int(Fraction(ORACLE.ln(_exact(Fraction(n, d)))) * ONE), 1

    monkeypatch.setattr(exponentials.grid_powers, "exponential", exponential)
    monkeypatch.setattr(exponentials.grid_powers, "logarithm", logarithm)


@pytest.mark.usefixtures("sharp")
def test_no_margin_is_lent_by_another() -> None:
    for i in range(1, 60):
        z = Fraction(i * i * i, 1001)
        exact = Fraction(ORACLE.exp(_exact(z))) * ONE
        lo, hi = exponentials.exponential(z)
        assert lo <= exact <= hi
        t = Fraction(1, i)
        exact = Fraction(ORACLE.ln(ORACLE.add(1, ORACLE.exp(_exact(-t))))) * ONE
        lo, hi = exponentials.softplus(-t)
        assert lo <= exact <= hi
        total = ORACLE.multiply(30, ORACLE.exp(_exact(-t)))
        lo, hi = exponentials.log_sum_exp([-t] * 30 + [Fraction(0)])
        exact = Fraction(ORACLE.ln(ORACLE.add(1, total))) * ONE
        assert lo <= exact <= hi
