"""A dual point on fixed grids: u and r as integers of 64 bits, and what is missing as long ones.

B^T r has the grain of the data times that of r, far below what one word can hold. What is left of
conservation there is carried along a spanning forest, as a second, sparse layer of the flow.
"""

from __future__ import annotations

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.certificates._exact_point import Absorb
from verify.certificates._node_curvature import NodeCurvature
from verify.certificates.arrays import _limbs as limbs
from verify.certificates.arrays._archive import Array
from verify.certificates.arrays._grid import BITS, Grid, Rows
from verify.instance._instance import Instance
from verify.instance._terms import Term

REFINEMENTS = 2  # Newton steps on the grid; the second works on what rounding the first has left

_ENDS = 2.0**-50  # of the ends of intervals, whose doubles have two roundings


class GridPoint:
    """An exact (u, r) on grids.

    Attributes
    ----------
    u : ndarray of int64, shape (m, d)
        In units 2^-k_u.
    r : list of ndarray of int64
        Per term, in units 2^-k_r[t].
    k : int
        All products of data and multipliers, and the flow, are multiples of 2^-k.
    words : int
        Words of the residuals in units 2^-k.
    curvature : NodeCurvature
        Of the nodes near the given floats.
    """

    def __init__(
        self,
        inst: Instance,
        u: FloatArray,
        r: list[FloatArray],
        w: FloatArray,
        rows: list[Rows | None],
        grid: Grid,
    ) -> None:
        self.inst, self.rows = inst, rows
        self.k_u, self.k_r, self.k_x, self.k, self.words = grid
        self.u = _to_grid(u, self.k_u)
        self.curvature = NodeCurvature(inst, r, w)
        self.r = [_inside(term, v, k) for term, v, k in zip(inst.terms, r, self.k_r, strict=True)]

    def residual(self) -> Array:
        """Return sum_k B_k^T r_k + D^T u in units 2^-k, (n, d, words)."""
        rho = np.zeros((self.inst.n, self.inst.d, self.words), dtype=np.uint64)
        limbs.add_divergence(rho, self.inst.edges, self.u, self.k - self.k_u)
        for t, (term, rows) in enumerate(zip(self.inst.terms, self.rows, strict=True)):
            shift = self.k - self.k_r[t]
            if rows is None:
                limbs.add_identity(rho, term.node, self.r[t], shift)
            else:
                limbs.add_rows(rho, term.node, rows.mantissa, rows.exponent, self.r[t], shift)
        return rho

    def refine(self) -> None:
        """Let every node absorb what it can of its own residual: Newton steps on the grid."""
        for _ in range(REFINEMENTS):
            changes = self.curvature.absorbed(limbs.doubles(self.residual(), self.k))
            if changes is None:
                return
            self._change(changes)

    def refine_with(self, absorb: Absorb) -> None:
        """Let flow and multipliers take the residual together: steps on the grid."""
        for _ in range(REFINEMENTS):
            u, r = absorb(limbs.doubles(self.residual(), self.k))
            if not all(np.isfinite(v).all() for v in (u, *r)):
                return
            if np.abs(u).max(initial=0.0) < np.ldexp(1.0, BITS - self.k_u):
                self.u = self.u + _to_grid(u, self.k_u)
                self._change(r)

    def _change(self, r: list[FloatArray]) -> None:
        """Add small changes to the multipliers, inside their intervals."""
        for t, (term, change) in enumerate(zip(self.inst.terms, r, strict=True)):
            if np.abs(change).max(initial=0.0) < np.ldexp(1.0, BITS - self.k_r[t]):
                moved = self.r[t] + _to_grid(change, self.k_r[t])
                self.r[t] = _clipped(term, moved, self.k_r[t])

    def floats(self) -> tuple[FloatArray, list[FloatArray]]:
        """Return (u, r) rounded to doubles."""
        r = [np.ldexp(v.astype(float), -k) for v, k in zip(self.r, self.k_r, strict=True)]
        return np.ldexp(self.u.astype(float), -self.k_u), r


def _to_grid(values: FloatArray, k: int) -> IntArray:
    return np.round(np.ldexp(values, k)).astype(np.int64)


def _inside(term: Term, r: FloatArray, k: int) -> IntArray:
    return _clipped(term, _to_grid(r, k), k)


def _clipped(term: Term, r: IntArray, k: int) -> IntArray:
    """Return multipliers moved into their intervals: exactly where an end is 0, else by doubles.

    Other ends are rounded to doubles, and may be so outwards.
    """
    if term.domain is None:
        return r
    low, high = (v * (1 - _ENDS) for v in term.domain.floats())
    limit = 2.0**62
    low, high = (np.clip(np.ldexp(v, k), -limit, limit) for v in (low, high))
    return np.clip(r, np.ceil(low).astype(np.int64), np.floor(high).astype(np.int64))
