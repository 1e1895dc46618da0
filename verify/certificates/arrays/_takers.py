"""What arrives at a root and has no room there: coordinate by coordinate, to nodes where it has.

In many dimensions no node may have room in all coordinates, as with l1 terms, but for every
coordinate there is one. Rows instead would take a system of as many unknowns as coordinates.
"""

from __future__ import annotations

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify._deadline import look
from verify.certificates._forest import Forest
from verify.certificates.arrays import _limbs as limbs
from verify.certificates.arrays._archive import Array


def hand_out(
    rho: Array, flow: Array, root: int, members: IntArray, ease: FloatArray, forest: Forest
) -> tuple[IntArray, IntArray]:
    """Carry what is at a root to the nodes of its tree that take it.

    Parameters
    ----------
    rho : ndarray of uint64, shape (n, d, words)
        What is at the nodes; changed.
    flow : ndarray of uint64, shape (n, d, words)
        On the edge to each node's parent; changed.
    root : int
    members : ndarray of int
        The nodes of the tree.
    ease : ndarray, shape (n, d)
        How easily nodes take something; zero: not at all.
    forest : Forest

    Returns
    -------
    nodes, coordinates : ndarray of int
        Which node takes which coordinate.
    """
    there = np.flatnonzero(rho[root].any(axis=1))
    best = ease[np.ix_(members, there)]
    at = best.argmax(axis=0)
    some = best[at, np.arange(len(there))] > 0.0
    takers, there = members[at[some]], there[some]
    for taker in np.unique(takers).tolist():
        look()
        own = there[takers == taker]
        load, node = rho[root, own].copy(), taker
        rho[root, own] = 0
        rho[taker, own] = load
        while forest.parent_edge[node] >= 0:
            more = load if forest.sign[node] > 0 else limbs.negated(load)
            flow[node, own] = limbs.plus(flow[node, own], more)
            node = forest.parent[node]
    return takers, there
