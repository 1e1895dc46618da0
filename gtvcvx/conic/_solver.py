"""Proximal points, conjugates and subgradients of functions in conic form, by Clarabel.

One solver object per function is kept and updated: the factorization's structure, the scaling of
the data and the memory are reused, and CVXPY is not in the loop.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import clarabel
import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import cp, sp
from gtvcvx.conic._form import ConicForm
from gtvcvx.conic._scaled import Answer, ConeProgram, Units, clarabel_cone, solve_scaled

EPS = float(np.finfo(np.float64).eps)
# Objectives are asked for to so many digits because points have only half of them. An answer is
# still taken when it is as good as REDUCED.
GAP, FEASIBILITY, REDUCED = 1e-13, 1e-12, 1e-8
# Proximal points may be less accurate than bounds.
NEARLY = 1e-6
# Solvers that are kept, for weights of different sizes.
MOST_KEPT = 8
# Matrices of no more entries are dense: SciPy's sparse products take longer for small ones.
DENSE = 4_096
# What is not found so is sought in other units; bounds are taken of answers whose optimality
# conditions hold up to this relative error.
ACCEPTED = 1e-5
# A point may violate the constraints by this share of its size: solvers return no better ones.
ROOM = 1e-8
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
        small = len(form.q) * max(len(form.q), len(form.b)) <= DENSE
        P, A = (form.P.toarray(), form.A.toarray()) if small else (form.P, form.A)
        self._P: FloatArray | sp.csc_array = P
        self._A: FloatArray | sp.csc_array = A
        self._transposed = np.ascontiguousarray(A.T) if small else form.A.T.tocsr()
        self._kept: dict[int | None, _Kept] = {}

    def _keeping(self, weight: float) -> _Kept:
        """Return the solver that is kept for weights like this."""
        decade = round(math.log10(weight)) if weight > 0.0 else None
        if decade not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[decade] = _Kept(self._form, weight)
        return self._kept[decade]

    @cached_property
    def _curved(self) -> tuple[IntArray, FloatArray]:
        """Variables that are in P, and the pseudo-inverse of its part."""
        P = self._form.P
        curved = np.flatnonzero(np.diff(P.indptr))
        part = P[curved, :][:, curved].toarray() if len(curved) else np.empty((0, 0))
        return curved, np.linalg.pinv(part, hermitian=True)

    def _carefully(self, program: ConeProgram, bounded: bool) -> Answer:
        """Solve a program in other units, in other ways; bounded says that it cannot be unbounded.

        Raises
        ------
        Unbounded, Infeasible
            There is a certificate.
        cvxpy.SolverError
            Nothing has been found, not even roughly.
        """
        answer = solve_scaled(program)
        if np.isfinite(answer.error):
            return answer
        if "DualInfeasible" in answer.status and not bounded:
            raise Unbounded
        if "PrimalInfeasible" in answer.status:
            raise Infeasible
        raise cp.SolverError(f"CLARABEL stops with the status {answer.status}")

    def _shifted(self, s: FloatArray, weight: float, centre: FloatArray) -> ConeProgram:
        """Return the program of ``argmax_w`` as one for the difference from a centre."""
        form = self._form
        at = np.concatenate([centre, np.zeros(len(form.q) - form.dim)])
        mark = np.zeros(len(form.q))
        mark[: form.dim] = weight
        P = sp.csc_array(form.P + sp.diags_array(mark))
        q = form.q + P @ at
        q[: form.dim] -= s
        cones = [cone for cone in form.cones if cone.rows]
        return ConeProgram(P, q, form.A, form.b - form.A @ at, cones)

    def _terms(
        self, s: FloatArray, weight: float, centre: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the q and the b of that program."""
        form = self._form
        if not centre.any():  # as for most conjugates
            q = form.q.copy()
            q[: form.dim] -= s
            return q, form.b
        at = np.concatenate([centre, np.zeros(len(form.q) - form.dim)])
        q = form.q + self._P @ at
        q[: form.dim] += weight * centre - s
        return q, form.b - self._A @ at

    def maximizer(self, s: FloatArray, weight: float) -> FloatArray:
        """Return ``argmax_w <s, w> - f(w) - (weight / 2) ||w||^2``, weight > 0.

        Roughly, where nothing better can be found.

        Raises
        ------
        Infeasible
            f is +inf everywhere.
        cvxpy.SolverError
            Nothing is found.
        """
        centre = s / weight
        # Of the difference from the centre: digits would be lost by a large one.
        found = self._keeping(weight).solution(weight, *self._terms(s, weight, centre), NEARLY)
        if found is not None:
            return centre + found[0][: self._form.dim]
        program = self._shifted(s, weight, centre)
        return centre + self._carefully(program, True).x[: self._form.dim]

    def conjugate(
        self, s: FloatArray, near: FloatArray | None = None, careful: bool = False
    ) -> Optimum:
        """Return a maximizer of ``<s, w> - f(w)`` and an upper bound on the maximum f*(s).

        The bound is the objective of the dual point (x, z) that the solver ends with. Interior
        points stay inside the dual cones, but ``r = P x + q + A^T z - (s, 0)`` is not exactly
        zero: by weak duality, the maximum is at most the dual objective less r^T x* for a
        maximizer x*, of which x is an approximation. A point near it may be given; then x* is
        the difference from that. Careful, the plain way is left out.

        Raises
        ------
        Unbounded, Infeasible
            The maximum is +inf or -inf.
        cvxpy.SolverError
            Nothing is found. Where x and z are only not good enough, the bound is +inf.
        """
        centre = np.zeros(self._form.dim) if near is None else near
        q, b = self._terms(s, 0.0, centre)
        solution = None if careful else self._keeping(0.0).solution(0.0, q, b, REDUCED)
        if solution is not None:
            x, z = solution
        else:
            answer = self._carefully(self._shifted(s, 0.0, centre), False)
            x, z = answer.x, answer.z
            if not answer.error <= ACCEPTED:
                return Optimum(centre + x[: self._form.dim], np.inf)
        if np.abs(x).max() > FARTHEST:
            raise Unbounded
        return self._bound(q, b, x, z, centre)

    def _bound(
        self, q: FloatArray, b: FloatArray, x: FloatArray, z: FloatArray, centre: FloatArray
    ) -> Optimum:
        """Return what a dual point (x, z) of a program around a centre bounds."""
        form, P = self._form, self._P
        # What residuals have in the range of P, another x balances: dual points have their own.
        curved, inverse = self._curved
        own = q + self._transposed @ z
        if len(curved):
            x = x.copy()
            x[curved] -= inverse @ (P @ x + own)[curved]
        Px = P @ x
        residual = Px + own
        quadratic, linear = 0.5 * float(x @ Px), b * z
        at = np.concatenate([centre, np.zeros(len(form.q) - form.dim)])
        # The objective at the centre: its slope there is q.
        half = 0.5 * (P @ at)
        moved = (q - half) * at
        upper = quadratic + float(linear.sum()) - float(moved.sum()) - form.offset
        size = quadratic + float(np.abs(linear).sum() + np.abs(moved).sum()) + abs(form.offset)
        allowance = SAFETY * float(np.abs(residual) @ np.abs(x)) + 4.0 * EPS * size
        return Optimum(centre + x[: form.dim], upper + allowance)

    def fixed(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Value and a subgradient of f at w, if the form is a `ConicForm.restricted` one.

        Raises
        ------
        Infeasible
            f(w) = +inf.
        cvxpy.SolverError
            Nothing is found.
        """
        form = self._form
        b = form.b.copy()
        b[: form.dim] = w
        solution = self._keeping(0.0).solution(0.0, form.q, b, REDUCED)
        if solution is None:
            return self._fixed_carefully(w)
        x, z = solution
        value = 0.5 * float(x @ (self._P @ x)) + float(form.q @ x) + form.offset
        return value, -z[: form.dim]

    def _fixed_carefully(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Do the same by the other variables alone; constraints on w hold up to ROOM."""
        form, dim = self._form, self._form.dim
        A, b, P = form.A[dim:].tocsc(), form.b[dim:], form.P
        room = ROOM * (1.0 + np.abs(b) + abs(A[:, :dim]) @ np.abs(w))
        rest = b - A[:, :dim] @ w
        inner = A[:, dim:].tocsc()
        alone = np.diff(inner.tocsr().indptr) == 0  # rows that only w is in
        starts = np.cumsum([0] + [cone.rows for cone in form.cones[1:]])
        for first, cone in zip(starts, form.cones[1:], strict=False):
            at = np.flatnonzero(alone[first : first + cone.rows]) + first
            at = at[np.abs(rest[at]) <= room[at]]
            if cone.kind in ("zero", "nonneg"):
                rest[at] = 0.0 if cone.kind == "zero" else room[at]
        q = form.q[dim:] + P[dim:, :dim] @ w
        cones = [cone for cone in form.cones[1:] if cone.rows]
        program = ConeProgram(sp.csc_array(P[dim:, dim:]), q, sp.csc_array(inner), rest, cones)
        answer = self._carefully(program, False)
        x = np.concatenate([w, answer.x])
        Px = P @ x
        value = 0.5 * float(x @ Px) + float(form.q @ x) + form.offset
        return value, (Px + form.q)[:dim] + A[:, :dim].T @ answer.z


class _Kept:
    """A solver of Clarabel that is kept, and updated: in units for weights like the first one."""

    def __init__(
        self,
        form: ConicForm,
        weight: float,
        settings: clarabel.DefaultSettings | None = None,
    ) -> None:
        N, dim = len(form.q), form.dim
        cones = [cone for cone in form.cones if cone.rows]
        P = form.P
        if weight > 0.0:
            P = sp.csc_array(P + sp.diags_array(np.append(np.full(dim, weight), np.zeros(N - dim))))
        self._units = units = Units.of(ConeProgram(P, form.q, form.A, form.b, cones))
        # Structural entries stay even where their value is zero: there is one at each w.
        upper = form.P.tocoo()
        above = upper.row <= upper.col
        rows = np.concatenate([upper.row[above], np.arange(dim)])
        columns = np.concatenate([upper.col[above], np.arange(dim)])
        scale = units.cost * units.columns[rows] * units.columns[columns]
        place, entry = np.unique(rows + N * columns, return_inverse=True)

        def assembled(first: FloatArray, last: FloatArray) -> FloatArray:
            values = scale * np.concatenate([first, last])
            summed: FloatArray = np.bincount(entry, values, minlength=len(place)).astype(float)
            return summed

        self._own = assembled(upper.data[above], np.zeros(dim))
        self._of_weight = assembled(np.zeros(int(above.sum())), np.ones(dim))
        starts = np.searchsorted(place, N * np.arange(N + 1))
        pattern = sp.csc_array(
            (self._own + weight * self._of_weight, place % N, starts), shape=(N, N)
        )
        self._solver = clarabel.DefaultSolver(
            pattern,
            units.slopes(form.q),
            units.matrix(form.A),
            units.sides(form.b),
            [clarabel_cone(cone) for cone in cones],
            _settings() if settings is None else settings,
        )

    def solution(
        self, weight: float, q: FloatArray, b: FloatArray, accuracy: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """Solve; None where that ends otherwise than it should.

        It may end early, as accurate as this. Certificates are no such end: where data are far
        from one they may be wrong.
        """
        units = self._units
        P = self._own + weight * self._of_weight
        self._solver.update(P=P, q=units.slopes(q), b=units.sides(b))
        found = self._solver.solve()
        if str(found.status) != "Solved":
            gap = abs(found.obj_val - found.obj_val_dual) / max(1.0, abs(found.obj_val))
            if "Infeasible" in str(found.status) or not (
                found.r_prim <= accuracy and found.r_dual <= accuracy and gap <= accuracy
            ):
                return None
        return units.answer(np.array(found.x), np.array(found.z))


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
