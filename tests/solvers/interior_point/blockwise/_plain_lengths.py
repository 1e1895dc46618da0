"""Flows of edges under l2 norms: vectors (t, x) and (c, -u) of second-order cones, scaled.

Nesterov's and Todd's scaling W takes one to the inverse of the other's image: W^-1 (t, x) and
W (c, -u) are the same vector. It is eta times a reflection, given by a vector w of length one in
the sense of ``w_0^2 - |w_1|^2``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray

TINY = float(np.finfo(np.float64).tiny)


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    found: FloatArray = np.einsum("mk,mk->m", a, b)
    return found


class Vectors(NamedTuple):
    """Vectors of second-order cones: the first coordinate, and the others."""

    first: FloatArray  # (m,)
    rest: FloatArray  # (m, d)

    def roots(self) -> FloatArray:
        """Return ``sqrt(first^2 - |rest|^2)``, (m,)."""
        length = np.sqrt(_dot(self.rest, self.rest))
        return np.sqrt(np.maximum((self.first - length) * (self.first + length), TINY))

    def dot(self, other: Vectors) -> FloatArray:
        """Return the inner products (m,)."""
        return self.first * other.first + _dot(self.rest, other.rest)

    def times(self, other: Vectors) -> Vectors:
        """Return the products of the cones' algebra."""
        rest = self.first[:, None] * other.rest + other.first[:, None] * self.rest
        return Vectors(self.dot(other), rest)

    def divided(self, other: Vectors) -> Vectors:
        """Return what times `other` would be this."""
        first = (other.first * self.first - _dot(other.rest, self.rest)) / other.roots() ** 2
        rest = (self.rest - first[:, None] * other.rest) / other.first[:, None]
        return Vectors(first, rest)

    def minus(self, other: Vectors) -> Vectors:
        """Return the difference."""
        return Vectors(self.first - other.first, self.rest - other.rest)

    def moved(self, step: Vectors, length: float) -> Vectors:
        """Return the vectors after so many times a step."""
        return Vectors(self.first + length * step.first, self.rest + length * step.rest)

    def longest(self, step: Vectors) -> float:
        """Return how many times a step stays in the cones."""
        # The first zero of the square of the root, a s^2 + 2 b s + c, c > 0.
        a = step.first**2 - _dot(step.rest, step.rest)
        b = self.first * step.first - _dot(self.rest, step.rest)
        c = self.roots() ** 2
        inner = b * b - a * c
        with np.errstate(divide="ignore", invalid="ignore"):
            zero = c / (np.sqrt(np.maximum(inner, 0.0)) - b)
        none = (inner < 0.0) | ((a >= 0.0) & (b >= 0.0))
        return float(np.min(np.where(none, np.inf, zero), initial=np.inf))


class Scaling:
    """The scaling of pairs of vectors.

    Parameters
    ----------
    s, z : Vectors
        Inside the cones.

    Attributes
    ----------
    image : Vectors
        ``W^-1 s`` and ``W z``.
    """

    def __init__(self, s: Vectors, z: Vectors) -> None:
        s_root, z_root = s.roots(), z.roots()
        s0, z0 = s.first / s_root, z.first / z_root
        s1, z1 = s.rest / s_root[:, None], z.rest / z_root[:, None]
        twice = np.sqrt(2.0 * (1.0 + s0 * z0 + _dot(s1, z1)))
        self._rest = (s1 - z1) / twice[:, None]
        square = _dot(self._rest, self._rest)
        self._first, self._eta = np.sqrt(1.0 + square), np.sqrt(s_root / z_root)
        # Of W^-2, but for eta: its first entry, and the rest of its first row over that.
        self._corner = 1.0 + 2.0 * square
        self._row = (-2.0 * self._first / self._corner)[:, None] * self._rest
        self.image = self.of(z)

    def of(self, z: Vectors) -> Vectors:
        """Return ``W z``."""
        along = _dot(self._rest, z.rest)
        rest = z.rest + (z.first + along / (1.0 + self._first))[:, None] * self._rest
        return Vectors(
            self._eta * (self._first * z.first + along),
            self._eta[:, None] * rest,
        )

    def inverse(self, s: Vectors) -> Vectors:
        """Return ``W^-1 s``."""
        along = _dot(self._rest, s.rest)
        rest = s.rest + (along / (1.0 + self._first) - s.first)[:, None] * self._rest
        return Vectors((self._first * s.first - along) / self._eta, rest / self._eta[:, None])

    def weights(self) -> FloatArray:
        """Return what is left of W^-2 (m, d, d) when the first coordinate is eliminated."""
        d = self._rest.shape[1]
        outer = self._rest[:, :, None] * self._rest[:, None, :]
        rest = np.eye(d) - (2.0 / self._corner)[:, None, None] * outer
        found: FloatArray = rest / (self._eta**2)[:, None, None]
        return found

    def eliminated(self, aim: Vectors) -> tuple[FloatArray, FloatArray]:
        """Return the steps of t and u for ``W^-1 ds + W dz = aim`` where neither x nor c moves."""
        image = self.inverse(aim)
        step: FloatArray = self._row * image.first[:, None] - image.rest
        return image.first * self._eta**2 / self._corner, step

    def rise(self, dx: FloatArray) -> FloatArray:
        """Return the step of t that goes with that of x."""
        return -_dot(self._row, dx)


class Lengths:
    """Flows no longer than the capacities: penalties are l2 norms, bounded by numbers t.

    Parameters
    ----------
    capacities : ndarray, shape (m,)
    d : int
    """

    retracted = False

    def __init__(self, capacities: FloatArray, d: int) -> None:
        self._capacities = capacities
        self._resting = np.zeros(len(capacities))
        self.y = np.zeros((len(capacities), d))
        self.weights = np.zeros((len(capacities), d, d))
        self.degree = float(len(capacities))
        self._step: tuple[Vectors, Vectors]  # of (t, x) and (c, -u)

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start from zero."""
        self._s = Vectors(np.sqrt(_dot(x, x)) + mu / self._capacities, x)

    @property
    def _z(self) -> Vectors:
        return Vectors(self._capacities, -self.y)

    def complementarity(self) -> float:
        """Return the sum of the inner products."""
        return float(np.sum(self._s.dot(self._z)))

    def linearize(self, x: FloatArray) -> None:
        """Scale the vectors."""
        self._s = self._s._replace(rest=x)
        self._scaling = Scaling(self._s, self._z)
        self.weights = self._scaling.weights()

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of the flow for products of mu."""
        image = self._scaling.image
        missing = Vectors(np.full(len(self.y), mu), np.zeros_like(self.y))
        if corrected:
            ds, dz = self._scaling.inverse(self._step[0]), self._scaling.of(self._step[1])
            missing = missing.minus(ds.times(dz))
        aim = missing.divided(image).minus(image)
        self._rise, self._offset = self._scaling.eliminated(aim)
        return self._offset

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of the flow; that of t follows."""
        du: FloatArray = np.einsum("mij,mj->mi", self.weights, dx) + self._offset
        self._step = Vectors(self._rise + self._scaling.rise(dx), dx), Vectors(self._resting, -du)
        return du

    def longest(self) -> float:
        """Return the length at which the first vector is at the boundary of its cone."""
        ds, dz = self._step
        return min(self._s.longest(ds), self._z.longest(dz))

    def move(self, length: float) -> None:
        """Move the flow, t and x."""
        ds, dz = self._step
        self._s, self.y = self._s.moved(ds, length), self.y - length * dz.rest
