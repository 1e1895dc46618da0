"""Scalar functions of rows and coordinates against their formulas, suprema and exact sums."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from _catalogue_cases import DELTA, LEVEL, psi
from _twins import alone
from hypothesis import given
from hypothesis import strategies as st

from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node import _conjugate as conjugates
from gtvcvx.losses.node import _problem as parts
from gtvcvx.losses.node import _scalar as scalar
from gtvcvx.losses.node._problem import COORDINATE, shrink

is_free, subgradients = alone(parts.is_free), alone(parts.subgradients)
TARGETS = {
    "squared": [0.7, -2.0],
    "logistic": [0.0, 1.0],
    "huber": [0.3, -5.0],
    "pseudohuber": [0.3, -5.0],
    "poisson": [0.0, 1.0, 7.0],
    "absolute": [0.0, 1.3],
    "quantile": [0.0, -0.4],
    "hinge": [-1.0, 1.0],
}
EVERY = [(kind, y) for kind, targets in TARGETS.items() for y in targets]
signals = st.floats(-30.0, 30.0)
shares = st.floats(0.0, 1.0)


def row(kind, y, weight=4):
    """One of so many rows of a node."""
    node = np.zeros(weight, dtype=np.int64)
    term = {"kind": kind, "node": node, "X": np.ones((weight, 1)), "y": np.full(weight, y)}
    if kind in ("huber", "pseudohuber"):
        term["delta"] = np.full(weight, DELTA)
    if kind == "quantile":
        term["level"] = np.full(weight, LEVEL)
    return Parts.of([term], 1, 1).rows[0]


def multiplier(row, share):
    """Within the interval, at some share of it."""
    low, high = max(float(row["low"]), -10.0), min(float(row["high"]), 10.0)
    return low + share * (high - low)


@pytest.mark.parametrize(("kind", "y"), EVERY)
class TestRows:
    @given(z=signals)
    def test_value_is_the_formula(self, kind, y, z):
        value = scalar.row_value(row(kind, y), z)
        assert value == pytest.approx(psi(kind, z, y) / 4, rel=1e-13, abs=1e-15)

    @given(z=signals)
    def test_slope_and_curvature(self, kind, y, z):
        r, h = row(kind, y), 1e-5
        behind, here, ahead = (scalar.row_value(r, z + t) for t in (-h, 0.0, h))
        slope = scalar.row_slope(r, z)
        size = 1e-10 * (1.0 + abs(here))
        assert ahead >= here + h * slope - size
        assert behind >= here - h * slope - size
        turn = abs(scalar.row_slope(r, z + h) - scalar.row_slope(r, z - h)) / (2.0 * h)
        kinked = min(abs(z - y), abs(abs(z - y) - DELTA)) < 2.0 * h
        if not kinked or kind in ("squared", "logistic", "pseudohuber", "poisson"):
            assert scalar.row_curvature(r, z) == pytest.approx(turn, rel=1e-4, abs=1e-9)
        assert r["low"] <= slope <= r["high"]

    @given(z=signals, share=shares)
    def test_gap_is_its_definition(self, kind, y, z, share):
        r = row(kind, y)
        a = multiplier(r, share)
        gap = scalar.row_gap(r, z, a)
        parts = scalar.row_value(r, z), scalar.row_conjugate(r, a), -a * z
        assert gap >= 0.0
        assert gap == pytest.approx(sum(parts), rel=1e-9, abs=1e-13 * sum(map(abs, parts)) + 1e-15)

    @given(z=signals)
    def test_gap_vanishes_at_the_slope(self, kind, y, z):
        r = row(kind, y)
        slope = scalar.row_slope(r, z)
        # Far below the rounding of value, conjugate and product; but the slope of a rate or a
        # probability has only so many digits of what is left to one.
        size = 1.0 + scalar.row_value(r, z) ** 2
        size += math.exp(abs(z)) if kind in ("logistic", "poisson") else 0.0
        assert scalar.row_gap(r, z, slope) <= 1e-28 * size

    @given(share=shares)
    def test_conjugate_is_the_supremum(self, kind, y, share):
        r = row(kind, y)
        a = multiplier(r, share)
        z = np.append(np.linspace(-60.0, 60.0, 12001), y)
        most = np.max(a * z - scalar.row_value(r, z))
        best = scalar.row_conjugate(r, a)
        assert best >= most - 1e-12 * (1.0 + abs(best))
        assert best <= most + 1e-3

    def test_far_off_there_is_no_nan(self, kind, y):
        r = row(kind, y)
        for z in (-1e9, -800.0, 800.0, 1e9):
            for of in (scalar.row_value, scalar.row_slope):
                assert not math.isnan(of(r, z))
            assert scalar.row_curvature(r, z) >= 0.0
            for share in (0.0, 1e-300, 0.5, 1.0):
                assert scalar.row_gap(r, z, multiplier(r, share)) >= 0.0


def exact_divergence(v, log_u):
    """v log(v / u) - v + u in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        x, log = Decimal(v), Decimal(log_u)
        return float((x * (x.ln() - log) if v else Decimal(0)) - x + log.exp())


@given(log_u=st.floats(-30.0, 30.0), change=st.floats(-1.0, 1.0), k=st.integers(0, 14))
def test_divergence_is_accurate_however_close_its_arguments(log_u, change, k):
    v = math.exp(log_u) * (1.0 + change * 10.0**-k)
    expected = exact_divergence(v, log_u)
    # v and exp(log_u) differ by rounding alone where they are closer than that.
    close = 1e-31 * math.exp(log_u)
    assert scalar.divergence(v, log_u) == pytest.approx(expected, rel=3e-2, abs=close)
    if abs(change) * 10.0**-k > 1e-6:
        assert scalar.divergence(v, log_u) == pytest.approx(expected, rel=1e-7)


def exact_pseudo_huber_gap(r, b, delta):
    """psi(r) + psi*(b) - b r in 120 digits."""
    with localcontext() as context:
        context.prec = 120
        r, b, delta = Decimal(r), Decimal(b), Decimal(delta)
        value = delta * ((delta**2 + r**2).sqrt() - delta)
        conjugate = delta * (delta - (delta**2 - b**2).sqrt())
        return float(value + conjugate - b * r)


@given(
    r=st.floats(-1e6, 1e6),
    delta=st.floats(1e-3, 1e3),
    change=st.floats(-1.0, 1.0),
    k=st.integers(0, 12),
)
def test_pseudo_huber_gap_is_accurate_however_close_its_arguments(r, delta, change, k):
    slope = delta * r / math.hypot(delta, r)
    b = min(max(slope + change * delta * 10.0**-k, -delta), delta)
    expected = exact_pseudo_huber_gap(r, b, delta)
    # The direction of b is as good as its digits are: at an end they say little of the angle.
    angle = 1e-15 * (1.0 + math.hypot(r, delta) / delta)
    close = delta * math.hypot(delta, r) * angle * angle
    assert scalar.angle_gap(r, b, delta) == pytest.approx(expected, rel=1e-3, abs=close)


@pytest.mark.parametrize("r", [1e-12, 1e-3, 1.0, 1e3, 1e12])
def test_pseudo_huber_has_all_digits_in_any_unit(r):
    for delta in (1e-9, 1.0, 1e9):
        row_of = row("pseudohuber", 0.0, weight=1)
        row_of["delta"], row_of["low"], row_of["high"] = delta, -delta, delta
        with localcontext() as context:
            context.prec = 120
            x, d = Decimal(r), Decimal(delta)
            root = (d * d + x * x).sqrt()
            value, slope, curvature = d * (root - d), d * x / root, (d / root) ** 3
        assert scalar.row_value(row_of, r) == pytest.approx(float(value), rel=1e-14)
        assert scalar.row_slope(row_of, r) == pytest.approx(float(slope), rel=1e-14)
        assert scalar.row_curvature(row_of, r) == pytest.approx(float(curvature), rel=1e-14)


def coordinate(mu=0.0, linear=0.0, kappa=0.0, lower=-np.inf, upper=np.inf):
    return np.array([(mu, linear, kappa, lower, upper)], COORDINATE)[0]


COORDINATES = {
    "l1": coordinate(kappa=0.3),
    "ridge": coordinate(mu=0.5),
    "point": coordinate(mu=2.0, linear=3.0),
    "elastic": coordinate(mu=0.5, kappa=0.3),
    "elastic point": coordinate(mu=2.0, linear=-1.0, kappa=0.3),
    "nonnegative": coordinate(lower=0.0),
    "at least 1": coordinate(kappa=0.3, lower=1.0),
    "at most -1": coordinate(kappa=0.3, upper=-1.0),
    "box": coordinate(lower=-0.5, upper=2.0),
    "fixed": coordinate(kappa=0.1, lower=0.7, upper=0.7),
    "everything": coordinate(1.5, 0.4, 0.3, -0.5, 2.0),
}


@pytest.mark.parametrize("c", COORDINATES.values(), ids=COORDINATES)
class TestCoordinates:
    def inside(self, c, share):
        low, high = conjugates.coordinate_domain(c)
        low, high = max(low, -5.0), min(high, 5.0)
        return low + share * (high - low)

    def feasible(self, c, z):
        return min(max(z / 10.0, float(c["lower"])), float(c["upper"]))

    @given(z=signals, share=shares)
    def test_gap(self, c, z, share):
        w, t = self.feasible(c, z), self.inside(c, share)
        gap = conjugates.coordinate_gap(c, w, t)
        assert gap >= 0.0
        # The definition, with the supremum over a fine grid and the ends.
        ends = [x for x in (c["lower"], c["upper"], 0.0) if np.isfinite(x)]
        grid = np.clip([*np.linspace(-12.0, 12.0, 6001), *ends], c["lower"], c["upper"])
        most = np.max(t * grid - conjugates.coordinate_value(c, grid))
        definition = conjugates.coordinate_value(c, w) + most - t * w
        assert definition - 1e-12 <= gap <= definition + 1e-3
        best = conjugates.coordinate_maximizer(c, t)
        assert conjugates.coordinate_gap(c, best, t) <= 1e-15

    def test_outside_the_bounds(self, c):
        for bound, beyond in ((c["lower"], -1.0), (c["upper"], 1.0)):
            if np.isfinite(bound):
                assert conjugates.coordinate_value(c, bound + beyond) == math.inf
                assert conjugates.coordinate_gap(c, bound + beyond, self.inside(c, 0.5)) == math.inf

    @given(z=signals, share=shares)
    def test_subgradients_and_shrinkage(self, c, z, share):
        kinks = coordinate(0.0, 0.0, c["kappa"], c["lower"], c["upper"])
        w = self.feasible(c, z)
        low, high = subgradients(kinks, w)
        t = max(low, -5.0) + share * (min(high, 5.0) - max(low, -5.0))
        others = np.clip(np.linspace(-5.0, 5.0, 101), c["lower"], c["upper"])
        ahead = conjugates.coordinate_value(kinks, others)
        here = conjugates.coordinate_value(kinks, w)
        assert (ahead >= here + t * (others - w) - 1e-12).all()
        # z = w + t is shrunk back to w: the optimality condition of the proximal point.
        near = shrink(w + t, float(c["kappa"]), float(c["lower"]), float(c["upper"]))
        assert near == pytest.approx(w, abs=1e-12)
        assert is_free(kinks) == (c["kappa"] == 0.0 and np.isinf([c["lower"], c["upper"]]).all())
