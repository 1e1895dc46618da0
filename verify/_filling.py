"""How much eliminating the nodes of a graph fills in, told by small graphs it is contracted to.

The order of elimination of a large random graph takes minutes, in one call that nobody can
interrupt, and its factorization would take hours. Contracting edges leaves a minor, which fills in
no more than the graph; and what a minor of twice as many nodes fills in more tells how that grows:
with trees hardly, with graphs in the plane by 2^1.5, with random ones by 2^3 and more.

What fills in is measured by squares of the numbers of columns that each column has an effect on,
added up: twice the multiplications of a factorization, about.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spilu

from verify._arrays import BoolArray, FloatArray, IntArray
from verify._deadline import look

# Nodes of the larger minor at most, in which half as many are left for the smaller one.
LARGE = 2_400
# Neighbours, over the square root of the number of nodes, from which on a node is eliminated last.
HUB = 10.0


def by_degree(n: int, edges: IntArray) -> IntArray:
    """Return the place of each of n nodes in an order of minimum degree."""
    i, j, own = edges[:, 0], edges[:, 1], np.arange(n)
    ones: FloatArray = np.ones(len(edges))
    data = np.concatenate([-ones, -ones, 1.0 + np.bincount(edges.ravel(), minlength=n)])
    places = np.concatenate([i, j, own]), np.concatenate([j, i, own])
    # Incomplete, since the order alone is of interest: nothing is kept beside the diagonal.
    factor = spilu(
        sp.csc_array((data, places), shape=(n, n)),
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    place: IntArray = factor.perm_c.astype(np.int64)
    return place


def hubs(n: int, edges: IntArray) -> BoolArray:
    """Return which of n nodes, (n,), have so many neighbours that they are eliminated last.

    Looking at all neighbours of one whenever one of these is eliminated takes 10 s for a star of
    100,000 nodes.
    """
    out: BoolArray = np.bincount(edges.ravel(), minlength=n) > HUB * math.sqrt(n)
    return out


def filled(n: int, edges: IntArray) -> float:
    """Return these squares, added up, for few nodes: their effects are a table (n, n)."""
    ends = np.sort(by_degree(n, edges)[edges], axis=1)
    effects = np.zeros((n, n), dtype=bool)
    effects[ends[:, 0], ends[:, 1]] = True
    squares = 0.0
    for column in range(n):
        on = np.flatnonzero(effects[column])
        squares += float(len(on)) ** 2
        if len(on):
            effects[on[0], on[1:]] = True
    return squares


def growth(n: int, edges: IntArray) -> float:
    """Return these squares, added up, of any graph, as minors tell.

    Seventeen graphs of 10,000 to 100,000 nodes were told .26 to 3 times what they fill in.
    """
    rng = np.random.default_rng(0)
    n, edges = _joined(np.arange(n), edges)
    size, most, told = n, LARGE, []
    for _ in range(2):
        while n > most:
            n, edges = _contracted(n, edges, rng)
            look()
        if not len(edges):
            return 0.0
        told.append((n, filled(n, edges)))
        if n == size:  # few nodes are no minor
            return told[0][1]
        most = n // 2
    (large, much), (small, less) = told
    return much * (size / large) ** (math.log(much / less) / math.log(large / small))


def _contracted(n: int, edges: IntArray, rng: np.random.Generator) -> tuple[int, IntArray]:
    """Join every other node, by lot, to a neighbour that is not; return what nodes and edges stay.

    Of a star, too, half of the leaves are joined to the centre, sooner or later.
    """
    joins = rng.random(n) < 0.5
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[joins[both[:, 0]] & ~joins[both[:, 1]]]
    into = np.arange(n)
    into[both[:, 0]] = both[:, 1]
    return _joined(into, edges)


def _joined(into: IntArray, edges: IntArray) -> tuple[int, IntArray]:
    """Return how many nodes have edges when each is joined to one, and the edges (m, 2)."""
    ends = np.sort(into[edges], axis=1)
    nodes, ends = np.unique(ends[ends[:, 0] != ends[:, 1]], return_inverse=True)
    n, ends = len(nodes), ends.reshape(-1, 2)
    keys = np.unique(ends[:, 0] * n + ends[:, 1])
    return n, np.stack([keys // max(n, 1), keys % max(n, 1)], axis=1)
