"""Problems to be cut into shards."""

import numpy as np

import gtvcvx as gtv


def instance(n=120, d=2, seed=0, labels=False, losses=None):
    """Return a problem with several components, isolated and unlabelled nodes."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - 3, (3 * n, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    edges = edges[edges[:, 0] // (n // 2) == edges[:, 1] // (n // 2)]
    nodes = [f"node {i}" for i in range(n)] if labels else None
    graph = gtv.EmpiricalGraph(n, edges, rng.random(len(edges)) + 0.1, nodes)
    if losses is None:
        node = rng.integers(0, n // 2, 2 * n)
        losses = gtv.SquaredLoss.from_rows(
            rng.normal(size=(2 * n, d)), rng.normal(size=2 * n), node
        )
    return gtv.GTVProblem(graph, losses, "l2", 0.3)
