"""What neither losses nor edges see of points with several classes."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.solvers.interior_point.blockwise._node_terms import NodeTerms


class Resting:
    """Leaves parameters of all classes alone, at all nodes of a component, that move by one number.

    Scores differ by no more then, and jumps by nothing, unless a quadratic sees it. A factor has
    rounding there, steps that are as large as that allows, and points would lose their digits.

    Parameters
    ----------
    terms : NodeTerms
    graph : EmpiricalGraph
    """

    def __init__(self, terms: NodeTerms, graph: EmpiricalGraph) -> None:
        self._features = np.empty(0, np.int64)
        alone = not (terms.classes.empty or len(terms.slopes.b) or len(terms.smooth.node))
        if alone:
            d = terms.q.shape[1]
            held = np.einsum("nii->i", terms.P).reshape(d // terms.classes.n_classes, -1)
            self._features = np.flatnonzero(~held.any(axis=1))
            self._n_classes = terms.classes.n_classes
            self._component = np.asarray(graph.components)
            self._sizes = np.bincount(self._component)

    def __call__(self, w: FloatArray) -> FloatArray:
        """Return a point (n, d) that is as good, without what moves for nothing."""
        if not len(self._features):
            return w
        W = w.reshape(len(w), -1, self._n_classes).copy()
        for j in self._features:
            total = np.bincount(self._component, W[:, j].mean(axis=1))
            W[:, j] -= (total / self._sizes)[self._component, None]
        return W.reshape(w.shape)
