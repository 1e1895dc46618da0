"""The zero loss at many nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import cp
from gtvcvx.losses.batched._base import (
    AffineProx,
    BatchedLoss,
    QuadraticForm,
    ScalarForm,
    ThinForm,
)
from gtvcvx.losses.batched._thin import without_rows


class BatchedZero(BatchedLoss):
    """Zero losses at k nodes, of dimension d."""

    is_quadratic = True
    modelled = True
    trivial = True
    smooth = True

    def __init__(self, n_nodes: int, dim: int) -> None:
        self._n_nodes = n_nodes
        self.dim = dim

    @property
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""
        return self._n_nodes

    def quadratic(self) -> QuadraticForm:
        """Hessians and linear terms of zeros."""
        k, d = self._n_nodes, self.dim
        return QuadraticForm(np.zeros((k, d, d)), np.zeros((k, d)))

    def total_hessian(self) -> FloatArray:
        """Zeros (d, d)."""
        return np.zeros((self.dim, self.dim))

    def in_basis(self, basis: FloatArray) -> BatchedZero:
        """Return zero losses: they are the same in any basis."""
        return self

    def model(self, w: FloatArray, last: BatchedLoss | None = None) -> BatchedZero:
        """Return the losses: they are quadratic."""
        return self

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """Zeros (k,)."""
        return np.zeros(len(w))

    def scalar(self) -> ScalarForm:
        """Curvatures and linear terms of zeros."""
        shape = self._n_nodes, self.dim
        return ScalarForm(np.zeros(shape), np.zeros(shape))

    @property
    def n_thin_rows(self) -> int:
        """None at all."""
        return 0

    def thin(self) -> ThinForm:
        """Return zeros."""
        return without_rows(self.scalar())

    def value(self, w: FloatArray) -> FloatArray:
        """Zeros (k,)."""
        return np.zeros(len(w))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Zeros (k, d)."""
        return np.zeros_like(w)

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Return v itself."""
        return v.copy()

    def affine_prox(self, tau: FloatArray) -> AffineProx:
        """Return the identity map."""
        k, d = self._n_nodes, self.dim
        return AffineProx(np.broadcast_to(np.eye(d), (k, d, d)), np.zeros((k, d)))

    def minimizer(self) -> FloatArray:
        """Zeros (k, d)."""
        return np.zeros((self._n_nodes, self.dim))

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Return 0 where ||s_i|| <= atol_i, else +inf."""
        return np.where(np.linalg.norm(s, axis=1) <= atol, 0.0, np.inf)

    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Zeros (k,): all of s_i lies along the null directions."""
        return np.zeros(len(w))

    def null_projector(self) -> float:
        """Every direction is a null direction."""
        return 1.0

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the value."""
        return cp.Constant(0.0), []

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the conjugate: flow conservation s = 0."""
        return cp.Constant(0.0), [s == 0]

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """No term at all."""
        return []
