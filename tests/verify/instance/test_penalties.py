"""Projections on the balls of dual norms."""

import numpy as np
import pytest

from verify.instance._penalties import Penalty, QuadraticPenalty, project_l1


@pytest.mark.parametrize("q", [1.0, 2.0, np.inf, 1.5])
def test_clip_moves_into_the_ball_and_leaves_the_inside(q: float) -> None:
    rng = np.random.default_rng(1)
    p = 1.0 if np.isinf(q) else (np.inf if q == 1 else q / (q - 1))
    penalty = Penalty(p)
    u, cap = 2 * rng.standard_normal((200, 3)), rng.uniform(0.5, 3, 200)
    clipped = penalty.clip(u, cap)
    assert (np.linalg.norm(clipped, q, axis=1) <= cap * (1 + 1e-12)).all()
    inside = np.linalg.norm(u, q, axis=1) <= cap
    assert inside.any()
    np.testing.assert_array_equal(clipped[inside], u[inside])


def test_l1_projection_satisfies_its_variational_inequality() -> None:
    """<u - p, v - p> <= 0 for all v in the ball; the vertices suffice."""
    rng = np.random.default_rng(2)
    u, radius = 3 * rng.standard_normal((100, 4)), rng.uniform(0.2, 2, 100)
    p = project_l1(u, radius)
    for vertex in [*np.eye(4), *-np.eye(4)]:
        inner = ((u - p) * (radius[:, None] * vertex - p)).sum(axis=1)
        assert (inner <= 1e-12).all()


@pytest.mark.parametrize("kind", ["squared", "quadratic", "singular"])
def test_quadratics_do_not_look_singular_in_units_of_a_table(kind: str) -> None:
    """An intercept beside inhabitants: flows stay as they are, and gaps are those without units."""
    rng = np.random.default_rng(7)
    d, m = 5, 9
    root = rng.standard_normal((d, d if kind == "quadratic" else d - 2))
    q = None if kind == "squared" else root @ root.T
    units = np.array([16.0, 2.0**15, 2.0**24, 2.0**-4, 2.0**10])
    cap = rng.uniform(1.0, 50.0, m)
    v = rng.standard_normal((m, d))
    plain = QuadraticPenalty(q)
    u = cap[:, None] * plain.apply(v + 0.1 * rng.standard_normal((m, d)))
    rescaled = plain.rescaled(units)
    kept = rescaled.clip(u / units, cap)
    np.testing.assert_allclose(kept * units, u, rtol=1e-6, atol=1e-6 * np.abs(u).max())
    gaps = rescaled.gaps(kept, v * units, cap)
    np.testing.assert_allclose(gaps, plain.gaps(u, v, cap), rtol=1e-4, atol=1e-9)
    if kind == "singular":  # what is off the range is taken off
        off = rescaled.clip((u + rng.standard_normal((m, d))) / units, cap) * units
        assert np.abs(off @ np.linalg.svd(q)[0][:, d - 2 :]).max() < 1e-6 * np.abs(u).max()
