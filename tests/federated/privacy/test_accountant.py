"""What was released is added up exactly; noise has its variance; the report fits a screen."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from gtvcvx.federated.privacy import (
    GaussianNoise,
    GeometricVariance,
    ZcdpAccountant,
    epsilon_gaussian,
    release_zcdp,
)
from gtvcvx.federated.privacy._report import ASSUMPTIONS


def recorded(schedule, rounds, sensitivity=0.1, client="a"):
    accountant = ZcdpAccountant(["a", "b"])
    for n in rounds:
        accountant.record(client, n, sensitivity, schedule.variance(n))
    return accountant


@pytest.mark.parametrize("zeta", [1.0, 1 - 1e-12, 0.98, 0.5])
@pytest.mark.parametrize("rounds", [1, 2, 37, 200])
def test_the_sum_of_all_rounds_is_the_closed_form(zeta, rounds):
    schedule = GeometricVariance(2.0, zeta)
    accountant = recorded(schedule, range(1, rounds + 1))
    exact = sum(Fraction(0.01) / 4 / Fraction(zeta) ** (n - 1) for n in range(1, rounds + 1))
    assert accountant.rho("a") == pytest.approx(float(exact), rel=1e-13)
    assert schedule.total_zcdp(0.1, rounds) == pytest.approx(float(exact), rel=1e-12)
    assert schedule.late_share(rounds) == pytest.approx(accountant.late_share("a"), rel=1e-9)
    assert schedule.leak_ratio(rounds) == pytest.approx(accountant.leak_ratio("a"), rel=1e-12)


def test_only_rounds_with_a_release_count():
    schedule = GeometricVariance(1.0, 0.9)
    accountant = recorded(schedule, [2, 5, 5])
    costs = [release_zcdp(0.1, schedule.variance(n)) for n in (2, 5, 5)]
    assert accountant.rho("a") == math.fsum(costs)
    assert (accountant.releases("a"), accountant.releases("b")) == (3, 0)
    assert accountant.rho("b") == 0.0
    assert schedule.variance(1) == 1.0


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30))
def test_the_order_of_clients_and_roundings_do_not_matter(sensitivities):
    accountant = ZcdpAccountant(["a"])
    costs = [accountant.record("a", 1, x, 3.0) for x in sensitivities]
    assert accountant.rho("a") == float(sum(map(Fraction, costs)))


def test_late_rounds_are_warned_of():
    falling = recorded(GeometricVariance(1.0, 0.98), range(1, 201)).report(1e-5)
    assert len(falling.warnings) == 1
    assert "55.7 times" in falling.warnings[0]
    assert "34%" in falling.warnings[0]
    assert "WARNING" in repr(falling)
    constant = recorded(GeometricVariance(1.0), range(1, 201)).report(1e-5)
    assert constant.warnings == ()
    assert ZcdpAccountant(["a"]).report(1e-5).warnings == ()


def test_the_report_has_a_line_of_truth_for_each_client():
    report = recorded(GeometricVariance(1.0), range(1, 11)).report(1e-6, ["rows are clipped"])
    assert report.releases.tolist() == [10, 0]
    assert report.rho[0] == pytest.approx(0.05)
    assert report.epsilon == report.epsilon_gaussian[0] == epsilon_gaussian(report.rho[0], 1e-6)
    assert np.all(report.epsilon_gaussian <= report.epsilon_zcdp)
    assert np.all(report.epsilon_zcdp <= report.epsilon_simple)
    assert report.assumptions == (*ASSUMPTIONS, "rows are clipped")
    for word in ("local", "sample level", "honest", "sampling", "not hardened"):
        assert word in " ".join(report.assumptions)
    assert report.epsilon_simple[1] == 0.0


@pytest.mark.parametrize("clients", [1, 7, 2000])
def test_any_report_fits_a_screen(clients):
    names = [f"a client\nwith a long name {k} {'x' * 200}" for k in range(clients)]
    accountant = ZcdpAccountant(names)
    for n in range(1, 21):
        accountant.record(names[-1], n, 1.0, 0.5**n)
    lines = repr(accountant.report(1e-5, ["something long " * 40] * 5)).splitlines()
    assert 5 <= len(lines) <= 24
    assert max(map(len, lines)) <= 100


def test_no_report_for_noise_from_a_fixed_seed():
    accountant = ZcdpAccountant(["a"])
    with pytest.raises(ValueError, match="insecure_seed"):
        accountant.report(1e-5, insecure_seed=True)


def test_noise_has_the_variance_of_its_round():
    noise = GaussianNoise(GeometricVariance(4.0, 0.5), insecure_seed=1)
    w = np.full(4000, 7.0)
    # Two in a million draws are outside.
    low, high = chi2.ppf([1e-6, 1 - 1e-6], w.size)
    for n, variance in ((1, 4.0), (2, 2.0), (5, 0.25)):
        assert low <= np.sum((noise.released(w, n) - w) ** 2) / variance <= high


def test_noise_that_rounding_would_swallow_is_refused():
    noise = GaussianNoise(GeometricVariance(1.0))
    noise.released([1e9], 1)
    with pytest.raises(ValueError, match="lost in rounding"):
        noise.released([0.0, 1e12], 1)


def test_noise_is_fresh_unless_it_is_called_insecure():
    schedule = GeometricVariance(1.0)
    assert not GaussianNoise(schedule).insecure
    first, second = (GaussianNoise(schedule).released(np.zeros(3), 1) for _ in range(2))
    assert not np.any(first == second)
    noise = GaussianNoise(schedule)
    copies = [noise, copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))]
    drawn = [each.released(np.zeros(3), 1) for each in copies]
    assert len({x for row in drawn for x in row.tolist()}) == 9
    one, same = (GaussianNoise(schedule, insecure_seed=0) for _ in range(2))
    assert one.insecure
    assert np.array_equal(one.released(np.zeros(3), 1), same.released(np.zeros(3), 1))
    assert not np.any(one.released(np.zeros(3), 1) == one.released(np.zeros(3), 1)[0])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: GeometricVariance(0.0), "first"),
        (lambda: GeometricVariance(math.nan), "first"),
        (lambda: GeometricVariance(1.0, 0.0), "zeta"),
        (lambda: GeometricVariance(1.0, 1.01), "zeta"),
        (lambda: GeometricVariance(1.0, 0.5).variance(2000), "zeta"),
        (lambda: GeometricVariance(1.0).variance(0), "round"),
        (lambda: GeometricVariance(1.0).total_zcdp(1.0, -1), "rounds"),
        (lambda: release_zcdp(math.nan, 1.0), "sensitivity"),
        (lambda: release_zcdp(-1.0, 1.0), "sensitivity"),
        (lambda: release_zcdp(1.0, 0.0), "variance"),
        (lambda: GaussianNoise(GeometricVariance(1.0)).released([math.nan], 1), "w"),
        (lambda: ZcdpAccountant([]), "clients"),
        (lambda: ZcdpAccountant(["a", "a"]), "clients"),
        (lambda: ZcdpAccountant(["a"]).record("b", 1, 1.0, 1.0), "client"),
        (lambda: ZcdpAccountant(["a"]).record("a", 0, 1.0, 1.0), "round"),
        (lambda: ZcdpAccountant(["a"]).record("a", 1, 1.0, 1e-200), "variance"),
        (lambda: recorded(GeometricVariance(1.0), [3]).record("a", 2, 1.0, 1.0), "round"),
        (lambda: ZcdpAccountant(["a"]).report(0.0), "delta"),
    ],
)
def test_bad_input_is_refused_by_name(call, name):
    with pytest.raises(ValueError, match=f"^{name}: "):
        call()


def test_tiny_sensitivities_are_not_rounded_to_no_loss():
    assert release_zcdp(1e-200, 1.0) >= 1e-308
    assert release_zcdp(0.0, 1.0) == 0.0
