"""Barriers of power cones of three rows, ``|s_2| <= s_0^alpha s_1^beta``, beta = 1 - alpha.

With p = (z_0 / alpha)^alpha (z_1 / beta)^beta of multipliers z,

    f*(z) = -log(p + z_2) - log(p - z_2) - beta log z_0 - alpha log z_1.

Nothing but ``p - |z_2|``, the distance to the boundary, is a difference of other numbers.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.solvers.interior_point.careful._barriers import STEPS, Mean, third_of_log

# In the middle of a cone the third number has no logarithm.
TINY = float(np.finfo(np.float64).tiny)


class Power:
    """Power cones, ``|s_2| <= s_0^alpha s_1^(1 - alpha)``.

    Parameters
    ----------
    alpha : ndarray, shape (K,)
    """

    def __init__(self, alpha: FloatArray) -> None:
        self._alpha, self._beta = alpha, 1.0 - alpha
        none = np.zeros_like(alpha)
        self.unit = np.stack([np.sqrt(1.0 + alpha), np.sqrt(1.0 + self._beta), none], axis=1)

    def contains(self, s: FloatArray) -> BoolArray:
        """Say of which cones points are inside."""
        inside: BoolArray = (s[:, :2] > 0.0).all(axis=1) & (self._depth(s) > 0.0)
        return inside

    def contains_dual(self, z: FloatArray) -> BoolArray:
        """Say of which cones multipliers are inside the dual."""
        inside: BoolArray = (z[:, :2] > 0.0).all(axis=1) & (self._mean(z) > np.abs(z[:, 2]))
        return inside

    def _depth(self, s: FloatArray) -> FloatArray:
        last = np.log(np.maximum(np.abs(s[:, 2]), TINY))
        found: FloatArray = self._alpha * np.log(s[:, 0]) + self._beta * np.log(s[:, 1]) - last
        return found

    def _mean(self, z: FloatArray) -> FloatArray:
        """Return p."""
        first, second = z[:, 0] / self._alpha, z[:, 1] / self._beta
        found: FloatArray = np.exp(self._alpha * np.log(first) + self._beta * np.log(second))
        return found

    def slacks(self, z: FloatArray) -> FloatArray:
        """Return minus the gradients of f*."""
        p, h, alpha, beta = self._mean(z), z[:, 2], self._alpha, self._beta
        psi = (p - h) * (p + h)
        rho = p * p / psi
        return np.stack(
            [
                (2.0 * alpha * rho + beta) / z[:, 0],
                (2.0 * beta * rho + alpha) / z[:, 1],
                -2.0 * h / psi,
            ],
            axis=1,
        )

    def multipliers(self, s: FloatArray) -> FloatArray:
        """Return the multipliers whose slacks are given: with psi = p^2 (1 - exp(-tau))."""
        alpha, beta = self._alpha, self._beta
        depth = 2.0 * self._depth(s)
        tau, first, second = 0.5 * depth, 0.5 * beta / alpha, 0.5 * alpha / beta
        for _ in range(STEPS):
            sigma = -np.expm1(-tau)
            excess = tau - depth
            excess += 2.0 * (alpha * np.log1p(first * sigma) + beta * np.log1p(second * sigma))
            slope = beta / (1.0 + first * sigma) + alpha / (1.0 + second * sigma)
            tau = tau - excess / (1.0 + np.exp(-tau) * slope)
        rho = -1.0 / np.expm1(-tau)
        z = np.empty_like(s)
        z[:, 0] = (2.0 * alpha * rho + beta) / s[:, 0]
        z[:, 1] = (2.0 * beta * rho + alpha) / s[:, 1]
        p = self._mean(z)
        z[:, 2] = -0.5 * s[:, 2] * p * p / rho
        return z

    def roots(self, z: FloatArray) -> FloatArray:
        """Return square roots of the Hessians' inverses.

        Along (a z_0, b z_1, c), with m = alpha a + beta b, k = a - b and e = p - z_2, a Hessian is
        ``((p m - c) / e)^2 + ((p m + c) / (p + z_2))^2 + 2 alpha beta rho k^2 + beta a^2
        + alpha b^2``; squares are completed for k, m and ``p m - c``, in this order.
        """
        alpha, beta, p = self._alpha, self._beta, self._mean(z)
        sign, h = np.where(z[:, 2] < 0.0, -1.0, 1.0), np.abs(z[:, 2])
        e, E = p - h, p + h
        rho = p * p / (e * E)
        of_k = alpha * beta * (2.0 * rho - 3.0) + 1.0
        left = alpha * beta * (2.0 * rho + 1.0) / of_k * E * E
        of_m = 4.0 * p * p + left  # times E^2
        of_y = 1.0 / e**2 + left / of_m / E**2
        tied = (alpha - beta) / of_k
        m = 2.0 * p / of_m
        last = -(2.0 * p * p + left) / of_m
        one = np.ones_like(p)
        rows = []
        for mean, k, c, size in (
            (np.zeros_like(p), one, np.zeros_like(p), 1.0 / np.sqrt(of_k)),
            (one, tied, p, E / np.sqrt(of_m)),
            (m, tied * m, last, 1.0 / np.sqrt(of_y)),
        ):
            first, second = (mean + beta * k) * z[:, 0], (mean - alpha * k) * z[:, 1]
            rows.append(size[:, None] * np.stack([first, second, sign * c], axis=1))
        return np.stack(rows, axis=1)

    def thirds(self, z: FloatArray, u: FloatArray, v: FloatArray) -> FloatArray:
        """Return the third derivatives of f* along u and v."""
        alpha, beta, p, h = self._alpha, self._beta, self._mean(z), z[:, 2]
        none, one = np.zeros_like(p), np.ones_like(p)
        a, b = ((x[:, :2] / z[:, :2]).T for x in (u, v))
        units = np.stack([1.0 / z[:, 0], none, none], 1), np.stack([none, 1.0 / z[:, 1], none], 1)
        mean = Mean(p, alpha * beta, (alpha, beta), a, b, units)
        found = np.zeros_like(z)
        for sign in (-1.0, 1.0):
            slope = np.stack([alpha * p / z[:, 0], beta * p / z[:, 1], sign * one], axis=1)
            found += third_of_log(p + sign * h, slope, mean, u, v)
        for weight, i in ((beta, 0), (alpha, 1)):
            found -= 2.0 * (weight * a[i] * b[i])[:, None] * units[i]
        return found
