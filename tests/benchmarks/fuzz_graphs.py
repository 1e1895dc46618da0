"""The graph shapes of the fuzz, drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import networkx as nx
import numpy as np

from gtvcvx import generators

Edges = np.ndarray


def _from(graph: nx.Graph) -> Edges:
    graph = nx.convert_node_labels_to_integers(graph)
    return np.array(graph.edges, dtype=np.int64).reshape(-1, 2)


def _path(n: int, rng: np.random.Generator) -> Edges:
    return np.column_stack([np.arange(n - 1), np.arange(1, n)])


def _cycle(n: int, rng: np.random.Generator) -> Edges:
    return np.vstack([_path(n, rng), [[n - 1, 0]]])


def _star(n: int, rng: np.random.Generator) -> Edges:
    return np.column_stack([np.zeros(n - 1, dtype=np.int64), np.arange(1, n)])


def _tree(n: int, rng: np.random.Generator) -> Edges:
    """Each node joins a random one before it."""
    return np.array([[rng.integers(i), i] for i in range(1, n)])


def _grid(n: int, rng: np.random.Generator) -> Edges:
    """As square as it gets; the nodes that are left over form a tail."""
    side = max(int(np.sqrt(n)), 1)
    edges = generators.grid(side, n // side).edges
    tail = np.arange(side * (n // side), n)
    return np.vstack([edges, np.column_stack([tail - 1, tail])])


def _complete(n: int, rng: np.random.Generator) -> Edges:
    return np.array(list(combinations(range(n), 2)))


def _bipartite(n: int, rng: np.random.Generator) -> Edges:
    left = max(n // 3, 1)
    pairs = [[rng.integers(left), i] for i in range(left, n) for _ in range(3)]
    return np.unique(np.array(pairs), axis=0)


def _sbm(n: int, rng: np.random.Generator) -> Edges:
    half = n // 2
    return generators.sbm([half, n - half], min(1.0, 10 / n), min(1.0, 1 / n), rng).edges


def _neighbours(n: int, rng: np.random.Generator) -> Edges:
    return generators.nearest_neighbours(rng.random((n, 2)), min(6, n - 1)).edges


def _geometric(n: int, rng: np.random.Generator) -> Edges:
    return generators.geometric(rng.random((n, 2)), min(8, n - 1)).edges


def _scale_free(n: int, rng: np.random.Generator) -> Edges:
    return _from(nx.barabasi_albert_graph(n, min(3, n - 1), seed=rng))


def _small_world(n: int, rng: np.random.Generator) -> Edges:
    return _from(nx.watts_strogatz_graph(n, min(4, n - 1), 0.1, seed=rng))


def _components(n: int, rng: np.random.Generator) -> Edges:
    """Several components, and single nodes that nobody joins."""
    graph = nx.fast_gnp_random_graph(n, min(1.0, 1.5 / n), seed=rng)
    return _from(graph)


SHAPES: dict[str, Callable[[int, np.random.Generator], Edges]] = {
    "path": _path,
    "cycle": _cycle,
    "star": _star,
    "tree": _tree,
    "grid": _grid,
    "complete": _complete,
    "bipartite": _bipartite,
    "sbm": _sbm,
    "neighbours": _neighbours,
    "geometric": _geometric,
    "scale-free": _scale_free,
    "small world": _small_world,
    "components": _components,
}
# A complete graph of more nodes has more edges than all others together.
MOST_NODES = {"complete": 60}


def weights(m: int, rng: np.random.Generator) -> np.ndarray:
    """Draw weights: all one, of one order of magnitude, or over eight decades."""
    kind = rng.choice(["one", "uniform", "decades"], p=[0.5, 0.35, 0.15])
    if kind == "one":
        return np.ones(m)
    return rng.uniform(0.2, 2.0, m) if kind == "uniform" else 10.0 ** rng.uniform(-4, 4, m)
