"""The gap of an edge and the scaling back into the capacities."""

import numpy as np
import pytest

from gtvcvx.penalties import L1Norm, L2Norm, LinfNorm, PNorm, Quadratic, SquaredNorm


def definition(penalty, D, u, cap):
    inner = np.einsum("ij,ij->i", D, u)
    return cap * (penalty.value(D) + penalty.conjugate(u / cap[:, None], 1e-12)) - inner


def test_gap_is_its_definition(penalty, d, rng):
    D = 2.0 * rng.standard_normal((30, d))
    cap = rng.uniform(0.1, 3.0, 30)
    u = penalty.project_domain(2.0 * rng.standard_normal((30, d)), cap)
    u[:10] *= 0.5
    D[::4] = 0.0  # inside clusters
    expected = definition(penalty, D, u, cap)
    gap = penalty.fenchel_gap(D, u, cap)
    np.testing.assert_allclose(gap, expected, rtol=1e-12, atol=1e-12)
    assert np.all(gap >= 0.0)
    assert np.max(gap) > 0.01 or penalty.value(D).max() == 0.0


def test_gap_of_zeros(penalty, d):
    zero, one = np.zeros((2, d)), np.ones(2)
    np.testing.assert_array_equal(penalty.fenchel_gap(zero, zero, one), [0.0, 0.0])


def exact_gap(penalty, p, D, u, cap):
    """Definition in extended precision, for norms and the squared norm."""
    D, u, cap = (a.astype(np.longdouble) for a in (D, u, cap))
    inner = (D * u).sum(axis=1)
    if isinstance(penalty, SquaredNorm):
        return cap * (D * D).sum(axis=1) / 2 + (u * u).sum(axis=1) / (2 * cap) - inner
    if p == np.inf:
        return cap * np.abs(D).max(axis=1) - inner
    return cap * (np.abs(D) ** p).sum(axis=1) ** (1 / np.longdouble(p)) - inner


@pytest.mark.parametrize(
    ("penalty", "p"),
    [
        (L1Norm(), 1.0),
        (L2Norm(), 2.0),
        (LinfNorm(), np.inf),
        (PNorm(1.5), 1.5),
        (PNorm(4.0), 4.0),
        (SquaredNorm(), None),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
def test_nearly_optimal_pairs_do_not_cancel(penalty, p, size):
    """A pair that misses optimality by ``size`` has a gap of order size^2 or size, seen to
    digits that the definition in double precision loses."""
    rng = np.random.default_rng(3)
    x = 3.0 * rng.standard_normal((40, 3))
    cap = rng.uniform(0.5, 1.0, 40)
    u = penalty.prox_conjugate(x, np.ones(40), cap)
    D = x - u
    u = (1.0 - 1e-12) * penalty.project_domain(u + size * rng.standard_normal(u.shape), cap)
    expected = exact_gap(penalty, p, D, u, cap)
    error = np.abs(penalty.fenchel_gap(D, u, cap) - expected)
    scale = cap * penalty.value(D)
    assert np.all(error <= 1e-8 * expected + 2e-15 * scale)
    # Where capacity is not the issue, the second-order part must be seen far below eps.
    if isinstance(penalty, SquaredNorm):
        assert np.all(error <= 1e-9 * expected + 1e-18 * scale)


@pytest.mark.parametrize("penalty", [L2Norm(), PNorm(3.0), PNorm(1.5)], ids=str)
def test_misalignment_far_below_rounding_is_seen(penalty):
    """u on the sphere, turned by 1e-10: the gap is of order 1e-20, and no noise hides it."""
    D = np.array([[3.0, 4.0], [1.0, -2.0]])
    u = penalty.project_domain(1e3 * D, np.ones(2)) if penalty.name == "l2" else None
    if u is None:
        q = penalty.q
        u = np.sign(D) * np.abs(D) ** (penalty.p - 1.0)
        u = u / np.linalg.norm(u, q, axis=1)[:, None]
    turned = u + 1e-10 * np.column_stack([-D[:, 1], D[:, 0]])
    cap = penalty.dual_norm(turned)
    gap = penalty.fenchel_gap(D, turned, cap)
    assert np.all(gap > 1e-21)
    assert np.all(gap < 1e-17)


def test_infeasible_flows_have_an_infinite_gap(norm, d, rng):
    D = rng.standard_normal((6, d))
    cap = rng.uniform(0.5, 2.0, 6)
    u = norm.project_domain(50.0 * rng.uniform(0.5, 1.0, (6, d)), cap)
    assert np.all(np.isfinite(norm.fenchel_gap(D, u, cap)))
    assert np.all(np.isinf(norm.fenchel_gap(D, u * (1.0 + 1e-12), cap)))


def test_singular_quadratic_refuses_flows_outside_its_range():
    penalty = Quadratic([[2.0, 2.0], [2.0, 2.0]])
    D = np.array([[1.0, 3.0], [1.0, -1.0]])
    cap = np.array([0.5, 2.0])
    inside = np.array([[1.0, 1.0], [-2.0, -2.0]])
    assert penalty.rank == 1
    np.testing.assert_allclose(penalty.value(D), [16.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(penalty.conjugate(inside), [0.25, 1.0], rtol=1e-14)
    assert np.all(np.isinf(penalty.conjugate(inside + np.array([[1e-9, 0.0], [0.0, 1.0]]))))
    assert np.isfinite(
        penalty.conjugate(inside + np.array([[1e-9, 0.0], [0.0, 0.0]]), tol=1e-8)
    ).all()
    gap = penalty.fenchel_gap(D, inside, cap)
    np.testing.assert_allclose(gap, definition(penalty, D, inside, cap), rtol=1e-13)
    assert np.isinf(penalty.fenchel_gap(D, inside + np.array([[0.0, 1e-9], [0.0, 0.0]]), cap)[0])
    assert penalty.scale_to_feasible(inside, cap) == 1.0
    assert penalty.scale_to_feasible(inside + np.array([[1.0, 0.0], [0.0, 0.0]]), cap) == 0.0


def test_zero_quadratic_carries_no_flow():
    penalty = Quadratic(np.zeros((2, 2)))
    u = np.array([[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(penalty.conjugate(u), [0.0, np.inf])
    np.testing.assert_array_equal(penalty.project_domain(u, np.ones(2)), np.zeros((2, 2)))
    np.testing.assert_array_equal(penalty.prox(u, np.ones(2)), u)
    np.testing.assert_array_equal(penalty.prox_conjugate(u, 1.0, np.ones(2)), np.zeros((2, 2)))


def test_scaling_is_feasible_and_the_largest(norm, d, rng):
    for _ in range(40):
        u = rng.standard_normal((7, d))
        cap = rng.uniform(0.2, 1.5, 7)
        theta = norm.scale_to_feasible(u, cap)
        assert 0.0 <= theta <= 1.0
        assert np.all(norm.dual_norm(theta * u) <= cap)
        if theta < 1.0:
            assert np.any(norm.dual_norm(theta * (1.0 + 1e-13) * u) > cap)
        assert norm.scale_to_feasible(theta * u, cap) == 1.0


def test_scaling_of_the_unbounded_domains():
    u = 1e9 * np.ones((3, 2))
    assert SquaredNorm().scale_to_feasible(u, np.ones(3)) == 1.0
    assert Quadratic(np.eye(2)).scale_to_feasible(u, np.ones(3)) == 1.0
