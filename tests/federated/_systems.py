"""Instances of the federated tests: clusters of clients with linear models."""

from functools import cache

import numpy as np

import gtvcvx as gtv
from gtvcvx._arrays import FloatArray, IntArray


def clustered_rows(
    n: int, clusters: int, rows: int, d: int, seed: int | np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return labels (n,), true vectors (n, d), features (n, rows, d) and targets with noise."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) * clusters // n
    # Vectors of about unit length whatever d is, as in the FedADMM paper.
    truth = (rng.standard_normal((clusters, d)) * d**-0.25)[labels]
    X = rng.standard_normal((n, rows, d))
    y = np.einsum("nrd,nd->nr", X, truth) + rng.standard_normal((n, rows))
    return labels, truth, X, y


def corrupted_edges(labels: IntArray, share: float, seed: int | np.random.Generator) -> IntArray:
    """Edges within clusters, with a share of all pairs flipped."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(len(labels), 1)
    kept = (labels[i] == labels[j]) ^ (rng.random(len(i)) < share)
    return np.column_stack([i[kept], j[kept]])


@cache
def paper_like() -> tuple[gtv.GTVProblem, gtv.Solution, FloatArray]:
    """The size of FedADMM's simulations: 40 clients, 50 rows, d = 20, l1, 10% corrupted pairs."""
    rng = np.random.default_rng(1)
    labels, truth, X, y = clustered_rows(40, 5, 50, 20, rng)
    graph = gtv.EmpiricalGraph(40, corrupted_edges(labels, 0.1, rng))
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), penalty="l1", lam=0.04)
    return problem, problem.solve(rtol=1e-10), truth


@cache
def small(penalty: str = "l2") -> tuple[gtv.GTVProblem, gtv.Solution]:
    """Six clients, one of them without data and one without links, with edge weights."""
    _, _, X, y = clustered_rows(6, 2, 8, 3, 5)
    losses = [gtv.SquaredLoss(X[i], y[i]) for i in range(6)]
    losses[2] = gtv.ZeroLoss()
    graph = gtv.EmpiricalGraph(
        6, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)], weights=[1.0, 0.5, 2.0, 1.0, 0.3]
    )
    problem = gtv.GTVProblem(graph, losses, penalty=penalty, lam=0.3)
    return problem, problem.solve(rtol=1e-10)
