"""Squared distances to points at many nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import cp
from gtvcvx._norms import row_squares
from gtvcvx._pieces import rowwise
from gtvcvx.losses.batched._base import (
    AffineProx,
    BatchedLoss,
    QuadraticForm,
    ScalarForm,
    ThinForm,
)
from gtvcvx.losses.batched._terms import WEIGHT
from gtvcvx.losses.batched._thin import without_rows


class BatchedPoint(BatchedLoss):
    """Point losses ``c_i ||w_i - a_i||^2`` at k nodes.

    Parameters
    ----------
    a : ndarray, shape (k, d)
    weight : ndarray, shape (k,), optional
        c > 0. Default: ones, by which nothing is multiplied.
    """

    is_quadratic = True
    modelled = True
    smooth = True

    def __init__(self, a: FloatArray, weight: FloatArray | None = None) -> None:
        self.a, self._weight = a, weight
        self.dim = a.shape[1]
        # The second derivatives, one for all nodes or (k, 1).
        self._curvature: float | FloatArray = 2.0 if weight is None else 2.0 * weight[:, None]

    def _weighted(self, squares: FloatArray) -> FloatArray:
        return squares if self._weight is None else self._weight * squares

    @property
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""
        return len(self.a)

    def quadratic(self) -> QuadraticForm:
        """Multiples of the identities, and of the points."""
        hessian = np.tile(2.0 * np.eye(self.dim), (self.n_nodes, 1, 1))
        if self._weight is not None:
            hessian *= self._weight[:, None, None]
        return QuadraticForm(hessian, self._curvature * self.a)

    def total_hessian(self) -> FloatArray:
        """Twice the identity for each node, times its weight."""
        total = self.n_nodes if self._weight is None else self._weight.sum()
        return np.asarray(2.0 * total * np.eye(self.dim))

    def in_basis(self, basis: FloatArray) -> BatchedPoint:
        """Squared distances to the points' coordinates."""
        return BatchedPoint(self.a @ basis, self._weight)

    def model(self, w: FloatArray, last: BatchedLoss | None = None) -> BatchedPoint:
        """Return the losses: they are quadratic."""
        return self

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """Weighted squared lengths of the steps."""
        return self._weighted(row_squares(w - before))

    def scalar(self) -> ScalarForm:
        """Second derivatives, and their multiples of the points."""
        # A number a node takes no memory; in one dimension it is the array, and may be given on.
        column = np.empty((self.n_nodes, 1))
        column[:] = self._curvature
        curvature = np.broadcast_to(column, self.a.shape) if self.dim > 1 else column
        return ScalarForm(curvature, self._curvature * self.a)

    @property
    def n_thin_rows(self) -> int:
        """None at all."""
        return 0

    def thin(self) -> ThinForm:
        """Second derivatives, and no rows."""
        return without_rows(self.scalar())

    def value(self, w: FloatArray) -> FloatArray:
        """Weighted squared distances (k,)."""
        squares = rowwise(lambda at: row_squares(w[at] - self.a[at]), *self.a.shape)
        return self._weighted(squares)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradients 2 c_i (w_i - a_i), shape (k, d)."""
        return self._curvature * (w - self.a)

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Weighted means (v_i + 2 c_i tau_i a_i) / (1 + 2 c_i tau_i)."""
        t = self._curvature * tau[:, None]
        return (v + t * self.a) / (1.0 + t)

    def affine_prox(self, tau: FloatArray) -> AffineProx:
        """Multiples of the identity, and an offset towards a_i."""
        t = self._curvature * tau[:, None]
        shrink = 1.0 / (1.0 + t)
        return AffineProx(shrink[:, :, None] * np.eye(self.dim), t * shrink * self.a)

    def minimizer(self) -> FloatArray:
        """Return the points themselves."""
        return self.a.copy()

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Return <s_i, a_i> + ||s_i||^2 / (4 c_i), finite everywhere."""
        return np.sum(s * self.a, axis=1) + self._quarters(s)

    def _quarters(self, s: FloatArray) -> FloatArray:
        quarters = 0.25 * row_squares(s)
        return np.asarray(quarters if self._weight is None else quarters / self._weight)

    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Node gaps ||s_i - grad L_i(w_i)||^2 / (4 c_i)."""
        c, a = np.broadcast_to(self._curvature, (len(w), 1)), self.a

        def squares(at: slice) -> FloatArray:
            return row_squares(s[at] - c[at] * (w[at] - a[at]))

        quarters = 0.25 * rowwise(squares, *w.shape)
        return np.asarray(quarters if self._weight is None else quarters / self._weight)

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the value."""
        if self._weight is None:
            return cp.sum_squares(w - self.a), []
        root = np.tile(np.sqrt(self._weight)[:, None], (1, self.dim))
        return cp.sum_squares(cp.multiply(root, w) - root * self.a), []

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the conjugate."""
        linear = cp.sum(cp.multiply(s, self.a))
        if self._weight is None:
            return linear + 0.25 * cp.sum_squares(s), []
        root = np.tile(np.sqrt(1.0 / self._weight)[:, None], (1, self.dim))
        return linear + 0.25 * cp.sum_squares(cp.multiply(root, s)), []

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """One point term."""
        order = np.argsort(nodes)
        # Many points in many dimensions are most of what there is: no copy where none is needed.
        a = self.a if (order[1:] > order[:-1]).all() else self.a[order]
        term = {"kind": "point", "node": nodes[order], "a": a}
        return [term if self._weight is None else {**term, WEIGHT: self._weight[order]}]
