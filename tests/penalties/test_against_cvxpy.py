"""Proxes, conjugates and projections against CVXPY with Clarabel."""

import cvxpy as cp
import numpy as np
import pytest

from gtvcvx.penalties import L1Norm, L2Norm, LinfNorm, PNorm, Quadratic, SquaredNorm

PENALTIES = {
    "l1": L1Norm(),
    "l2": L2Norm(),
    "linf": LinfNorm(),
    "p=1.5": PNorm(1.5),
    "p=3": PNorm(3.0),
    "squared": SquaredNorm(),
    "quadratic": Quadratic([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.7]]),
    "singular": Quadratic([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]),
}


@pytest.fixture(params=[*PENALTIES])
def penalty(request):
    return PENALTIES[request.param]


@pytest.fixture
def rows():
    return np.random.default_rng(5).standard_normal((4, 3))


def reference(penalty, x):
    """phi of one CVXPY vector, written down independently of the package."""
    if isinstance(penalty, Quadratic):
        return 0.5 * cp.quad_form(x, cp.psd_wrap(penalty.Q))
    if isinstance(penalty, SquaredNorm):
        return 0.5 * cp.sum_squares(x)
    exponent = {"l1": 1, "l2": 2, "linf": "inf"}.get(penalty.name)
    return cp.norm(x, exponent) if exponent else cp.pnorm(x, penalty.p)


def solve(objective, constraints=()):
    problem = cp.Problem(objective, list(constraints))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status == cp.OPTIMAL
    return problem.value


def solve_rows(penalty, rows, build):
    """The minimizer of build(x, row, e), row by row."""
    found = []
    for e, row in enumerate(rows):
        x = cp.Variable(len(row))
        solve(cp.Minimize(build(x, row, e)))
        found.append(x.value)
    return np.array(found)


def test_prox(penalty, rows):
    t = np.array([0.1, 0.5, 1.0, 3.0])
    expected = solve_rows(
        penalty, rows, lambda x, v, e: t[e] * reference(penalty, x) + 0.5 * cp.sum_squares(x - v)
    )
    np.testing.assert_allclose(penalty.prox(rows, t), expected, atol=5e-5)


def test_prox_attains_the_minimum(penalty, rows):
    """No solver's point has a smaller objective, and the optimal values agree to 1e-8."""
    t = 0.7
    for row, x in zip(rows, penalty.prox(rows, np.full(4, t)), strict=True):
        y = cp.Variable(3)
        best = solve(cp.Minimize(t * reference(penalty, y) + 0.5 * cp.sum_squares(y - row)))
        ours = t * penalty.value(x[None])[0] + 0.5 * np.sum((x - row) ** 2)
        assert ours == pytest.approx(best, abs=1e-8)


def test_prox_conjugate(penalty, rows):
    """u = z - sigma x, x the minimizer of cap phi(x) + sigma/2 ||x - z/sigma||^2 (Moreau)."""
    sigma, cap = np.array([0.5, 1.0, 2.0, 0.3]), np.array([0.4, 1.5, 0.2, 0.9])

    def build(x, z, e):
        return cap[e] * reference(penalty, x) + 0.5 * sigma[e] * cp.sum_squares(x - z / sigma[e])

    expected = rows - sigma[:, None] * solve_rows(penalty, rows, build)
    np.testing.assert_allclose(penalty.prox_conjugate(rows, sigma, cap), expected, atol=5e-5)


def test_conjugate(penalty, rows):
    """phi*(z) = sup <z, v> - phi(v): a number inside the domain, unbounded outside."""
    z = 0.9 * penalty.project_domain(rows, np.ones(4))
    found = penalty.conjugate(z, 1e-12)
    for row, value in zip(z, found, strict=True):
        v = cp.Variable(3)
        best = solve(cp.Maximize(row @ v - reference(penalty, v)))
        assert best == pytest.approx(value, abs=1e-7)


def test_conjugate_is_infinite_outside(penalty, rows):
    if penalty.is_norm:
        z = 1.01 * rows / penalty.dual_norm(rows)[:, None]
    elif penalty is PENALTIES["singular"]:
        z = rows
    else:
        assert np.isfinite(penalty.conjugate(100.0 * rows)).all()
        return
    assert np.isinf(penalty.conjugate(z)).all()
    v = cp.Variable(3)
    problem = cp.Problem(cp.Maximize(z[0] @ v - reference(penalty, v)), [cp.abs(v) <= 1e4])
    problem.solve(solver=cp.CLARABEL)
    assert problem.value > 10.0
