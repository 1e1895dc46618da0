"""Inputs near the ends of the floating-point range, no edges, one dimension."""

import numpy as np
import pytest

from gtvcvx.penalties import L2Norm, PNorm

SIZES = [1e-300, 1e-160, 1.0, 1e300]


@pytest.mark.parametrize("cap_size", SIZES)
@pytest.mark.parametrize("size", SIZES)
def test_no_nan_anywhere(penalty, d, rng, size, cap_size):
    z = size * rng.uniform(-1.0, 1.0, (8, d))
    z[0] = 0.0
    if d > 1:
        z[1, 0] = 0.0
        z[2, 1:] *= 1e-200
    cap = cap_size * rng.uniform(0.5, 1.0, 8)
    u = penalty.project_domain(z, cap)
    results = [
        penalty.value(z),
        penalty.conjugate(z),
        penalty.prox(z, cap),
        penalty.prox_conjugate(z, 1.0, cap),
        penalty.prox_conjugate(z, cap_size, cap),
        u,
        penalty.fenchel_gap(z, u, cap),
    ]
    for result in results:
        assert not np.isnan(result).any()
    for point in results[2:6]:
        assert np.all(np.abs(point) <= 20.0 * np.abs(z).max(axis=1, keepdims=True))
    assert np.isfinite(penalty.scale_to_feasible(z, cap))


@pytest.mark.parametrize("size", SIZES)
def test_norms_keep_their_accuracy(norm, d, rng, size):
    unit = rng.uniform(0.5, 1.0, (8, d))
    np.testing.assert_allclose(norm.value(size * unit), size * norm.value(unit), rtol=1e-13)
    np.testing.assert_allclose(norm.dual_norm(size * unit), size * norm.dual_norm(unit), rtol=1e-13)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cap_size", SIZES)
def test_projection_reaches_the_sphere_at_any_scale(norm, d, rng, size, cap_size):
    z = size * rng.uniform(0.5, 1.0, (8, d))
    cap = cap_size * rng.uniform(0.1, 0.4, 8)
    x = norm.project_domain(z, cap)
    reached = np.minimum(norm.dual_norm(z), cap)
    np.testing.assert_allclose(norm.dual_norm(x), reached, rtol=1e-12)


def test_no_edges(penalty, d):
    none, rows = np.empty(0), np.empty((0, d))
    assert penalty.value(rows).shape == (0,)
    assert penalty.conjugate(rows).shape == (0,)
    assert penalty.prox(rows, none).shape == (0, d)
    assert penalty.prox_conjugate(rows, 1.0, none).shape == (0, d)
    assert penalty.project_domain(rows, none).shape == (0, d)
    assert penalty.fenchel_gap(rows, rows, none).shape == (0,)
    assert penalty.scale_to_feasible(rows, none) == 1.0


@pytest.mark.parametrize("d", [1])
def test_all_norms_are_the_absolute_value_in_one_dimension(norm, d, rng):
    v = rng.standard_normal((20, 1))
    cap = rng.uniform(0.1, 1.0, 20)
    np.testing.assert_array_equal(norm.value(v), np.abs(v[:, 0]))
    np.testing.assert_array_equal(norm.dual_norm(v), np.abs(v[:, 0]))
    clipped = np.clip(v, -cap[:, None], cap[:, None])
    np.testing.assert_array_equal(norm.project_domain(v, cap), clipped)
    np.testing.assert_allclose(norm.prox(v, cap), v - clipped, atol=1e-16)


@pytest.mark.parametrize("d", [3])
def test_inputs_are_left_alone(penalty, d, rng):
    z = rng.standard_normal((5, d))
    kept = z.copy()
    cap = np.full(5, 100.0)
    for result in (
        penalty.prox(z, cap),
        penalty.prox_conjugate(z, 1.0, cap),
        penalty.project_domain(z, cap),
    ):
        result[:] = 7.0
        np.testing.assert_array_equal(z, kept)


def test_prox_just_above_the_threshold_keeps_its_relative_accuracy():
    v = np.array([[1.0 + 1e-10, 0.0]])
    shrunk = L2Norm().prox(v, np.array([1.0]))
    np.testing.assert_allclose(shrunk, [[v[0, 0] - 1.0, 0.0]], rtol=1e-14)


@pytest.mark.parametrize("p", [1.02, 1.5, 3.0, 60.0])
def test_small_balls_have_an_error_relative_to_their_radius(p):
    """Far outside, the projection tends to r (|z| / ||z||_p)^(p-1), and must not lose digits."""
    z = np.array([[1.0, 0.9, -0.7]])
    r = np.array([1e-18])
    x = PNorm(p).project_domain(z, r)
    size = np.abs(z) / np.linalg.norm(z[0], p)
    np.testing.assert_allclose(x, np.sign(z) * r * size ** (p - 1.0), rtol=1e-12)
