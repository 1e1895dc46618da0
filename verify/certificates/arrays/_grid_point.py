"""A dual point on fixed grids: u and r as integers of 64 bits, and what is missing as long ones.

B^T r has the grain of the data times that of r, far below what one word can hold. What is left of
conservation there is carried along a spanning forest, as a second, sparse layer of the flow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.certificates._exact_point import Absorb
from verify.certificates._node_curvature import NodeCurvature
from verify.certificates.arrays import _limbs as limbs
from verify.certificates.arrays._archive import Array
from verify.instance._instance import Instance
from verify.instance._terms import Term

BITS = 60  # of the largest entry on a grid: one word, and room for corrections
MARGIN = 8  # bits above what is expected of the residuals
REFINEMENTS = 2  # Newton steps on the grid; the second works on what rounding the first has left


class Rows:
    """The data rows of a term, as odd mantissas times powers of two.

    Attributes
    ----------
    mantissa, exponent : ndarray of int, shape (N, d)
        The entries; `k` is the least such that all are integers in units 2^-k.
    """

    def __init__(self, x: FloatArray) -> None:
        self.mantissa = np.empty(x.shape, dtype=np.int64)
        self.exponent = np.empty(x.shape, dtype=np.int64)
        limbs.split(np.ascontiguousarray(x).ravel(), self.mantissa.ravel(), self.exponent.ravel())
        self.k = int(max(0, -self.exponent.min(initial=0)))

    def integers(self, b: int) -> Any:
        """Return row b in units 2^-k, as Python integers."""
        pairs = zip(self.mantissa[b].tolist(), self.exponent[b].tolist(), strict=True)
        return np.array([m << (e + self.k) for m, e in pairs], dtype=object)


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

    def __init__(self, inst: Instance, u: FloatArray, r: list[FloatArray], w: FloatArray) -> None:
        self.inst = inst
        self.rows = [None if t.x is None else Rows(t.x) for t in inst.terms]
        self.k_u = _exponent(u)
        self.k_r = [_exponent(v) for v in r]
        if all(x is None for x in self.rows):
            # One grid for all: identity blocks then take what arrives in whole units.
            self.k_u = min(self.k_u, *self.k_r) if self.k_r else self.k_u
            self.k_r = [self.k_u] * len(r)
        self.k_x = [0 if x is None else x.k for x in self.rows]
        self.k = max([self.k_u, *(a + b for a, b in zip(self.k_r, self.k_x, strict=True))])
        self.u = _to_grid(u, self.k_u)
        self.curvature = NodeCurvature(inst, r, w)
        self.r = [_inside(term, v, k) for term, v, k in zip(inst.terms, r, self.k_r, strict=True)]
        self.words = self._words(u, r)

    def _words(self, u: FloatArray, r: list[FloatArray]) -> int:
        """Return how many words residuals take, and all their sums along a tree.

        Rounding has left them: some units of the last place of the largest summands.
        """
        size = np.abs(self.inst.divergence(u)).max(initial=0.0)
        rho = self.inst.divergence(u)
        for term, v in zip(self.inst.terms, r, strict=True):
            image = term.pull(v)
            size = max(size, float(np.abs(image).max(initial=0.0)))
            rho = rho + image
        expected = float(np.abs(rho).sum()) + size * len(rho) * 2.0**-50
        bits = self.k + (int(np.frexp(expected)[1]) if expected > 0 else 0) + MARGIN
        return max(1, bits // 64 + 1)

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


def _exponent(values: FloatArray) -> int:
    """Return the k of the grid 2^-k on which the largest entry has `BITS` bits."""
    top = float(np.abs(values).max(initial=0.0))
    return max(0, BITS - int(np.frexp(top)[1])) if top > 0 else 0


def _to_grid(values: FloatArray, k: int) -> IntArray:
    return np.round(np.ldexp(values, k)).astype(np.int64)


def _inside(term: Term, r: FloatArray, k: int) -> IntArray:
    return _clipped(term, _to_grid(r, k), k)


def _clipped(term: Term, r: IntArray, k: int) -> IntArray:
    """Return multipliers moved into their intervals: by doubles, but exactly where an end is 0.

    Other ends are never reached, because the point was shrunk before.
    """
    if term.domain is None:
        return r
    low, high = term.domain.floats()
    limit = 2.0**62
    low, high = (np.clip(np.ldexp(v, k), -limit, limit) for v in (low, high))
    return np.clip(r, np.ceil(low).astype(np.int64), np.floor(high).astype(np.int64))
