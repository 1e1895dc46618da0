"""The linear systems of Newton's method, in w alone."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.solvers.interior_point.blockwise._compiled import assemble, factorize, solve
from gtvcvx.solvers.interior_point.blockwise._node_terms import NodeTerms
from gtvcvx.solvers.interior_point.blockwise._plan import Plan


class System:
    """``P + A^T diag(row weights) A + D^T (edge weights) D``, factored.

    Parameters
    ----------
    terms : NodeTerms
    edges : ndarray, shape (m, 2)
    plan : Plan
    """

    def __init__(self, terms: NodeTerms, edges: IntArray, plan: Plan) -> None:
        self._terms, self._edges, self._plan = terms, edges, plan
        d = terms.q.shape[1]
        self._panels = np.empty(plan.entries(d))
        self._rests = np.empty(plan.waiting * d * d)
        self._front = np.zeros((plan.largest * d + 1, plan.largest * d + 1))
        self._space = np.empty(plan.largest * d)

    def factorize(self, row_weights: FloatArray, edge_weights: FloatArray) -> None:
        """Set the weights of rows (N,) and edges (m, d, d)."""
        slopes, blocks = self._terms.slopes, self._terms.P.copy()
        assemble(blocks, slopes.node, slopes.X, row_weights, self._edges, edge_weights)
        factorize(self._plan, blocks, edge_weights, self._panels, self._rests, self._front)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solution (n, d) for a right-hand side."""
        x = right.copy()
        solve(self._plan, self._panels, x, self._space)
        return x
