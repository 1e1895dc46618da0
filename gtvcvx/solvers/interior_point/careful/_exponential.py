"""Barriers of exponential cones, ``s_1 exp(s_0 / s_1) <= s_2``.

With multipliers z = (-v, z_1, t) and psi = z_1 + v + v log(t / v),

    f*(z) = -log psi - log v - log t.

Nothing but psi, the distance to the boundary, is a difference of other numbers.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.solvers.interior_point.careful._barriers import STEPS, Mean, third_of_log


class Exponential:
    """Exponential cones, ``s_1 exp(s_0 / s_1) <= s_2``."""

    def __init__(self, count: int) -> None:
        self.unit = np.tile(
            [-1.0513839437502288, 0.5564096186043385, 1.2589678864644602], (count, 1)
        )

    def contains(self, s: FloatArray) -> BoolArray:
        """Say of which cones points are inside."""
        inside: BoolArray = (s[:, 1:] > 0.0).all(axis=1) & (self._depth(s) > 0.0)
        return inside

    def contains_dual(self, z: FloatArray) -> BoolArray:
        """Say of which cones multipliers are inside the dual."""
        inside: BoolArray = (z[:, 0] < 0.0) & (z[:, 2] > 0.0) & (self._read(z)[2] > 0.0)
        return inside

    @staticmethod
    def _depth(s: FloatArray) -> FloatArray:
        found: FloatArray = np.log(s[:, 2] / s[:, 1]) - s[:, 0] / s[:, 1]
        return found

    @staticmethod
    def _read(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return v, t, psi and log(t / v)."""
        v, t = -z[:, 0], z[:, 2]
        log = np.log(t / v)
        return v, t, z[:, 1] + v + v * log, log

    def slacks(self, z: FloatArray) -> FloatArray:
        """Return minus the gradients of f*."""
        v, t, psi, log = self._read(z)
        return np.stack([-(log / psi + 1.0 / v), 1.0 / psi, (1.0 + v / psi) / t], axis=1)

    def multipliers(self, s: FloatArray) -> FloatArray:
        """Return the multipliers whose slacks are given: with q = psi / v."""
        depth = self._depth(s)
        q = 0.5 * depth
        for _ in range(STEPS):
            q = q - (q + np.log1p(q) - depth) / (1.0 + 1.0 / (1.0 + q))
        first, second, third = s.T
        r = 1.0 / q
        return np.stack(
            [-r / second, (2.0 + r * (first / second - 1.0)) / second, (1.0 + r) / third], axis=1
        )

    def roots(self, z: FloatArray) -> FloatArray:
        """Return square roots of the Hessians' inverses.

        Along (a v, b, c t) a Hessian is
        ``((b + v (log a + c)) / psi)^2 + (r + 1/2) (a - c)^2 + (a + c)^2 / 2``.
        """
        v, t, psi, log = self._read(z)
        none, narrow = np.zeros_like(v), 0.5 / np.sqrt(v / psi + 0.5)
        wide = np.full_like(v, np.sqrt(0.5))
        rows = [
            [none, psi, none],
            [-v * narrow, -v * (log - 1.0) * narrow, -t * narrow],
            [-v * wide, -v * (log + 1.0) * wide, t * wide],
        ]
        return np.stack([np.stack(row, axis=1) for row in rows], axis=1)

    def thirds(self, z: FloatArray, u: FloatArray, v: FloatArray) -> FloatArray:
        """Return the third derivatives of f* along u and v."""
        size, t, psi, log = self._read(z)
        none, one = np.zeros_like(t), np.ones_like(t)
        a, b = (np.stack([x[:, 0] / z[:, 0], x[:, 2] / t]) for x in (u, v))
        slope = np.stack([-log, one, size / t], axis=1)
        units = np.stack([1.0 / z[:, 0], none, none], axis=1), np.stack([none, none, 1.0 / t], 1)
        mean = Mean(size, 1.0, (1.0, 0.0), a, b, units)
        found = third_of_log(psi, slope, mean, u, v)
        return found - 2.0 * ((a[0] * b[0])[:, None] * units[0] + (a[1] * b[1])[:, None] * units[1])
