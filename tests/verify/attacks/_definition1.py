"""The oracle of partitions: Definition 1 by brute force over sets and sign vectors.

Constants in floats from NumPy, every set and every sign vector tried. It shares no code with the
checkers or with what makes documents about partitions.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from _texts import Document

#: A slack within this, relative to the demands, is a tie for floats: nothing is said about it.
TIE = 1e-9


class Constants(NamedTuple):
    """Constants of a cluster, and what they are made of."""

    alpha: float
    beta: Any
    delta: Any
    center: Any
    hessians: Any


def norm_of(data: Document) -> str | None:
    penalty = data["penalty"]
    if penalty["kind"] == "pnorm":
        return {1: "l1", 2: "l2", "inf": "linf"}.get(penalty["p"])
    return penalty["kind"] if penalty["kind"] in ("l1", "l2", "linf") else None


def hessians(data: Document) -> tuple[Any, Any]:
    """Return H_i and q_i of every node: the gradient of its loss is H_i w + q_i."""
    n, d = data["n_nodes"], data["dim"]
    h, q = np.zeros((n, d, d)), np.zeros((n, d))
    for term in data["terms"]:
        count = Counter(term["node"])
        for k, i in enumerate(term["node"]):
            if term["kind"] == "squared":
                x = np.array(term["X"][k], dtype=float)
                h[i] += 2 * np.outer(x, x) / count[i]
                q[i] -= 2 * x * float(term["y"][k]) / count[i]
            elif term["kind"] == "point":
                h[i] += 2 * np.eye(d)
                q[i] -= 2 * np.array(term["a"][k], dtype=float)
            else:
                h[i] += np.diag(np.ones(d) * np.array(term["mu"][k], dtype=float))
    return h, q


def signs(d: int) -> Any:
    """Return all sign vectors but for their negatives."""
    bits = np.arange(1 << (d - 1))[:, None] >> np.arange(d) & 1
    return 1.0 - 2.0 * bits


def largest_form(h: Any) -> float:
    s = signs(len(h))
    return float(np.einsum("ri,ij,rj->r", s, h, s).max())


def constants(data: Document, nodes: list[int]) -> Constants:
    """Return alpha, beta_i and delta_i of Definition 1."""
    norm, (h, q) = norm_of(data), hessians(data)
    h, q = h[nodes], q[nodes]
    total = h.sum(axis=0)
    values = np.linalg.eigvalsh(total)
    regular = values[0] > 1e-12 * max(1e-300, values[-1])
    inverse = np.linalg.inv(total) if regular else np.linalg.pinv(total)
    center = -inverse @ q.sum(axis=0)
    g = h @ center + q
    if norm == "l2":
        alpha, beta = values[0], [np.linalg.eigvalsh(x)[-1] for x in h]
        delta = np.linalg.norm(g, axis=1)
    elif norm == "l1":
        alpha, beta = 1 / largest_form(inverse) if regular else 0.0, [x.diagonal().max() for x in h]
        delta = np.abs(g).max(axis=1)
    else:
        alpha = 1 / inverse.diagonal().max() if regular else 0.0
        beta, delta = [largest_form(x) for x in h], np.abs(g).sum(axis=1)
    return Constants(float(alpha) if regular else 0.0, np.maximum(beta, 0), delta, center, h)


class Graph:
    """A cluster in the graph: inner edges by position, and the b_i."""

    def __init__(self, data: Document, nodes: list[int]) -> None:
        where = {i: p for p, i in enumerate(nodes)}
        self.size, self.edges, self.weights = len(nodes), [], []
        self.outside = np.zeros(len(nodes))
        for (i, j), weight in zip(data["edges"], data["weights"], strict=True):
            if i in where and j in where:
                self.edges.append((where[i], where[j]))
                self.weights.append(float(weight))
            else:
                for end in {i, j} & set(where):
                    self.outside[where[end]] += float(weight)

    def demands(self, alpha: float, beta: Any, delta: Any, lam: float) -> Any:
        boundary = self.outside.sum()
        share = boundary / alpha if alpha else 1e300 * boundary  # no strong convexity: no bound
        return self.outside + np.array(beta) * share + np.array(delta) / lam

    def cut(self, inside: tuple[int, ...]) -> float:
        return sum(w for (a, b), w in zip(self.edges, self.weights, strict=True)
                   if (a in inside) != (b in inside))  # fmt: skip

    def slack(self, demands: Any) -> float:
        """Return max over i0 of min over A of cut(A) - d(A), in units of what they are made of.

        The cluster is well-connected if it is positive.
        """
        every = range(self.size)
        least = np.full(self.size, np.inf)
        for k in range(1, self.size):
            for inside in itertools.combinations(every, k):
                needed = float(demands[list(inside)].sum())
                room = self.cut(inside) - needed
                unit = max(self.cut(inside), needed, 1e-300)
                out = [i for i in every if i not in inside]
                least[out] = np.minimum(least[out], room / unit)
        return float(least.max())


def slack(data: Document, nodes: list[int]) -> float:
    """Return how far a cluster is well-connected: positive if it is."""
    if len(nodes) == 1:
        return np.inf
    found, graph = constants(data, nodes), Graph(data, nodes)
    demands = graph.demands(found.alpha, found.beta, found.delta, float(data["lam"]))
    return graph.slack(demands)
