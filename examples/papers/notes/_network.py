"""A small network of linear models in two clusters, for the exercises of section 9."""

from __future__ import annotations

import numpy as np

import gtvcvx as gtv

CLIENTS, POINTS, FEATURES = 20, 6, 3
P_IN, P_OUT = 0.5, 0.1
NOISE = 0.3

SETTING = {
    "graph": f"not given: ours is a stochastic block model of two clusters of {CLIENTS // 2} "
    f"clients, p_in {P_IN}, p_out {P_OUT}",
    "m_i, d": f"not given: ours are {POINTS} points of {FEATURES} standard normal features",
    "true weights, noise": f"not given: ours are standard normal in a cluster, noise {NOISE}",
}


def draw(seed: int) -> tuple[gtv.EmpiricalGraph, np.ndarray, np.ndarray]:
    """Return graph, features (n, m, d) and labels (n, m)."""
    rng = np.random.default_rng([seed, 9])
    half = CLIENTS // 2
    graph = gtv.generators.sbm([half, half], P_IN, P_OUT, rng)
    weights = np.repeat(rng.standard_normal((2, FEATURES)), half, axis=0)
    X = rng.standard_normal((CLIENTS, POINTS, FEATURES))
    y = np.einsum("nmd,nd->nm", X, weights) + NOISE * rng.standard_normal((CLIENTS, POINTS))
    return graph, X, y
