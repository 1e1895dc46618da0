r"""Potentials beside few rows in many dimensions, by a factorization of the rows' own size.

The system of `gtvcvx.duality._polyhedral` is the Laplacian in every coordinate and the generators,
as rows g_q to the ground at their nodes i_q,

.. math:: A = L \otimes I + \sum_q c_q (e_{i_q} e_{i_q}^T) \otimes (g_q g_q^T).

What all nodes of a component share is held by the rows alone: with about as many rows as
coordinates A is so ill-conditioned that conjugate gradients take hundreds of steps, whatever the
nodes are scaled by. By Woodbury's identity, with S = (L + \epsilon I)^{-1} of size n, the inverse
of A + \epsilon I takes that of

.. math:: K_{qr} = \delta_{qr} + \sqrt{c_q c_r} S_{i_q i_r} \langle g_q, g_r \rangle,

of as many rows as there are generators, however many the coordinates are. Preconditioned by that,
conjugate gradients take a few steps.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look, spend
from gtvcvx._norms import norm
from gtvcvx._pieces import gram
from gtvcvx.compiled._conjugate_gradients import MULTIPLICATION
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses.batched._thin import pays

# Rows and nodes beyond which factors take longer than what they spare: with so many of both they
# take about a second, and 32 megabytes each.
MOST_ROWS, MOST_NODES = 2_000, 2_000
# Epsilon, relative to the largest degree: far below what rows hold a component by, and far enough
# above rounding for a preconditioner.
_SHIFT = 1e-9
# Steps: one or two are the rule. Edges that conduct next to nothing may ask for some more.
_STEPS = 30


def fits(n_rows: int, n: int, d: int) -> bool:
    """Say whether there are rows, few enough at n nodes with d coordinates to be factored.

    Three arrays of their products take less than the matrices (n, d, d) that rows stand for.
    """
    few = 0 < n_rows <= MOST_ROWS and n <= MOST_NODES
    return few and pays(n_rows, n, d) and 4 * n_rows**2 <= n * d * d


class FewRows:
    """Generators of all nodes, and their products with each other.

    Parameters
    ----------
    graph : EmpiricalGraph
    node : (Q,)
        Whose row it is.
    rows : (Q, d)
    """

    def __init__(self, graph: EmpiricalGraph, node: IntArray, rows: FloatArray) -> None:
        self._incidence, self._node, self._rows = graph.incidence, node, rows
        self._gram = gram(np.ascontiguousarray(rows.T))

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self._node)

    def factor(
        self, conductance: FloatArray, ground: FloatArray, nodes: FloatArray | None = None
    ) -> RowFactor:
        """Return the factored system.

        Conductances are those of edges (m,), of rows to the ground (Q,), and of nodes, all of their
        coordinates, to the ground (n,).
        """
        D = self._incidence
        laplacian = (D.T @ (conductance[:, None] * D)).tocsc()
        if nodes is not None and nodes.any():
            laplacian += sp.diags_array(nodes, format="csc")
        return RowFactor(laplacian, self._node, self._rows, self._gram, ground)


class RowFactor:
    """A system with few rows, factored.

    Parameters
    ----------
    laplacian : sparse (n, n)
    node, rows, ground : (Q,), (Q, d), (Q,)
    products : (Q, Q)
        Of the rows.
    """

    def __init__(
        self,
        laplacian: sp.csc_array,
        node: IntArray,
        rows: FloatArray,
        products: FloatArray,
        ground: FloatArray,
    ) -> None:
        n, Q = laplacian.shape[0], len(node)
        root = np.sqrt(ground)
        self._rows = root[:, None] * rows
        # Adds up what rows pull at their nodes.
        self._at = sp.csr_array((np.ones(Q), (node, np.arange(Q))), shape=(n, Q))
        self._node, self._laplacian = node, laplacian.tocsr()
        shift = _SHIFT * float(laplacian.diagonal().max(initial=0.0)) or 1.0
        held = (laplacian + shift * sp.eye_array(n, format="csc")).tocsc()
        # In the order of a symmetric matrix, without exchanges: single-threaded, unlike LAPACK.
        self._sparse = scipy.sparse.linalg.splu(
            held,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        look()
        inverse = self._sparse.solve(np.eye(n))
        K = root[:, None] * products
        K *= root
        K *= inverse[np.ix_(node, node)]
        np.einsum("qq->q", K)[:] += 1.0
        look()
        self._factor = scipy.linalg.cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        spend(MULTIPLICATION * (Q**3 / 3 + n * self._sparse.nnz))

    def _pulled(self, weights: FloatArray) -> FloatArray:
        """Return the sums (n, d) of the rows with weights (Q,) at their nodes."""
        return np.asarray(self._at @ (weights[:, None] * self._rows))

    def _along(self, x: FloatArray) -> FloatArray:
        """Return the products (Q,) of the rows with x (n, d) at their nodes."""
        return np.asarray(np.einsum("qj,qj->q", self._rows, x[self._node]))

    def _applied(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._laplacian @ x) + self._pulled(self._along(x))

    def _preconditioned(self, b: FloatArray) -> FloatArray:
        """Return what the inverse of A + epsilon I makes of b (n, d)."""
        x = self._sparse.solve(b)
        weights = scipy.linalg.cho_solve(self._factor, self._along(x), check_finite=False)
        return np.asarray(x - self._sparse.solve(self._pulled(weights)))

    def solve(self, b: FloatArray, goal: float) -> FloatArray:
        """Return x (n, d) with A x = b for b in the range, to a residual of norm goal or nearly.

        Raises
        ------
        Expired, Unaffordable
            Time or work is over, see `gtvcvx._deadline`.
        """
        x, left, direction, before = np.zeros_like(b), b.copy(), np.zeros_like(b), np.inf
        work = (2.0 * self._sparse.nnz + self._laplacian.nnz + 5.0 * len(b)) * b.shape[1]
        work += 4.0 * self._rows.size + len(self._rows) ** 2
        for _ in range(_STEPS):
            if norm(left) <= goal:
                break
            look()
            spend(MULTIPLICATION * work)
            step = self._preconditioned(left)
            energy = float(np.sum(step * left))
            direction = step + (energy / before) * direction
            image = self._applied(direction)
            curvature = float(np.sum(direction * image))
            if not (curvature > 0.0 and energy > 0.0):
                break
            x += (energy / curvature) * direction
            left -= (energy / curvature) * image
            before = energy
        return x
