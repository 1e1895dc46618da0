"""How long a sparse factorization over a graph takes, foretold."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from verify._arrays import IntArray

# Of leaves, which add nothing: bushy trees are gone after a few, and a path is narrow as it is.
PEELINGS = 50
# Operations a second: 1.3e11 in 7.7 s on the machine of docs/benchmarks.md, of which the bound here
# is twice as many.
SPEED = 3e10


def factor_seconds(edges: IntArray, n: int, d: int) -> float:
    """Return about the seconds that a Cholesky factor of blocks (d, d) over a graph takes.

    Its work is bounded by the squares of the widths of the profile in an order by breadth, which a
    minimum degree ordering is rarely worse than.
    """
    alive, degree = np.ones(n, dtype=bool), np.bincount(edges.ravel(), minlength=n)
    for _ in range(PEELINGS):
        leaves = alive & (degree <= 1)
        if not leaves.any():
            break
        alive &= ~leaves
        edges = edges[alive[edges].all(axis=1)]
        degree = np.bincount(edges.ravel(), minlength=n)
    half = sp.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    order = csgraph.reverse_cuthill_mckee(sp.csr_matrix(half + half.T), symmetric_mode=True)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    first = np.arange(n)
    ends = np.sort(place[edges], axis=1)
    np.minimum.at(first, ends[:, 1], ends[:, 0])
    width = np.arange(n) - first + 1.0
    return float((width**2).sum()) * d**3 / SPEED
