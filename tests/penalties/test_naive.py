"""Fast proxes against readable ones that treat one row, or one entry, at a time."""

import numpy as np
import pytest
from scipy.optimize import brentq

from gtvcvx.penalties import L1Norm, L2Norm, LinfNorm, PNorm, Quadratic, SquaredNorm


def dual_exponent(norm):
    if isinstance(norm, PNorm):
        return norm.q
    return {L1Norm: np.inf, L2Norm: 2.0, LinfNorm: 1.0}[type(norm)]


def naive_ball(z, radius, q):
    """Projection of one vector on ||.||_q <= radius by nested root finding."""
    if np.linalg.norm(z, q) <= radius:
        return z.copy()
    y = np.abs(z)
    if q == np.inf:
        return np.clip(z, -radius, radius)
    if q == 1.0:
        theta = brentq(lambda s: np.maximum(y - s, 0.0).sum() - radius, 0.0, y.max(), xtol=1e-15)
        return np.sign(z) * np.maximum(y - theta, 0.0)

    def entry(target, nu):
        if target == 0.0:
            return 0.0
        return brentq(
            lambda x: x + nu * (x / radius) ** (q - 1.0) - target, 0.0, target, xtol=1e-16
        )

    def point(nu):
        return np.array([entry(target, nu) for target in y])

    nu = brentq(lambda s: np.linalg.norm(point(s), q) - radius, 0.0, 2.0 * y.sum(), xtol=1e-15)
    return np.sign(z) * point(nu)


def naive_prox(penalty, v, t):
    """argmin_x t phi(x) + ||x - v||^2 / 2 for one vector."""
    if isinstance(penalty, SquaredNorm):
        return v / (1.0 + t)
    if isinstance(penalty, Quadratic):
        return np.linalg.solve(np.eye(len(v)) + t * penalty.Q, v)
    if isinstance(penalty, L1Norm):
        return np.array([0.0 if abs(x) <= t else x - np.sign(x) * t for x in v])
    if isinstance(penalty, L2Norm):
        length = np.sqrt(sum(x * x for x in v))
        return np.zeros_like(v) if length <= t else (1.0 - t / length) * v
    return v - naive_ball(v, t, dual_exponent(penalty))


def naive_prox_conjugate(penalty, z, sigma, cap):
    """Moreau: the prox of sigma (cap phi)^* through the prox of (cap / sigma) phi."""
    return z - sigma * naive_prox(penalty, z / sigma, cap / sigma)


def test_prox_is_the_naive_one(penalty, d, rng):
    v = 3.0 * rng.standard_normal((12, d))
    t = rng.uniform(0.05, 4.0, 12)
    expected = [naive_prox(penalty, row, step) for row, step in zip(v, t, strict=True)]
    np.testing.assert_allclose(penalty.prox(v, t), expected, atol=1e-12)


def test_prox_conjugate_is_the_naive_one(penalty, d, rng):
    z = 3.0 * rng.standard_normal((12, d))
    sigma, cap = rng.uniform(0.1, 3.0, (2, 12))
    rows = zip(z, sigma, cap, strict=True)
    expected = [naive_prox_conjugate(penalty, *row) for row in rows]
    np.testing.assert_allclose(penalty.prox_conjugate(z, sigma, cap), expected, atol=1e-11)


def test_norms_project_on_the_ball_that_a_naive_method_finds(norm, d, rng):
    z = 3.0 * rng.standard_normal((12, d))
    cap = rng.uniform(0.1, 3.0, 12)
    q = dual_exponent(norm)
    expected = [naive_ball(row, radius, q) for row, radius in zip(z, cap, strict=True)]
    np.testing.assert_allclose(norm.project_domain(z, cap), expected, atol=1e-12)


def test_scalar_steps_are_broadcast(penalty, d, rng):
    v = rng.standard_normal((5, d))
    same = np.full(5, 0.7)
    np.testing.assert_array_equal(penalty.prox(v, 0.7), penalty.prox(v, same))
    np.testing.assert_array_equal(
        penalty.prox_conjugate(v, 0.7, 0.7), penalty.prox_conjugate(v, same, same)
    )


def test_zero_step_changes_nothing(penalty, d, rng):
    v = rng.standard_normal((5, d))
    np.testing.assert_array_equal(penalty.prox(v, np.zeros(5)), v)


@pytest.mark.parametrize("q", [1.01, 1.05, 1.2, 1.7, 2.5, 3.0, 7.0, 40.0, 101.0])
@pytest.mark.parametrize("d", [2, 7])
def test_q_ball_projection_satisfies_its_optimality_system(q, d):
    """||x||_q = r, and z - x is a multiple of the ball's normal, in extended precision."""
    rng = np.random.default_rng(7)
    z = rng.standard_normal((300, d))
    radius = rng.uniform(0.05, 1.0, 300) * np.linalg.norm(z, q, axis=1)
    x = PNorm(q / (q - 1.0)).project_domain(z, radius)
    y, X, r = (np.abs(a).astype(np.longdouble) for a in (z, x, radius))
    norms = (X**q).sum(axis=1) ** (1 / np.longdouble(q))
    assert np.max(norms / r) <= 1.0 + 1e-15
    assert np.min(norms / r) >= 1.0 - 1e-13
    normal = (X / r[:, None]) ** (np.longdouble(q) - 1)
    nu = ((y - X) * normal).sum(axis=1) / (normal * normal).sum(axis=1)
    residual = np.abs(y - X - nu[:, None] * normal)
    # (x / r)^(q-1) is only as accurate as q times x; for q near 1, entries may underflow.
    seen = x != 0.0
    assert np.max(residual[seen]) < 2e-15 * max(q, 10.0) * d * 10
