"""Graphs and data of the experiments: clusters, chains, stars, geometric graphs and grids.

Sources: [GTV] SarcheshmehPour, Tian, Zhang, Jung, "Clustered Federated Learning via Generalized
Total Variation Minimization", sections VI and IX-B. [BB05] Batagelj, Brandes, "Efficient generation
of large random networks", Physical Review E 71, 036113, 2005.

Whatever is random takes a seed, an integer or a ``numpy.random.Generator``; the same integer gives
the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, finite_array
from gtvcvx.graph import EmpiricalGraph
from verify._display import fields_text

__all__ = [
    "RegressionData",
    "chain",
    "geometric",
    "grid",
    "nearest_neighbours",
    "random_geometric",
    "regression_data",
    "sbm",
    "star",
]

Seed = int | np.random.Generator


class RegressionData(NamedTuple):
    """Local datasets of a networked linear model.

    Attributes
    ----------
    X : ndarray, shape (n, m, d)
        Feature vectors of the m data points of each node.
    y : ndarray, shape (n, m)
        Their targets.
    labelled : ndarray of bool, shape (n,)
        Nodes whose data are accessible.
    """

    X: FloatArray
    y: FloatArray
    labelled: BoolArray

    def __repr__(self) -> str:
        return fields_text(self)


def sbm(sizes: Sequence[int], p_in: float, p_out: float, seed: Seed) -> EmpiricalGraph:
    """Draw a stochastic block model: an edge within a cluster has probability p_in, else p_out.

    The nodes of a cluster are consecutive: ``numpy.repeat(range(len(sizes)), sizes)`` is the
    planted partition. All edges weigh 1 ([GTV] section VI-A). Time and memory are proportional to
    the number of edges [BB05].

    Parameters
    ----------
    sizes : sequence of int
        Number of nodes of each cluster, each at least 1.
    p_in, p_out : float
        Edge probabilities, in [0, 1].
    seed : int or numpy.random.Generator

    Returns
    -------
    EmpiricalGraph
        With ``sum(sizes)`` nodes.
    """
    counts = [_count(size, f"sizes[{k}]", 1) for k, size in enumerate(sizes)]
    if not counts:
        raise ValueError("sizes: at least one cluster is expected")
    for name, p in (("p_in", p_in), ("p_out", p_out)):
        if not 0 <= p <= 1:
            raise ValueError(f"{name}: a probability in [0, 1] is expected, got {p}")
    rng = _generator(seed)
    starts = np.concatenate([[0], np.cumsum(counts)])
    parts = []
    for b, width in enumerate(counts):
        pairs = _triangle(_bernoulli_positions(width * (width - 1) // 2, p_in, rng))
        parts.append(pairs + starts[b])
        # All earlier nodes at once: they form a rectangle of pairs with this cluster.
        row, column = np.divmod(_bernoulli_positions(int(starts[b]) * width, p_out, rng), width)
        parts.append(np.column_stack([row, column + starts[b]]))
    return EmpiricalGraph(int(starts[-1]), np.concatenate(parts))


def chain(n_per_cluster: int, eps: float) -> EmpiricalGraph:
    """Join two paths by one edge of weight eps: the chain of [GTV] section VI-B.

    Parameters
    ----------
    n_per_cluster : int
        Nodes of each of the two clusters, at least 1; 2n nodes in all, the first half is cluster 0.
    eps : float
        Weight of the edge between the clusters, finite and >= 0; with 0 there is no such edge. The
        other edges weigh 1.

    Returns
    -------
    EmpiricalGraph
    """
    half = _count(n_per_cluster, "n_per_cluster", 1)
    if not (math.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps: a finite weight >= 0 is expected, got {eps}")
    edges = _path(np.arange(2 * half))
    weights = np.ones(len(edges))
    weights[half - 1] = eps
    present = weights > 0
    return EmpiricalGraph(2 * half, edges[present], weights[present])


def star(n_leaves: int) -> EmpiricalGraph:
    """Join node 0 to the nodes 1, ..., n_leaves by edges of weight 1 ([GTV] section IX-B3).

    Parameters
    ----------
    n_leaves : int
        At least 1.
    """
    leaves = np.arange(1, _count(n_leaves, "n_leaves", 1) + 1)
    return EmpiricalGraph(len(leaves) + 1, np.column_stack([np.zeros_like(leaves), leaves]))


def grid(rows: int, cols: int) -> EmpiricalGraph:
    """Join the neighbours of a two-dimensional grid by edges of weight 1.

    Parameters
    ----------
    rows, cols : int
        At least 1 each. The node in row r and column c is ``r * cols + c``.
    """
    shape = _count(rows, "rows", 1), _count(cols, "cols", 1)
    number = np.arange(shape[0] * shape[1]).reshape(shape)
    return EmpiricalGraph(number.size, np.concatenate([_path(number), _path(number.T)]))


def random_geometric(n: int, mean_degree: float, seed: Seed) -> EmpiricalGraph:
    """Join the closest of n points that are uniform in the unit square.

    The points are ``numpy.random.default_rng(seed).random((n, 2))`` for an integer seed, so that a
    caller who needs the positions has them; ``geometric`` says which pairs are joined.

    Parameters
    ----------
    n : int
        Number of nodes, at least 1.
    mean_degree : float
        Mean number of neighbours, in [0, n - 1].
    seed : int or numpy.random.Generator
    """
    return geometric(_generator(seed).random((_count(n, "n", 1), 2)), mean_degree)


def geometric(points: ArrayLike, mean_degree: float) -> EmpiricalGraph:
    """Join the pairs of points that are closer than a radius, by edges of weight 1.

    The radius is the one that gives ``round(n * mean_degree / 2)`` edges, so that the mean degree
    is as asked for whatever the points and their boundary are. Of pairs at equal distance, those
    with the smaller node numbers come first.

    Parameters
    ----------
    points : array_like, shape (n, k)
        Finite coordinates.
    mean_degree : float
        In [0, n - 1].
    """
    places = _rows(points, "points")
    n = len(places)
    if not 0 <= mean_degree <= n - 1:
        raise ValueError(f"mean_degree: a number in [0, {n - 1}] is expected, got {mean_degree}")
    m = round(n * mean_degree / 2)
    if m == 0:
        return EmpiricalGraph(n, np.empty((0, 2), dtype=np.int64))
    edges = _pairs_at_least(places, m)
    squared = ((places[edges[:, 0]] - places[edges[:, 1]]) ** 2).sum(axis=1)
    last = np.partition(squared, m - 1)[m - 1]
    closer, tied = edges[squared < last], edges[squared == last]
    tied = tied[np.lexsort((tied[:, 1], tied[:, 0]))]
    return EmpiricalGraph(n, np.concatenate([closer, tied[: m - len(closer)]]))


def nearest_neighbours(points: ArrayLike, k: int) -> EmpiricalGraph:
    """Join every point to its k nearest others (Euclidean distance), by edges of weight 1.

    Two points are joined if one of them is among the k nearest of the other, so that a node has k
    neighbours or more.

    Parameters
    ----------
    points : array_like, shape (n, dim)
        Finite coordinates.
    k : int
        In 1, ..., n - 1.
    """
    places = _rows(points, "points")
    n = len(places)
    if _count(k, "k", 1) > n - 1:
        raise ValueError(f"k: at most n - 1 = {n - 1} neighbours are possible, got {k}")
    _, found = cKDTree(places).query(places, k=k + 1)
    itself = found == np.arange(n)[:, None]
    # Among more than k + 1 equal points a point may miss itself: then the last one found goes.
    itself[~itself.any(axis=1), -1] = True
    ends = np.column_stack([np.repeat(np.arange(n), k), found[~itself]])
    return EmpiricalGraph(n, np.unique(np.sort(ends, axis=1), axis=0))


def regression_data(
    true_w: ArrayLike, rows: int, noise: float, labelled: float, seed: Seed
) -> RegressionData:
    """Draw local datasets of the networked linear model [GTV] (37), y = <x, w_i> + noise * e.

    The features x and the errors e are independent standard normal variables.

    Parameters
    ----------
    true_w : array_like, shape (n, d)
        Parameters of each node.
    rows : int
        Data points per node m_i, at least 1.
    noise : float
        Standard deviation of the error, >= 0.
    labelled : float
        Fraction rho of the nodes whose data are accessible, in [0, 1]; ``round(rho * n)`` nodes,
        chosen at random.
    seed : int or numpy.random.Generator

    Returns
    -------
    RegressionData
        X (n, m, d), y (n, m), labelled (n,). Nodes that are not labelled have data too, for tests.
    """
    w = _rows(true_w, "true_w")
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise: a finite number >= 0 is expected, got {noise}")
    if not 0 <= labelled <= 1:
        raise ValueError(f"labelled: a fraction in [0, 1] is expected, got {labelled}")
    rng = _generator(seed)
    n, d = w.shape
    X = rng.standard_normal((n, _count(rows, "rows", 1), d))
    y = np.einsum("nmd,nd->nm", X, w) + noise * rng.standard_normal(X.shape[:2])
    mask = np.zeros(n, dtype=bool)
    mask[rng.permutation(n)[: round(labelled * n)]] = True
    return RegressionData(X, y, mask)


def _generator(seed: Seed) -> np.random.Generator:
    # None would be a fresh seed each time, which nobody could repeat.
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer, np.random.Generator)):
        raise TypeError(f"seed: an integer or numpy.random.Generator is expected, got {seed!r}")
    return np.random.default_rng(seed)


def _count(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: an integer is expected, got {value!r}")
    if value < least:
        raise ValueError(f"{name}: at least {least} is expected, got {value}")
    return int(value)


def _rows(values: ArrayLike, name: str) -> FloatArray:
    """Check finite numbers of shape (n, k), neither of them 0."""
    rows = finite_array(values, name, ndim=2)
    if 0 in rows.shape:
        raise ValueError(f"{name}: at least one row and one column are expected, got {rows.shape}")
    return rows


def _path(nodes: IntArray) -> IntArray:
    """Give the edges between nodes that follow one another along the first axis."""
    return np.column_stack([nodes[:-1].ravel(), nodes[1:].ravel()])


def _bernoulli_positions(n: int, p: float, rng: np.random.Generator) -> IntArray:
    """Give the successes among n independent trials, as increasing positions in 0, ..., n - 1.

    The distances between successes are geometric variables [BB05], so that failures cost nothing.
    """
    if p == 0 or n == 0:
        return np.empty(0, dtype=np.int64)
    parts = []
    reached = -1
    while reached < n:
        expected = (n - reached) * p
        draws = int(expected + 4 * math.sqrt(expected)) + 8
        # Cutting a distance to n + 1 leaves it beyond the end and keeps the sum from overflowing.
        steps = np.minimum(rng.geometric(p, size=draws), n + 1)
        parts.append(reached + np.cumsum(steps))
        reached = int(parts[-1][-1])
    positions = np.concatenate(parts)
    return positions[positions < n]


def _triangle(positions: IntArray) -> IntArray:
    """Give the pairs i < j of which pair t = j (j - 1) / 2 + i is number t, shape (k, 2)."""
    j = ((1 + np.sqrt(1 + 8.0 * positions)) / 2).astype(np.int64)
    # Rounding may carry the root of large numbers up to the next j, but never below its own: at
    # the first pair of j the root is the integer 2 j - 1.
    j -= j * (j - 1) // 2 > positions
    return np.column_stack([positions - j * (j - 1) // 2, j])


def _pairs_at_least(places: FloatArray, m: int) -> IntArray:
    """Give all pairs i < j within a radius that holds at least m and, but for ties, at most 2 m."""
    tree = cKDTree(places)
    n = len(places)
    # Start from the usual distance to as many neighbours as there are wanted, then bisect.
    k = min(math.ceil(2 * m / n), n - 1) + 1
    sample = places[:: max(n // 1000, 1)]
    radius = float(np.mean(tree.query(sample, k=[k])[0]))
    low, high = 0.0, math.inf
    while math.isinf(high) or high - low > 1e-9 * high:
        n_pairs = (int(tree.count_neighbors(tree, radius)) - n) // 2
        if n_pairs < m:
            low = radius
        else:
            high = radius
            if n_pairs <= 2 * m:
                break
        # Before both ends are known the first factor is small: the start is nearly right.
        radius = (low + high) / 2 if math.isfinite(high) else max(1.1 * radius, 1e-150)
    # The margin keeps pairs at the radius itself, whichever way their distance was rounded.
    pairs: IntArray = tree.query_pairs(high * (1 + 1e-9), output_type="ndarray").astype(np.int64)
    return np.sort(pairs, axis=1)


def __dir__() -> list[str]:
    return sorted(__all__)
