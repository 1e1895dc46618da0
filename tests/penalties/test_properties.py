"""Identities of convex analysis on drawn inputs."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gtvcvx.penalties import as_penalty

# The fixtures are stateless, so that hypothesis may reuse them between examples.
few = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
entries = st.floats(-50.0, 50.0, allow_nan=False).map(lambda x: 0.0 if abs(x) < 1e-6 else x)
positive = st.floats(0.01, 20.0)
seeds = st.integers(0, 2**31)


def rows(data, d, m=4):
    return data.draw(arrays(np.float64, (m, d), elements=entries))


def steps(data, m=4):
    return data.draw(arrays(np.float64, m, elements=positive))


@few
@given(data=st.data())
def test_moreau(penalty, d, data):
    """v = prox_{t phi}(v) + t prox_{phi* / t}(v / t)."""
    v, t = rows(data, d), steps(data)
    conjugate_part = penalty.prox_conjugate(v / t[:, None], 1.0 / t, np.ones(4))
    total = penalty.prox(v, t) + t[:, None] * conjugate_part
    np.testing.assert_allclose(total, v, atol=1e-11)


@few
@given(data=st.data())
def test_moreau_with_capacities(penalty, d, data):
    """z = prox_{sigma g*}(z) + sigma prox_{g / sigma}(z / sigma) with g = cap phi."""
    z, sigma, cap = rows(data, d), steps(data), steps(data)
    total = penalty.prox_conjugate(z, sigma, cap)
    total = total + sigma[:, None] * penalty.prox(z / sigma[:, None], cap / sigma)
    np.testing.assert_allclose(total, z, atol=1e-10)


@few
@given(data=st.data())
def test_fenchel_young(penalty, d, data):
    """The inequality everywhere, equality at v = prox(x) and z = (x - v) / t."""
    x, t = rows(data, d), steps(data)
    v = penalty.prox(x, t)
    z = penalty.project_domain((x - v) / t[:, None], np.ones(4))
    other = penalty.project_domain(rows(data, d), np.ones(4))
    inner = np.einsum("ij,ij->i", v, other)
    scale = 1.0 + penalty.value(v) + np.abs(inner)
    assert np.all(penalty.value(v) + penalty.conjugate(other, 1e-12) - inner >= -1e-12 * scale)
    at_pair = penalty.value(v) + penalty.conjugate(z, 1e-12) - np.einsum("ij,ij->i", v, z)
    np.testing.assert_array_less(np.abs(at_pair), 1e-9 * (1.0 + penalty.value(v)))
    assert np.all(penalty.fenchel_gap(v, z, np.ones(4)) <= 1e-9 * (1.0 + penalty.value(v)))


@few
@given(data=st.data())
def test_projection_is_idempotent_nonexpansive_and_inside(penalty, d, data):
    z, other, cap = rows(data, d), rows(data, d), steps(data)
    x = penalty.project_domain(z, cap)
    assert np.all(np.isfinite(penalty.conjugate(x / cap[:, None], 1e-14)))
    np.testing.assert_allclose(penalty.project_domain(x, cap), x, rtol=1e-14, atol=1e-13)
    moved = np.linalg.norm(x - penalty.project_domain(other, cap), axis=1)
    assert np.all(moved <= np.linalg.norm(z - other, axis=1) + 1e-12)


@few
@given(data=st.data())
def test_projection_leaves_the_ball_by_an_ulp_at_most(norm, d, data):
    z, cap = rows(data, d), steps(data)
    radius = norm.dual_norm(norm.project_domain(z, cap))
    assert np.all(radius <= cap * (1.0 + 1e-15))
    inside = norm.dual_norm(z) <= cap
    np.testing.assert_array_equal(norm.project_domain(z, cap)[inside], z[inside])


@few
@given(data=st.data())
def test_dual_norm_bounds_the_inner_product_and_is_attained(norm, d, data):
    v, z = rows(data, d), rows(data, d)
    inner = np.abs(np.einsum("ij,ij->i", v, z))
    assert np.all(inner <= norm.value(v) * norm.dual_norm(z) * (1.0 + 1e-13) + 1e-300)
    # A point outside the ball of radius r leaves it along a normal, which attains the dual norm.
    r = 0.5 * norm.dual_norm(z) + 1e-3
    x = norm.project_domain(z, r)
    attained = np.einsum("ij,ij->i", z - x, x)
    np.testing.assert_allclose(attained, norm.value(z - x) * r, rtol=1e-9, atol=1e-10)


@few
@given(data=st.data())
def test_homogeneity_and_symmetry(penalty, d, data):
    v, factor = rows(data, d), data.draw(positive)
    degree = 1 if penalty.is_norm else 2
    scaled = penalty.value(-factor * v)
    np.testing.assert_allclose(scaled, factor**degree * penalty.value(v), rtol=1e-12, atol=1e-300)
    assert np.all(penalty.value(v) >= 0.0)
    assert np.all(penalty.value(0.0 * v) == 0.0)


@pytest.mark.parametrize("name", ["l1", "l2", "linf"])
@few
@given(seed=seeds)
def test_repeated_and_tied_entries(name, seed):
    """Ties in magnitude, zeros and signed zeros do not disturb the projections."""
    rng = np.random.default_rng(seed)
    z = rng.integers(-2, 3, (20, 5)).astype(float)
    z[0] = -0.0
    penalty = as_penalty(name, 5)
    x = penalty.project_domain(z, np.ones(20))
    assert np.all(penalty.dual_norm(x) <= 1.0 + 1e-15)
    assert np.all(x * z >= 0.0)
    assert np.all(np.abs(x) <= np.abs(z))
    order = np.argsort(-np.abs(z), axis=1, kind="stable")
    ranked = np.take_along_axis(np.abs(x), order, axis=1)
    assert np.all(np.diff(ranked, axis=1) <= 1e-15)
