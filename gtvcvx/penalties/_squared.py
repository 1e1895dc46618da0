"""phi(v) = (1/2) ||v||_2^2, the smooth coupling of MOCHA: flows are free, at a quadratic cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import cp
from gtvcvx.penalties._base import CompiledForm, Penalty
from gtvcvx.penalties._quadratic import dual_quadratic_cost


class SquaredNorm(Penalty):
    """phi(v) = (1/2) ||v||_2^2, its own conjugate.

    [GTV]'s figures label MOCHA as ||v||_2^2 without the one half: their lambda is half of ours.
    """

    name = "squared"
    is_norm = False
    compiled_form = int(CompiledForm.SQUARED)

    def __repr__(self) -> str:
        return "SquaredNorm()"

    def to_data(self) -> dict[str, Any]:
        """Return {"kind": "squared"}."""
        return {"kind": "squared"}

    def _value(self, v: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            half: FloatArray = 0.5 * np.einsum("ij,ij->i", v, v)
        return half

    def _conjugate(self, z: FloatArray, tol: float) -> FloatArray:
        return self._value(z)

    def _prox(self, v: FloatArray, t: FloatArray) -> FloatArray:
        return v / (1.0 + t)[:, None]

    def _prox_conjugate(self, z: FloatArray, sigma: FloatArray, cap: FloatArray) -> FloatArray:
        return z * (cap / (cap + sigma))[:, None]

    def _project_domain(self, z: FloatArray, cap: FloatArray) -> FloatArray:
        return z.copy()

    def _fenchel_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray:
        # ||u - cap D||^2 / (2 cap): a square, exact zero at the optimal pair.
        return self._value((u - cap[:, None] * D) / np.sqrt(cap)[:, None])

    def _scale_to_feasible(self, u: FloatArray, cap: FloatArray) -> float:
        return 1.0

    def _weighted_expression(self, V: cp.Expression, weights: FloatArray) -> cp.Expression:
        scale = np.repeat(np.sqrt(weights)[:, None], V.shape[1], axis=1)
        return 0.5 * cp.sum_squares(cp.multiply(scale, V))

    def _dual_expression(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> tuple[cp.Expression, list[cp.Constraint]]:
        return dual_quadratic_cost(U, weights, lam)
