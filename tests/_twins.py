"""Readable NumPy twins, and small graphs to try compiled code on."""

import numpy as np

import gtvcvx as gtv
from gtvcvx.compiled import compiled


def alone(function):
    """A compiled function that only others call, so that Python can."""
    return compiled(function.py_func)


def random_graph(rng, n=9, share=0.5):
    ends = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < share]
    return gtv.EmpiricalGraph(n, ends, rng.uniform(0.2, 2.0, len(ends)))


def clipped(z, capacities):
    """Rows of z (m, q) projected on Euclidean balls."""
    lengths = np.linalg.norm(z, axis=1)
    return z * np.minimum(1.0, capacities / np.maximum(lengths, 1e-300))[:, None]


def dense_projectors(problem):
    """T_i of all nodes as (n, d, d), node by node."""
    n, d = problem.graph.n_nodes, problem.dim
    projectors = np.zeros((n, d, d))
    for nodes, batch in problem.losses.parts:
        projector = batch.null_projector()
        for k, i in enumerate(nodes):
            projectors[i] = projector * np.eye(d) if np.isscalar(projector) else projector[k]
    return projectors
