"""Proximal maps of large steps: no rounding of tau b is left where there are no data."""

from fractions import Fraction

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.solvers.driver import Limits
from gtvcvx.solvers.primal_dual import _coordinates
from gtvcvx.solvers.primal_dual._coordinates import Coordinates
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from gtvcvx.solvers.primal_dual._proximal_maps import thin_prox

TAU = np.array([1e5, 3e6])


def rows():
    """Two nodes with two rows each, in units of thousands."""
    rng = np.random.default_rng(3)
    return 5e3 * rng.standard_normal((2, 2, 3)), 6e3 * rng.standard_normal((2, 2))


def exact(X, y, tau, v):
    """Return ``(I + tau Q)^-1 (v + tau b)`` in fractions: v + X^T z, z of a system in two rows."""
    X = [[Fraction(x) for x in row] for row in X.tolist()]
    y, v = [Fraction(x) for x in y.tolist()], [Fraction(x) for x in v.tolist()]
    weight = Fraction(tau) * Fraction(2, len(y))
    gram = [[sum(a * b for a, b in zip(p, q, strict=True)) * weight for q in X] for p in X]
    left = [
        weight * (t - sum(a * b for a, b in zip(row, v, strict=True)))
        for row, t in zip(X, y, strict=True)
    ]
    (a, b), (c, d) = (gram[0][0] + 1, gram[0][1]), (gram[1][0], gram[1][1] + 1)
    det = a * d - b * c
    z = (d * left[0] - b * left[1]) / det, (a * left[1] - c * left[0]) / det
    return [float(v[k] + sum(X[r][k] * z[r] for r in range(2))) for k in range(3)]


@pytest.mark.parametrize("way", ["points", "matrices", "rows"])
def test_they_keep_the_digits_of_points(way):
    (X, y), v = rows(), np.array([[3.0, -1.0, 2.0], [0.5, 1.0, -7.0]])
    batch = BatchedSquared(X.reshape(4, 3), y.ravel(), np.array([0, 2, 4]))
    if way == "points":
        found = batch.prox(v, TAU)
    elif way == "matrices":
        matrix, offset = batch.affine_prox(TAU)
        found = np.einsum("kij,kj->ki", matrix, v) + offset
    else:
        shrink, A, indptr, offset = thin_prox(batch.thin(), TAU)
        assert indptr.tolist() == [0, 2, 4]
        found = shrink * v + offset
        for i in range(2):
            found[i] -= A[2 * i : 2 * i + 2].T @ (A[2 * i : 2 * i + 2] @ v[i])
    expected = [exact(X[i], y[i], TAU[i], v[i]) for i in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_scaled_coordinates_keep_them_too():
    """One weight for each coordinate, matrices: minimizers stay where they are."""
    rng = np.random.default_rng(0)
    n, units = 6, np.array([1.0, 2e3, 3e4])
    X = rng.standard_normal((n, 2, 3)) * units
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    losses = gtv.SquaredLoss.stack(X, X @ (3.0 / units))
    coordinates = Coordinates.of(gtv.GTVProblem(graph, losses, "l1", 1.0))
    assert not isinstance(coordinates._basis.losses, _coordinates.ThinForm)
    for weight in (1.0, 1e9):
        coordinates.weights = np.full(3, weight)
        matrix, offset = coordinates.affine_prox(np.ones(n))
        least = losses.minimizer(n) / np.sqrt(weight)
        moved = np.einsum("kij,kj->ki", matrix, least) + offset - least
        assert np.abs(moved).max() <= 1e-14 * np.abs(least).max()


@pytest.mark.parametrize("weight", [1.0, 1e5])
def test_any_weight_leads_to_the_optimum(weight, monkeypatch):
    """Rounding had drawn points away from it, and adapted weights with them."""
    rng = np.random.default_rng(1)
    n, m, d = 60, 2, 3
    X = 5e3 * rng.standard_normal((n, m, d))
    y = X @ np.array([10.0, -8.0, 5.0]) + 5e3 * rng.standard_normal((n, m))
    losses = [gtv.SquaredLoss(X[i], y[i]) + gtv.Ridge(0.6) for i in range(n)]
    graph = gtv.EmpiricalGraph(n, [(i, (i + k) % n) for i in range(n) for k in (1, 7)])
    problem = gtv.GTVProblem(graph, losses, "l2", 1e-6)
    best = problem.solve(solver="CLARABEL").value
    monkeypatch.setattr(PrimalDual, "_change_weight", lambda self, goal: None)
    method = PrimalDual(problem, weight=weight)
    method.begin(Limits(1e-9, 400), np.inf)
    method.run(400)
    assert problem.value(method.proposal().w) <= best * (1.0 + 1e-9)
