"""The whole problem by an interior-point method of our own that solves its systems carefully.

For losses and penalties that CVXPY's rules describe, where Clarabel has got stuck: no other method
knows what they are made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Proposal, Requirement
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._proof import written
from gtvcvx.solvers.interior_point.careful._asymmetric import known as asymmetric
from gtvcvx.solvers.interior_point.careful._newton import ConicNewton
from gtvcvx.solvers.interior_point.careful._squares import TooLarge
from gtvcvx.solvers.interior_point.careful._symmetric import SYMMETRIC


@dataclass(frozen=True)
class CarefulSettings:
    """When a point is worth a check, and for which programs the method comes into question.

    Attributes
    ----------
    share : float
        A check is worth it when the method's own gap is this share of what is asked for.
    stricter : float
        Factor of that share when the check has found a larger gap.
    checks : int
        It begins again with stiffer systems after so many, and then is finished.
    most_iterations : int
        And after so many; thirty are the rule.
    shortest : float
        And where steps are no longer: it is stuck.
    long : float
        From Clarabel's point steps are no shorter, or it is no use.
    fits : float
        What the point misses of its equations may be worth this share of what is asked for, or it
        has to have fallen by no more than a half.
    most_size : int
        Variables and rows, which take half a second to be laid out.
    most_multiplications : float
        Of a factorization in twice the digits: half a second, too.
    """

    share: float = 0.1
    stricter: float = 1e-2
    checks: int = 3
    most_iterations: int = 60
    shortest: float = 1e-6
    long: float = 0.5
    fits: float = 0.5
    most_size: int = 60_000
    most_multiplications: float = 3e8


DEFAULTS = CarefulSettings()


def something_written(problem: GTVProblem) -> str | None:
    """Ask for a loss or a penalty that is known by CVXPY's rules alone."""
    return None if written(problem) else "losses or a penalty by CVXPY's rules"


class Careful(InteriorPoint):
    """The method under the driver: `run` does iterations of Newton's method.

    Parameters
    ----------
    problem : GTVProblem
    rtol : float
        Relative gap that is asked for.
    whole : GTVProblem, optional
        See `InteriorPoint`.
    solved : tuple of ndarray, optional
        Point, slacks and multipliers to start from.
    """

    requires: ClassVar[tuple[Requirement, ...]] = (something_written, *InteriorPoint.requires)

    def __init__(
        self,
        problem: GTVProblem,
        rtol: float,
        whole: GTVProblem | None = None,
        solved: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    ) -> None:
        super().__init__(problem, rtol, whole)
        self._share, self._checks = DEFAULTS.share, 0
        self._warm, self._begun, self._stiffer = solved, 0, False

    @staticmethod
    def fits(method: InteriorPoint) -> bool:
        """Say whether the program of a method has cones that are known, and is small enough.

        Symmetric ones, exponential ones and power cones of three rows.
        """
        cones = method.cones
        known = all(cone.kind in SYMMETRIC or asymmetric(cone) for cone in cones)
        inside = any(cone.kind != "zero" for cone in cones)
        return known and inside and method.size <= DEFAULTS.most_size

    @cached_property
    def _newton(self) -> ConicNewton:
        units, start = self._units, None
        if self._warm is not None:
            x, s, z = self._warm
            start = x / units.columns, s, z * units.cost
        most = DEFAULTS.most_multiplications
        return ConicNewton(self._program.cone_program(units), start=start, most=most)

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations, or fewer where there is something to propose."""
        self._found = None
        try:
            before = self._newton.unfit
        except TooLarge:
            self.finished = True
            return
        for _ in range(n_iter):
            with np.errstate(all="ignore"):  # where something overflows it is stuck
                self._iterate()
            self.n_iter += 1
            if self._stuck():
                self._try_otherwise()
            self.finished = self.finished or self._limits.expired
            unfit = self._newton.unfit
            if self.finished or (self._near and self._fits_well(unfit, before)):
                self._found = self._proposed()
                return
            before = unfit

    def _iterate(self) -> None:
        """Do one iteration; start afresh where Clarabel's point leads nowhere."""
        self._newton.iterate()
        if self._newton.warm and not self._newton.length >= DEFAULTS.long:
            self._newton.restart()
            self._newton.iterate()

    def _stuck(self) -> bool:
        newton, settings = self._newton, DEFAULTS
        done = self.n_iter - self._begun
        return done >= settings.most_iterations or not newton.length > settings.shortest

    @property
    def _near(self) -> bool:
        return self._own_gap() <= self._share * self._limits.rtol

    def _fits_well(self, unfit: float, before: float) -> bool:
        """Say whether the point fits its equations, or rounding alone is left of what it misses."""
        return self._relative(unfit) <= DEFAULTS.fits * self._limits.rtol or unfit > 0.5 * before

    def _own_gap(self) -> float:
        """Return the method's own gap, relative to the objective."""
        return self._relative(self._newton.gap)

    def _relative(self, gap: float) -> float:
        """Return a gap of the program in its units, relative to the objective."""
        value = self._newton.value / self._units.cost + float(np.sum(self._program.constants))
        return self._limits.relative(gap / self._units.cost, value)

    def _proposed(self) -> Proposal | None:
        newton, units = self._newton, self._units
        x, multipliers = units.point(newton.x), units.multipliers(newton.z)
        if not (np.isfinite(x).all() and np.isfinite(multipliers).all()):
            return None
        pair = self._pair(x, multipliers, self._own_gap())
        last = self.finished or (self._stiffer and self._checks + 1 >= DEFAULTS.checks)
        return pair._replace(another=not last and self._provable(pair))

    def learn(self, rel_gap: float) -> None:
        """Aim at a smaller own gap before the next check, if there is one."""
        self._checks += 1
        self._share *= DEFAULTS.stricter
        if self._checks >= DEFAULTS.checks:
            self._try_otherwise()

    def _try_otherwise(self) -> None:
        """Begin again with stiffer systems, once."""
        self.finished = self.finished or self._stiffer
        if self.finished:
            return
        self._stiffer, self._begun = True, self.n_iter
        self._share, self._checks = DEFAULTS.share, 0
        with np.errstate(all="ignore"):
            self._newton.start_stiffer()
