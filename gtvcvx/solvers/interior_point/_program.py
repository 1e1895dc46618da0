"""A convex program in the form that Clarabel takes, put together block by block.

    min_x  (1/2) x^T P x + q^T x   subject to   b - A x in K,

with K a product of the zero cone, nonnegative numbers, second-order cones, exponential cones, and
of any others that are given by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.conic._form import Cone
from gtvcvx.conic._scaled import ConeProgram, clarabel_cone

# Rows are sorted by their cones, in this order.
CONES = ("zero", "nonneg", "soc", "exp", "others")


@dataclass(frozen=True)
class Linear:
    """Linear forms of the variables, one a row, as triples; entries that occur twice add up."""

    row: IntArray
    column: IntArray
    value: FloatArray
    size: int  # number of rows

    @staticmethod
    def of(index: IntArray) -> Linear:
        """Return single variables."""
        return Linear(np.arange(len(index)), index, np.ones(len(index)), len(index))

    @staticmethod
    def constant(size: int) -> Linear:
        """Return forms without any variable."""
        none = np.empty(0, np.int64)
        return Linear(none, none, np.empty(0), size)

    def __add__(self, other: Linear) -> Linear:
        return Linear(
            np.concatenate([self.row, other.row]),
            np.concatenate([self.column, other.column]),
            np.concatenate([self.value, other.value]),
            self.size,
        )

    def times(self, factor: FloatArray | float) -> Linear:
        """Return the rows times a number, or a number each (size,); zeros leave nothing."""
        each = np.broadcast_to(factor, (self.size,))[self.row]
        if (each != 0.0).all():
            return Linear(self.row, self.column, self.value * each, self.size)
        some = each != 0.0
        return Linear(self.row[some], self.column[some], (self.value * each)[some], self.size)

    def __neg__(self) -> Linear:
        return self.times(-1.0)


def interleaved(forms: Sequence[Linear]) -> Linear:
    """Return the first rows of all forms, then the second ones, and so on."""
    k = len(forms)
    return Linear(
        np.concatenate([k * form.row + j for j, form in enumerate(forms)]),
        np.concatenate([form.column for form in forms]),
        np.concatenate([form.value for form in forms]),
        k * forms[0].size,
    )


@dataclass(frozen=True)
class Units:
    """Units in which a program is solved: ``x = centre + columns y``, and costs times a number.

    Clarabel compares residuals and gap with the data's own size, and 1. With powers of two nothing
    is rounded but for the centre; close to the optimum there is little left to compare with.
    """

    columns: FloatArray  # (size,)
    cost: float
    centre: FloatArray  # (size,)

    def point(self, y: FloatArray) -> FloatArray:
        """Return x (size,) for the solution y in these units."""
        return self.centre + self.columns * y

    def multipliers(self, z: FloatArray) -> FloatArray:
        """Return the multipliers of all constraints for those in these units."""
        return z / self.cost


class Rows(NamedTuple):
    """Place of constraints among those of their kind of cone."""

    cone: str
    start: int
    stop: int


class Program:
    """Variables, their cost and their constraints.

    Parameters
    ----------
    size : int
        Number of the first variables, without any cost yet.

    Attributes
    ----------
    constants : list of float
        What is added to the cost, which no solution depends on.
    """

    def __init__(self, size: int) -> None:
        none = np.empty(0, np.int64)
        self.size = size
        self.constants: list[float] = []
        self._P: list[sp.coo_array] = []
        self._q: list[tuple[IntArray, FloatArray]] = [(none, np.empty(0))]
        self._forms: dict[str, list[Linear]] = {cone: [] for cone in CONES}
        self._right: dict[str, list[FloatArray]] = {cone: [] for cone in CONES}
        self._starts: dict[str, list[int]] = {cone: [] for cone in CONES}
        self._counts = dict.fromkeys(CONES, 0)
        self._sizes: dict[str, list[int]] = {cone: [] for cone in CONES}
        self._others: list[Cone] = []

    @property
    def n_rows(self) -> int:
        """Rows of all constraints."""
        return sum(self._counts.values())

    def variables(self, count: int) -> IntArray:
        """Add variables; return their numbers."""
        self.size += count
        return np.arange(self.size - count, self.size)

    def linear_cost(self, index: IntArray, cost: FloatArray | float) -> None:
        """Add ``cost^T x[index]``."""
        self._q.append((index, np.broadcast_to(cost, index.shape)))

    def square_cost(self, index: IntArray, curvature: FloatArray | float) -> None:
        """Add ``(1/2) curvature^T x[index]^2``."""
        values = np.broadcast_to(curvature, index.shape)
        self.quadratic_cost(sp.coo_array((values, (index, index)), shape=(self.size, self.size)))

    def constant_cost(self, cost: float) -> None:
        """Add a constant."""
        self.constants.append(cost)

    def quadratic_cost(self, matrix: sp.coo_array) -> None:
        """Add ``(1/2) x^T matrix x`` for the first variables; the matrix is symmetric."""
        self._P.append(matrix.tocoo())

    def constrain(self, cone: str, forms: Linear, right: FloatArray | float, rows: int = 1) -> Rows:
        """Ask for ``right - forms`` in cones with so many rows each."""
        start = self._counts[cone]
        self._forms[cone].append(forms)
        self._right[cone].append(np.broadcast_to(right, (forms.size,)))
        self._starts[cone].append(start)
        self._sizes[cone] += [rows] * (forms.size // rows) if cone == "soc" else []
        self._counts[cone] += forms.size
        return Rows(cone, start, start + forms.size)

    def constrain_in(self, cones: Sequence[Cone], forms: Linear, right: FloatArray | float) -> Rows:
        """Ask for ``right - forms`` in the product of some cones of any kind."""
        self._others += cones
        return self.constrain("others", forms, right)

    def place(self, rows: Rows) -> slice:
        """Return where constraints are among all of them."""
        before = sum(self._counts[cone] for cone in CONES[: CONES.index(rows.cone)])
        return slice(before + rows.start, before + rows.stop)

    def solver(
        self, settings: clarabel.DefaultSettings, units: Units | None = None
    ) -> clarabel.DefaultSolver:
        """Return Clarabel with these data, in other units perhaps: ordered, not yet factored."""
        hessian, *others = self._in_units(units)
        cones = [clarabel_cone(cone) for cone in self.cones]
        return clarabel.DefaultSolver(hessian, *others, cones, settings)

    def cone_program(self, units: Units | None = None) -> ConeProgram:
        """Return these data, in some units perhaps."""
        upper, gradient, matrix, offsets = self._in_units(units)
        hessian = sp.csc_array(upper + sp.triu(upper, 1).T)
        return ConeProgram(hessian, gradient, sp.csc_array(matrix), offsets, self.cones)

    def _in_units(
        self, units: Units | None
    ) -> tuple[sp.csc_matrix, FloatArray, sp.csc_matrix, FloatArray]:
        """Return the upper half of the Hessian, the gradient, the rows and their right sides."""
        hessian, gradient = self._hessian(), self._gradient()
        matrix, offsets = self._matrix(), self._offsets()
        if units is not None:
            if units.centre.any():
                gradient = gradient + hessian @ units.centre + sp.tril(hessian.T, -1) @ units.centre
                offsets = offsets - matrix @ units.centre
            columns = sp.diags(units.columns)
            hessian = sp.csc_matrix(units.cost * (columns @ hessian @ columns))
            gradient = units.cost * (units.columns * gradient)
            matrix = sp.csc_matrix(matrix @ columns)
        return hessian, gradient, matrix, offsets

    def _hessian(self) -> sp.csc_matrix:
        shape = self.size, self.size
        total = sp.csc_array(shape)
        for part in self._P:
            total = total + sp.csc_array((part.data, part.coords), shape=shape)
        return sp.csc_matrix(sp.triu(total, format="csc"))

    def _gradient(self) -> FloatArray:
        index = np.concatenate([index for index, _ in self._q])
        return np.bincount(
            index, np.concatenate([cost for _, cost in self._q]), minlength=self.size
        ).astype(np.float64)

    def _matrix(self) -> sp.csc_matrix:
        blocks = [
            (form, self.place(Rows(cone, start, 0)).start)
            for cone in CONES
            for form, start in zip(self._forms[cone], self._starts[cone], strict=True)
        ]
        shape = sum(self._counts.values()), self.size
        if not blocks:
            return sp.csc_matrix(shape)
        row = np.concatenate([form.row + start for form, start in blocks])
        column = np.concatenate([form.column for form, _ in blocks])
        value = np.concatenate([form.value for form, _ in blocks])
        return sp.csc_matrix((value, (row, column)), shape=shape)

    def _offsets(self) -> FloatArray:
        parts = [right for cone in CONES for right in self._right[cone]]
        return np.concatenate([np.empty(0), *parts])

    @property
    def cones(self) -> list[Cone]:
        """The cones of all rows, in their order, without empty ones."""
        counts = self._counts
        some = [Cone("zero", counts["zero"]), Cone("nonneg", counts["nonneg"])]
        some += [Cone("soc", rows) for rows in self._sizes["soc"]]
        some += [Cone("exp", 3)] * (counts["exp"] // 3)
        return [cone for cone in [*some, *self._others] if cone.rows]
