"""Scalings of exponential and power cones, against what defines them."""

import numpy as np
import pytest

from gtvcvx.conic._form import Cone
from gtvcvx.solvers.interior_point.careful import _asymmetric
from gtvcvx.solvers.interior_point.careful._asymmetric import AsymmetricCones

CONES = [
    *(Cone("zero", 2), Cone("exp", 3), Cone("nonneg", 3), Cone("exp", 3)),
    *(Cone("power", 3, (0.3, 0.7)), Cone("soc", 3), Cone("power", 3, (0.9, 0.1))),
]
SIZE = 20


@pytest.fixture
def cones():
    return AsymmetricCones(CONES)


def anywhere(cones, seed=0):
    """Slacks and multipliers inside all cones, not in their middle."""
    rng = np.random.default_rng(seed)
    s, z = np.zeros((2, SIZE))
    while not cones.contain(s, z):
        for x in (s, z):
            sizes = rng.uniform(0.5, 2.0, (len(cones), 1))
            x[cones.at] = sizes * cones.unit + 0.3 * rng.standard_normal((len(cones), 3))
    return s, z


def times(M, x):
    return np.einsum("kij,kj->ki", M, x)


def test_rows_are_those_of_the_cones(cones):
    assert cones.at.tolist() == [[2, 3, 4], [8, 9, 10], [11, 12, 13], [17, 18, 19]]
    assert cones.degree == 12
    assert len(AsymmetricCones(CONES[:1])) == 0


def test_scalings_take_slacks_to_multipliers_twice(cones):
    s, z = anywhere(cones)
    roots = cones.scaling(s, z).roots
    inverse = roots.transpose(0, 2, 1) @ roots
    np.testing.assert_allclose(times(inverse, s[cones.at]), z[cones.at], rtol=1e-9, atol=1e-10)
    for part, barrier in cones._each:
        at = cones.at[part]
        others = barrier.multipliers(s[at])
        np.testing.assert_allclose(times(inverse[part], barrier.slacks(z[at])), others, rtol=1e-9)


def test_in_the_middle_scalings_are_hessians(cones):
    """There, and beside it, nothing is lost: what is farther away is not far from that."""
    s, z = np.zeros((2, SIZE))
    s[cones.at], z[cones.at] = 4.0 * cones.unit, 0.5 * cones.unit
    roots = cones.scaling(s, z).roots
    for part, barrier in cones._each:
        plain = barrier.roots(z[cones.at[part]]) / np.sqrt(2.0)
        np.testing.assert_allclose(roots[part], plain, rtol=1e-12)
        z[cones.at[part]] += 0.05
        plain = barrier.roots(z[cones.at[part]]) / np.sqrt(2.0)
        roots = cones.scaling(s, z).roots
        assert not np.allclose(roots[part], plain)
        squares = [M.transpose(0, 2, 1) @ M for M in (roots[part], plain)]
        np.testing.assert_allclose(squares[0], squares[1], rtol=0.5, atol=0.02)


def test_aims_make_up_for_curvature(cones):
    """Along the central path slacks are (1 - t) times those of multipliers, to third order in t."""
    s, z = np.zeros((2, SIZE))
    s[cones.at] = z[cones.at] = cones.unit
    scaling = cones.scaling(s, z)
    hessians = np.linalg.inv(scaling.roots.transpose(0, 2, 1) @ scaling.roots)
    direction, errors = np.random.default_rng(1).standard_normal(SIZE), []
    for t in (1e-2, 1e-3):
        dz, ds = t * direction, np.zeros(SIZE)
        fall = times(hessians, dz[cones.at])
        ds[cones.at] = -t * s[cones.at] - fall
        each = [b.slacks((z + dz)[cones.at[part]]) for part, b in cones._each]
        wanted = (1.0 - t) * np.concatenate(each)
        for aim in (scaling.aim(1.0 - t), scaling.aim(1.0 - t, ds, dz)):
            found = s[cones.at] - times(np.linalg.inv(scaling.roots), aim) - fall
            errors.append(np.abs(found - wanted).max() / t**2)
    assert min(errors[0], errors[2]) > 0.5
    assert errors[3] < 0.2 * errors[1] < 0.05


def test_steps_end_inside(cones):
    s, z = anywhere(cones, 1)
    rng = np.random.default_rng(2)
    for _ in range(20):
        ds, dz = rng.standard_normal((2, SIZE))
        t = cones.longest(s, z, ds, dz, np.inf)
        assert cones.contain(s + t * ds, z + t * dz)
        assert t >= 1.0 or not cones.contain(s + 1.02 * t * ds, z + 1.02 * t * dz)
    assert cones.longest(s, z, s, z, 0.5) == 0.5


def test_what_is_far_from_the_middle_is_told(cones, monkeypatch):
    s, z = anywhere(cones)
    mu = float(s @ z) / cones.degree
    assert cones.near(s, z, mu)
    assert not cones.near(s, -z, mu)
    monkeypatch.setattr(_asymmetric, "WIDE", 1.0)
    assert not cones.near(s, z, mu)
    s[cones.at], z[cones.at] = 2.0 * cones.unit, cones.unit
    assert cones.near(s, z, 2.0 - 1e-7)
