"""Flows under p-norms: small capacities do not jam, and every term of the corrector pays."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits, Run
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise, planned


def iterations(p, lam, seed, n):
    """Return how many it takes to 1e-6 where two halves of a square have opposite weights."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    X = rng.standard_normal((n, 6, 4))
    y = X.sum(axis=2) * np.where(places[:, :1] < 0.5, 1.0, -1.0)
    losses = gtv.SquaredLoss.stack(X, y + 0.3 * rng.standard_normal((n, 6)))
    graph = gtv.generators.nearest_neighbours(places, 5)
    problem = gtv.GTVProblem(graph, losses, gtv.PNorm(p), lam)
    run = Run(problem, Limits(1e-6, 200), "TEST")
    run.drive(Blockwise(problem, planned(problem)))
    assert run.satisfied
    return run.n_iter


@pytest.mark.parametrize("p", [1.05, 5.0])
def test_small_capacities_do_not_jam(p):
    assert iterations(p, 1e-3, seed=1, n=80) < 30


def test_every_term_of_the_corrector_saves_iterations():
    """61 in all; 69 without the term of lengths, 85 without that of slacks, 74 of their product."""
    problems = [(1.5, 1e-3), (3.0, 1.0), (5.0, 0.1)]
    counts = [iterations(p, lam, seed, n=40) for p, lam in problems for seed in range(3)]
    assert sum(counts) <= 65
