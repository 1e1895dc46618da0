"""Products of exponential and power cones: scalings of their rows, and how far steps may go.

Slacks s and multipliers z of a cone, and what gradients of its barriers make of them, s' of z and
z' of s, are tied by matrices H with ``H z = s`` and ``H z' = s'`` (Tuncel 2001). In the direction
that this leaves, H is mu times the Hessian of the dual's barrier (Dahl and Andersen 2021); near the
middle, where ``s = mu s'``, it is that Hessian in all directions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.conic._form import Cone
from gtvcvx.solvers.interior_point.careful._barriers import DEGREE, Barrier
from gtvcvx.solvers.interior_point.careful._exponential import Exponential
from gtvcvx.solvers.interior_point.careful._power import Power

# Slacks and multipliers stay where ``<s', z'>`` is no more than this times what it is in the
# middle, where each product is mu.
WIDE = 1e6
# Hessians are taken where s and z are no farther from the middle: differences lose their digits.
CLOSE = 1e-4
# Steps that lead too far from there are shortened by this factor, so often.
SHORTER, MOST = 0.8, 100
# Nobody asks for longer ones.
FAR = 1.1


def known(cone: Cone) -> bool:
    """Say whether a cone is one of these."""
    return cone.kind == "exp" or (cone.kind == "power" and cone.rows == 3)


class AsymmetricCones:
    """Places of the rows of exponential and power cones in a product of cones.

    Parameters
    ----------
    cones : sequence of Cone
        In the order of the rows.

    Attributes
    ----------
    at : ndarray of int, shape (K, 3)
        Rows of each cone that is `known`: exponential ones first.
    degree : int
        Sum of the barriers' parameters.
    unit : ndarray, shape (K, 3)
        Slacks and multipliers that are in the middle.
    """

    def __init__(self, cones: Sequence[Cone]) -> None:
        starts = np.cumsum([0, *(cone.rows for cone in cones)])
        exp = [i for i, cone in enumerate(cones) if cone.kind == "exp"]
        power = [i for i, cone in enumerate(cones) if cone.kind == "power"]
        alpha = np.array([cones[i].exponents[0] for i in power])
        first = starts[np.array(exp + power, np.int64)]
        self.at: IntArray = first[:, None] + np.arange(3)
        each: list[tuple[slice, Barrier]] = [
            (slice(0, len(exp)), Exponential(len(exp))),
            (slice(len(exp), len(first)), Power(alpha)),
        ]
        self._each = [(part, barrier) for part, barrier in each if len(self.at[part])]
        self.degree = DEGREE * len(first)
        units = [barrier.unit for _, barrier in self._each]
        self.unit = np.concatenate([np.empty((0, 3)), *units])

    def __len__(self) -> int:
        return len(self.at)

    def contain(self, s: FloatArray, z: FloatArray) -> bool:
        """Say whether slacks and multipliers (M,) are inside."""
        s, z = s[self.at], z[self.at]
        with np.errstate(all="ignore"):  # numbers outside have no logarithm
            return all(
                bool(barrier.contains(s[part]).all() and barrier.contains_dual(z[part]).all())
                for part, barrier in self._each
            )

    def longest(
        self, s: FloatArray, z: FloatArray, ds: FloatArray, dz: FloatArray, most: float
    ) -> float:
        """Return a step of slacks and multipliers (M,) that leads nowhere outside.

        It is `most`, or less by no more than a hundredth than the longest one, which need not be
        more than `FAR`.
        """
        if not len(self):
            return most
        most = min(most, FAR)
        if self.contain(s + most * ds, z + most * dz):
            return most
        least = 0.0
        for _ in range(MOST):
            middle = 0.5 * (least + most)
            if self.contain(s + middle * ds, z + middle * dz):
                least = middle
            else:
                most = middle
            if most - least <= 0.01 * most:
                break
        return least

    def near(self, s: FloatArray, z: FloatArray, mu: float) -> bool:
        """Say whether slacks and multipliers (M,) are inside, and not far from the middle."""
        if not self.contain(s, z):
            return False
        s, z = s[self.at], z[self.at]
        for part, barrier in self._each:
            products = np.sum(barrier.slacks(z[part]) * barrier.multipliers(s[part]), axis=1)
            if not (mu * products <= WIDE * DEGREE).all():
                return False
        return True

    def scaling(self, s: FloatArray, z: FloatArray) -> AsymmetricScaling:
        """Return the scaling of slacks and multipliers (M,) that are inside."""
        return AsymmetricScaling(self.at, self._each, s, z)


class AsymmetricScaling:
    """Matrices M of all cones with ``M^T M`` the inverse of H.

    Attributes
    ----------
    roots : ndarray, shape (K, 3, 3)
    """

    def __init__(
        self,
        at: IntArray,
        each: Sequence[tuple[slice, Barrier]],
        s: FloatArray,
        z: FloatArray,
    ) -> None:
        self._at, self._each = at, each
        self._s, self._z = s[at], z[at]
        self.roots = np.empty((len(at), 3, 3))
        self._hessians = np.empty((len(at), 3, 3))
        self._slacks = np.empty((len(at), 3))
        for part, barrier in each:
            own, ours = self._s[part], self._z[part]
            self._hessians[part] = hessians = barrier.roots(ours)
            self._slacks[part] = slacks = barrier.slacks(ours)
            with np.errstate(all="ignore"):  # in the middle what is not finite is not taken
                self.roots[part] = _roots(own, ours, slacks, barrier.multipliers(own), hessians)

    def times(self, x: FloatArray) -> FloatArray:
        """Return M x (K, 3) of the cones' rows of x (M,)."""
        return _times(self.roots, x[self._at])

    def aim(
        self, mu: float = 0.0, ds: FloatArray | None = None, dz: FloatArray | None = None
    ) -> FloatArray:
        """Return M times what ``-ds - H dz`` is to be (K, 3).

        Parameters
        ----------
        mu : float
            What products are to be.
        ds, dz : ndarray, shape (M,), optional
            Steps to where they are zero, to make up for their curvature.
        """
        excess = self._s - mu * self._slacks
        if ds is not None and dz is not None:
            excess -= self._curvature(ds[self._at], dz[self._at])
        return _times(self.roots, excess)

    def _curvature(self, ds: FloatArray, dz: FloatArray) -> FloatArray:
        """Return what steps (K, 3) miss of -s, by third derivatives; 0 where that is not finite."""
        found = np.empty_like(ds)
        for part, barrier in self._each:
            M = self._hessians[part]
            other = np.einsum("kji,kj->ki", M, _times(M, ds[part]))
            found[part] = 0.5 * barrier.thirds(self._z[part], dz[part], other)
        found[~np.isfinite(found).all(axis=1)] = 0.0
        return found


def _times(M: FloatArray, x: FloatArray) -> FloatArray:
    found: FloatArray = np.einsum("kij,kj->ki", M, x)
    return found


def _roots(
    s: FloatArray, z: FloatArray, slacks: FloatArray, multipliers: FloatArray, hessians: FloatArray
) -> FloatArray:
    """Return the M (K, 3, 3) of slacks and multipliers.

    H is a sum of three squares, of s, of ``s - mu s'`` and of what is normal to z and z', and so is
    its inverse.
    """
    mu = np.sum(s * z, axis=1) / DEGREE
    plain = hessians / np.sqrt(mu)[:, None, None]
    off = mu * np.sum(slacks * multipliers, axis=1) / DEGREE - 1.0
    ds, dz = s - mu[:, None] * slacks, z - mu[:, None] * multipliers
    product = np.sum(ds * dz, axis=1)
    normal = np.cross(z, multipliers)
    along = np.sqrt(np.sum(_times(plain, normal) ** 2, axis=1))
    other = np.cross(s, slacks)
    M = np.stack(
        [
            z / np.sqrt(DEGREE * mu)[:, None],
            dz / np.sqrt(product)[:, None],
            other * (along / np.sum(normal * other, axis=1))[:, None],
        ],
        axis=1,
    )
    fits = (off > CLOSE) & (product > 0.0) & np.isfinite(M.reshape(-1, 9)).all(axis=1)
    found: FloatArray = np.where(fits[:, None, None], M, plain)
    return found
