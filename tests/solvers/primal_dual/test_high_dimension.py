"""More dimensions than data: nothing of size d x d, nothing compiled for each d."""

import tracemalloc

import numpy as np
import pytest

import gtvcvx as gtv


def clustered(n, d, lam, penalty="l2", seed=0):
    """Points around three centres, each linked to the next few."""
    rng = np.random.default_rng(seed)
    centres = 3.0 * rng.standard_normal((3, d))
    points = centres[np.arange(n) * 3 // n] + 0.2 * rng.standard_normal((n, d))
    edges = [(i, i + k) for k in (1, 2, 3) for i in range(n - k)]
    return gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), gtv.PointLoss.stack(points), penalty, lam)


@pytest.mark.parametrize("penalty", ["l2", "linf", "squared"])
def test_a_thousand_and_more_dimensions(penalty):
    problem = clustered(40, 1100, 0.5, penalty)
    tracemalloc.start()
    solution = problem.solve(rtol=1e-6)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.status == "optimal"
    assert solution.gap >= 0.0
    # Matrices of the nodes would take 387 megabytes.
    assert most < 100e6


def test_high_dimension_agrees_with_low_dimension():
    """Points in a plane of a space of 300 dimensions have a solution in that plane."""
    flat = clustered(30, 2, 0.3)
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((300, 2)))[0]
    points = flat.losses.terms()[0]["a"] @ basis.T
    high = gtv.GTVProblem(flat.graph, gtv.PointLoss.stack(points), "l2", 0.3)
    low, solution = flat.solve(rtol=1e-9), high.solve(rtol=1e-9)
    assert solution.value == pytest.approx(low.value, rel=1e-8)
    np.testing.assert_allclose(solution.w @ basis, low.w, atol=1e-3)
