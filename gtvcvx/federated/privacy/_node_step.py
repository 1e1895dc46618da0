"""The client's problem with its quadratic term, in a ball if one is given."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from gtvcvx._arrays import FloatArray
from gtvcvx.losses.batched._base import BatchedLoss

# Multipliers are found to this share, as far as doubles go; steps of this method, in fact some ten.
_SHARE = 4.0 * float(np.finfo(np.float64).eps)
_STEPS = 500
# Multipliers beyond would make the quadratic term overflow.
_LARGEST = 1e300

# Minimizers by the multiplier nu of (1/2) ||w||^2.
Path = Callable[[float], FloatArray]


def node_step(
    loss: BatchedLoss, centre: FloatArray, rho: float, radius: float | None
) -> FloatArray:
    """Return ``argmin_w L(w) + (rho/2) ||w - centre||^2`` (d,), under ``||w|| <= radius``.

    A quadratic loss is solved in a basis of eigenvectors, where the ball's multiplier is the root
    of a secular equation in one variable; other losses by their proximal maps, whose norm falls
    with the multiplier in the same way.
    """
    form = loss.quadratic()
    point: Path = _ProxPath(loss, centre, rho)
    if form is not None:
        point = _QuadraticPath(form.hessian[0], form.linear[0] + rho * centre, rho)
    free = point(0.0)
    if radius is None or math.hypot(*free.tolist()) <= radius:
        return free
    return _on_sphere(point, rho, radius)


class _QuadraticPath:
    """Minimizers of a quadratic loss, in the basis in which its Hessian is diagonal."""

    def __init__(self, hessian: FloatArray, linear: FloatArray, rho: float) -> None:
        values, self._basis = np.linalg.eigh(hessian)
        self._values = np.maximum(values, 0.0) + rho
        self._linear = self._basis.T @ linear

    def __call__(self, nu: float) -> FloatArray:
        return np.asarray(self._basis @ (self._linear / (self._values + nu)))


class _ProxPath:
    """Minimizers of any loss, by its proximal map."""

    def __init__(self, loss: BatchedLoss, centre: FloatArray, rho: float) -> None:
        self._loss, self._centre, self._rho = loss, centre, rho

    def __call__(self, nu: float) -> FloatArray:
        total = self._rho + nu
        centre = self._centre * (self._rho / total)
        return self._loss.prox(centre[None, :], np.array([1.0 / total]))[0]


def _on_sphere(point: Path, rho: float, radius: float) -> FloatArray:
    """Return the point of the path whose norm is the radius; that at nu = 0 has a larger one."""

    def room(nu: float) -> float:
        return 1.0 - math.hypot(*point(nu).tolist()) / radius

    high = rho
    while room(high) < 0.0:
        high *= 10.0
        if high > _LARGEST:
            raise ValueError(f"radius: no answer of norm {radius} to data of this size in doubles")
    nu = brentq(room, 0.0, high, xtol=np.finfo(np.float64).tiny, rtol=_SHARE, maxiter=_STEPS)
    w = point(float(nu))
    # The root is off by rounding: the constraint comes first.
    return np.asarray(w * min(1.0, radius / math.hypot(*w.tolist())))
