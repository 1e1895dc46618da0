"""The linear systems of Newton's steps: what they are made of, and how they are factored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.block_cholesky._factor import BlockCholesky, TwofoldCholesky
from gtvcvx.block_cholesky._plan import Plan
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point.blockwise._duals import dot
from gtvcvx.solvers.interior_point.blockwise._node_terms import rows_matrix
from gtvcvx.solvers.interior_point.blockwise._sums import Sums
from gtvcvx.solvers.interior_point.blockwise._undetermined import Undetermined

# Multiplications of a factorization that in twice the digits takes more than a second.
DEAR = 1e9
# Share of the diagonal that is added to it then: along what neither rows nor edges determine, such
# as some directions of components with few rows, points would go for 1e20.
TWOFOLD_SHIFT = 3e-25


class Move(NamedTuple):
    """A step, as whatever is linear in it."""

    w: FloatArray  # (n, d)
    rows: FloatArray  # (N,), of the residuals
    jumps: FloatArray  # (m, d)


class NewtonSystem:
    """``P + X^T diag(row weights) X + D^T (edge weights) D`` on points with given sums.

    Parameters
    ----------
    problem : GTVProblem
        Its graph.
    sums : Sums
    plan : Plan
    X : ndarray, shape (N, d)
    node : ndarray, shape (N,)

    Attributes
    ----------
    dear : bool
        Whether twice the digits take long.
    """

    def __init__(
        self, problem: GTVProblem, sums: Sums, plan: Plan, X: FloatArray, node: IntArray
    ) -> None:
        self._problem, self._sums, self._plan = problem, sums, plan
        self._X, self._node = sums.within(X), node
        self._rows = rows_matrix(X, node, problem.graph.n_nodes)
        self._columns = self._rows.T.tocsr()
        self.dear = plan.multiplications(X.shape[1]) > DEAR
        self._factor: BlockCholesky | TwofoldCholesky
        self._factor = BlockCholesky(plan, problem.graph.edges, node, self._X)

    def replace(self, at: slice, X: FloatArray) -> None:
        """Take other rows (k, d) in the place of some."""
        self._X[at] = self._sums.within(X)
        self._rows.data.reshape(self._X.shape)[at] = X
        self._columns = self._rows.T.tocsr()

    @property
    def twofold(self) -> bool:
        """Whether it is factored in twice the digits."""
        return isinstance(self._factor, TwofoldCholesky)

    def shift(self, share: float) -> None:
        """Add a share of the diagonal to it in the factor, which is rough from now on."""
        if isinstance(self._factor, BlockCholesky):
            self._factor.shift = share

    def sharpen(self) -> None:
        """Factor in twice the digits from now on, this one too."""
        if self.twofold:
            return
        edges = self._problem.graph.edges
        self._factor = TwofoldCholesky(self._plan, edges, self._node, self._X, TWOFOLD_SHIFT)
        held = np.asarray(self._P.any(axis=(1, 2)))
        self._undetermined = Undetermined(self._problem.graph, self._X, self._node, held)
        self.factorize(self._P, self._row_weights, self._edge_weights)

    def factorize(self, P: FloatArray, row_weights: FloatArray, edge_weights: FloatArray) -> None:
        """Set P (n, d, d), and the weights of rows (N,) and edges (m, d, d)."""
        sums, edges = self._sums, self._problem.graph.edges
        self._P, self._row_weights, self._edge_weights = P, row_weights, edge_weights
        within = sums.both(edge_weights)
        blocks = sums.resting(sums.both(P), edges, within)
        self._factor.factorize(blocks, row_weights, within)

    def move(self, right: FloatArray) -> Move:
        """Return the solution for a right-hand side (n, d)."""
        within, factor = self._sums.within, self._factor
        if isinstance(factor, TwofoldCholesky):
            step, rows, jumps = factor.moves(within(right))
            return Move(self._determined(step), rows, within(jumps))
        step = within(factor.solve(within(right)))
        return Move(step, self.along_rows(step), self._problem.differences(step))

    def _determined(self, x: FloatArray) -> FloatArray:
        """Return x (n, d) without means that are given, and what nothing determines.

        Where sums are given no row sees means: taken out as undetermined they would leave the sums.
        """
        within = self._sums.within
        return within(self._undetermined.without(within(x)))

    def along_rows(self, w: FloatArray) -> FloatArray:
        """Return the products of the rows with w, (N,)."""
        found: FloatArray = self._rows @ w.ravel()
        return found

    def gathered(self, slopes: FloatArray, flow: FloatArray) -> FloatArray:
        """Add up slopes of rows (N,) and a flow (m, d) at their nodes."""
        graph = self._problem.graph
        found: FloatArray = (self._columns @ slopes).reshape(graph.n_nodes, -1)
        return found + graph.divergence @ flow

    def total(self, w: FloatArray, slopes: FloatArray, flow: FloatArray) -> FloatArray:
        """Return what changes of w, slopes and flow add up to at the nodes."""
        own = np.einsum("nij,nj->ni", self._P, w)
        return self._sums.within(own + self.gathered(slopes, flow))

    def weighted(self, jumps: FloatArray) -> FloatArray:
        """Return the flow that the weights of edges make of jumps."""
        found: FloatArray = np.einsum("mij,mj->mi", self._edge_weights, jumps)
        return found

    def image(self, move: Move) -> FloatArray:
        """Return what the matrix makes of a step."""
        return self.total(move.w, self._row_weights * move.rows, self.weighted(move.jumps))

    def size(self, rows: FloatArray, jumps: FloatArray) -> float:
        """Return the weighted squares of what belongs to rows and to edges."""
        edges = np.einsum("mi,mi->", jumps, self.weighted(jumps))
        return dot(self._row_weights, rows**2) + float(edges)

    def caught_up(
        self, w: FloatArray, rows: FloatArray, jumps: FloatArray, times: int
    ) -> FloatArray:
        """Return w moved to where its products with rows and its differences should be.

        As far as that goes: steps are sums of parts that nearly cancel, so that what they add to w
        is not to the last digit what they add to residuals and jumps.
        """
        if self.twofold:
            w = w - self._sums.within(w) + self._determined(w)
        found, least = w, np.inf
        for _ in range(times):
            off = rows - self.along_rows(w), jumps - self._problem.differences(w)
            size = self.size(*off)
            if not size < least:
                break
            found, least = w, size
            w = w + self.move(self.gathered(self._row_weights * off[0], self.weighted(off[1]))).w
        return found
