"""Mehrotra's predictor-corrector method for cone programs, with systems that are solved carefully.

    minimize (1/2) x^T P x + q^T x   subject to   A x + s = b,   s in K,

for symmetric cones K. Clarabel adds to the diagonal of its matrix and factors it without pivoting,
which ends early where columns are nearly dependent, or of units that differ by many orders of
magnitude, and only small multipliers tell their coefficients apart. Here the system of a step,

    [P   A^T inverse(W)] [ dx  ]
    [inverse(W) A    -I] [W dz ],

is solved in twice the digits, and read off in all of them
(`gtvcvx.solvers.interior_point.careful._squares`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx.conic._scaled import ConeProgram
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
        With symmetric cones, one at least that is not zero.
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
        self._cones = SymmetricCones(program.cones)
        self._squares, self.length = Squares(program, self._cones, most), 1.0
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
        """Go on from a point whose slacks and multipliers are inside the cones, or nearly."""
        self.x, self.s, self.z = x, self._cones.nudged(s), self._cones.nudged(z)
        self.s[self._cones.free] = 0.0

    def start_stiffer(self) -> None:
        """Start afresh with a larger share of the diagonal added to it."""
        self._squares.shift = SHIFTS[1]
        self.restart()

    def restart(self) -> None:
        """Start from least squares."""
        self.length = 1.0
        _, q, _, b, _ = self._program
        cones = self._cones
        self._squares.factorize(Scaling(cones, cones.unit, cones.unit))
        self.x, _, z = self._squares.solve(-q, b)
        self.s, self.z = cones.inside(-z), cones.inside(z)
        self.s[cones.free] = 0.0

    def iterate(self) -> None:
        """Do one iteration."""
        look()
        scaling = Scaling(self._cones, self.s, self.z)
        self._squares.factorize(scaling)
        look()
        dx, ds, dz = self._step(scaling)
        self.length = min(1.0, self._settings.inside * self._longest(ds, dz))
        self.x = self.x + self.length * dx
        self.s = self._cones.kept(self.s + self.length * ds)
        self.z = self._cones.kept(self.z + self.length * dz)

    def _step(self, scaling: Scaling) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the steps of x, s and z."""
        cones, settings = self._cones, self._settings
        both = scaling.times(self.z)
        both[cones.free] = 0.0
        square = cones.product(both, both)
        _, ds, dz = self._towards(square, both, scaling)
        left = 1.0 - min(1.0, self._longest(ds, dz))
        mu = left**settings.power * self.gap / cones.degree
        second = cones.product(scaling.divided(ds), scaling.times(dz))
        return self._towards(square + second - mu * cones.unit, both, scaling)

    def _towards(
        self, excess: FloatArray, both: FloatArray, scaling: Scaling
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the steps that remove an excess (M,) of products."""
        cones, (primal, dual) = self._cones, self._missing
        aim = cones.quotient(both, excess) - scaling.divided(primal)
        dx, dy, dz = self._squares.solve(-dual, aim)
        ds = -primal - dy
        ds[cones.free] = 0.0
        return dx, ds, dz

    def _longest(self, ds: FloatArray, dz: FloatArray) -> float:
        return min(self._cones.longest(self.s, ds), self._cones.longest(self.z, dz))
