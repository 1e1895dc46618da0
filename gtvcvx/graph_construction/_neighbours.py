"""Graphs of near points."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import IntArray, is_integer
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.graph_construction._connect import joined
from gtvcvx.graph_construction._sites import Sites, sites_of
from gtvcvx.graph_construction._spaces import Space
from gtvcvx.graph_construction._weights import (
    Bandwidth,
    Lengths,
    Weighting,
    Weights,
    number,
)


def knn_graph(
    X: ArrayLike | Any,
    n_neighbors: int,
    *,
    metric: str | None = None,
    weights: Weights = "gaussian",
    bandwidth: Bandwidth = None,
    floor: float = 1e-6,
    mutual: bool = False,
    connect: bool = False,
    nodes: str | Sequence[Hashable] | None = None,
) -> EmpiricalGraph:
    r"""Join every node to its nearest neighbours.

    Two nodes are joined if one of them is among the nearest of the other; with ``mutual``, if each
    is among the nearest of the other. A node is no neighbour of itself; equal points are
    neighbours at distance 0. Of neighbours at equal distance, those with the smaller number count.

    Parameters
    ----------
    X : array_like, shape (n, c)
        Finite features or coordinates, one row a node; or distances (n, n), see ``metric``; or
        a GeoDataFrame, a GeoSeries or a sequence of shapely geometries (extra ``geo``), whose
        centroids count.
    n_neighbors : int
        In 1, ..., n - 1.
    metric : {"euclidean", "cityblock", "chebyshev", "haversine", "precomputed"}, optional
        "haversine": the columns are latitude and longitude in degrees, distances are great
        circles on a sphere of radius 6371.0088 km, in km. "precomputed": X is a symmetric
        matrix of distances with a diagonal of zeros. Default: "euclidean"; for geometries whose
        CRS is longitude and latitude, "haversine".
    weights : {"gaussian", "exponential", "inverse", "binary"} or callable
        Edge weight A_e for the distance t between its ends and the bandwidth h: exp(-t^2 / (2
        h^2)), exp(-t / h), 1 / (1 + t / h), or 1. A callable takes distances (m,) and returns
        positive weights (m,).
    bandwidth : float or "local", optional
        h > 0, in units of the distance. "local": :math:`h = \sqrt{h_i h_j}` with the median length
        h_i of the edges at each end i, so that sparse regions have weights like dense ones [ZP].
        Default: the median length of the graph's edges. Edges of length 0 are left out of medians.
    floor : float
        Least weight, in [0, 1): very distant neighbours would have weights that are 0 in double
        precision. It does not apply to a callable.
    mutual : bool
        Join mutual neighbours only.
    connect : bool
        Join what is not connected yet, as `connect_components` does; call that function instead
        for a report of what was added.
    nodes : sequence of hashable or str, optional
        Node labels; of a GeoDataFrame, the name of a column. Default: its index; ``0 .. n-1``
        otherwise.

    Returns
    -------
    EmpiricalGraph
        Node i is row i of X. Points in a plane, on the sphere and geometries are its positions.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, and the row where one is at fault: geometries are neither missing nor
        empty nor invalid.
    ImportError
        Geometries are given, and there is no shapely.

    Warns
    -----
    UserWarning
        Geometries without a CRS could be degrees, and no metric says so.

    Notes
    -----
    By a KD-tree, O(n log n) for a small number of columns c, and up to O(c n^2) for many; where
    very many points are equal, time is proportional to the number of pairs of them. A matrix of
    distances takes O(n^2 log n).

    [ZP] Zelnik-Manor, Perona, "Self-tuning spectral clustering", NIPS 2004, with the distance to
    the seventh neighbour for h_i.

    Examples
    --------
    >>> graph = knn_graph([[0.0], [1.0], [3.0]], 1, weights="binary", nodes=["a", "b", "c"])
    >>> graph.edges.tolist(), graph.weights.tolist()
    ([[0, 1], [1, 2]], [1.0, 1.0])
    """
    sites = sites_of(X, metric, nodes)
    k = _checked_count(n_neighbors, sites.space.n_nodes)
    edges = _neighbour_pairs(sites.space, k, mutual)
    return _weighted(sites, edges, Weighting(weights, bandwidth, floor), connect)


def radius_graph(
    X: ArrayLike | Any,
    radius: float,
    *,
    metric: str | None = None,
    weights: Weights = "gaussian",
    bandwidth: Bandwidth = None,
    floor: float = 1e-6,
    connect: bool = False,
    nodes: str | Sequence[Hashable] | None = None,
) -> EmpiricalGraph:
    """Join all nodes that are at most a radius apart.

    Parameters
    ----------
    radius : float
        > 0, in units of the distance; ``numpy.inf`` joins all pairs. A Gaussian kernel of
        bandwidth h is cut off by ``radius_graph(X, 3 * h, bandwidth=h)``.
    X, metric, weights, bandwidth, floor, connect, nodes
        See `knn_graph`.

    Returns
    -------
    EmpiricalGraph
        Node i is row i of X.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, and the row where one is at fault.

    Notes
    -----
    By a KD-tree, O(n log n + m) for few columns; memory is proportional to the number of edges m.
    """
    sites = sites_of(X, metric, nodes)
    reach = number(radius, "radius")
    if not reach > 0:
        raise ValueError(f"radius: a positive number is expected, got {radius!r}")
    edges = sites.space.pairs_within(reach)
    return _weighted(sites, edges, Weighting(weights, bandwidth, floor), connect)


def _checked_count(n_neighbors: int, n_nodes: int) -> int:
    if not is_integer(n_neighbors):
        raise TypeError(f"n_neighbors: an integer is expected, got {n_neighbors!r}")
    if not 1 <= n_neighbors < n_nodes:
        raise ValueError(
            f"n_neighbors: an integer in 1, ..., n - 1 = {n_nodes - 1} is expected, "
            f"got {n_neighbors}"
        )
    return int(n_neighbors)


def _neighbour_pairs(space: Space, k: int, mutual: bool) -> IntArray:
    """Pairs i < j of which one, or each, is among the k nearest of the other, shape (m, 2)."""
    n = space.n_nodes
    found = space.nearest(k)
    ends = np.sort(np.column_stack([np.repeat(np.arange(n), k), found.ravel()]), axis=1)
    pairs, count = np.unique(ends, axis=0, return_counts=True)
    return pairs[count == 2] if mutual else pairs


def _weighted(sites: Sites, edges: IntArray, weighting: Weighting, connect: bool) -> EmpiricalGraph:
    space, nodes, positions = sites
    n, lengths = space.n_nodes, space.lengths(edges)
    weights = weighting.of(n, edges, lengths, Lengths(edges, lengths))
    graph = EmpiricalGraph(n, edges, weights, nodes, positions)
    return joined(graph, space, weighting).graph if connect else graph
