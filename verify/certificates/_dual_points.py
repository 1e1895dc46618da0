"""Dual points for a certificate: the caller's, the problem object's own, and CVXPY's.

A caller's rational pair (w, u) is taken as it is; whatever comes in floats is repaired first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from inspect import Parameter, signature
from numbers import Rational
from typing import Any

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify._real_numbers import real_numbers
from verify.certificates._exact_flow import ExactFlow
from verify.certificates._factor_work import factor_seconds
from verify.certificates._limits import GIVE_BETTER, GIVE_FLOW, Clock
from verify.certificates._repair import FloatFlow, Repair
from verify.instance._constraints import Constraints
from verify.instance._instance import Instance, as_table
from verify.instance._integers import Exact

MOST_IN_CONES = 4_000_000  # numbers in w and u, each of which takes a kilobyte there and more


def overflowing() -> np.errstate:
    """Return a context for float estimates that may overflow: the kernel judges, not they."""
    return np.errstate(over="ignore", invalid="ignore")


def as_point(value: Any, shape: tuple[int, int], name: str) -> tuple[FloatArray, Exact | None]:
    """Return a table of numbers in floats, and as ints and Fractions if none of it is a float.

    Raises
    ------
    ValueError, TypeError
        Naming the argument: another shape, NaN, infinity, or a number beyond the largest double;
        what is not a real number, or masked.
    """
    array = real_numbers(value, name)
    exact = _as_ratios(value, shape)
    if exact is None:
        return as_table(array, shape, name), None
    rounded = np.zeros(shape)
    for (i, j), x in np.ndenumerate(exact):
        try:
            rounded[i, j] = x
        except OverflowError:
            kind = "edge" if name == "u" else "node"
            raise ValueError(f"{name} is beyond the range of doubles at {kind} {i}") from None
    return rounded, exact


def _as_ratios(value: Any, shape: tuple[int, int]) -> Exact | None:
    """Return an object array of ints and Fractions, None if an entry or the shape is not so."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return None
    try:
        table = np.array(value, dtype=object)
    except ValueError:  # rows that do not fit together
        return None
    if table.shape == (0,) == shape[:1]:  # no rows, so the list does not say how wide they are
        table = table.reshape(shape)
    if table.shape != shape or not all(isinstance(x, Rational) for x in table.flat):
        return None
    for index, x in np.ndenumerate(table):
        p, q = int(x.numerator), int(x.denominator)  # a NumPy integer would overflow later
        table[index] = p if q == 1 else Fraction(p, q)
    return table


def exact_pair(inst: Instance, w: Exact, u: Exact) -> ExactFlow | None:
    """Return the flow u with the losses' gradients at w as multipliers, nothing rounded.

    At a rational solution this is a witness of gap zero: conservation is stationarity. None where
    a loss has no rational gradient; whether the pair is a witness is for the kernel to say.
    """
    r: list[Exact] = []
    for term in inst.terms:
        gradient = term.exact_witness(w)
        if gradient is None:
            return None
        r.append(gradient)
    return ExactFlow(u, 0, r, [0] * len(r))


def solved(problem: Any, rtol: float, seconds: float) -> Any:
    """Return `problem.solve(rtol=rtol)`, with a time limit where the method takes one.

    What the solver warns of, such as a large lambda, was not asked for here.
    """
    parameters = signature(problem.solve).parameters
    any_name = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    limit = {"time_limit": seconds} if any_name or "time_limit" in parameters else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return problem.solve(rtol=rtol, **limit)


@dataclass(frozen=True)
class Candidate:
    """A repaired dual point.

    Attributes
    ----------
    flow : FloatFlow
        Float flow, multipliers and their gap at `point`.
    point : ndarray, shape (n, d)
        The point that the multipliers were made for, close to a solution at best.
    active : ndarray of bool, shape (m,)
        Edges that residuals may be routed along.
    lower : float
        Float estimate of the bound: P(point) less the gap and what is not conserved.
    hope : float
        The same, were all of it conserved.
    """

    flow: FloatFlow
    point: FloatArray
    active: BoolArray
    lower: float
    hope: float


class DualSearch:
    """Lazily repairs flows from one source after the other.

    Attributes
    ----------
    clock : Clock
        When to stop looking.
    may_solve : bool
        Whether to look beyond the caller's flow.
    points : list of ndarray
        Solutions found on the way, candidates for a refutation.
    notes : list of str
        Why a source had nothing, for the reader.
    ended : bool
        Whether no other flow is of use.
    """

    def __init__(
        self,
        inst: Instance,
        problem: Any,
        w: FloatArray,
        u: FloatArray | None,
        rtol: float,
        constraints: Constraints,
        *,
        clock: Clock,
        may_solve: bool = True,
    ) -> None:
        self.inst, self.problem, self.w, self.u, self.rtol = inst, problem, w, u, rtol
        self.constraints, self.clock, self.may_solve = constraints, clock, may_solve
        self.points: list[FloatArray] = []
        self.notes: list[str] = []
        self.ended = False

    @property
    def wanted(self) -> str:
        """What the caller can give that was not given."""
        return GIVE_FLOW if self.u is None else GIVE_BETTER

    def value(self, w: FloatArray) -> float:
        """Return P(w) in floats, infinity where that overflows."""
        with overflowing():
            value = self.inst.value(w)
        return np.inf if np.isnan(value) else value

    def candidates(self) -> Iterator[Candidate]:
        """Yield candidates; a source is asked only when the caller wants another one."""
        for u, point in self._flows():
            if self.clock.expired():
                return
            try:
                for candidate in self._repaired(u, point):
                    if all(np.isfinite(v).all() for v in (candidate.flow.u, *candidate.flow.r)):
                        yield candidate
                    else:
                        self.notes.append("a point is too large for the float builder")
            except (OverflowError, np.linalg.LinAlgError):
                self.notes.append("the data are too large for the float builder")
            except MemoryError:
                self.notes.append("a matrix (d, d) for each node takes too much memory")

    def _repaired(self, u: FloatArray, point: FloatArray) -> Iterator[Candidate]:
        """Yield the flow as it is, and corrected: first what seems to suffice at less cost."""
        with overflowing():
            repair = Repair(self.inst, point, self.clock)
            given = self._candidate(repair.given(u), point, repair.active)
        value = self.value(self.w)
        suffices = given.lower >= value - self.rtol * max(1.0, abs(value))
        if suffices:
            yield given
        for slopes, growing in ((False, False), (False, True), (True, False)):
            if self.clock.expired():
                break
            if growing and not repair.may_grow:
                continue
            with overflowing():
                start = repair.with_slopes(given.flow) if slopes else given.flow.parts
                corrected = repair.corrected(given.flow, start, growing)
            if corrected is None:
                self.notes.append("the problem is too large for corrections of its flow")
                break
            yield self._candidate(corrected, point, repair.active)
        if not suffices:
            yield given

    def _candidate(self, flow: FloatFlow, point: FloatArray, active: BoolArray) -> Candidate:
        with overflowing():
            hope = self.inst.value(point) - flow.gap
            lower = hope - flow.missing
        # Infinity minus infinity estimates nothing, so any other candidate is to be preferred.
        hope, lower = (-np.inf if np.isnan(x) else x for x in (hope, lower))
        return Candidate(flow, point, active, lower, hope)

    def _factors_take_long(self) -> bool:
        """Say whether a cone solver's steps take long: it looks at its limit between them."""
        inst = self.inst
        return not self.clock.affords(factor_seconds(inst.edges, inst.n, inst.d))

    def _flows(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield flows, each with the point that goes with it.

        A solution's own point: multipliers made for a w that is off are off to first order.
        """
        inst = self.inst
        if self.u is not None:
            yield self.u, self.w
        if self.ended:
            return
        if not self.may_solve:
            given = "no flow was given" if self.u is None else "the given flow does not suffice"
            self.notes.append(f"{given}, and search=False forbids to look for another")
            return
        if self.clock.expired():
            return
        if hasattr(self.problem, "solve"):
            with self.clock.solving() as seconds:
                solution = solved(self.problem, max(self.rtol / 10, 1e-12), seconds)
            found = as_table(solution.w, (inst.n, inst.d), "problem.solve().w")
            point, _ = self.constraints.moved(found)
            self.points.append(point)
            yield as_table(solution.u, (len(inst.edges), inst.d), "problem.solve().u"), point
            if self.clock.expired() or self.ended:
                return
        if self.clock.entries > MOST_IN_CONES or self._factors_take_long():
            self.notes.append(f"the problem is too large for a cone solver: {self.wanted}")
            return
        from verify.certificates._dual_problem import (  # CVXPY takes a second to import
            consensus,
            solve_dual,
        )

        with self.clock.solving() as seconds:
            own = solve_dual(inst, time_limit=seconds)
        if own is None:
            if self.clock.note() is None:
                self.notes.append(f"the dual solve failed: {self.wanted}")
            return
        points = [self.constraints.moved(w)[0] for w in (own.w, consensus(inst, own.w))]
        self.points += points
        yield own.u, min(points, key=self.value)
