"""Quadratic losses in another basis, and the sum of their Hessians."""

import numpy as np
import pytest
from _instances import cases

import gtvcvx as gtv

QUADRATIC = cases(penalties=["l2"], losses=["squared", "point", "mix"])


@pytest.mark.parametrize("case", QUADRATIC, ids=str)
def test_losses_in_a_basis_are_the_losses_of_the_coordinates(case):
    problem, rng = case.problem(), case.rng
    n, d = problem.graph.n_nodes, problem.dim
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    x = rng.standard_normal((n, d))
    moved = problem.losses.in_basis(basis)
    np.testing.assert_allclose(moved.value(x), problem.losses.value(x @ basis.T), rtol=1e-12)
    hessian = problem.losses.quadratic(n).hessian
    expected = basis.T @ hessian @ basis
    np.testing.assert_allclose(moved.quadratic(n).hessian, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("case", QUADRATIC, ids=str)
def test_the_total_hessian_is_the_sum_of_all(case):
    problem = case.problem()
    expected = problem.losses.quadratic(problem.graph.n_nodes).hessian.sum(axis=0)
    np.testing.assert_allclose(problem.losses.total_hessian(), expected, rtol=1e-12, atol=1e-13)


def test_other_losses_have_neither():
    losses = gtv.LogisticLoss.stack(np.ones((2, 3, 2)), np.ones((2, 3)))
    assert losses.total_hessian() is None
    assert losses.in_basis(np.eye(2)) is None


def test_small_eigenvalues_beside_large_ones_are_kept():
    """An intercept beside a year: what is across their mean direction is 1e12 times flatter."""
    years = np.arange(2000.0, 2020.0)
    X = np.stack([np.ones(20), years], axis=1)[None]
    losses = gtv.SquaredLoss.stack(X, years[None])
    basis = np.linalg.eigh(losses.total_hessian())[1]
    small = losses.in_basis(basis).quadratic(1).hessian[0, 0, 0]
    assert small == pytest.approx(2.0 / 20.0 * np.linalg.svd(X[0])[1][1] ** 2, rel=1e-6)
