"""phi(v) = ||v||_2, the network lasso: an edge's whole difference is zero or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import cp
from gtvcvx._norms import row_norm_2, row_squares, unit_rows
from gtvcvx.penalties._base import CompiledForm, Norm
from gtvcvx.penalties._projections import project_l2_ball


class L2Norm(Norm):
    """phi(v) = ||v||_2, phi* the indicator of ||z||_2 <= 1.

    The dual update clips z to the Euclidean ball of radius cap.
    """

    name = "l2"
    compiled_form = int(CompiledForm.L2)

    def __repr__(self) -> str:
        return "L2Norm()"

    def to_data(self) -> dict[str, Any]:
        """Return {"kind": "l2"}."""
        return {"kind": "l2"}

    def _value(self, v: FloatArray) -> FloatArray:
        return row_norm_2(v)

    def _dual_norm(self, z: FloatArray) -> FloatArray:
        return row_norm_2(z)

    def _prox(self, v: FloatArray, t: FloatArray) -> FloatArray:
        # (||v|| - t) / ||v|| keeps its relative accuracy when ||v|| is hardly above t.
        norms = row_norm_2(v)
        kept = np.maximum(norms - t, 0.0)
        return v * np.divide(kept, norms, out=kept, where=norms > 0.0)[:, None]

    def _project_ball(self, z: FloatArray, radius: FloatArray) -> FloatArray:
        return project_l2_ball(z, radius)

    def _feasible_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray:
        # cap ||D|| - <u, D> = (cap - ||u||) ||D|| + ||u|| ||D|| (1 - cos of their angle), and
        # 1 - cos is half the squared distance of the directions: its error is of second order.
        norm_D = row_norm_2(D)
        apart = np.flatnonzero(norm_D)
        if len(apart) < len(D):  # the gap of an edge inside a cluster is zero
            whole = np.zeros(len(D))
            if len(apart):
                whole[apart] = self._feasible_gap(D[apart], u[apart], cap[apart])
            return whole
        norm_u = row_norm_2(u)
        turn = unit_rows(u, norm_u)
        turn -= unit_rows(D, norm_D)
        misalignment = norm_u * (0.5 * row_squares(turn)) * norm_D
        gap: FloatArray = np.maximum(cap - norm_u, 0.0) * norm_D + misalignment
        return gap

    def _weighted_rows(self, V: cp.Expression, weights: FloatArray) -> cp.Expression:
        return weights @ cp.norm(V, 2, axis=1)

    def _dual_ball(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> list[cp.Constraint]:
        return [cp.SOC(lam * weights, U, axis=1)]
