"""Variables that equations define, as sums over the others: no system needs them.

Residuals, jumps under a matrix, and the like: ``a^T x + c v = b`` says what v is, and v has a
curvature of its own, or is in rows of cones, which then are rows of x. As variables they would be
tied to the others by weights beyond all curvatures, which leave no digits to what is small.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import sp
from gtvcvx.conic._scaled import ConeProgram

# A variable may be in so many rows of cones: its equation is copied to each of them.
MOST_ROWS = 4


class Defined(NamedTuple):
    """What equations define.

    Attributes
    ----------
    rows, columns : ndarray, shape (J,)
        Equations, and the variables that they define.
    factors, curvatures : ndarray, shape (J,)
        c, and the variables' own entries of P.
    kept : ndarray, shape (N - J,)
        The other variables.
    own : sparse array, shape (M, N - J)
        Rows of these: equations without what they define, cones with its sum in its place.
    into : sparse array, shape (M, J)
        What rows of cones have of the defined variables.
    """

    rows: IntArray
    columns: IntArray
    factors: FloatArray
    curvatures: FloatArray
    kept: IntArray
    own: sp.csr_array
    into: sp.csr_array

    @staticmethod
    def of(program: ConeProgram, free: IntArray) -> Defined:
        """Look at the equations `free` of a program; each defines one variable at most."""
        P, A = program.P, sp.csr_array(program.A)
        rows, columns, factors = _definitions(program, A, free)
        kept = np.setdiff1d(np.arange(len(program.q)), columns)
        equation = np.zeros(A.shape[0])
        equation[free] = 1.0
        into = sp.csr_array(sp.diags_array(1.0 - equation) @ A[:, columns])
        into.eliminate_zeros()
        sums = sp.diags_array(1.0 / factors) @ A[rows, :][:, kept]
        own = sp.csr_array(A[:, kept] - into @ sums)
        own.sort_indices()
        into.sort_indices()
        return Defined(rows, columns, factors, P.diagonal()[columns], kept, own, into)


def _definitions(
    program: ConeProgram, A: sp.csr_array, free: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return equations, the variables that they define, and the factors of these."""
    N = len(program.q)
    part = A[free, :].tocoo()
    in_equations = np.bincount(part.col, minlength=N)
    in_cones = np.bincount(A.indices, minlength=N) - in_equations
    entries = np.diff(program.P.indptr)
    curved = program.P.diagonal() > 0.0
    alone = (in_cones == 0) & (entries == curved)
    fits = (in_equations == 1) & (alone | ((entries == 0) & (in_cones <= MOST_ROWS)))
    some = np.flatnonzero(fits[part.col] & (part.data != 0.0))
    row, column, factor = part.row[some], part.col[some], part.data[some]
    # Of each equation the variable with the largest factor.
    order = np.lexsort((column, -np.abs(factor), row))
    _, first = np.unique(row[order], return_index=True)
    best = order[first]
    return free[row[best]], column[best].astype(np.int64), factor[best]
