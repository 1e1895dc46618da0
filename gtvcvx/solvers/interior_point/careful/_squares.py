"""Systems of steps as squares of scaled rows, factored in twice the digits.

Without the variables that equations define, and with a large weight for the equations that are
left, the system of a step is that of least squares,

    (P + A^T M^T M A) dx = right,   M = inverse(W),

whose condition is the square of that of its rows. Sums of two numbers have the digits for that.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import sp
from gtvcvx.block_cholesky import _twofold as twofold
from gtvcvx.block_cholesky._factor import A_TWOFOLD_LOOK, in_pieces
from gtvcvx.block_cholesky._plan import Plan, plan
from gtvcvx.conic._scaled import ConeProgram
from gtvcvx.solvers.interior_point.careful._asymmetric import AsymmetricCones
from gtvcvx.solvers.interior_point.careful._defined import Defined
from gtvcvx.solvers.interior_point.careful._layout import Layout, by_rows
from gtvcvx.solvers.interior_point.careful._symmetric import Scaling, SymmetricCones
from gtvcvx.solvers.interior_point.careful._twofold import (
    add,
    add_cones,
    add_products,
    add_rows,
    add_transposed,
    add_triples,
    divide,
    scale,
    scale_triples,
)

# The squared weight of an equation, over what the other rows leave of its variables.
HEAVY = 1e10
# Solutions with such equations are refined so often: they bend by a share of one over that.
REFINED = 2
# Shares of the diagonal that are added to it: a step is not far where nothing determines it. One
# refinement takes out what the first one bends; of what the second one bends three leave too much,
# but with it points in nearly free directions do not go for 1e7 and more.
SHIFTS = (1e-28, 3e-25)


class TooLarge(Exception):
    """A factorization would take too many multiplications."""


class Squares:
    """The systems of a program's steps.

    Parameters
    ----------
    program : ConeProgram
    cones : SymmetricCones
    others : AsymmetricCones
        Its cones.
    most : float
        Most multiplications of a factorization, about.

    Attributes
    ----------
    shift : float
        Share of the diagonal that is added to it.

    Raises
    ------
    TooLarge
        It would take more.
    """

    def __init__(
        self,
        program: ConeProgram,
        cones: SymmetricCones,
        others: AsymmetricCones,
        most: float = np.inf,
    ) -> None:
        self.shift = SHIFTS[0]
        self._defined = defined = Defined.of(program, cones.free)
        P = sp.csc_array(program.P[defined.kept, :][:, defined.kept])
        self._layout = layout = Layout.of(P, defined.own, cones, others)
        self._hessian = by_rows(sp.csr_array(P))
        self._into = by_rows(defined.into)
        size, found = len(defined.kept), plan(len(defined.kept), layout.edges, 1, most)
        if found is None:
            raise TooLarge
        self._plan = found = _twice(found, len(layout.edges))
        self._equation = np.zeros(cones.size, np.bool_)
        self._equation[cones.free] = True
        self._heavy = np.setdiff1d(cones.free, defined.rows)
        self._squared = defined.own[self._heavy, :].power(2)
        self._soft = np.sqrt(defined.curvatures) / np.abs(defined.factors)
        self._blocks = np.empty((2, size, 1, 1))
        self._panels = np.empty((2, found.entries(1)))
        self._rests = np.empty((2, found.waiting))
        self._front = np.empty((2, found.largest, found.largest))
        self._space = np.empty((4, found.largest))
        self._room = np.empty((4, layout.cones.columns.max(initial=0)))
        self._triple = np.empty((6, layout.triples.columns.max(initial=0)))

    @property
    def multiplications(self) -> float:
        """How many a factorization takes, about."""
        return self._plan.multiplications(1)

    def factorize(self, scaling: Scaling, roots: FloatArray) -> None:
        """Factor the system with scalings of the cones, and of the others (K, 3, 3)."""
        layout = self._layout
        inverse, self._u, self._sizes = scaling.reflections()
        total = np.zeros((2, layout.size))
        np.add.at(total[0], layout.hessian, layout.values)
        inverse[self._defined.rows] = self._soft
        inverse[self._heavy] = 0.0
        add_rows(layout.rows, layout.pairs, ~self._equation, inverse, total)
        add_rows(layout.rows, layout.pairs, self._equation, inverse, total)
        add_cones(layout.cones, self._u, self._sizes, total, self._room)
        self._roots = roots
        if len(roots):
            add_triples(layout.triples, roots, total, self._triple)
        if len(self._heavy):
            inverse[self._heavy] = self._weights(total[0, layout.diagonal])
            some = np.zeros(len(inverse), np.bool_)
            some[self._heavy] = True
            add_rows(layout.rows, layout.pairs, some, inverse, total)
        self._inverse = inverse
        self._blocks[:, :, 0, 0] = total[:, layout.diagonal]
        self._blocks[1] += self.shift * self._blocks[0]
        beside = -total[:, layout.beside].reshape(-1, 1, 1)
        arrays = self._blocks, beside, self._panels, self._rests, self._front, self._space[0]
        in_pieces(twofold.factorize, A_TWOFOLD_LOOK, self._plan, *arrays)

    def _weights(self, diagonal: FloatArray) -> FloatArray:
        """Return the weights of equations, from what other rows make of the diagonal."""
        left = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0.0)
        flat = self._squared @ left
        flat[flat == 0.0] = 1.0 / max(float(diagonal.max(initial=0.0)), 1.0)
        found: FloatArray = np.sqrt(HEAVY / flat)
        return found

    def solve(
        self, top: FloatArray, bottom: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Solve ``P dx + A^T dz = top`` with ``dz = M^T (M A dx - bottom)``.

        Equations have no dz there: ``A dx = bottom``.

        Returns
        -------
        dx : ndarray, shape (N,)
        dy : ndarray, shape (M,)
            A dx.
        dz : ndarray, shape (M,)
        """
        defined, rows = self._defined, self._layout.rows
        right, left = _two(top), _two(bottom)
        # What the equations' right-hand sides make of what they define, and what is asked of that.
        shift, slopes = left[:, defined.rows], right[:, defined.columns]
        divide(shift, defined.factors)
        divide(slopes, defined.factors)
        fixed = np.zeros_like(left)
        add_products(self._into, shift, fixed)
        known = fixed.copy()
        self._scale(known)
        aim = left.copy()
        aim[:, self._equation] *= self._inverse[self._equation]
        add(aim, known, -1.0)
        asked, pulled = right[:, defined.kept], np.zeros_like(left)
        pulled[:, defined.rows] = -slopes
        add_transposed(rows, pulled, asked)
        x, y, z = self._solution(asked, aim)
        for _ in range(REFINED if len(self._heavy) else 1):
            self._refine(asked, left, x, y, z)
        own = shift
        passed = y[:, defined.rows]
        divide(passed, defined.factors)
        add(own, passed, -1.0)
        dx = np.empty(len(top))
        dx[defined.kept], dx[defined.columns] = x.sum(axis=0), own.sum(axis=0)
        pull = np.zeros_like(own)
        add_transposed(self._into, z, pull)
        divide(pull, defined.factors)
        add(slopes, pull, -1.0)
        multipliers = z[:, defined.rows]
        add(multipliers, slopes, 1.0)
        z[:, defined.rows] = multipliers
        add(y, fixed, 1.0)
        y[:, defined.rows] = left[:, defined.rows]
        return dx, y.sum(axis=0), z.sum(axis=0)

    def _scale(self, y: FloatArray, transposed: bool = False) -> None:
        """Multiply y (2, M) by M, or by its transpose: it is symmetric but for the roots."""
        layout = self._layout
        scale(layout.pairs, layout.cones, self._inverse, self._u, self._sizes, y)
        if len(self._roots):
            roots = self._roots.transpose(0, 2, 1) if transposed else self._roots
            scale_triples(layout.triples.first, np.ascontiguousarray(roots), y)

    def _refine(
        self, top: FloatArray, bottom: FloatArray, x: FloatArray, y: FloatArray, z: FloatArray
    ) -> None:
        """Make up for what a solution misses, equations above all: in place."""
        missed, minus = top.copy(), -x
        add_products(self._hessian, minus, missed)
        add_transposed(self._layout.rows, -z, missed)
        aim, heavy = np.zeros_like(y), self._heavy
        left = bottom[:, heavy]
        add(left, y[:, heavy], -1.0)
        aim[:, heavy] = left * self._inverse[heavy]
        for part, more in zip((x, y, z), self._solution(missed, aim), strict=True):
            add(part, more, 1.0)

    def _solution(
        self, top: FloatArray, bottom: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x, A x and z of the squares, for right-hand sides that are scaled."""
        rows, y, x = self._layout.rows, bottom.copy(), top.copy()
        self._scale(y, transposed=True)
        add_transposed(rows, y, x)
        solution = x[:, :, None]
        twofold.solve(self._plan, self._panels, solution, self._space)
        x, y = solution[:, :, 0], np.zeros_like(bottom)
        add_products(rows, x, y)
        z = y.copy()
        self._scale(z)
        add(z, bottom, -1.0)
        self._scale(z, transposed=True)
        return x, y, z


def _two(x: FloatArray) -> FloatArray:
    return np.stack([x, np.zeros_like(x)])


def _twice(found: Plan, m: int) -> Plan:
    """Return a plan for edges whose numbers are sums of two: the second ones are edges, too."""
    edges = np.repeat(found.edges, 2, axis=0)
    edges[1::2, 0] += m
    return found._replace(edges=edges, edge_starts=2 * found.edge_starts)
