"""Barriers of cones of three rows that are not symmetric, of many cones at once.

The dual of a cone has a logarithmic barrier f* in closed form. Its conjugate is a barrier of the
cone itself, whose gradient at s is where that of f* is -s: by one equation in one number (Dahl and
Andersen 2021; Goulart and Chen 2024).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray

#: Each barrier's parameter.
DEGREE = 3
# Newton's method for that number: the functions are concave, with slopes from 1 to 2.
STEPS = 6


class Barrier(Protocol):
    """Many cones of a kind; points and multipliers are (K, 3), a cone's in each row."""

    @property
    def unit(self) -> FloatArray:
        """The point at which the gradient of f* is the point itself, with the other sign."""

    def contains(self, s: FloatArray) -> BoolArray:
        """Say of which cones points are inside."""

    def contains_dual(self, z: FloatArray) -> BoolArray:
        """Say of which cones multipliers are inside the dual."""

    def slacks(self, z: FloatArray) -> FloatArray:
        """Return minus the gradients of f* at multipliers: inside the cones."""

    def multipliers(self, s: FloatArray) -> FloatArray:
        """Return the multipliers whose slacks are given."""

    def roots(self, z: FloatArray) -> FloatArray:
        """Return the M (K, 3, 3) with ``M^T M`` the inverse of the Hessian of f*."""

    def thirds(self, z: FloatArray, u: FloatArray, v: FloatArray) -> FloatArray:
        """Return the third derivatives of f* along u and v."""


class Mean:
    """Second and third derivatives of a concave mean of two numbers along two directions.

    The second one along directions whose shares of the numbers are a and b (2, K) is
    ``-size factor (a_0 - a_1) (b_0 - b_1)``; the mean is a product of powers, `weights`.
    """

    def __init__(
        self,
        size: FloatArray,
        factor: FloatArray | float,
        weights: tuple[FloatArray | float, FloatArray | float],
        a: FloatArray,
        b: FloatArray,
        units: tuple[FloatArray, FloatArray],
    ) -> None:
        c = -size * factor
        ku, kv = a[0] - a[1], b[0] - b[1]
        across = units[0] - units[1]
        self.both = c * ku * kv
        self.one, self.other = (c * ku)[:, None] * across, (c * kv)[:, None] * across
        first = c * (weights[0] * ku * kv - a[0] * kv - ku * b[0])
        second = c * (weights[1] * ku * kv + a[1] * kv + ku * b[1])
        self.third = first[:, None] * units[0] + second[:, None] * units[1]


def third_of_log(
    g: FloatArray, slope: FloatArray, mean: Mean, u: FloatArray, v: FloatArray
) -> FloatArray:
    """Return the third derivatives of ``-log g`` along u and v, g being linear but for a mean."""
    along_u = (np.sum(slope * u, axis=1) / g)[:, None]
    along_v = (np.sum(slope * v, axis=1) / g)[:, None]
    g = g[:, None]
    found: FloatArray = -mean.third / g - 2.0 * along_u * along_v * slope / g
    found += (mean.both[:, None] * slope / g + mean.one * along_v + mean.other * along_u) / g
    return found
