"""Upper bounds on eps: the numbers of the specification, never below the exact value, in order."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from gtvcvx.federated.privacy import epsilon_gaussian, epsilon_simple, epsilon_zcdp

ALL = (epsilon_simple, epsilon_zcdp, epsilon_gaussian)
RHO = st.floats(math.log(1e-12), math.log(1e4)).map(math.exp)
DELTA = st.floats(math.log(1e-15), math.log(0.5)).map(lambda x: min(math.exp(x), 0.5))

# eps of a Gaussian with mu = sqrt(2 rho), by bisection in 60 digits (mpmath).
EXACT = {
    (1e-12, 1e-15): "8.14071726069822551e-6",
    (1e-09, 1e-05): "0.0000187850967580999074",
    (1e-05, 0.001): "0.00188126716673567866",
    (0.0123, 1e-12): "1.02953363039843548",
    (0.499, 0.1): "1.15825736076719431",
    (1.0, 1e-07): "7.93487928384136539",
    (1.0, 0.5): "0.0852402818130119286",
    (100.0, 1e-300): "623.434048560677306",
    (10000.0, 1e-15): "11122.1029089869613",
}


def total(phi, zeta, rounds):
    return math.fsum(phi * zeta**-n for n in range(rounds))


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [(100, (1.247, 1.026, 0.939)), (200, (3.824, 3.356, 3.098)), (300, (11.92, 11.04, 10.29))],
)
def test_the_numbers_of_the_specification(rounds, expected):
    rho = total(1e-4, 0.98, rounds)
    for convert, value in zip(ALL, expected, strict=True):
        assert convert(rho, 1e-5) == pytest.approx(value, rel=5e-4)


@pytest.mark.parametrize(("at", "digits"), EXACT.items(), ids=str)
def test_the_gaussian_is_exact_and_on_the_upper_side(at, digits):
    value = epsilon_gaussian(*at)
    assert value >= float(digits) * (1 - 3e-16)
    assert value == pytest.approx(float(digits), rel=2e-12)


@given(RHO, DELTA)
def test_bounds_are_ordered_and_finite(rho, delta):
    simple, best, exact = (convert(rho, delta) for convert in ALL)
    assert 0.0 <= exact <= best <= simple < math.inf
    assert simple >= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@given(RHO, DELTA)
def test_the_delta_of_the_gaussian_is_not_above_what_was_asked_for(rho, delta):
    mu, eps = math.sqrt(2 * rho), epsilon_gaussian(rho, delta)
    upper = norm.logsf(eps / mu - mu / 2)
    lower = eps + norm.logsf(eps / mu + mu / 2)
    # The difference cancels: as far as logarithms in doubles can tell.
    noise = 1e-13 * (1 + abs(upper) + eps) * math.exp(upper)
    assert math.exp(upper) - math.exp(min(lower, upper)) <= delta * (1 + 1e-9) + noise
    if eps > 0:
        smaller = eps * (1 - 1e-6)
        above = math.exp(norm.logsf(smaller / mu - mu / 2))
        above -= math.exp(smaller + norm.logsf(smaller / mu + mu / 2))
        assert above >= delta - noise - 1e-9 * delta


@given(RHO, DELTA, st.floats(1.01, 100))
def test_more_rho_or_less_delta_never_costs_less(rho, delta, factor):
    for convert in ALL:
        # Two roundings apart at most.
        assert convert(rho * factor, delta) >= convert(rho, delta) * (1 - 1e-11)
        assert convert(rho, delta / factor) >= convert(rho, delta) * (1 - 1e-11)


@given(RHO, DELTA, st.floats(-18, 18))
def test_no_order_is_better_than_the_best(rho, delta, log_order):
    a = 1 + math.exp(log_order)
    x = a - 1
    value = rho * a - math.log1p(1 / x) - (math.log(delta) + math.log(a)) / x
    assert epsilon_zcdp(rho, delta) <= max(value, 0) + 1e-6 * abs(value)


def test_nothing_released_costs_nothing():
    assert [convert(0.0, 1e-5) for convert in ALL] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("rho", [5e-324, 1e-300, 1e-100, 1e8, 1e100, 1e300])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-5, 0.999, 1 - 1e-16])
def test_extremes_are_ordered_and_never_nan(rho, delta):
    simple, best, exact = (convert(rho, delta) for convert in ALL)
    assert 0.0 <= exact <= best <= simple < math.inf


@pytest.mark.parametrize("convert", ALL)
@pytest.mark.parametrize(
    ("rho", "delta", "name"),
    [
        (-1e-9, 0.1, "rho"),
        (math.nan, 0.1, "rho"),
        (math.inf, 0.1, "rho"),
        ("1", 0.1, "rho"),
        (True, 0.1, "rho"),
        (1.0, 0.0, "delta"),
        (1.0, 1.0, "delta"),
        (1.0, math.nan, "delta"),
        (1.0, None, "delta"),
    ],
)
def test_bad_numbers_are_refused_by_name(convert, rho, delta, name):
    with pytest.raises(ValueError, match=f"^{name}: "):
        convert(rho, delta)
