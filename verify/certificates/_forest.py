"""Spanning forest along which the residuals of flow conservation are routed to roots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from verify._arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Forest:
    """A rooted spanning forest.

    Attributes
    ----------
    order : list of int
        Nodes, every parent before its children.
    parent, parent_edge, sign : list of int
        Per node its parent, the edge to it (-1 at a root) and +1 if the node is the head of that
        edge, else -1.
    members : list of ndarray of int
        Per component its nodes in breadth-first order from the roots.
    """

    order: list[int]
    parent: list[int]
    parent_edge: list[int]
    sign: list[int]
    members: list[IntArray]


def components(edges: IntArray, n: int) -> tuple[int, IntArray]:
    """Return the number of connected components and the component of each node."""
    graph = sp.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    count, labels = csgraph.connected_components(graph, directed=False)
    return int(count), labels


def spanning_forest(
    edges: IntArray, slack: FloatArray, active: BoolArray, roots: BoolArray, component: IntArray
) -> Forest:
    """Return the spanning forest of largest slack over the active edges.

    Parameters
    ----------
    edges : ndarray of int, shape (m, 2)
        Sorted lexicographically.
    slack : ndarray, shape (m,)
        Room between flow and capacity: what is routed there needs no scaling.
    active : ndarray of bool, shape (m,)
        Edges that may be used.
    roots : ndarray of bool, shape (n,)
        At least one root in every component; a node is routed to one of them.
    component : ndarray of int, shape (n,)
        Labels of the components of the active edges.
    """
    n = len(roots)
    chosen = np.flatnonzero(active)
    # Weights are ranks: any slack, zero and infinity included, becomes a plain positive number.
    rank = np.empty(len(chosen))
    rank[np.argsort(-slack[chosen], kind="stable")] = np.arange(len(chosen)) + 2.0
    top = np.flatnonzero(roots)
    weights = np.concatenate([rank, np.ones(len(top))])
    low = np.concatenate([edges[chosen, 0], top])
    high = np.concatenate([edges[chosen, 1], np.full(len(top), n)])  # node n joins the roots
    graph = sp.csr_array((weights, (low, high)), shape=(n + 1, n + 1))
    tree = csgraph.minimum_spanning_tree(graph)
    order, parent = csgraph.breadth_first_order(tree, n, directed=False)
    nodes, parent = np.arange(n), parent[:n]
    key = edges[:, 0] * n + edges[:, 1]
    first, second = np.minimum(nodes, parent), np.maximum(nodes, parent)
    parent_edge = np.where(parent < n, np.searchsorted(key, first * n + second), -1)
    breadth = order[1:][np.argsort(component[order[1:]], kind="stable")]
    members = np.split(breadth, np.cumsum(np.bincount(component))[:-1])
    sign = np.where(nodes == first, 1, -1)
    return Forest(order[1:].tolist(), parent.tolist(), parent_edge.tolist(), sign.tolist(), members)
