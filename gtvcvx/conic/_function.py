"""Convex functions that users write with CVXPY: checked once, then evaluated without CVXPY's help.

The user's callable builds the expression for a CVXPY variable of shape (d,). Primal models in
CVXPY call it again, for the rows of theirs; everything else works on its conic form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx._lazy import cp
from gtvcvx.conic._alike import forms_of_kinds
from gtvcvx.conic._form import ConicForm
from gtvcvx.conic._joint import Part, joint_forms
from gtvcvx.conic._solver import ROOM, ConicSolver, Infeasible, Unbounded

EPS = float(np.finfo(np.float64).eps)
Build = Callable[[Any], Any]

# A least value is found if it is known up to this share: exponentials of thousands leave no more.
LEAST_TOLERANCE = 0.02
# Steps by which subgradients are found next to a point, as shares of its square over the value.
NEXT_TO = 1e-8
# Gauges are numerical upper bounds, and larger than they need be by this share.
MARGIN = 4e-9
# A unit vector with a longer part beside a subspace is not in it.
BESIDE = 1e-14
# So far out nothing is left of offsets, and squares can still be taken.
OUT = 1e100
# Gauges of so many unit vectors are kept: a flow on as many edges.
MOST_GAUGES = 10_000
# So many functions are brought into conic form at a time, under a millisecond each.
TOGETHER = 64
NOWHERE = "build: no point satisfies the constraints"


class CvxpyFunction:
    """A convex function f: R^d -> R and +inf.

    Parameters
    ----------
    build : callable
        ``build(w)`` for a CVXPY expression w of shape (d,) returns a scalar convex expression, or
        a pair of it and a list of constraints. Other variables in them are minimized over.
    dim : int
        d.

    Raises
    ------
    cvxpy.DCPError
        The expression or a constraint is not convex by CVXPY's rules.
    TypeError, ValueError
        ``build`` cannot be called like this, or returns something else.
    """

    def __init__(self, build: Build, dim: int) -> None:
        self._build, self.dim = build, dim
        self._latest: tuple[FloatArray, float] | None = None
        self._gauges: dict[bytes, float] = {}
        self._w = cp.Variable(dim, name="w")
        cost, self._constraints = self.expression(self._w)
        #: Whether CVXPY's rules say that f >= 0.
        self.nonnegative = bool(cost.is_nonneg())
        self._expression = cost
        # CVXPY forgets variables that nothing refers to.
        self._cost = cost + np.zeros(dim) @ self._w
        self._problem = cp.Problem(cp.Minimize(self._cost), self._constraints)
        try:
            if not self._problem.is_dcp():
                # CVXPY says best which part it is.
                self._problem.get_problem_data(cp.CLARABEL)
        except cp.DCPError as error:
            raise cp.DCPError(f"build: {error}") from None
        if self._problem.is_mixed_integer():
            raise ValueError("build: integer and Boolean variables are not convex")
        if self._problem.parameters():
            name = self._problem.parameters()[0].name()
            raise ValueError(
                f"build: the CVXPY parameter {name!r} may change its value; use the number itself"
            )

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Call the user's function; w is an expression of shape (d,)."""
        try:
            built = self._build(w)
        except cp.DCPError:
            raise
        except Exception as error:
            raise ValueError(
                f"build: failed for a variable of shape ({self.dim},): "
                f"{type(error).__name__}: {error}"
            ) from error
        cost, constraints = built if isinstance(built, tuple) and len(built) == 2 else (built, [])
        if isinstance(cost, (int, float, np.number)) and not isinstance(cost, bool):
            cost = cp.Constant(float(cost))
        if not isinstance(cost, cp.Expression) or not isinstance(constraints, (list, tuple)):
            raise TypeError(
                "build: an expression, or a pair of an expression and a list of constraints, is "
                f"expected, got {built!r}"
            )
        for constraint in constraints:
            if not isinstance(constraint, cp.Constraint):
                raise TypeError(f"build: {constraint!r} is not a CVXPY constraint")
        if cost.size != 1 or not cost.is_real():
            raise ValueError(f"build: a real scalar is expected, got shape {cost.shape}")
        return cp.sum(cost), list(constraints)

    def multiplied(self, factor: float) -> CvxpyFunction:
        """Return the function times a factor > 0."""

        def build(w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
            cost, constraints = self.expression(w)
            return factor * cost, constraints

        return CvxpyFunction(build, self.dim)

    @cached_property
    def form(self) -> ConicForm:
        """Conic form of f."""
        return ConicForm.of(self._problem, self._w)

    @property
    def prepared(self) -> bool:
        """Whether the conic form has been made already."""
        return "form" in self.__dict__

    @cached_property
    def _solver(self) -> ConicSolver:
        return ConicSolver(self.form)

    @cached_property
    def _domain(self) -> ConicSolver:
        return ConicSolver(self.form.domain())

    @cached_property
    def _recession(self) -> ConicSolver:
        return ConicSolver(self.form.recession())

    @cached_property
    def _unit_ball(self) -> ConicSolver:
        """Indicator of ``recession(v) <= 1``."""
        return ConicSolver(self.form.recession().sublevel(1.0))

    @cached_property
    def _restricted(self) -> ConicSolver:
        return ConicSolver(self.form.restricted())

    @property
    def part(self) -> Part:
        """The problem that the function is, to be brought into conic form beside others."""
        return Part(self._cost, self._constraints, self._w, self._problem.variables())

    @property
    def _auxiliary(self) -> bool:
        """Whether there are other variables than w."""
        return len(self._problem.variables()) > 1

    def value(self, w: FloatArray) -> float:
        """f(w), +inf where w violates a constraint by more than rounding."""
        # The same point is asked for several times in turn, and CVXPY takes its time.
        if self._latest is None or not np.array_equal(self._latest[0], w):
            self._latest = w.copy(), self._value(w)
        return self._latest[1]

    def _value(self, w: FloatArray) -> float:
        if self._auxiliary:
            try:
                return self._restricted.fixed(w)[0]
            except Infeasible:
                return np.inf
        self._w.save_value(w)  # what CVXPY checks before takes two thirds of the time
        with np.errstate(all="ignore"):
            value = float(self._expression.value)
            worst = max((float(np.max(c.residual)) for c in self._constraints), default=0.0)
        inside = worst <= ROOM * max(1.0, float(np.abs(w).max()))
        return value if inside and np.isfinite(value) else np.inf

    def subgradient(self, w: FloatArray) -> FloatArray:
        """Return a subgradient of f at w, the gradient where there is one.

        Raises
        ------
        ValueError
            w is outside the domain of f.
        """
        try:
            return self._restricted.fixed(w)[1]
        except (Infeasible, cp.SolverError):
            value = self.value(w)
            if not np.isfinite(value):
                raise ValueError(
                    f"build: there is no gradient at {w}, outside the domain"
                ) from None
        # A subgradient next to w, where the multipliers of w itself are out of reach.
        tau = NEXT_TO * max(float(w @ w), EPS) / max(abs(value), EPS)
        return (w - self.prox(w, tau)) / tau

    def prox(self, v: FloatArray, tau: float) -> FloatArray:
        """Return ``argmin_w f(w) + ||w - v||^2 / (2 tau)``.

        Raises
        ------
        ValueError
            f is +inf everywhere.
        """
        try:
            return self._solver.maximizer(v / tau, 1.0 / tau)
        except Infeasible:
            raise ValueError(NOWHERE) from None

    def conjugate(self, s: FloatArray, near: FloatArray | None = None) -> float:
        """Upper bound on ``f*(s) = sup_w <s, w> - f(w)``, +inf outside the domain of f*.

        The bound is the objective of a dual point, widened by what its residuals may cost; it is
        off by some 1e-10 of its size. No point near the maximizer, where one is given, may tell
        that it is too low: then it is found by more care, or +inf.

        Raises
        ------
        ValueError
            f is +inf everywhere.
        """
        bound = self._bound(s, near)
        # That much is known without a solver.
        return min(bound, 0.0) if self.nonnegative and not s.any() else bound

    def _bound(self, s: FloatArray, near: FloatArray | None) -> float:
        least, slack = -np.inf, 0.0
        if near is not None:
            parts = np.append(s * near, -self.value(near))
            least = float(parts.sum())
            slack = ROOM * float(np.abs(parts).sum())
        for careful in (False, True):
            try:
                upper = self._solver.conjugate(s, near, careful).upper
            except (Unbounded, cp.SolverError):
                # At the edge of the domain the solver may not decide; +inf is a valid bound.
                return np.inf
            except Infeasible:
                raise ValueError(NOWHERE) from None
            if not upper < least - slack:
                return upper
        return np.inf

    def slope_far_out(self, direction: FloatArray) -> float:
        """Return about how steep f is far out in a direction; infinity if that is not known.

        Beyond all that matters where f grows faster than linearly. Where other variables are
        minimized over it would take a solver, in numbers out of its range.
        """
        if self._auxiliary:
            return np.inf
        slope = abs(self._value(OUT * direction)) / OUT
        return slope if np.isfinite(slope) else np.inf

    @cached_property
    def least(self) -> float:
        """Lower bound on the least value, -inf where none is found."""
        return 0.0 if self.nonnegative else -self.conjugate(np.zeros(self.dim))

    @property
    def cheap(self) -> bool:
        """Whether `least` costs no more than a conjugate."""
        return self.nonnegative or self.prepared

    def minimizer(self) -> FloatArray:
        """Point where f is least; close to it where the infimum is not attained.

        Raises
        ------
        ValueError
            f is unbounded below, or +inf everywhere.
        """
        zero = np.zeros(self.dim)
        try:
            w, upper = self._solver.conjugate(zero)
            value = self.value(w)
            if not upper + value <= LEAST_TOLERANCE * max(1.0, abs(value)):
                w, upper = self._solver.conjugate(zero, w, careful=True)
                value = self.value(w)
        except Unbounded:
            raise ValueError("build: unbounded below") from None
        except Infeasible:
            raise ValueError(NOWHERE) from None
        proved = upper + value <= LEAST_TOLERANCE * max(1.0, abs(value))
        if not proved and not (self.nonnegative and np.isfinite(w).all()):
            raise ValueError(
                f"build: unbounded below, or its least value is out of reach; {value:.3g} at {w}"
            )
        return w

    @cached_property
    def null(self) -> FloatArray:
        """Orthonormal basis (d, r) of the directions along which f is affine.

        Bounded below, it is constant along them, and f* infinite off their complement.
        """
        return self.form.affine_directions()

    def gauge(self, s: FloatArray) -> float:
        """Upper bound on the least t >= 0 with s in t dom f*, for f bounded below.

        The support function of dom f* is the recession function of f, so that the gauge is the
        polar of that one, ``sup <s, v> subject to recession(v) <= 1``; +inf off the span.
        """
        size = float(np.linalg.norm(s))
        if size == 0.0:
            return 0.0
        unit = s / size
        beside = self.null @ (self.null.T @ unit)
        if np.linalg.norm(beside) > BESIDE:
            return np.inf
        # Of a unit vector: so the bound is homogeneous, whatever the solver's last digits.
        return size * max(self._gauge_of_unit(unit - beside), 0.0) * (1.0 + MARGIN)

    def _gauge_of_unit(self, unit: FloatArray) -> float:
        """Return the gauge of a unit vector; a check of a flow asks for the same ones in turn."""
        key = unit.tobytes()
        if key not in self._gauges:
            if len(self._gauges) >= MOST_GAUGES:
                self._gauges.clear()
            try:
                self._gauges[key] = self._unit_ball.conjugate(unit).upper
            except (Unbounded, cp.SolverError):
                self._gauges[key] = np.inf
        return self._gauges[key]

    def excess(self, s: FloatArray) -> float:
        """Upper bound on the least t >= 1 with s in t dom f*, for f bounded below."""
        return 1.0 if np.isfinite(self.conjugate(s)) else max(1.0, self.gauge(s))

    def near(self, w: FloatArray) -> FloatArray:
        """Return w, or if f is infinite there, its projection on the domain of f.

        Where the domain is open, and the projection outside it, the proximal point stands in.
        """
        if np.isfinite(self.value(w)):
            return w
        try:
            nearest = self._domain.maximizer(w, 1.0)
        except Infeasible:
            raise ValueError(NOWHERE) from None
        return nearest if np.isfinite(self.value(nearest)) else self.prox(w, 1.0)

    def nearest_slope(self, s: FloatArray) -> FloatArray:
        """Projection of s on the closure of the domain of f*.

        Its support function is the recession function of f, so that Moreau's identity gives it.
        """
        return s - self._recession.maximizer(s, 1.0)


def make_forms(functions: Iterable[CvxpyFunction]) -> None:
    """Make the conic forms that are still missing, many at a time.

    Where functions differ in their constants alone it is a tenth of the work, else a quarter.
    """
    missing = list({id(f): f for f in functions if not f.prepared}.values())
    found = forms_of_kinds([function.part for function in missing])
    left = []
    for function, form in zip(missing, found, strict=True):
        if form is None:
            left.append(function)
        else:
            function.form = form
    for start in range(0, len(left), TOGETHER):
        look()
        some = left[start : start + TOGETHER]
        if len(some) == 1:
            return  # alone, it is made when it is asked for
        try:
            forms = joint_forms([function.part for function in some])
        except (cp.error.DCPError, cp.error.SolverError, ValueError):
            return  # whose error it is shows when each makes its own
        except (AttributeError, ImportError):
            return  # another version of CVXPY may have other reductions
        for function, form in zip(some, forms or (), strict=False):
            function.form = form
