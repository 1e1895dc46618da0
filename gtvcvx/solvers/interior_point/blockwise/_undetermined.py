"""Directions that nothing determines: all nodes of a component moved alike, where no row changes.

A component with fewer rows than coordinates, or with two columns alike, has many solutions. Steps
along those directions are rounding, divided by what keeps factors definite: points of 1e20, beside
which everything else is rounding. So steps go without them.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.duality._lengths import DEPENDENT
from gtvcvx.graph import EmpiricalGraph, connected_components


class Undetermined:
    """Those directions of a problem whose losses are rows alone.

    Parameters
    ----------
    graph : EmpiricalGraph
    X : ndarray, shape (N, d)
        Rows of all losses.
    node : ndarray of int, shape (N,)
    held : ndarray of bool, shape (n,)
        Nodes whose losses are no rows: nothing in their components counts as undetermined.
    """

    def __init__(
        self, graph: EmpiricalGraph, X: FloatArray, node: IntArray, held: BoolArray
    ) -> None:
        component = connected_components(graph.n_nodes, graph.edges)
        count, d = int(component.max()) + 1, X.shape[1]
        sizes = np.abs(X).max(axis=0, initial=0.0)
        self._units = np.where(sizes > 0.0, sizes, 1.0)
        owner = component[node]
        order = np.argsort(owner, kind="stable")
        ends = np.searchsorted(owner[order], np.arange(count + 1))
        free = np.bincount(component, held, count) == 0.0
        bases = np.zeros((count, d, d))
        for k in np.flatnonzero(free):
            own = _unseen(X[order[ends[k] : ends[k + 1]]] / self._units)
            bases[k, :, : own.shape[1]] = own
        some = np.flatnonzero(bases.any(axis=(1, 2)))
        self._basis = bases[some]
        number = np.full(count, -1)
        number[some] = np.arange(len(some))
        self._of_node = number[component]
        self._nodes = np.flatnonzero(self._of_node >= 0)
        self._of_node = self._of_node[self._nodes]

    def without(self, x: FloatArray) -> FloatArray:
        """Return x (n, d) less what the mean of each component has of these directions."""
        if not len(self._nodes):
            return x
        scaled = x[self._nodes] * self._units
        total = np.zeros((len(self._basis), x.shape[1]))
        np.add.at(total, self._of_node, scaled)
        mean = total / np.bincount(self._of_node, minlength=len(total))[:, None]
        along = np.einsum("kji,kj->ki", self._basis, mean)
        off = np.einsum("kij,kj->ki", self._basis, along)
        found = x.copy()
        found[self._nodes] = (scaled - off[self._of_node]) / self._units
        return found


def _unseen(rows: FloatArray) -> FloatArray:
    """Return an orthonormal basis (d, k) of the directions along which no row (N, d) changes."""
    d = rows.shape[1]
    if len(rows) > d:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    if not len(rows):
        return np.eye(d)
    _, sigma, turned = np.linalg.svd(rows, full_matrices=True)
    rank = int(np.sum(sigma > DEPENDENT * sigma.max(initial=0.0)))
    return np.asarray(turned[rank:].T)
