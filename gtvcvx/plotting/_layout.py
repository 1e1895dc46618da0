"""Places for the nodes of a graph: those that it has, or a layout."""

from __future__ import annotations

import networkx as nx
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.graph import EmpiricalGraph, checked_positions, connected_components

#: Springs and distances take time that grows with the square of the number of nodes.
SMALL = 400
_MAJORIZATIONS = 100
# Pivots for large graphs: fifty are as good as all nodes, says the paper. Graphs are long from
# this multiple of log2 n on; random ones stay below it, grids are far above.
_PIVOTS, _LONG = 50, 1.5


def place_nodes(graph: EmpiricalGraph, positions: ArrayLike | None, near: IntArray) -> FloatArray:
    """Return (n, 2): the positions given, those of the graph, or else a layout.

    ``near`` (n,) are numbers of clusters: the layout tries to keep them together.
    """
    if positions is not None:
        return checked_positions(positions, graph.n_nodes)
    if graph.positions is not None:
        return graph.positions
    return layout(graph.n_nodes, graph.edges, near)


def layout(n_nodes: int, edges: IntArray, cluster_of: IntArray, seed: int = 0) -> FloatArray:
    """Place the nodes, (n, 2), each connected component by itself and all side by side.

    Components of up to 400 nodes are placed by springs along the edges, where clusters start next
    to each other; sparse ones by distances along the graph, because springs leave long chains
    tangled. Larger ones are placed by distances to a few nodes if they are long, as grids and
    neighbourhoods of points are, and else by two eigenvectors of their Laplacian.
    """
    component = connected_components(n_nodes, edges)
    order = np.argsort(component, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(component[order])) + 1)
    local = np.empty(n_nodes, dtype=np.int64)
    for nodes in members:
        local[nodes] = np.arange(len(nodes))
    by_component = np.argsort(component[edges[:, 0]], kind="stable")
    counts = np.bincount(component[edges[:, 0]], minlength=len(members))
    groups = np.split(local[edges[by_component]], np.cumsum(counts)[:-1])
    boxes = [
        _place_component(len(nodes), ends, cluster_of[nodes], seed)
        for nodes, ends in zip(members, groups, strict=True)
    ]
    places = np.empty((n_nodes, 2))
    for nodes, box, corner in zip(members, boxes, _shelves(boxes), strict=True):
        places[nodes] = box + corner
    return places - places.mean(axis=0)


def _place_component(n: int, edges: IntArray, cluster_of: IntArray, seed: int) -> FloatArray:
    """Place a connected graph, its longest side flat, in an area that grows with its nodes."""
    if n == 1:
        return np.zeros((1, 2))
    if n > SMALL:
        places = _by_pivots(n, edges)
        if places is None:
            places = _spectral(n, edges, seed)
    elif len(edges) <= 2 * n:
        places = _by_distances(n, edges)
    else:
        places = _by_springs(n, edges, cluster_of, seed)
    places = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(places, full_matrices=False)
    places = places @ axes.T
    places -= places.min(axis=0)
    return places * np.sqrt(n) / float(places.max())


def _by_springs(n: int, edges: IntArray, cluster_of: IntArray, seed: int) -> FloatArray:
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(edges.tolist())
    rng = np.random.default_rng(seed)
    angle = 2.0 * np.pi * cluster_of / (cluster_of.max() + 1)
    start = np.column_stack([np.cos(angle), np.sin(angle)])
    start += 0.3 * rng.standard_normal(start.shape)
    found = nx.spring_layout(graph, pos=dict(enumerate(start)), iterations=100, seed=seed)
    return np.array([found[i] for i in range(n)], dtype=np.float64)


def _by_distances(n: int, edges: IntArray) -> FloatArray:
    """Places as far apart as the nodes are along the graph, by stress majorization.

    Each step minimizes a majorant of sum_{i<j} (||x_i - x_j|| - d_ij)^2 / d_ij^2 (Gansner, Koren,
    North, "Graph drawing by stress majorization", 2004), from classical scaling on.
    """
    distance = sp.csgraph.shortest_path(_adjacency(n, edges), unweighted=True)
    centring = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ distance**2 @ centring)
    places = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    places += 1e-3 * np.random.default_rng(0).standard_normal(places.shape)  # leaves of one node
    weight = 1.0 / np.maximum(distance, 1.0) ** 2
    np.fill_diagonal(weight, 0.0)
    solve = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight, hermitian=True)
    for _ in range(_MAJORIZATIONS):
        apart = np.linalg.norm(places[:, None] - places[None, :], axis=2)
        pull = weight * distance / np.maximum(apart, 1e-9)
        places = solve @ (pull.sum(axis=1)[:, None] * places - pull @ places)
    return places


def _by_pivots(n: int, edges: IntArray) -> FloatArray | None:
    """Two principal components of squared distances to pivots; None if distances say little.

    Pivot MDS (Brandes, Pich, "Eigensolver methods for progressive multidimensional scaling of
    large data", 2006); each pivot is the node farthest from those before. In a graph like a random
    one all nodes are about log n apart, wherever they are.
    """
    adjacency = _adjacency(n, edges)
    distance = np.empty((n, _PIVOTS))
    nearest = np.full(n, np.inf)
    for k in range(_PIVOTS):
        pivot = 0 if k == 0 else int(np.argmax(nearest))
        distance[:, k] = sp.csgraph.dijkstra(adjacency, indices=pivot, unweighted=True)
        nearest = np.minimum(nearest, distance[:, k])
        if k == 1 and distance.max(initial=0, where=np.arange(_PIVOTS) < 2) < _LONG * np.log2(n):
            return None
    squares = distance**2
    centred = -0.5 * (
        squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    )
    _, axes = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ axes[:, -2:])


def _adjacency(n: int, edges: IntArray) -> sp.csr_array:
    ends = np.concatenate([edges, edges[:, ::-1]])
    return sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()


def _spectral(n: int, edges: IntArray, seed: int) -> FloatArray:
    """Two eigenvectors of the normalized Laplacian, those of the least eigenvalues but zero."""
    adjacency = _adjacency(n, edges)
    scale = 1.0 / np.sqrt(np.asarray(adjacency.sum(axis=1)))
    normalized = sp.diags_array(scale) @ adjacency @ sp.diags_array(scale)
    start = np.random.default_rng(seed).standard_normal(n)
    values, vectors = sp.linalg.eigsh(normalized, k=3, which="LA", tol=1e-4, v0=start)
    order = np.argsort(-values)[1:]
    # Squared distances are then, as far as two of them tell, commute times of a random walk.
    length = 1.0 / np.sqrt(np.maximum(1.0 - values[order], 1e-12))
    return np.asarray(vectors[:, order] * scale[:, None] * length)


def _shelves(boxes: list[FloatArray]) -> list[FloatArray]:
    """Lower left corners for boxes (n_c, 2), which start at 0: in rows, the largest first."""
    gap = 0.06 * np.sqrt(sum(len(box) for box in boxes)) if len(boxes) > 1 else 0.0
    sides = np.array([box.max(axis=0) for box in boxes]) + max(gap, 0.5)
    order = np.argsort(-sides[:, 1], kind="stable")
    width = max(float(sides[:, 0].max()), 1.3 * float(np.sqrt(np.prod(sides, axis=1).sum())))
    corners = np.zeros((len(boxes), 2))
    x, y, height = 0.0, 0.0, 0.0
    for c in order.tolist():
        if x > 0.0 and x + sides[c, 0] > width:
            x, y, height = 0.0, y - height, 0.0
        corners[c] = x, y - sides[c, 1]
        x, height = x + sides[c, 0], max(height, sides[c, 1])
    return list(corners)
