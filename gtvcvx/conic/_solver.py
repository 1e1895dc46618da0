"""Proximal points, conjugates and subgradients of functions in conic form, by Clarabel.

One solver object per function is kept and updated: the factorization's structure, the scaling of
the data and the memory are reused, and CVXPY is not in the loop.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import clarabel
import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray
from gtvcvx.conic._form import Cone, ConicForm, psd_side

EPS = float(np.finfo(np.float64).eps)
# Objectives are asked for to so many digits because points have only half of them. An answer is
# still taken when it is as good as REDUCED.
GAP, FEASIBILITY, REDUCED = 1e-13, 1e-12, 1e-8
# A second try asks for less (some cones lose feasibility while the last digits are sought), and
# takes shorter steps, which lead another way.
SECOND_GOAL, SECOND_REDUCED, SECOND_STEP = 1e-9, 1e-7, 0.9
# Bounds are widened by so many times what the residuals of the dual point may cost.
SAFETY = 2.0
# Maximizers farther away than this are the solver's way to infinity.
FARTHEST = 1e18


class Optimum(NamedTuple):
    """Solution of ``max_w <s, w> - f(w)``."""

    w: FloatArray
    upper: float  # upper bound on the maximum f*(s), from the dual point


class Unbounded(Exception):
    """The maximum is +inf."""


class Infeasible(Exception):
    """The function is +inf everywhere (or where its argument is fixed)."""


class ConicSolver:
    """Maximizes ``<s, w> - f(w) - (weight / 2) ||w||^2`` for one f and any s and weight >= 0."""

    def __init__(self, form: ConicForm) -> None:
        self._form = form

    @cached_property
    def _pattern(self) -> tuple[sp.csc_array, FloatArray, FloatArray]:
        """Upper triangle of P with an entry at each w, which of its entries those are, and P."""
        N, dim = len(self._form.q), self._form.dim
        mark = np.zeros(N)
        mark[:dim] = 1.0
        # Structural entries stay even where their value is zero.
        upper = sp.triu(self._form.P, format="coo")
        rows = np.concatenate([upper.coords[0], np.arange(dim)])
        columns = np.concatenate([upper.coords[1], np.arange(dim)])
        zeros, ones = np.zeros(dim), np.ones(dim)

        def assembled(first: FloatArray, last: FloatArray) -> sp.csc_array:
            values = np.concatenate([first, last])
            return sp.coo_array((values, (rows, columns)), shape=(N, N)).tocsc()

        P = assembled(upper.data, zeros)
        weight = assembled(np.zeros_like(upper.data), ones)
        return P, P.data.copy(), weight.data.copy()

    @cached_property
    def _transposed(self) -> sp.csr_array:
        return self._form.A.T.tocsr()

    @cached_property
    def _solver(self) -> clarabel.DefaultSolver:
        return self._made(1.0, self._form.q, self._form.b, _settings())

    def _made(
        self, weight: float, q: FloatArray, b: FloatArray, settings: clarabel.DefaultSettings
    ) -> clarabel.DefaultSolver:
        P, own, diagonal = self._pattern
        P.data = own + weight * diagonal
        cones = [_clarabel_cone(cone) for cone in self._form.cones if cone.rows]
        return clarabel.DefaultSolver(P, q, self._form.A, b, cones, settings)

    def _solution(self, s: FloatArray, weight: float, b: FloatArray) -> clarabel.DefaultSolution:
        """Solve, a second time in another way if the first one gets stuck."""
        _, own, diagonal = self._pattern
        q = self._form.q.copy()
        q[: self._form.dim] -= s
        self._solver.update(P=own + weight * diagonal, q=q, b=b)
        solution = self._solver.solve()
        if str(solution.status) not in _DECIDED:
            settings = _settings(SECOND_GOAL, SECOND_GOAL, SECOND_REDUCED)
            settings.max_step_fraction = SECOND_STEP
            solution = self._made(weight, q, b, settings).solve()
        status = str(solution.status)
        if status in ("DualInfeasible", "AlmostDualInfeasible"):
            raise Unbounded
        if status in ("PrimalInfeasible", "AlmostPrimalInfeasible"):
            raise Infeasible
        if status not in ("Solved", "AlmostSolved"):
            raise cp.SolverError(f"CLARABEL stops with the status {status}")
        return solution

    def maximizer(self, s: FloatArray, weight: float) -> FloatArray:
        """Return ``argmax_w <s, w> - f(w) - (weight / 2) ||w||^2``.

        Raises
        ------
        Unbounded, Infeasible
            The maximum is +inf or -inf.
        cvxpy.SolverError
            The solver gives up.
        """
        solution = self._solution(s, weight, self._form.b)
        return np.array(solution.x[: self._form.dim])

    def conjugate(self, s: FloatArray) -> Optimum:
        """Return a maximizer of ``<s, w> - f(w)`` and an upper bound on the maximum f*(s).

        The bound is the objective of the dual point (x, z) that the solver ends with. Interior
        points stay inside the dual cones, but ``r = P x + q + A^T z - (s, 0)`` is not exactly
        zero: by weak duality, the maximum is at most the dual objective less r^T x* for a
        maximizer x*, of which x is an approximation.

        Raises
        ------
        Unbounded, Infeasible, cvxpy.SolverError
            As `maximizer`.
        """
        form = self._form
        solution = self._solution(s, 0.0, form.b)
        x, z = np.array(solution.x), np.array(solution.z)
        if np.abs(x).max() > FARTHEST:
            raise Unbounded
        Px = form.P @ x
        residual = Px + form.q + self._transposed @ z
        residual[: form.dim] -= s
        quadratic, linear = 0.5 * float(x @ Px), form.b * z
        upper = quadratic + float(linear.sum()) - form.offset
        size = quadratic + float(np.abs(linear).sum()) + abs(form.offset)
        allowance = SAFETY * float(np.abs(residual) @ np.abs(x)) + 4.0 * EPS * size
        return Optimum(x[: form.dim], upper + allowance)

    def fixed(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Value and a subgradient of f at w, if the form is a `ConicForm.restricted` one.

        Raises
        ------
        Infeasible
            f(w) = +inf.
        """
        form = self._form
        b = form.b.copy()
        b[: form.dim] = w
        solution = self._solution(np.zeros(form.dim), 0.0, b)
        x, z = np.array(solution.x), np.array(solution.z)
        value = 0.5 * float(x @ (form.P @ x)) + float(form.q @ x) + form.offset
        return value, -z[: form.dim]


_DECIDED = (
    "Solved",
    "AlmostSolved",
    "PrimalInfeasible",
    "DualInfeasible",
)


def _settings(
    gap: float = GAP, feasibility: float = FEASIBILITY, reduced: float = REDUCED
) -> clarabel.DefaultSettings:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    # Both would forbid updates of the data.
    settings.presolve_enable = False
    settings.chordal_decomposition_enable = False
    settings.tol_gap_abs = settings.tol_gap_rel = gap
    settings.tol_feas = feasibility
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = reduced
    settings.reduced_tol_feas = reduced
    return settings


def _clarabel_cone(cone: Cone) -> object:
    if cone.kind == "zero":
        return clarabel.ZeroConeT(cone.rows)
    if cone.kind == "nonneg":
        return clarabel.NonnegativeConeT(cone.rows)
    if cone.kind == "soc":
        return clarabel.SecondOrderConeT(cone.rows)
    if cone.kind == "psd":
        return clarabel.PSDTriangleConeT(psd_side(cone.rows))
    if cone.kind == "exp":
        return clarabel.ExponentialConeT()
    if cone.rows == 3:
        return clarabel.PowerConeT(cone.exponents[0])
    return clarabel.GenPowerConeT(list(cone.exponents), 1)
