"""The very draw behind Table I: what the authors' notebook computes from its seeds.

Parameters come from NumPy's old generator with seed 0, the graph from NetworkX with seed 0, and the
data from PyTorch with seed 0. PyTorch is not needed: its generator is the same Mersenne twister,
and its normal variables are those of Box and Muller, sixteen at a time in single precision, or two
at a time in double precision where fewer than sixteen are asked for.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
from gtv_minimization._setting import Array, Instance
from numpy.random import RandomState
from numpy.typing import NDArray

import gtvcvx as gtv
from gtvcvx.generators import RegressionData

Single = NDArray[np.float32]
BLOCK = 16


class TorchNormals:
    """Standard normal numbers in the order in which PyTorch's ``randn`` draws them.

    Parameters
    ----------
    seed : int
        As in ``torch.manual_seed``.
    """

    def __init__(self, seed: int) -> None:
        self._twister = RandomState(seed)
        self._second: float | None = None

    def draw(self, n: int) -> Single:
        """Draw n numbers."""
        if n < BLOCK:
            return np.array([self._single() for _ in range(n)], dtype=np.float32)
        numbers = np.empty(n, dtype=np.float32)
        uniform = self._uniform(n)
        whole = n // BLOCK * BLOCK
        numbers[:whole] = _box_muller(uniform[:whole])
        if n % BLOCK:
            numbers[-BLOCK:] = _box_muller(self._uniform(BLOCK))
        return numbers

    def _words(self, n: int) -> NDArray[np.uint32]:
        return self._twister.randint(0, 2**32, n, dtype=np.uint32)

    def _uniform(self, n: int) -> Single:
        return (self._words(n) % 2**24).astype(np.float32) / np.float32(2**24)

    def _single(self) -> float:
        if self._second is not None:
            number, self._second = self._second, None
            return number
        high, low = self._words(4).astype(object).reshape(2, 2).T
        angle, radius = ((high * 2**32 + low) % 2**53 / 2**53).astype(float)
        length = np.sqrt(-2.0 * np.log1p(-radius))
        self._second = float(length * np.sin(2.0 * np.pi * angle))
        return float(length * np.cos(2.0 * np.pi * angle))


def _box_muller(uniform: Single) -> Single:
    blocks = uniform.reshape(-1, 2, BLOCK // 2)
    length = np.sqrt(-2.0 * np.log(1.0 - blocks[:, 0]))
    angle = np.float32(2.0 * np.pi) * blocks[:, 1]
    return np.stack([length * np.cos(angle), length * np.sin(angle)], axis=1).ravel()


def draw(half: int, rows: int, dim: int, sigma: float, seed: int = 0) -> Instance:
    """Draw Table I's data as the notebook does: 100 nodes a cluster, 10 rows, 100 features."""
    twister, normals = RandomState(seed), TorchNormals(seed)
    w_bar = np.array([twister.binomial(1, 0.5, dim) * 0.5 for _ in range(2)])
    true_w = np.repeat(w_bar, half, axis=0)
    X, y = np.empty((2 * half, rows, dim)), np.empty((2 * half, rows))
    for i, w in enumerate(true_w):
        features = normals.draw(rows * dim).reshape(rows, dim)
        X[i] = features
        y[i] = features @ w.astype(np.float32) + np.float32(sigma) * normals.draw(rows)
    probabilities = [[0.5, 0.01], [0.01, 0.5]]
    edges = nx.stochastic_block_model([half, half], probabilities, seed=seed).edges
    graph = gtv.EmpiricalGraph(2 * half, np.array(edges))
    return Instance(graph, RegressionData(X, y, np.ones(2 * half, dtype=bool)), true_w)


def ifca_start(k: int, dim: int, seed: int) -> Array:
    """Draw k binary models (k, dim), from which the notebook's IFCA starts."""
    twister = RandomState(seed)
    twister.normal()  # the notebook draws a number that it does not use
    return np.array([twister.binomial(1, 0.5, dim) for _ in range(k)], dtype=float)


def wrong_degrees(graph: gtv.EmpiricalGraph, half: int) -> Array:
    """Return the degrees that the notebook's update (32) has: of node 0 or 1, by the cluster."""
    return np.repeat(graph.degrees[:2], half).astype(float)
