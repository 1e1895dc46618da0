"""Matrices of rows at nodes and differences along edges, and their factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.block_cholesky import _twofold as twofold
from gtvcvx.block_cholesky._compiled import assemble, eliminate, factorize, solve
from gtvcvx.block_cholesky._plan import Plan

# Multiplications between two looks at the clock, with doubles and in twice the digits: .1 s.
A_LOOK, A_TWOFOLD_LOOK = 3e8, 6e7


# A panel of a large front: its variables are eliminated together, and what they do to the rest is
# told by products of matrices, of which BLAS makes ten times as many numbers a second as loops do.
# They are so small that it takes one thread for each of them (`gtvcvx._pieces.ONE_THREAD`).
PANEL = 64
# Fronts with so many variables to eliminate are large enough for that.
LARGE = PANEL


def in_pieces(
    factorization: Callable[..., bool], most: float, found: Plan, *arrays: FloatArray
) -> None:
    """Factor in pieces of `most` multiplications, and look at the deadline between them.

    Raises
    ------
    Expired
        The deadline has passed, see `gtvcvx._deadline`.
    """
    at = np.zeros(4, np.int64)
    while not factorization(found, *arrays, at, most):
        look()


def _update(front: FloatArray, first: int, last: int, size: int, product: FloatArray) -> None:
    """Subtract what variables first <= . < last do to the rows after them."""
    for top in range(last, size, PANEL):
        rows = slice(top, min(top + PANEL, size))
        left, height = front[first:last, rows].T, rows.stop - top
        whole = (size - top) // PANEL
        ends = slice(top, top + whole * PANEL), slice(top + whole * PANEL, size)
        if whole:
            # Square by square, in one call: each product is small.
            right, below = (
                front[at, ends[0]].reshape(-1, whole, PANEL).transpose(1, 0, 2)
                for at in (slice(first, last), rows)
            )
            below -= np.matmul(left, right, out=product[:whole, :height])
        if ends[1].start < size:
            front[rows, ends[1]] -= left @ front[first:last, ends[1]]


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

        All positive semidefinite. Long factorizations look at the deadline, and may be dropped.
        """
        blocks = P.copy()
        assemble(blocks, self._node, self._X, row_weights, self._edges, edge_weights)
        np.einsum("nii->ni", blocks)[:] *= 1.0 + self.shift
        room = self._rests, self._front, self._space
        in_pieces(self._go_on, A_LOOK, self._plan, blocks, edge_weights, self._panels, *room)

    def _go_on(self, plan: Plan, *arrays: Any) -> bool:
        """Do what `factorize` does, large fronts by panels."""
        *rest, at, most = arrays
        done = factorize(plan, *rest, at, LARGE, most)
        if at[3] == 1:
            self._eliminate_panels(at)
        return bool(done)

    def _eliminate_panels(self, at: IntArray) -> None:
        """Eliminate most variables of the large front that is waited for, and say how many."""
        plan, d, front, s = self._plan, self._X.shape[1], self._front, int(at[0])
        size = int(plan.node_starts[s + 1] - plan.node_starts[s]) * d
        count = int(plan.pivots[s]) * d
        product = np.empty((size // PANEL + 1, PANEL, PANEL))
        for first in range(0, count - PANEL + 1, PANEL):
            last = first + PANEL
            eliminate(front, size, first, last, last, self._space)
            _update(front, first, last, size, product)
            look()
            at[1] = last
        at[3] = 2

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solution (n, d) for a right-hand side."""
        x = right.copy()
        solve(self._plan, self._panels, x, self._space)
        return x


class TwofoldCholesky:
    """The same in twice the digits: takes three to six times as long.

    Parameters
    ----------
    plan : Plan
    edges : ndarray, shape (m, 2)
    node : ndarray, shape (N,)
        Of each row.
    X : ndarray, shape (N, d)
    shift : float
        Share of the diagonal that is added to it.
    """

    def __init__(
        self, plan: Plan, edges: IntArray, node: IntArray, X: FloatArray, shift: float = 0.0
    ) -> None:
        self._plan, self._edges, self._node, self._X = plan, edges, node, X
        self._shift = shift
        d = X.shape[1]
        self._panels = np.empty((2, plan.entries(d)))
        self._rests = np.empty((2, plan.waiting * d * d))
        self._front = np.zeros((2, plan.largest * d, plan.largest * d))
        self._space = np.empty((4, plan.largest * d))

    def factorize(self, P: FloatArray, row_weights: FloatArray, edge_weights: FloatArray) -> None:
        """Set the nodes' own blocks P (n, d, d), and the weights of rows (N,) and edges (m, d, d).

        All positive semidefinite. Long factorizations look at the deadline, and may be dropped.
        """
        blocks = np.stack([P, np.zeros_like(P)])
        twofold.assemble(blocks, self._node, self._X, row_weights, self._edges, edge_weights)
        high, low = (np.einsum("nii->ni", part) for part in blocks)
        low[:] += self._shift * high
        room = self._rests, self._front, self._space[0]
        rest = blocks, edge_weights, self._panels, *room
        in_pieces(twofold.factorize, A_TWOFOLD_LOOK, self._plan, *rest)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solution (n, d) for a right-hand side."""
        return self._solution(right)[0]

    def _solution(self, right: FloatArray) -> FloatArray:
        x = np.stack([right, np.zeros_like(right)])
        twofold.solve(self._plan, self._panels, x, self._space)
        return x

    def moves(self, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the solution (n, d), its products with rows (N,), and its differences (m, d).

        In all their digits, where the entries of the solution nearly cancel in them.
        """
        x = self._solution(right)
        rows, jumps = np.empty(len(self._node)), np.empty((len(self._edges), right.shape[1]))
        twofold.follow(self._node, self._X, self._edges, x, rows, jumps)
        return x[0], rows, jumps
