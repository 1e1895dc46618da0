"""phi(v) = (1/2) v^T Q v with Q symmetric positive semidefinite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import cp
from gtvcvx._norms import row_norm_2
from gtvcvx.penalties._base import Penalty
from gtvcvx.penalties._checks import EPS, rounding_slack
from verify._display import short


class Quadratic(Penalty):
    """phi(v) = (1/2) v^T Q v; phi*(z) = (1/2) z^T Q^+ z on range(Q), +infinity elsewhere.

    Eigenvalues below the rounding of the largest one count as zero, in Q and in its range.

    Parameters
    ----------
    Q : (d, d) array, symmetric positive semidefinite

    Raises
    ------
    TypeError, ValueError
        If Q is not a finite, symmetric, positive semidefinite square matrix.
    """

    name = "quadratic"
    is_norm = False
    dim: int  # a Quadratic is always made for one d

    def __init__(self, Q: ArrayLike) -> None:
        self.Q = _checked_matrix(Q)
        self.Q.setflags(write=False)
        self.dim = len(self.Q)
        values, vectors = np.linalg.eigh(self.Q)
        cutoff = 8.0 * self.dim * EPS * float(np.abs(values).max())
        if values[0] < -cutoff:
            raise ValueError(
                f"Q must be positive semidefinite, its smallest eigenvalue is {values[0]:.6g}"
            )
        positive = values > cutoff
        self._eigenvalues: FloatArray = values[positive]
        self._range: FloatArray = np.ascontiguousarray(vectors[:, positive])
        self._root: FloatArray = self._range * np.sqrt(self._eigenvalues)  # Q = root root^T
        self._null: FloatArray = np.ascontiguousarray(vectors[:, ~positive])

    @property
    def rank(self) -> int:
        """Dimension of range(Q)."""
        return len(self._eigenvalues)

    def __repr__(self) -> str:
        text = repr(self.Q.tolist()) if len(self.Q) <= 3 else ""
        return f"Quadratic({text if 0 < len(text) <= 80 else short(self.Q)})"

    def to_data(self) -> dict[str, Any]:
        """Return {"kind": "quadratic", "Q": (d, d) array}."""
        return {"kind": "quadratic", "Q": self.Q.copy()}

    def span_projector(self, dim: int) -> FloatArray | None:
        """Projector (d, d) on range(Q), None if Q is regular."""
        return None if self.rank == self.dim else self._range @ self._range.T

    def _value(self, v: FloatArray) -> FloatArray:
        return _half_squares(v @ self._root)

    def _conjugate(self, z: FloatArray, tol: float) -> FloatArray:
        value = _half_squares((z @ self._range) / np.sqrt(self._eigenvalues))
        return np.where(self._in_range(z, tol), value, np.inf)

    def _in_range(self, z: FloatArray, tol: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if self.rank == self.dim:
            return np.ones(len(z), dtype=np.bool_)
        outside = row_norm_2(z @ self._null)
        return outside <= (tol + rounding_slack(self.dim)) * row_norm_2(z)

    def _prox(self, v: FloatArray, t: FloatArray) -> FloatArray:
        # (I + t Q)^{-1} v: the null space keeps its part untouched.
        with np.errstate(over="ignore", divide="ignore"):
            removed = 1.0 / (1.0 + 1.0 / (t[:, None] * self._eigenvalues))
        return v - ((v @ self._range) * removed) @ self._range.T

    def _prox_conjugate(self, z: FloatArray, sigma: FloatArray, cap: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", divide="ignore"):
            kept = 1.0 / (1.0 + sigma[:, None] / (cap[:, None] * self._eigenvalues))
        result: FloatArray = ((z @ self._range) * kept) @ self._range.T
        return result

    def _project_domain(self, z: FloatArray, cap: FloatArray) -> FloatArray:
        if self.rank == self.dim:
            return z.copy()
        result: FloatArray = (z @ self._range) @ self._range.T
        return result

    def _fenchel_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray:
        # In Q's eigenbasis sum_k (u_k - cap mu_k D_k)^2 / (2 cap mu_k), a sum of squares.
        scale = cap[:, None] * self._eigenvalues
        residual = u @ self._range - scale * (D @ self._range)
        gap = _half_squares(residual / np.sqrt(scale))
        return np.where(self._in_range(u, 0.0), gap, np.inf)

    def _scale_to_feasible(self, u: FloatArray, cap: FloatArray) -> float:
        # The domain is a subspace: scaling helps nobody outside it (project_domain does).
        return 1.0 if bool(self._in_range(u, 0.0).all()) else 0.0

    def _weighted_expression(self, V: cp.Expression, weights: FloatArray) -> cp.Expression:
        if self.rank == 0:
            return cp.Constant(0.0)
        scale = np.repeat(np.sqrt(weights)[:, None], self.rank, axis=1)
        return 0.5 * cp.sum_squares(cp.multiply(scale, V @ self._root))

    def _dual_expression(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> tuple[cp.Expression, list[cp.Constraint]]:
        null = [] if self.rank == self.dim else [U @ self._null == 0]
        if self.rank == 0:
            return cp.Constant(0.0), null
        cost, link = dual_quadratic_cost(
            U @ (self._range / np.sqrt(self._eigenvalues)), weights, lam
        )
        return cost, null + link


def dual_quadratic_cost(
    U: cp.Expression, weights: FloatArray, lam: cp.Parameter
) -> tuple[cp.Expression, list[cp.Constraint]]:
    """sum_e ||U_e||^2 / (2 lam A_e) as a quadratic objective that is DPP in lam.

    A parameter may not stand in a denominator, so that U_e = lam sqrt(A_e) Y_e defines Y, and
    the cost is (lam / 2) ||Y||^2: it stays a QP, without a cone over all edges.
    """
    Y = cp.Variable(U.shape)
    scale = np.repeat((1.0 / np.sqrt(weights))[:, None], U.shape[1], axis=1)
    return 0.5 * lam * cp.sum_squares(Y), [cp.multiply(scale, U) == lam * Y]


def _half_squares(rows: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        half: FloatArray = 0.5 * np.einsum("ij,ij->i", rows, rows)
    return half


def _checked_matrix(Q: ArrayLike) -> FloatArray:
    """Return a symmetric copy of Q, or say what is wrong with it."""
    raw = np.asarray(Q)
    if raw.dtype.kind not in "biuf":
        raise TypeError(f"Q must be a matrix of real numbers, got dtype {raw.dtype}")
    matrix = raw.astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"Q must be a square matrix (d, d), d >= 1, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(f"Q must be finite, but Q[{i}, {j}] is {matrix[i, j]}")
    skew = np.abs(matrix - matrix.T)
    if skew.max() > 1e-12 * np.abs(matrix).max():
        i, j = np.unravel_index(int(skew.argmax()), skew.shape)
        raise ValueError(
            f"Q must be symmetric, but Q[{i}, {j}] = {matrix[i, j]} and "
            f"Q[{j}, {i}] = {matrix[j, i]}"
        )
    return 0.5 * (matrix + matrix.T)
