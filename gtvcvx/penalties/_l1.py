"""phi(v) = ||v||_1: every coordinate is a scalar total variation of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import cp
from gtvcvx._norms import row_norm_1, row_norm_inf, row_sums
from gtvcvx.penalties._base import CompiledForm, Norm


class L1Norm(Norm):
    """phi(v) = ||v||_1, phi* the indicator of ||z||_inf <= 1.

    The prox is soft thresholding, the dual update clips each entry to [-cap, cap].
    """

    name = "l1"
    compiled_form = int(CompiledForm.L1)

    def __repr__(self) -> str:
        return "L1Norm()"

    def to_data(self) -> dict[str, Any]:
        """Return {"kind": "l1"}."""
        return {"kind": "l1"}

    def _value(self, v: FloatArray) -> FloatArray:
        return row_norm_1(v)

    def _dual_norm(self, z: FloatArray) -> FloatArray:
        return row_norm_inf(z)

    def _project_ball(self, z: FloatArray, radius: FloatArray) -> FloatArray:
        return np.clip(z, -radius[:, None], radius[:, None])

    def _feasible_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray:
        # Entry by entry (cap - sign(D) u) |D|: no term is negative, so nothing cancels.
        slack = np.maximum(cap[:, None] - np.sign(D) * u, 0.0)
        return row_sums(slack * np.abs(D))

    def _weighted_rows(self, V: cp.Expression, weights: FloatArray) -> cp.Expression:
        return cp.sum(cp.multiply(np.repeat(weights[:, None], V.shape[1], axis=1), cp.abs(V)))

    def _dual_ball(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> list[cp.Constraint]:
        cap = lam * np.repeat(weights[:, None], U.shape[1], axis=1)
        return [cap >= U, cap >= -U]
