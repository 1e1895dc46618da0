"""CVXPY's view of the penalties: values, discipline, and both problems of a small graph."""

import cvxpy as cp
import numpy as np
import pytest

from gtvcvx.penalties import PNorm
from gtvcvx.penalties._pnorm_atom import RowPNorms

WEIGHTS = np.array([0.5, 1.0, 2.0, 1.5])


def solve(problem, tol=1e-9):
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
    assert problem.status == cp.OPTIMAL
    return problem.value


def test_weighted_expression_has_the_value(penalty, d, rng):
    V = cp.Variable((4, d))
    expression = penalty.weighted_expression(V, WEIGHTS)
    V.value = rng.standard_normal((4, d))
    assert expression.shape == ()
    assert expression.is_convex()
    assert expression.is_nonneg()
    expected = WEIGHTS @ penalty.value(V.value)
    np.testing.assert_allclose(expression.value, expected, rtol=1e-12, atol=1e-14)


def test_dual_expression_has_the_value(penalty, d, rng):
    """At a fixed feasible flow, minimized over the auxiliary variables."""
    lam = cp.Parameter(pos=True, value=0.7)
    U = cp.Variable((4, d))
    cost, constraints = penalty.dual_expression(U, WEIGHTS, lam)
    cap = lam.value * WEIGHTS
    flow = 0.9 * penalty.project_domain(rng.standard_normal((4, d)), cap)
    found = solve(cp.Problem(cp.Minimize(cost), [*constraints, flow == U]))
    expected = cap @ penalty.conjugate(flow / cap[:, None], 1e-12)
    assert found == pytest.approx(expected, abs=1e-7)


def test_dual_constraints_are_the_domain(norm, d, rng):
    """The nearest point that they allow is the projection; it moves with the parameter."""
    lam = cp.Parameter(pos=True)
    U = cp.Variable((4, d))
    _, constraints = norm.dual_expression(U, WEIGHTS, lam)
    z = 2.0 * rng.standard_normal((4, d))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(U - z)), constraints)
    for lam.value in (0.3, 1.1):
        solve(problem)
        expected = norm.project_domain(z, lam.value * WEIGHTS)
        np.testing.assert_allclose(U.value, expected, atol=5e-5)


def chain(penalty, d, rng):
    """Primal and dual of ||w - a||^2 / 2 on a chain of 5 nodes, by hand."""
    lam = cp.Parameter(pos=True)
    D = np.eye(4, 5) - np.eye(4, 5, k=1)
    a = rng.standard_normal((5, d))
    w, U = cp.Variable((5, d)), cp.Variable((4, d))
    loss = 0.5 * cp.sum_squares(w - a)
    primal = cp.Problem(cp.Minimize(loss + lam * penalty.weighted_expression(D @ w, WEIGHTS)))
    cost, constraints = penalty.dual_expression(U, WEIGHTS, lam)
    injected = D.T @ U
    conjugate = 0.5 * cp.sum_squares(injected) - cp.sum(cp.multiply(a, injected))
    return lam, primal, cp.Problem(cp.Maximize(-conjugate - cost), constraints)


def test_both_problems_are_dpp_and_strong_duality_holds(penalty, d, rng):
    lam, primal, dual = chain(penalty, d, rng)
    assert primal.is_dcp(dpp=True)
    assert dual.is_dcp(dpp=True)
    for lam.value in (0.2, 1.0):  # the second value re-uses the first one's canonical form
        best = solve(primal, 1e-8)
        assert best == pytest.approx(solve(dual, 1e-8), rel=1e-6, abs=1e-8)
        zero = penalty.value(np.ones((1, d)))[0] == 0.0  # the singular Q of d = 1
        assert zero or best > 0.1


def test_no_edges_cost_nothing(penalty, d):
    """CVXPY has no empty matrices as variables: expressions without rows are constants."""
    none = cp.Constant(np.empty((0, d)))
    assert penalty.weighted_expression(none, np.empty(0)).value == 0.0
    cost, constraints = penalty.dual_expression(none, np.empty(0), cp.Parameter(pos=True))
    assert cost.value == 0.0
    assert constraints == []


@pytest.mark.parametrize("d", [2])
def test_number_of_cvxpy_nodes_does_not_grow_with_the_edges(penalty, d):
    def count(m):
        lam = cp.Parameter(pos=True)
        A, V = np.ones(m), cp.Variable((m, d))
        cost, constraints = penalty.dual_expression(V, A, lam)
        atoms = [penalty.weighted_expression(V, A), cost, *constraints]
        return sum(len(tree.atoms()) for tree in atoms), len(constraints)

    assert count(3) == count(300)


def test_row_norm_atom_differentiates():
    V = cp.Variable((3, 2))
    V.value = np.array([[1.0, -2.0], [0.0, 0.0], [0.5, 0.25]])
    atom = RowPNorms(V, 3.0)
    jacobian = atom.grad[V].toarray()
    for k in range(V.size):
        shift = np.zeros(V.size)
        shift[k] = 1e-6
        moved = V.value + shift.reshape(V.shape, order="F")
        difference = (PNorm(3).value(moved) - PNorm(3).value(V.value)) / 1e-6
        difference[1] = 0.0  # at a zero row the atom gives the subgradient 0
        np.testing.assert_allclose(jacobian[k], difference, atol=1e-5)
    assert atom.is_convex()
    assert not atom.is_concave()
