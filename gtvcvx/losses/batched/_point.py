"""Squared distances to points at many nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import cp
from gtvcvx.losses.batched._base import AffineProx, BatchedLoss, QuadraticForm, ScalarForm


class BatchedPoint(BatchedLoss):
    """Point losses at k nodes, points ``a`` of shape (k, d)."""

    is_quadratic = True
    modelled = True
    smooth = True

    def __init__(self, a: FloatArray) -> None:
        self.a = a
        self.dim = a.shape[1]

    @property
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""
        return len(self.a)

    def quadratic(self) -> QuadraticForm:
        """Twice the identities, and the points doubled."""
        hessian = np.tile(2.0 * np.eye(self.dim), (self.n_nodes, 1, 1))
        return QuadraticForm(hessian, 2.0 * self.a)

    def total_hessian(self) -> FloatArray:
        """Twice the identity for each node."""
        return 2.0 * self.n_nodes * np.eye(self.dim)

    def in_basis(self, basis: FloatArray) -> BatchedPoint:
        """Squared distances to the points' coordinates."""
        return BatchedPoint(self.a @ basis)

    def model(self, w: FloatArray, last: BatchedLoss | None = None) -> BatchedPoint:
        """Return the losses: they are quadratic."""
        return self

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """Squared lengths of the steps."""
        return np.sum((w - before) ** 2, axis=1)

    def scalar(self) -> ScalarForm:
        """Twos, and the points doubled."""
        return ScalarForm(np.full_like(self.a, 2.0), 2.0 * self.a)

    def value(self, w: FloatArray) -> FloatArray:
        """Squared distances (k,)."""
        return np.sum((w - self.a) ** 2, axis=1)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradients 2 (w_i - a_i), shape (k, d)."""
        return 2.0 * (w - self.a)

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Weighted means (v_i + 2 tau_i a_i) / (1 + 2 tau_i)."""
        t = 2.0 * tau[:, None]
        return (v + t * self.a) / (1.0 + t)

    def affine_prox(self, tau: FloatArray) -> AffineProx:
        """Multiples of the identity, and an offset towards a_i."""
        shrink = 1.0 / (1.0 + 2.0 * tau)
        return AffineProx(
            shrink[:, None, None] * np.eye(self.dim), (2.0 * tau * shrink)[:, None] * self.a
        )

    def minimizer(self) -> FloatArray:
        """Return the points themselves."""
        return self.a.copy()

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Return <s_i, a_i> + ||s_i||^2 / 4, finite everywhere."""
        return np.sum(s * self.a, axis=1) + 0.25 * np.sum(s**2, axis=1)

    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Node gaps ||s_i - grad L_i(w_i)||^2 / 4."""
        return 0.25 * np.sum((s - self.gradient(w)) ** 2, axis=1)

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the value."""
        return cp.sum_squares(w - self.a), []

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the conjugate."""
        return cp.sum(cp.multiply(s, self.a)) + 0.25 * cp.sum_squares(s), []

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """One point term."""
        order = np.argsort(nodes)
        return [{"kind": "point", "node": nodes[order], "a": self.a[order]}]
