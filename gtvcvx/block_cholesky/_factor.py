"""Matrices of rows at nodes and differences along edges, and their factors."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.block_cholesky._compiled import assemble, factorize, solve
from gtvcvx.block_cholesky._plan import Plan


class BlockCholesky:
    """``P + X^T diag(row weights) X + D^T (edge weights) D``, factored.

    Parameters
    ----------
    plan : Plan
    edges : ndarray, shape (m, 2)
    node : ndarray, shape (N,)
        Of each row.
    X : ndarray, shape (N, d)
    shift : float
        Share of the diagonal that is added to it; may be changed before a factorization.
    """

    def __init__(
        self, plan: Plan, edges: IntArray, node: IntArray, X: FloatArray, shift: float = 0.0
    ) -> None:
        self._plan, self._edges, self._node, self._X = plan, edges, node, X
        self.shift = shift
        d = X.shape[1]
        self._panels = np.empty(plan.entries(d))
        self._rests = np.empty(plan.waiting * d * d)
        self._front = np.zeros((plan.largest * d + 1, plan.largest * d + 1))
        self._space = np.empty(plan.largest * d)

    def factorize(self, P: FloatArray, row_weights: FloatArray, edge_weights: FloatArray) -> None:
        """Set the nodes' own blocks P (n, d, d), and the weights of rows (N,) and edges (m, d, d).

        All positive semidefinite.
        """
        blocks = P.copy()
        assemble(blocks, self._node, self._X, row_weights, self._edges, edge_weights)
        np.einsum("nii->ni", blocks)[:] *= 1.0 + self.shift
        room = self._rests, self._front, self._space
        factorize(self._plan, blocks, edge_weights, self._panels, *room)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solution (n, d) for a right-hand side."""
        x = right.copy()
        solve(self._plan, self._panels, x, self._space)
        return x
