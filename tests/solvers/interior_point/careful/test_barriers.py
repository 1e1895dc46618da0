"""Barriers of exponential and power cones, against what defines them and finite differences."""

import numpy as np
import pytest

from gtvcvx.solvers.interior_point.careful._exponential import Exponential
from gtvcvx.solvers.interior_point.careful._power import Power

K = 12


def barrier_of(kind):
    rng = np.random.default_rng(3)
    barrier = Exponential(K) if kind == "exp" else Power(rng.uniform(0.05, 0.95, K))
    z = barrier.unit * rng.uniform(0.5, 2.0, (K, 1)) + 0.2 * rng.standard_normal((K, 3))
    assert barrier.contains_dual(z).all()
    return barrier, z, rng


def hessians(barrier, z):
    M = barrier.roots(z)
    return np.linalg.inv(M.transpose(0, 2, 1) @ M)


def times(M, x):
    return np.einsum("kij,kj->ki", M, x)


kinds = pytest.mark.parametrize("kind", ["exp", "power"])


@kinds
def test_the_unit_is_in_the_middle(kind):
    barrier, _, _ = barrier_of(kind)
    np.testing.assert_allclose(barrier.slacks(barrier.unit), barrier.unit, atol=1e-14)
    np.testing.assert_allclose(barrier.multipliers(barrier.unit), barrier.unit, atol=1e-14)


@kinds
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_gradients_are_conjugate_and_homogeneous(kind, size):
    barrier, z, _ = barrier_of(kind)
    z = size * z
    s = barrier.slacks(z)
    assert barrier.contains(s).all()
    np.testing.assert_allclose(np.sum(s * z, axis=1), 3.0)
    np.testing.assert_allclose(barrier.multipliers(s), z, rtol=1e-12, atol=1e-13 * size)
    M = barrier.roots(z)
    np.testing.assert_allclose(times(M.transpose(0, 2, 1), times(M, s)), z, rtol=1e-10)
    # Third derivatives along the point itself.
    u = size * np.random.default_rng(0).standard_normal((K, 3))
    H = hessians(barrier, z)
    np.testing.assert_allclose(
        barrier.thirds(z, z, u) * size, -2.0 * times(H, u) * size, rtol=1e-8, atol=1e-8
    )


@kinds
def test_derivatives_are_those_of_finite_differences(kind):
    barrier, z, rng = barrier_of(kind)
    u, v = rng.standard_normal((2, K, 3))
    h = 1e-6
    fall = (barrier.slacks(z - h * u) - barrier.slacks(z + h * u)) / (2.0 * h)
    np.testing.assert_allclose(times(hessians(barrier, z), u), fall, rtol=1e-6, atol=1e-5)
    bend = times((hessians(barrier, z + h * u) - hessians(barrier, z - h * u)) / (2.0 * h), v)
    np.testing.assert_allclose(barrier.thirds(z, u, v), bend, rtol=1e-6, atol=1e-3)


@kinds
@pytest.mark.parametrize("depth", [1e-9, 1e-5, 0.5, 20.0])
def test_conjugates_are_found_close_to_the_boundary_and_far_from_it(kind, depth):
    """By the equation in one number, where that is small or large."""
    barrier, _, rng = barrier_of(kind)
    s = rng.uniform(0.5, 2.0, (K, 3))
    if kind == "exp":
        s[:, 2] = s[:, 1] * np.exp(s[:, 0] / s[:, 1] + depth)
    else:
        alpha = barrier._alpha
        s[:, 2] = s[:, 0] ** alpha * s[:, 1] ** (1.0 - alpha) * np.exp(-depth)
        s[::2, 2] *= -1.0
    z = barrier.multipliers(s)
    assert barrier.contains_dual(z).all()
    np.testing.assert_allclose(np.sum(s * z, axis=1), 3.0, rtol=1e-4)
    np.testing.assert_allclose(barrier.slacks(z), s, rtol=1e-4)


def test_what_is_inside_is_told_from_what_is_not():
    exp, power = Exponential(1), Power(np.array([0.5]))
    assert exp.contains(np.array([[1.0, 1.0, 2.72]]))
    assert not exp.contains(np.array([[1.0, 1.0, 2.71]]))
    # -z_0 exp(z_1 / z_0) <= e z_2
    assert exp.contains_dual(np.array([[-1.0, -1.0, 1.01]]))
    assert not exp.contains_dual(np.array([[-1.0, -1.0, 0.99]]))
    assert power.contains(np.array([[1.0, 4.0, -1.99]]))
    assert not power.contains(np.array([[1.0, 4.0, -2.01]]))
    assert power.contains_dual(np.array([[1.0, 4.0, 3.99]]))
    assert not power.contains_dual(np.array([[1.0, 4.0, 4.01]]))
    with np.errstate(all="ignore"):
        for cone in (exp, power):
            assert not cone.contains(-cone.unit)
            assert not cone.contains_dual(-cone.unit)
