"""phi(v) = ||v||_inf: an edge pays for its largest coordinate."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import cp
from gtvcvx._norms import row_norm_1, row_norm_inf
from gtvcvx.penalties._base import CompiledForm, Norm
from gtvcvx.penalties._projections import project_l1_ball


class LinfNorm(Norm):
    """phi(v) = ||v||_inf, phi* the indicator of ||z||_1 <= 1.

    The dual update projects on the l1 ball of radius cap.
    """

    name = "linf"
    compiled_form = int(CompiledForm.LINF)

    def __repr__(self) -> str:
        return "LinfNorm()"

    def to_data(self) -> dict[str, Any]:
        """Return {"kind": "linf"}."""
        return {"kind": "linf"}

    def _value(self, v: FloatArray) -> FloatArray:
        return row_norm_inf(v)

    def _dual_norm(self, z: FloatArray) -> FloatArray:
        return row_norm_1(z)

    def _project_ball(self, z: FloatArray, radius: FloatArray) -> FloatArray:
        return project_l1_ball(z, radius)

    def _feasible_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray:
        # (cap - ||u||_1) max|D| + sum_k |u_k| (max|D| - sign(u_k) D_k): no term is negative.
        peak = row_norm_inf(D)
        misalignment = (np.abs(u) * (peak[:, None] - np.sign(u) * D)).sum(axis=1)
        gap: FloatArray = np.maximum(cap - row_norm_1(u), 0.0) * peak + misalignment
        return gap

    def _weighted_rows(self, V: cp.Expression, weights: FloatArray) -> cp.Expression:
        return weights @ cp.norm(V, "inf", axis=1)

    def _dual_ball(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> list[cp.Constraint]:
        return [cp.norm(U, 1, axis=1) <= lam * weights]
