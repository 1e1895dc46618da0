"""Flows of edges under p-norms: vectors inside the ball of the q-norm, 1/p + 1/q = 1.

Each edge has its flow y = c z and a number t that takes the place of the jump's length. On the
central path

    ``t v = x,   t (1 - ||z||_q^q) = mu / c,   v_k = sign(z_k) |z_k|^(q - 1)``,

which for mu = 0 says that c z is the gradient of ``c ||x||_p``, and t the length. For p = 2 these
are the equations of [1].

References
----------
.. [1] K. D. Andersen, E. Christiansen, A. R. Conn, M. L. Overton, An efficient primal-dual
   interior-point method for minimizing a sum of Euclidean norms, SIAM Journal on Scientific
   Computing 22 (2000).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import row_norm_p
from gtvcvx.solvers.interior_point.blockwise._duals import longest

# Entries of v smaller than this are as steep as this one: slopes are zero or infinite at zero.
LEAST = 1e-4
# A flow is left at least this share of the slack that would be left if balls had flat sides.
KEPT = 0.5


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    found: FloatArray = np.einsum("mk,mk->m", a, b)
    return found


def _power(x: FloatArray, exponent: float) -> FloatArray:
    """Return ``sign(x) |x|^exponent``."""
    return np.asarray(np.sign(x) * np.abs(x) ** exponent)


class Change(NamedTuple):
    """A step of what an edge has."""

    z: FloatArray  # (m, d)
    v: FloatArray  # (m, d)
    t: FloatArray  # (m,)
    slack: FloatArray  # (m,)


class Powers:
    """Flows whose q-norms are at most the capacities: penalties are p-norms.

    Steps count on flat sides of the balls, and are longer than balls let them be: what leaves them
    is put back, and missing at the nodes then. A corrector counts no more than the predictor could
    be followed, without which small capacities were jammed.

    Parameters
    ----------
    capacities : ndarray, shape (m,)
    d : int
    p : float
        1 < p < inf.
    """

    def __init__(self, capacities: FloatArray, d: int, p: float) -> None:
        self.retracted = False
        self._capacities, self._p, self._q = capacities, p, p / (p - 1.0)
        self.y = np.zeros((len(capacities), d))
        self.weights = np.zeros((len(capacities), d, d))
        self.degree = float(len(capacities))
        self._step: Change

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start from flows that go with x and lengths a bit larger."""
        self._x, self._t = x, row_norm_p(x, self._p) + mu / self._capacities
        v = x / self._t[:, None]
        self.y = self._capacities[:, None] * _power(v, self._p - 1.0)
        self._slack = 1.0 - np.sum(np.abs(v) ** self._p, axis=1)

    def complementarity(self) -> float:
        """Return the sum of ``c ||x|| - <y, x>``."""
        gaps = self._capacities * row_norm_p(self._x, self._p) - _dot(self.y, self._x)
        return float(np.sum(np.maximum(gaps, 0.0)))

    def linearize(self, x: FloatArray) -> None:
        """Eliminate t, with slopes of z as a function of v."""
        self._x, t, z = x, self._t, self.y / self._capacities[:, None]
        self._v = _power(z, self._q - 1.0)
        self._slopes = self._chords(z, x / t[:, None])
        self._rest = x - t[:, None] * self._v
        self._tilt = self._slopes * self._v
        self._total = self._slack + self._q * _dot(self._v, self._tilt)
        outer = self._tilt[:, :, None] * self._tilt[:, None, :]
        blocks = -(self._q / self._total)[:, None, None] * outer
        np.einsum("mkk->mk", blocks)[:] += self._slopes
        self.weights = blocks * (self._capacities / t)[:, None, None]

    def _chords(self, z: FloatArray, wanted: FloatArray) -> FloatArray:
        """Return slopes of ``z(v) = sign(v) |v|^(p - 1)`` from here to the v that is wanted.

        Derivatives would lead too far, or nowhere, where an entry is nearly zero.
        """
        v, power = self._v, self._p - 1.0
        far = np.abs(wanted - v) > LEAST
        size = np.maximum(np.maximum(np.abs(wanted), np.abs(v)), LEAST)
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = (_power(wanted, power) - z) / (wanted - v)
        return np.where(far, chord, power * size ** (power - 1.0))

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of the flow towards mu when x rests."""
        rest, bent = self._rest, np.zeros(len(self._t))
        aim = mu / self._capacities - self._t * self._slack
        if corrected:
            before, share = self._step, min(1.0, self.longest())
            rest = rest - share * before.t[:, None] * before.v
            bent = bent - share * 0.5 * self._q * _dot(before.v, before.z)
            aim = aim - share * before.t * before.slack
        self._aims = bent, aim - self._t * bent + self._q * _dot(self._tilt, rest)
        rise = self._aims[1] / self._total
        forces = self._slopes * rest - self._tilt * rise[:, None]
        self._offset: FloatArray = forces * (self._capacities / self._t)[:, None]
        return self._offset

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of the flow; those of t and of the slack follow."""
        dy: FloatArray = np.einsum("mij,mj->mi", self.weights, dx) + self._offset
        dz, (bent, aim) = dy / self._capacities[:, None], self._aims
        rise = (aim + self._q * _dot(self._tilt, dx)) / self._total
        self._step = Change(dz, dz / self._slopes, rise, bent - self._q * _dot(self._v, dz))
        self._dx = dx
        return dy

    def longest(self) -> float:
        """Return the length at which the first slack vanishes, or number t."""
        return min(longest(self._t, self._step.t), longest(self._slack, self._step.slack))

    def move(self, length: float) -> None:
        """Move flow, t and slack, and x with them; put back what leaves its ball."""
        step, z = self._step, self.y / self._capacities[:, None]
        z += length * step.z
        self._t, self._x = self._t + length * step.t, self._x + length * self._dx
        size = np.sum(np.abs(z) ** self._q, axis=1)
        least = KEPT * np.minimum(self._slack + length * step.slack, 1.0)
        out = 1.0 - size < least
        z[out] *= (((1.0 - least[out]) / size[out]) ** (1.0 / self._q))[:, None]
        self._slack, self.retracted = np.where(out, least, 1.0 - size), bool(out.any())
        self.y = self._capacities[:, None] * z
