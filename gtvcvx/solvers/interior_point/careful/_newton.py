"""Mehrotra's predictor-corrector method for cone programs, with systems that are solved carefully.

    minimize (1/2) x^T P x + q^T x   subject to   A x + s = b,   s in K,

for products K of symmetric, exponential and three-dimensional power cones. Clarabel adds to the
diagonal of its matrix and factors it without pivoting, which ends early where columns are nearly
dependent, or of units that differ by many orders of magnitude, and only small multipliers tell
their coefficients apart. Here the system of a step,

    [P   A^T M^T] [     dx      ]
    [M A    -I  ] [inverse(M^T) dz],   M = inverse(W),

is solved in twice the digits, and read off in all of them
(`gtvcvx.solvers.interior_point.careful._squares`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx.conic._scaled import ConeProgram
from gtvcvx.solvers.interior_point.careful._asymmetric import (
    MOST,
    SHORTER,
    AsymmetricCones,
    AsymmetricScaling,
)
from gtvcvx.solvers.interior_point.careful._squares import SHIFTS, Squares
from gtvcvx.solvers.interior_point.careful._symmetric import Scaling, SymmetricCones


@dataclass(frozen=True)
class NewtonSettings:
    """Steps.

    Attributes
    ----------
    inside : float
        Share of the longest step that is taken at most.
    power : float
        mu falls by this power of what the predictor leaves.
    """

    inside: float = 0.99
    power: float = 3.0


DEFAULTS = NewtonSettings()


class ConicNewton:
    """A point inside the cones, which moves on by an iteration at a time.

    Parameters
    ----------
    program : ConeProgram
        With such cones, one at least that is not zero.
    settings : NewtonSettings
    start : tuple of ndarray, optional
        x, s and z to go on from, as in `go_on_from`; otherwise it starts from least squares.
    most : float
        Most multiplications of a factorization, about.

    Attributes
    ----------
    x : ndarray, shape (N,)
    s, z : ndarray, shape (M,)
        Slacks and multipliers, inside the cones.
    length : float
        Of the last step.
    warm : bool
        Whether it has gone on from a point that was given.

    Raises
    ------
    TooLarge
        A factorization would take more multiplications.
    """

    def __init__(
        self,
        program: ConeProgram,
        settings: NewtonSettings = DEFAULTS,
        start: tuple[FloatArray, FloatArray, FloatArray] | None = None,
        most: float = np.inf,
    ) -> None:
        self._program, self._settings = program, settings
        self._cones, self._others = SymmetricCones(program.cones), AsymmetricCones(program.cones)
        self._degree = self._cones.degree + self._others.degree
        self._squares, self.length = Squares(program, self._cones, self._others, most), 1.0
        if start is None:
            self.restart()
        else:
            self.go_on_from(*start)

    @property
    def gap(self) -> float:
        """Slacks times multipliers: what the objective is above the bound, if x and z fit."""
        return float(self.s @ self.z)

    @property
    def value(self) -> float:
        """The objective."""
        P, q, *_ = self._program
        return float(0.5 * self.x @ (P @ self.x) + q @ self.x)

    @property
    def unfit(self) -> float:
        """By how much that may be wrong, since x and z miss their equations."""
        primal, dual = self._missing
        return float(np.abs(primal) @ np.abs(self.z) + np.abs(dual) @ np.abs(self.x))

    @property
    def _missing(self) -> tuple[FloatArray, FloatArray]:
        P, q, A, b, _ = self._program
        return A @ self.x + self.s - b, P @ self.x + q + A.T @ self.z

    def go_on_from(self, x: FloatArray, s: FloatArray, z: FloatArray) -> None:
        """Go on from a point whose slacks and multipliers are inside the cones, or nearly.

        Those of exponential and power cones have to be inside; else it starts from least squares.
        """
        self.x, self.s, self.z = x, self._cones.nudged(s), self._cones.nudged(z)
        self.s[self._cones.free] = 0.0
        self.warm = self._near(self.s, self.z)
        if not self.warm:
            self.restart()

    def start_stiffer(self) -> None:
        """Start afresh with a larger share of the diagonal added to it."""
        self._squares.shift = SHIFTS[1]
        self.restart()

    def restart(self) -> None:
        """Start from least squares; in the middle of all cones where some are not symmetric."""
        self.length, self.warm = 1.0, False
        _, q, _, b, _ = self._program
        cones, others = self._cones, self._others
        roots = np.broadcast_to(np.eye(3), (len(others), 3, 3))
        self._squares.factorize(Scaling(cones, cones.unit, cones.unit), roots)
        self.x, _, z = self._squares.solve(-q, b)
        if len(others):
            size = float(np.abs(np.delete(z, cones.free)).max())
            self._start_in_the_middle(max(1.0, size))
            return
        self.s, self.z = cones.inside(-z), cones.inside(z)
        self.s[cones.free] = 0.0

    def iterate(self) -> None:
        """Do one iteration."""
        look()
        scaling = Scaling(self._cones, self.s, self.z)
        roots = self._others.scaling(self.s, self.z)
        self._squares.factorize(scaling, roots.roots)
        look()
        dx, ds, dz = self._step(scaling, roots)
        self.length = min(1.0, self._settings.inside * self._longest(ds, dz))
        self.length = self._shortened(self.length, ds, dz)
        self.x = self.x + self.length * dx
        self.s = self._cones.kept(self.s + self.length * ds)
        self.z = self._cones.kept(self.z + self.length * dz)

    def _step(
        self, scaling: Scaling, roots: AsymmetricScaling
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the steps of x, s and z."""
        cones, settings, at = self._cones, self._settings, self._others.at
        both = scaling.times(self.z)
        both[cones.free] = 0.0
        square = cones.product(both, both)
        aim = cones.quotient(both, square)
        aim[at] = roots.aim()
        _, ds, dz = self._towards(aim, scaling, roots)
        left = 1.0 - min(1.0, self._longest(ds, dz))
        mu = left**settings.power * self.gap / self._degree
        second = cones.product(scaling.divided(ds), scaling.times(dz))
        aim = cones.quotient(both, square + second - mu * cones.unit)
        aim[at] = roots.aim(mu, ds, dz)
        return self._towards(aim, scaling, roots)

    def _towards(
        self, aim: FloatArray, scaling: Scaling, roots: AsymmetricScaling
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the steps with ``M ds + inverse(M^T) dz = -aim``, which fit the equations."""
        cones, (primal, dual) = self._cones, self._missing
        fitting = scaling.divided(primal)
        fitting[self._others.at] = roots.times(primal)
        aim = aim - fitting
        dx, dy, dz = self._squares.solve(-dual, aim)
        ds = -primal - dy
        ds[cones.free] = 0.0
        return dx, ds, dz

    def _start_in_the_middle(self, size: float) -> None:
        """Take slacks and multipliers of a size in the middle of all cones."""
        self.s = size * self._cones.unit
        self.s[self._others.at] = size * self._others.unit
        self.z = self.s.copy()

    def _near(self, s: FloatArray, z: FloatArray) -> bool:
        """Say whether slacks and multipliers are not far from the middle of the other cones."""
        return self._others.near(s, z, float(s @ z) / self._degree)

    def _longest(self, ds: FloatArray, dz: FloatArray) -> float:
        """Return the longest step of s and z that leads nowhere outside."""
        own = min(self._cones.longest(self.s, ds), self._cones.longest(self.z, dz))
        return self._others.longest(self.s, self.z, ds, dz, own)

    def _shortened(self, length: float, ds: FloatArray, dz: FloatArray) -> float:
        """Return a length, or one that leads not far from the middle of the other cones."""
        for _ in range(MOST if len(self._others) else 0):
            look()
            if self._near(self.s + length * ds, self.z + length * dz):
                return length
            length *= SHORTER
        return length
