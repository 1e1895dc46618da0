"""The client's problem with its quadratic term, in a ball if one is given."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

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


class NodeStep(NamedTuple):
    """A client's answer, and a bound on its distance to the exact one."""

    w: FloatArray  # (d,)
    error: float


class Spectrum(NamedTuple):
    """A quadratic loss ``(1/2) w^T H w - b^T w`` in a basis in which H is diagonal."""

    values: FloatArray  # (d,), of H, at least zero
    basis: FloatArray  # (d, d), eigenvectors in columns
    linear: FloatArray  # (d,), b as it is given


def spectrum_of(loss: BatchedLoss) -> Spectrum | None:
    """Return eigenvalues and eigenvectors of a quadratic loss of one node; else None."""
    form = loss.quadratic()
    if form is None:
        return None
    values, basis = np.linalg.eigh(form.hessian[0])
    return Spectrum(np.maximum(values, 0.0), basis, form.linear[0])


def node_step(
    loss: BatchedLoss,
    centre: FloatArray,
    rho: float,
    radius: float | None,
    spectrum: Spectrum | None,
) -> NodeStep:
    """Return ``argmin_w L(w) + (rho/2) ||w - centre||^2`` (d,), under ``||w|| <= radius``.

    A quadratic loss is solved in a basis of eigenvectors (`spectrum_of`, which steps with the same
    loss share), where the ball's multiplier is the root of a secular equation in one variable;
    other losses by their proximal maps, whose norm falls with the multiplier in the same way.
    """
    point: Path = _ProxPath(loss, centre, rho)
    if spectrum is not None:
        point = _QuadraticPath(spectrum, centre, rho)
    free = point(0.0)
    if radius is None or math.hypot(*free.tolist()) <= radius:
        return NodeStep(free, _error(loss, free, rho * (centre - free), rho))
    w, nu = _on_sphere(point, rho, radius)
    return NodeStep(w, _error(loss, w, rho * (centre - w) - nu * w, rho + nu))


def _error(loss: BatchedLoss, w: FloatArray, slope: FloatArray, convexity: float) -> float:
    """Bound the distance of w to the minimizer, where the loss has this slope if w is exact.

    With F the strongly convex objective: a subgradient g of the loss at w gives one of F,
    g - slope, and ``||w - w*|| <= ||g - slope|| / convexity``. Where there are kinks or
    constraints the subgradient may be another one than the slope; then the gap of Fenchel's
    inequality bounds ``F(w) - F(w*) >= (convexity / 2) ||w - w*||^2``.
    """
    row, slopes = w[None, :], slope[None, :]
    with np.errstate(all="ignore"):
        by_slope = float(np.linalg.norm(loss.gradient(row)[0] - slope)) / convexity
        if loss.smooth and math.isfinite(by_slope):
            return by_slope
        # The gap forgives what is outside of the conjugate's domain.
        projector = loss.null_projector()
        along = projector * slope if isinstance(projector, float) else projector @ slope
        outside = float(np.linalg.norm(along))
        by_gap = math.sqrt(2.0 * float(loss.fenchel_gap(row, slopes)[0]) / convexity)
        error = min(by_slope, by_gap + outside / convexity)
    return error if math.isfinite(error) else math.inf


class _QuadraticPath:
    """Minimizers of a quadratic loss, in the basis in which its Hessian is diagonal."""

    def __init__(self, spectrum: Spectrum, centre: FloatArray, rho: float) -> None:
        self._basis = spectrum.basis
        self._values = spectrum.values + rho
        self._linear = self._basis.T @ (spectrum.linear + rho * centre)

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


def _on_sphere(point: Path, rho: float, radius: float) -> tuple[FloatArray, float]:
    """Return the point of the path whose norm is the radius, less than at nu = 0, and nu."""

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
    return np.asarray(w * min(1.0, radius / math.hypot(*w.tolist()))), float(nu)
