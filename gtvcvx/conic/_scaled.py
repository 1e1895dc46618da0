"""Cone programs whose data are far from one: scaled, solved, and judged by their own conditions.

Clarabel equilibrates within limits, and neither right-hand sides nor objectives. Here the program

    minimize (1/2) x^T P x + q^T x   subject to   b - A x in K

is written with ``x = beta D x'``, rows by E (one number for each cone, which keeps it one) and the
objective by gamma, so that the entries of all data are about one. It costs a new solver object, and
is for programs on which the plain way fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import clarabel
import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import sp
from gtvcvx.conic._form import Cone, groups, psd_side

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ScaledSettings:
    """How often data are equilibrated, and what Clarabel is asked for.

    Attributes
    ----------
    rounds : int
        Square roots of ratios are left of what rows and columns differ by: so many halve it to one.
    goals : tuple of float
        Accuracies of the tries, one after the other: some cones lose feasibility while the last
        digits are sought.
    steps : tuple of float
        Shares of the way to the boundary that the tries go: shorter ones lead another way.
    solved : float
        Relative errors of the optimality conditions up to which an answer is as good as any.
    """

    rounds: int = 12
    goals: tuple[float, ...] = (1e-12, 1e-9, 1e-9)
    steps: tuple[float, ...] = (0.99, 0.9, 0.7)
    solved: float = 1e-8


SCALED = ScaledSettings()


class ConeProgram(NamedTuple):
    """``minimize (1/2) x^T P x + q^T x`` subject to ``b - A x`` in the cones."""

    P: sp.csc_array  # (N, N), symmetric
    q: FloatArray  # (N,)
    A: sp.csc_array  # (M, N)
    b: FloatArray  # (M,)
    cones: Sequence[Cone]  # without empty ones


class Units(NamedTuple):
    """Units in which the data of a program are about one; cones stay what they are."""

    columns: FloatArray  # D, (N,)
    rows: FloatArray  # E, (M,)
    point: float  # beta
    cost: float  # gamma

    @staticmethod
    def of(program: ConeProgram, settings: ScaledSettings = SCALED) -> Units:
        """Equilibrate rows and columns by the square roots of their largest entries, in turn."""
        P, A = sp.coo_array(program.P), sp.coo_array(program.A)
        group = groups(program.cones)
        D, E = np.ones(P.shape[0]), np.ones(len(program.b))
        for _ in range(settings.rounds):
            columns, lengths = np.zeros_like(D), np.zeros(group.max(initial=-1) + 1)
            scaled = E[A.row] * np.abs(A.data) * D[A.col]
            np.maximum.at(columns, A.col, scaled)
            np.maximum.at(lengths, group[A.row], scaled)
            np.maximum.at(columns, P.col, D[P.row] * np.abs(P.data) * D[P.col])
            D /= np.sqrt(np.where(columns > 0.0, columns, 1.0))
            E /= np.sqrt(np.where(lengths > 0.0, lengths, 1.0))[group]
        point = float(np.abs(E * program.b).max(initial=0.0)) or 1.0
        curvature = float((D[P.row] * np.abs(P.data) * D[P.col]).max(initial=0.0))
        slope = float(np.abs(D * program.q).max(initial=0.0)) / point
        return Units(D, E, point, 1.0 / (max(curvature, slope) or 1.0))

    def slopes(self, q: FloatArray) -> FloatArray:
        """Return linear terms (N,) in these units."""
        return self.cost / self.point * self.columns * q

    def sides(self, b: FloatArray) -> FloatArray:
        """Return right-hand sides (M,) in these units."""
        return self.rows * b / self.point

    def matrix(self, A: sp.csc_array) -> sp.csc_array:
        """Return constraints (M, N) in these units."""
        return _scaled(A, self.rows, self.columns)

    def program(self, program: ConeProgram) -> ConeProgram:
        """Return a program in these units."""
        return ConeProgram(
            _scaled(program.P, self.cost * self.columns, self.columns),
            self.slopes(program.q),
            self.matrix(program.A),
            self.sides(program.b),
            program.cones,
        )

    def answer(self, x: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return points (N,) and multipliers (M,) that are given in these units."""
        return self.point * self.columns * x, self.point / self.cost * self.rows * z


def _scaled(A: sp.csc_array, rows: FloatArray, columns: FloatArray) -> sp.csc_array:
    """Return ``diag(rows) A diag(columns)``: of small matrices, products cost far more."""
    data = rows[A.indices] * A.data * np.repeat(columns, np.diff(A.indptr))
    return sp.csc_array((data, A.indices.copy(), A.indptr.copy()), shape=A.shape)


class Answer(NamedTuple):
    """What Clarabel has found; the error is infinite for a certificate."""

    x: FloatArray
    z: FloatArray
    status: str
    error: float  # the largest relative error of the optimality conditions


def clarabel_cone(cone: Cone) -> object:
    """Return a cone as Clarabel knows it."""
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


def solve_scaled(program: ConeProgram, settings: ScaledSettings = SCALED) -> Answer:
    """Solve a program in several ways, until one is good enough; return the best answer.

    A certificate that there is none is returned where nothing better is found.
    """
    units = Units.of(program, settings)
    inside = units.program(program)
    best: Answer | None = None
    for goal, share in zip(settings.goals, settings.steps, strict=True):
        found = _solved(inside, goal, share)
        if best is None or found.error < best.error:
            best = found
        if best.error <= settings.solved:
            break
    assert best is not None
    x, z = units.answer(best.x, best.z)
    return best._replace(x=x, z=z)


def _solved(program: ConeProgram, goal: float, share: float) -> Answer:
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = goal
    settings.max_step_fraction = share
    cones = [clarabel_cone(cone) for cone in program.cones]
    P = sp.triu(program.P, format="csc")
    found = clarabel.DefaultSolver(P, program.q, program.A, program.b, cones, settings).solve()
    x, z, status = np.array(found.x), np.array(found.z), str(found.status)
    error = np.inf
    if "Infeasible" not in status and np.isfinite(x).all() and np.isfinite(z).all():
        error = _error(program, x, z, np.array(found.s))
    return Answer(x, z, status, error)


def _error(program: ConeProgram, x: FloatArray, z: FloatArray, s: FloatArray) -> float:
    """Largest relative error of the optimality conditions at x, slack s in K and z in K*."""
    P, q, A, b, _ = program
    Px, Ax, Az = P @ x, A @ x, A.T @ z
    primal = np.abs(Ax + s - b).max(initial=0.0)
    dual = np.abs(Px + q + Az).max(initial=0.0)
    gap = abs(float(x @ Px + q @ x + b @ z))
    return float(
        max(
            primal / max(1.0, *(np.abs(v).max(initial=0.0) for v in (Ax, s, b))),
            dual / max(1.0, *(np.abs(v).max(initial=0.0) for v in (Px, q, Az))),
            gap / max(1.0, abs(float(q @ x)), abs(float(b @ z))),
        )
    )
