"""How much eliminating a large graph fills in, told by small ones that it is contracted to.

The order of elimination of a large random graph takes minutes, in one call that nobody can
interrupt, and its factorization would take hours. Contracting edges leaves a minor, which fills in
no more than the graph; and what a minor of twice as many nodes fills in more tells how that grows:
with trees hardly, with graphs in the plane by 2^1.5, with random ones by 2^3 and more.
"""

from __future__ import annotations

import math

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx._deadline import look
from gtvcvx.block_cholesky._fronts import elimination, minimum_degree

# Nodes of the larger minor at most, and of the smaller one; what both take is a tenth of a second.
LARGE, SMALL = 2_400, 1_200
# Graphs of fewer nodes are ordered in no time, whatever they are.
ORDERED = 5_000
# Random graphs of 10,000 and 20,000 nodes and others were told .9 to 4 times what they fill in.
DOUBT = 4.0


def hopeless(n: int, edges: IntArray, most: float) -> bool:
    """Say whether n nodes with edges (m, 2) fill in more than so much, without doubt.

    What is compared are squares of the numbers of columns that each column has an effect on.
    """
    if n <= ORDERED or not len(edges):
        return False
    return growth(n, edges) > DOUBT * most


def growth(n: int, edges: IntArray) -> float:
    """Return these squares, added up, as minors tell."""
    rng = np.random.default_rng(0)
    n, edges = _joined(np.arange(n), edges)
    size, told = n, []
    for most in (LARGE, SMALL):
        while n > most:
            n, edges = _contracted(n, edges, rng)
            look()
        if not len(edges):
            return 0.0
        found = elimination(minimum_degree(n, edges), edges)
        assert found is not None  # there is no limit
        told.append((n, max(float(found.squares), 1.0)))
    (large, much), (small, less) = told
    if large == small:
        return much
    power = math.log(much / less) / math.log(large / small)
    return much * (size / large) ** power


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
    ends = ends[ends[:, 0] != ends[:, 1]]
    nodes, ends = np.unique(ends, return_inverse=True)
    n, ends = len(nodes), ends.reshape(-1, 2)
    keys = np.unique(ends[:, 0] * n + ends[:, 1])
    return n, np.stack([keys // max(n, 1), keys % max(n, 1)], axis=1)
