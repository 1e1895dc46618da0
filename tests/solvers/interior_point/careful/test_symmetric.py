"""Nesterov's and Todd's scaling of symmetric cones, against what defines it."""

import numpy as np
import pytest

from gtvcvx.conic._form import Cone
from gtvcvx.solvers.interior_point.careful._symmetric import Scaling, SymmetricCones

CONES = [Cone("zero", 2), Cone("nonneg", 3), Cone("soc", 4), Cone("soc", 1), Cone("soc", 4)]
FREE, BLOCKS = slice(0, 2), (slice(5, 9), slice(10, 14))


def inside(rng, cones):
    """A point inside all cones, closer to the boundary of some."""
    x = rng.standard_normal(cones.size)
    x[cones.signs] = 10.0 ** rng.uniform(-6, 2, len(cones.signs))
    for at in cones.lengths.values():
        x[at[:, 0]] = np.linalg.norm(x[at[:, 1:]], axis=1) + 10.0 ** rng.uniform(-3, 1, len(at))
    return x


def multiplied_out(scaling, cones, x):
    """inverse(W) x, by the reflections of each cone."""
    diagonal, u, sizes = scaling.reflections()
    out = diagonal * x
    firsts = sorted(int(first) for at in cones.lengths.values() for first in at[:, 0])
    for first, size in zip(firsts, sizes, strict=True):
        rows = slice(first, first + 4)
        mirror = np.diag([1.0, -1.0, -1.0, -1.0])
        out[rows] = (2.0 * np.outer(u[rows], u[rows]) - mirror) @ x[rows] / size
    return out


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def test_the_scaling_point_takes_multipliers_to_slacks_divided(rng):
    cones = SymmetricCones(CONES)
    s, z = inside(rng, cones), inside(rng, cones)
    s[FREE] = 0.0
    scaling = Scaling(cones, s, z)
    both = scaling.times(z)
    rest = np.arange(2, cones.size)
    np.testing.assert_allclose(both[rest], scaling.divided(s)[rest], rtol=1e-9)
    np.testing.assert_allclose(scaling.divided(both), z, rtol=1e-9)
    np.testing.assert_allclose(multiplied_out(scaling, cones, s), scaling.divided(s), rtol=1e-9)
    assert both[rest] @ both[rest] == pytest.approx(s @ z)


def test_quotients_undo_products(rng):
    cones = SymmetricCones(CONES)
    x, y = inside(rng, cones), rng.standard_normal(cones.size)
    y[FREE] = 0.0
    np.testing.assert_allclose(cones.quotient(x, cones.product(x, y)), y, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(cones.product(x, cones.unit)[2:], x[2:])


def test_steps_end_at_the_boundary(rng):
    cones = SymmetricCones(CONES)
    for _ in range(50):
        x, step = inside(rng, cones), rng.standard_normal(cones.size)
        t = cones.longest(x, step)
        assert np.isfinite(t)
        assert cones.depth(x + 0.999 * t * step) > 0.0 > cones.depth(x + 1.001 * t * step)
    assert cones.longest(x, cones.unit) == np.inf


def test_points_are_moved_inside_along_the_unit_alone(rng):
    cones = SymmetricCones(CONES)
    x = -inside(rng, cones)
    moved = cones.inside(x)
    assert cones.depth(moved) == pytest.approx(1.0)
    assert np.array_equal(moved[FREE], x[FREE])
    assert np.array_equal(cones.inside(moved), moved)
