r"""Instances whose solution is chosen first: the data are then made to fit it.

With w constant on clusters, a flow u that the edges allow, and s_i = -(D^T u)_i, the pair (w, u) is
optimal as soon as s_i is the gradient of L_i at w_i ([GTV] (28) with alignment):

    ||w_i - a||_2^2 :        a   = w_i - s_i / 2
    (1/m)||X w_i - y||^2 :   y   = X w_i - (m/2) r   for any r with X^T r = s_i

Flows inside clusters lie anywhere in the capacity, on its border too, so that ties occur.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verify._arrays import FloatArray, IntArray


def planted(
    data: dict[str, Any],
    cluster: IntArray,
    points: IntArray,
    rows: IntArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return (a, X, y) and the solution (w, u) of the problem that they complete.

    Parameters
    ----------
    data : dict
        Plain data but for the terms; penalty l1, l2, linf or squared.
    cluster : ndarray of int, shape (n,)
        Cluster of each node.
    points : ndarray of int
        Nodes with a point loss.
    rows : ndarray of int
        Node of each data point of the squared error, at least d a node; every node has data.
    rng : numpy.random.Generator
        Source of w, u and X.
    """
    n, d = data["n_nodes"], data["dim"]
    kind = data["penalty"]["kind"]
    w = rng.standard_normal((n, d))
    if kind != "squared":
        w = 2 * w[np.searchsorted(cluster, np.arange(cluster.max() + 1))][cluster]
    differences = w[data["edges"][:, 0]] - w[data["edges"][:, 1]]
    u = (data["lam"] * data["weights"])[:, None] * _subgradient(kind, differences, rng)
    s = np.zeros((n, d))
    np.subtract.at(s, data["edges"][:, 0], u)
    np.add.at(s, data["edges"][:, 1], u)
    x = rng.standard_normal((len(rows), d))
    y = np.empty(len(rows))
    for i in np.unique(rows):
        own = rows == i
        r, *_ = np.linalg.lstsq(x[own].T, s[i])
        y[own] = x[own] @ w[i] - own.sum() / 2 * r
    return w[points] - s[points] / 2, x, y, (w, u)


def _subgradient(kind: str, v: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return (m, d) a subgradient of phi at each row of v; a random one where v = 0."""
    if kind == "squared":
        return v.copy()
    at_zero = rng.uniform(-1, 1, v.shape)
    # A third on the border of the dual ball, the rest anywhere inside.
    radius = np.minimum(rng.uniform(0, 1.5, (len(v), 1)), 1)
    if kind == "l1":
        return np.where(v == 0, radius * np.sign(at_zero), np.sign(v))
    zero = (v == 0).all(axis=1, keepdims=True)
    if kind == "l2":
        inside = at_zero / np.linalg.norm(at_zero, axis=1, keepdims=True)
        length = np.linalg.norm(v, axis=1, keepdims=True)
        return np.where(zero, radius * inside, v / np.where(zero, 1, length))
    inside = at_zero / np.abs(at_zero).sum(axis=1, keepdims=True)
    largest = np.arange(v.shape[1]) == np.abs(v).argmax(axis=1)[:, None]
    return np.where(zero, radius * inside, np.where(largest, np.sign(v), 0.0))
