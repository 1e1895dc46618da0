"""Coarser and contracted problems where nodes have fewer rows than coordinates."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses.batched import _thin
from gtvcvx.solvers.polishing._coarsening import DEFAULTS, Coarsening
from gtvcvx.solvers.polishing._contraction import Contraction


def problem_of(n, m, d, lam, seed=0, penalty="l2"):
    """Two halves of the plane, few rows of d features at each node."""
    rng = np.random.default_rng(seed)
    places, X = rng.random((n, 2)), rng.standard_normal((n, m, d))
    W = rng.standard_normal((2, d))[(places[:, 0] > 0.5).astype(int)]
    y = np.einsum("nmd,nd->nm", X, W) + 0.1 * rng.standard_normal((n, m))
    graph = gtv.generators.nearest_neighbours(places, 5)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), penalty, lam)


def test_memory_is_that_of_rows():
    n, m, d = 60, 2, 400
    problem_of(30, m, d, 1.0).solve(rtol=1e-2, max_iter=10)  # imports and compiles
    problem = problem_of(n, m, d, 1.0)
    tracemalloc.start()
    try:
        solution = problem.solve(rtol=1e-2, max_iter=200)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert solution.gap <= 0.5 * problem.value(np.zeros_like(solution.w))
    assert most < 0.25 * 8 * n * d * d  # 77 MB are one array of matrices


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf"])
def test_the_contracted_problem_is_that_of_matrices(monkeypatch, penalty):
    found = []
    for small in (-1, 2**60):
        monkeypatch.setattr(_thin, "SMALL", small)
        problem = problem_of(60, 1, 5, 0.1, penalty=penalty)
        w = problem.solve(rtol=1e-4).w
        contraction = Contraction(problem)
        assert (contraction.thin is not None) == (small < 0)
        found.append(contraction.solve(w, np.zeros((problem.graph.n_edges, 5)), np.inf, np.inf))
    by_rows, by_matrices = found
    np.testing.assert_allclose(by_rows.w, by_matrices.w, atol=1e-6)


def test_polished_by_way_of_coarser_problems(monkeypatch):
    monkeypatch.setattr(_thin, "SMALL", -1)
    problem = problem_of(400, 1, 6, 0.4)
    rough = problem.solve(rtol=1e-3)
    settings = replace(DEFAULTS, least_edges=10)
    polished = Coarsening(problem, 1e-6, settings).polish(rough.w, rough.u)
    exact = problem.solve(rtol=1e-8).value
    assert problem.value(polished.w) <= exact + 0.1 * (rough.value - exact) + 1e-7
