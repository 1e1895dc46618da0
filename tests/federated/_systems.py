"""Instances of the federated tests: clusters of clients with linear models."""

from functools import cache

import numpy as np

import gtvcvx as gtv
from gtvcvx import federated as fed
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


@cache
def star_losses(kind: str = "squared", scale: float = 1.0) -> list[gtv.Loss]:
    """Losses of twelve clients in two clusters, d = 3, numbers of rows 4, ..., 9.

    Features are multiplied by the scale, but for an intercept where the scale is not one.
    """
    rng = np.random.default_rng(7)
    truth = rng.standard_normal((2, 3))
    losses: list[gtv.Loss] = []
    for i in range(12):
        X = rng.standard_normal((4 + i % 6, 3))
        y = X @ truth[i // 6] + 0.3 * rng.standard_normal(len(X))
        if scale != 1.0:
            X = np.column_stack([scale * X[:, :2], np.ones(len(X))])
        if kind == "logistic":
            losses.append(gtv.LogisticLoss(X, (y > 0).astype(float)))
        else:
            losses.append(gtv.SquaredLoss(X, y))
    return losses


def star_network(kind: str = "squared", scale: float = 1.0) -> fed.Network:
    """Return a star of these clients, with their clusters."""
    return fed.Network.star(star_losses(kind, scale), clusters=np.arange(12) // 6)


def row_bytes(d: int) -> int:
    """Bytes of a message of one vector."""
    return 8 * d + 20
