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


def graph_of(n, seed):
    """Return a graph with an isolated node and two components."""
    rng = np.random.default_rng(seed)
    places = rng.random((n - 1, 2)) + np.where(np.arange(n - 1) < n // 3, 0.0, 5.0)[:, None]
    near = gtv.generators.nearest_neighbours(places, 4)
    return gtv.EmpiricalGraph(n, near.edges, rng.uniform(0.5, 2.0, near.n_edges))


def squared(n, d, seed, units=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3, d)) * units
    labelled = rng.random(n) < 0.6
    return gtv.SquaredLoss.stack(X, rng.normal(size=(n, 3)), labelled=labelled)


def badly_conditioned(n=40, loss=gtv.SquaredLoss, **parameters):
    """Return a problem on intercept, year and income, on which iterations stall."""
    rng = np.random.default_rng(0)
    places = rng.random((n, 2))
    X = np.ones((n, 3, 3))
    X[:, :, 1] = rng.uniform(1980, 2020, (n, 3))
    X[:, :, 2] = rng.uniform(1e4, 1e5, (n, 3))
    w = np.where(places[:, :1] < 0.5, [1.0, 0.01, 1e-4], [3.0, -0.01, 2e-4])
    y = np.einsum("nrd,nd->nr", X, w) + 0.1 * rng.normal(size=(n, 3))
    if loss is gtv.LogisticLoss:
        y = 1.0 * (y > np.median(y))
    losses = loss.stack(X, y, **parameters, labelled=rng.random(n) < 0.2)
    return gtv.GTVProblem(gtv.generators.nearest_neighbours(places, 5), losses, "l2", 1.0)


def cases():
    yield "l2", gtv.GTVProblem(graph_of(70, 0), squared(70, 2, 1), "l2", 0.05)
    yield "l1", gtv.GTVProblem(graph_of(70, 0), squared(70, 1, 1), "l1", 0.1)
    yield "linf", gtv.GTVProblem(graph_of(60, 2), squared(60, 3, 4), "linf", 0.1)
    yield "squared", gtv.GTVProblem(graph_of(60, 2), squared(60, 10, 4), "squared", 0.1)
    raw = squared(60, 3, 5, np.array([1.0, 2000.0, 0.1]))
    yield "raw units", gtv.GTVProblem(graph_of(60, 3), raw, "l2", 0.1)
    yield "p-norm", gtv.GTVProblem(graph_of(60, 3), squared(60, 3, 5), gtv.PNorm(3.0), 0.1)
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(90, 3)), rng.normal(size=90), rng.integers(0, 55, 90)
    absolute = gtv.AbsoluteLoss.from_rows(*rows)
    yield "absolute", gtv.GTVProblem(graph_of(60, 7), absolute, "l2", 0.05)
    points = gtv.PointLoss.stack(rng.normal(size=(60, 2)))
    yield "points", gtv.GTVProblem(graph_of(60, 8), points, "l1", 0.1)


CASES = dict(cases())
