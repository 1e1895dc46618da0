"""phi(v) = ||v||_p for any p >= 1, the penalties of convex clustering."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import cp
from gtvcvx._norms import row_norm_p, unit_rows
from gtvcvx.penalties._base import CompiledForm, Norm
from gtvcvx.penalties._l1 import L1Norm
from gtvcvx.penalties._l2 import L2Norm
from gtvcvx.penalties._linf import LinfNorm
from gtvcvx.penalties._projections import project_lq_ball

_CLOSED_FORMS: dict[float, type[Norm]] = {1.0: L1Norm, 2.0: L2Norm, np.inf: LinfNorm}
_SERIES_TERMS = 20  # enough for full accuracy of the exponential's tail on [-1, 1]


class PNorm(Norm):
    """phi(v) = ||v||_p, phi* the indicator of ||z||_q <= 1 with 1/p + 1/q = 1.

    p = 1, 2 and inf use the closed forms of :class:`L1Norm`, :class:`L2Norm` and
    :class:`LinfNorm` and are written down as those.

    Parameters
    ----------
    p : float, 1 <= p <= inf

    Raises
    ------
    TypeError, ValueError
        If p is not a real number or lies below 1.
    """

    name = "pnorm"

    def __init__(self, p: float) -> None:
        if isinstance(p, bool) or not isinstance(p, (int, float, np.integer, np.floating)):
            raise TypeError(f"p must be a real number >= 1, got {p!r}")
        if not p >= 1.0:
            raise ValueError(f"p must be >= 1, got {p!r}")
        self.p = float(p)
        self.q = _conjugate_exponent(self.p)
        closed = _CLOSED_FORMS.get(self.p)
        self._closed: Norm | None = None if closed is None else closed()
        self.compiled_form = int(CompiledForm.OTHER) if closed is None else closed.compiled_form

    def __repr__(self) -> str:
        return f"PNorm({self.p!r})"

    def to_data(self) -> dict[str, Any]:
        """Return {"kind": "pnorm", "p": p}, or the closed form's data for p = 1, 2, inf."""
        return {"kind": "pnorm", "p": self.p} if self._closed is None else self._closed.to_data()

    def _value(self, v: FloatArray) -> FloatArray:
        return row_norm_p(v, self.p)

    def _dual_norm(self, z: FloatArray) -> FloatArray:
        return row_norm_p(z, self.q)

    def _prox(self, v: FloatArray, t: FloatArray) -> FloatArray:
        return super()._prox(v, t) if self._closed is None else self._closed._prox(v, t)

    def _project_ball(self, z: FloatArray, radius: FloatArray) -> FloatArray:
        if self._closed is not None:
            return self._closed._project_ball(z, radius)
        return project_lq_ball(z, radius, self.q)

    def _feasible_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray:
        if self._closed is not None:
            return self._closed._feasible_gap(D, u, cap)
        norm_D, norm_u = row_norm_p(D, self.p), row_norm_p(u, self.q)
        deficit = _hoelder_deficit(unit_rows(u, norm_u), unit_rows(D, norm_D), self.q, self.p)
        gap: FloatArray = np.maximum(cap - norm_u, 0.0) * norm_D + norm_u * deficit * norm_D
        return gap

    def _weighted_rows(self, V: cp.Expression, weights: FloatArray) -> cp.Expression:
        if self._closed is not None:
            return self._closed._weighted_rows(V, weights)
        # A class of CVXPY's own: V has loaded CVXPY, penalties alone have not.
        from gtvcvx.penalties._pnorm_atom import RowPNorms

        return weights @ RowPNorms(V, self.p)

    def _dual_ball(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> list[cp.Constraint]:
        if self._closed is not None:
            return self._closed._dual_ball(U, weights, lam)
        from gtvcvx.penalties._pnorm_atom import power_cones  # as above

        return power_cones(U, lam * weights, self.q)


def _conjugate_exponent(p: float) -> float:
    if p == 1.0:
        return float(np.inf)
    return 1.0 if p == np.inf else p / (p - 1.0)


def _hoelder_deficit(x: FloatArray, y: FloatArray, q: float, p: float) -> FloatArray:
    """1 - <x, y> for rows with ||x||_q = ||y||_p = 1: (m,), accurate where it is tiny.

    It is the sum of |x_k|^q / q + |y_k|^p / p - x_k y_k, none of them negative (Young). With
    |x_k|^q = e^a and |y_k|^p = e^b, such a term is, for equal signs,
    e^(a/q + b/p) (tail((a - b)/p) / q + tail((b - a)/q) / p), tail(s) = e^s - 1 - s. Rounding in
    the norms of x and y enters in second order only.
    """
    size_x, size_y = np.abs(x), np.abs(y)
    deficit = np.power(size_x, q) / q + np.power(size_y, p) / p - x * y
    both = (np.sign(x) == np.sign(y)) & (size_x > 0.0) & (size_y > 0.0)
    log_x = np.log(np.where(both, size_x, 1.0))
    log_y = np.log(np.where(both, size_y, 1.0))
    apart = q * log_x - p * log_y
    near = both & (np.abs(apart) <= 1.0)
    apart = np.where(near, apart, 0.0)
    close = np.exp(log_x + log_y) * (_exp_tail(apart / p) / q + _exp_tail(-apart / q) / p)
    total: FloatArray = np.where(near, close, np.maximum(deficit, 0.0)).sum(axis=1)
    return total


def _exp_tail(s: FloatArray) -> FloatArray:
    """e^s - 1 - s for |s| <= 1 by its Taylor series, s^2/2 (1 + s/3 (1 + s/4 (...)))."""
    series = np.ones_like(s)
    for n in range(_SERIES_TERMS, 2, -1):
        series = 1.0 + s / n * series
    return 0.5 * s * s * series
