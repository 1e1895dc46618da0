"""Mehrotra's predictor-corrector method for cone programs, with systems that are solved carefully.

    minimize (1/2) x^T P x + q^T x   subject to   A x + s = b,   s in K,

for symmetric cones K. Clarabel adds to the diagonal of its matrix and factors it without pivoting,
which ends early where columns are nearly dependent, or of units that differ by many orders of
magnitude, and only small multipliers tell their coefficients apart. Here the system of a step,

    [P   A^T inverse(W)] [ dx  ]
    [inverse(W) A    -I] [W dz ],

has its columns and free rows scaled to one, and -I by a small number alpha: the condition of the
matrix is that of a least-squares problem then, and not its square (Bjoerck 1967). It is factored
with pivoting. Which alpha is best changes on the way, and which order of the columns stays sparse
under pivoting: each step begins with what was good for the last one, and takes the first solution
that is good enough, or the best. This takes several times as long as Clarabel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx._lazy import sp
from gtvcvx.conic._scaled import EPS, ConeProgram
from gtvcvx.conic._symmetric import Scaling, SymmetricCones


@dataclass(frozen=True)
class NewtonSettings:
    """Steps and systems.

    Attributes
    ----------
    inside : float
        Share of the longest step that is taken at most.
    power : float
        mu falls by this power of what the predictor leaves.
    ways : tuple of (str, float)
        Orders of the columns, by SuperLU's names, and scales of the identity that are tried.
    pivots : float
        A diagonal entry is taken as pivot from this share of the largest one on: others fill in.
    refinements : int
        Of each solution, with the same factor.
    enough : float
        A solution may miss what is worth this share of the gap.
    rounding : float
        And so many units in the last place of what it consists of.
    start : float
        What is added to the diagonal of the first system, which has no scaling.
    ridge : float
        What is added to the diagonal of variables, whose columns are of length one, from the first
        singular system on: nothing determines some of them. Of singular matrices SuperLU's
        factors are not to be trusted in other orders either, and it complains on the terminal.
    """

    inside: float = 0.99
    power: float = 3.0
    ways: tuple[tuple[str, float], ...] = (
        ("MMD_AT_PLUS_A", 1e-3),
        ("COLAMD", 1e-3),
        ("COLAMD", 1.0),
        ("COLAMD", 1e-5),
    )
    pivots: float = 0.01
    refinements: int = 3
    enough: float = 0.01
    rounding: float = 8.0
    start: float = 1e-8
    ridge: float = 1e-14


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

    Attributes
    ----------
    x : ndarray, shape (N,)
    s, z : ndarray, shape (M,)
        Slacks and multipliers, inside the cones.
    length : float
        Of the last step.
    entries : int
        Of all factors so far.
    """

    def __init__(
        self,
        program: ConeProgram,
        settings: NewtonSettings = DEFAULTS,
        start: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    ) -> None:
        self._program, self._settings = program, settings
        self._cones = SymmetricCones(program.cones)
        self._way, self.length, self.entries = 0, 1.0, 0
        self._ridge = 0.0
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

    def restart(self) -> None:
        """Start from least squares."""
        P, q, A, b, _ = self._program
        N, cones = len(q), self._cones
        own = np.ones(cones.size)
        own[cones.free] = self._settings.start
        matrix = sp.block_array(
            [[P + self._settings.start * sp.eye_array(N), A.T], [A, -sp.diags_array(own)]],
            format="csc",
        )
        found = sp.linalg.splu(matrix).solve(np.concatenate([-q, b]))
        self.x, z = found[:N], found[N:]
        self.s, self.z = cones.inside(-z), cones.inside(z)
        self.s[cones.free] = 0.0

    def iterate(self) -> None:
        """Do one iteration."""
        cones, settings = self._cones, self._settings
        scaling = Scaling(cones, self.s, self.z)
        enough = settings.enough * self.gap + settings.rounding * EPS * self._sizes
        best, least = None, np.inf
        for way, system in self._systems(scaling):
            look()
            self.entries += system.entries
            dx, ds, dz, missed = self._step(scaling, system)
            if missed < least:
                best, least, self._way = (dx, ds, dz), missed, way
            if missed <= enough:
                break
        self.length = 0.0
        if best is None:
            return
        dx, ds, dz = best
        self.length = min(1.0, settings.inside * self._longest(ds, dz))
        self.x = self.x + self.length * dx
        self.s, self.z = self.s + self.length * ds, self.z + self.length * dz

    @property
    def _sizes(self) -> float:
        """Size of the products that what is missed is made of."""
        P, q, A, _, _ = self._program
        x = np.abs(self.x)
        return float(x @ (abs(P) @ x + np.abs(q) + abs(A).T @ np.abs(self.z)))

    def _systems(self, scaling: Scaling) -> Iterator[tuple[int, _System]]:
        """Yield what solves the systems, and its number; what was good for the last step first."""
        P, _, A, _, _ = self._program
        scaled = (scaling.inverse() @ A).tocsc()
        ways = self._settings.ways
        for way in sorted(range(len(ways)), key=lambda k: k != self._way):
            system = self._system(P, scaled, *ways[way])
            if system is None and not self._ridge:
                self._ridge = self._settings.ridge
                system = self._system(P, scaled, *ways[way])
            if system is not None:
                yield way, system

    def _system(self, P: sp.csc_array, A: sp.csc_array, order: str, alpha: float) -> _System | None:
        """Return the factor of the system of a step; None if it is exactly singular."""
        try:
            return _System(P, A, self._cones, order, alpha, self._ridge, self._settings)
        except RuntimeError:
            return None

    def _step(
        self, scaling: Scaling, system: _System
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return the steps of x, s and z, and what they miss."""
        cones, settings = self._cones, self._settings
        both = scaling.times(self.z)
        both[cones.free] = 0.0
        square = cones.product(both, both)
        _, ds, dz, _ = self._towards(square, both, scaling, system)
        left = 1.0 - min(1.0, self._longest(ds, dz))
        mu = left**settings.power * self.gap / cones.degree
        second = cones.product(scaling.divided(ds), scaling.times(dz))
        return self._towards(square + second - mu * cones.unit, both, scaling, system)

    def _towards(
        self, excess: FloatArray, both: FloatArray, scaling: Scaling, system: _System
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return the steps that remove an excess (M,) of products, and what they miss."""
        P, _, A, _, _ = self._program
        cones, (primal, dual) = self._cones, self._missing
        aim = cones.quotient(both, excess) - scaling.divided(primal)
        dx, scaled = system.solve(-dual, aim)
        dz = scaling.divided(scaled)
        ds = -primal - A @ dx
        ds[cones.free] = 0.0
        left = dual + P @ dx + A.T @ dz
        after = np.abs(A @ dx + primal)[cones.free] @ np.abs(self.z[cones.free])
        missed = float(np.abs(left) @ np.abs(self.x + dx) + after)
        return dx, ds, dz, missed if np.isfinite(missed) else np.inf

    def _longest(self, ds: FloatArray, dz: FloatArray) -> float:
        return min(self._cones.longest(self.s, ds), self._cones.longest(self.z, dz))


class _System:
    """Factor of the system of a step.

    Parameters
    ----------
    P : sparse array, shape (N, N)
    A : sparse array, shape (M, N)
        Scaled, inverse(W) A.
    cones : SymmetricCones
    order : str
    alpha : float
    ridge : float
        What is added to the diagonal of variables.
    settings : NewtonSettings

    Attributes
    ----------
    entries : int
        Of the factor.

    Raises
    ------
    RuntimeError
        The matrix is singular.
    """

    def __init__(
        self,
        P: sp.csc_array,
        A: sp.csc_array,
        cones: SymmetricCones,
        order: str,
        alpha: float,
        ridge: float,
        settings: NewtonSettings,
    ) -> None:
        self._alpha, self._times = alpha, settings.refinements
        N, free = A.shape[1], cones.free
        row, column = A.indices, _columns_of(A)
        lengths = np.bincount(column, A.data**2, minlength=N).astype(np.float64)
        self._columns = _unit(P.diagonal() + lengths)
        A_data = A.data * self._columns[column]
        self._rows = np.ones(cones.size)
        squares = np.bincount(row, A_data**2, minlength=cones.size).astype(np.float64)
        self._rows[free] = _unit(squares[free])
        A_data = self._rows[row] * A_data
        places = P.indices, _columns_of(P)
        P_data = self._columns[places[0]] / alpha * P.data * self._columns[places[1]]
        scaled = np.setdiff1d(np.arange(cones.size), free, assume_unique=True)
        entries = np.concatenate([P_data, A_data, A_data, np.full(len(scaled), -alpha)])
        rows = np.concatenate([places[0], column, N + row, N + scaled])
        columns = np.concatenate([places[1], N + row, column, N + scaled])
        # SciPy's products and blocks take as long as the factorization of a small matrix.
        size = N + cones.size
        self._matrix = sp.csc_matrix((entries, (rows, columns)), shape=(size, size))
        matrix = self._matrix
        if ridge:  # solutions are refined without it
            matrix = matrix + sp.diags(np.where(np.arange(size) < N, ridge / alpha, 0.0))
        self._factor = sp.linalg.splu(
            sp.csc_matrix(matrix), order, diag_pivot_thresh=settings.pivots
        )
        self.entries = int(self._factor.nnz)

    def solve(self, top: FloatArray, bottom: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dx (N,) and W dz (M,)."""
        N = len(top)
        right = np.concatenate([self._columns * top / self._alpha, self._rows * bottom])
        found = self._factor.solve(right)
        for _ in range(self._times):
            found += self._factor.solve(right - self._matrix @ found)
        return self._columns * found[:N], self._alpha * self._rows * found[N:]


def _columns_of(matrix: sp.csc_array) -> IntArray:
    """Return the column of each entry."""
    return np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))


def _unit(squares: FloatArray) -> FloatArray:
    """Return one over the roots of squares, one where these are zero."""
    return 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))
