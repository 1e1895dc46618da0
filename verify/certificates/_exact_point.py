"""A dual point as exact integers: data rows, flow u and multipliers r on powers of two."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from verify._arrays import FloatArray
from verify.certificates._node_curvature import NodeCurvature
from verify.instance import _integers as integers
from verify.instance._instance import Instance
from verify.instance._integers import Exact
from verify.instance._penalties import QuadraticPenalty
from verify.kernel.numbers import whole

# Returns changes of (u, r) that make up a small rest (n, d) of the balance.
Absorb = Callable[[FloatArray], tuple[FloatArray, list[FloatArray]]]
# Flows that are put back inside keep this share of their capacity away from it, as corrections do.
MARGIN = 1e-12
ENOUGH = 0.9  # rounds go on while each leaves no more than this share
GRID_BITS = 100  # u and r are rounded to 2^-100 of their largest entry


class ExactPoint:
    """An exact (u, r) under construction.

    Attributes
    ----------
    u : ndarray, shape (m, d)
        Integers in units 2^-k.
    r : list of ndarray
        Per term integers in units 2^-k_r(t), such that B^T r is in units 2^-k.
    x : list of Exact | None
        Data rows per term in units 2^-k_x[t]; None for identity blocks.
    curvature : NodeCurvature
        Of the nodes near the given floats.
    free, lift : list of int and list of lists of Fraction
        For a singular quadratic penalty the coordinates N of SCHEMA.md that follow from the others
        J on the range of Q, as v_N = lift v_J; otherwise `free` is empty.
    """

    def __init__(self, inst: Instance, u: FloatArray, r: list[FloatArray], w: FloatArray) -> None:
        self.inst = inst
        pairs = [(None, 0) if t.x is None else integers.dyadic(t.x) for t in inst.terms]
        self.x: list[Exact | None] = [x for x, _ in pairs]
        self.k_x = [k for _, k in pairs]
        k_u = integers.grid_exponent(u, GRID_BITS)
        k_r = [integers.grid_exponent(v, GRID_BITS) for v in r]
        self.k = max([k_u, *(a + b for a, b in zip(k_r, self.k_x, strict=True))])
        # Rounded on coarser grids than their units, so that most numbers stay short in the file.
        self.u = integers.to_grid(u, k_u) * (1 << (self.k - k_u))
        self.r = [
            integers.to_grid(v, k) * (1 << (self.k_r(t) - k))
            for t, (v, k) in enumerate(zip(r, k_r, strict=True))
        ]
        self.curvature = NodeCurvature(inst, r, w)
        self._into_range()
        self.clip()

    def k_r(self, t: int) -> int:
        """Return the exponent of the unit of r[t]."""
        return self.k - self.k_x[t]

    def vector(self, t: int, b: int) -> Exact:
        """Return B^T of block b of term t, counted through, in units 2^-k_x[t]."""
        x = self.x[t]
        if x is not None:
            return x[b]
        unit = np.zeros(self.inst.d, dtype=object)
        unit[b % self.inst.d] = 1
        return unit

    def node(self, t: int, b: int) -> int:
        """Return the node of block b of term t."""
        return int(self.inst.terms[t].node[b if self.x[t] is not None else b // self.inst.d])

    def _into_range(self) -> None:
        """Put the flow into the range of a singular Q exactly."""
        self.free: list[int] = []
        self.pivots = list(range(self.inst.d))
        self.lift: list[list[Fraction]] = []
        penalty = self.inst.penalty
        proof = penalty.proof if isinstance(penalty, QuadraticPenalty) else None
        if proof is None or not proof.null_space[0]:
            return
        swept, self.pivots = proof.swept
        self.free = [j for j in range(self.inst.d) if j not in self.pivots]
        self.lift = [[swept[j][i] for i in self.pivots] for j in self.free]
        for e, v in enumerate(self.u):
            pairs = zip(self.free, self.defect(v), strict=True)
            self.u[e, self.free] = [whole(v[j] - x) for j, x in pairs]

    def defect(self, v: Exact) -> list[Fraction]:
        """Return v_N - lift v_J, which vanishes iff v is in the range of Q."""
        at = [v[i] for i in self.pivots]
        return [
            Fraction(v[j]) - sum(a * x for a, x in zip(row, at, strict=True))
            for j, row in zip(self.free, self.lift, strict=True)
        ]

    def clip(self) -> None:
        """Move r into the domain of h* exactly."""
        for t, term in enumerate(self.inst.terms):
            if term.domain is not None:
                self.r[t] = term.domain.clip(self.r[t], self.k_r(t))

    def image(self) -> Exact:
        """Return sum_k B_k^T r_k per node, (n, d)."""
        out = np.zeros((self.inst.n, self.inst.d), dtype=object)
        for term, x, r in zip(self.inst.terms, self.x, self.r, strict=True):
            np.add.at(out, term.node, r if x is None else x * r[:, None])
        return out

    def residual(self) -> Exact:
        """Return sum_k B_k^T r_k + D^T u, (n, d)."""
        rho = self.image()
        np.add.at(rho, self.inst.edges[:, 0], self.u)
        np.subtract.at(rho, self.inst.edges[:, 1], self.u)
        return rho

    def refine(self, rounds: int = 2) -> None:
        """Let every node absorb what it can of its own residual: Newton steps on the fine grid."""
        for _ in range(rounds):
            changes = self.curvature.absorbed(integers.to_floats(self.residual(), self.k))
            if changes is None:
                return
            for t, change in enumerate(changes):
                self.r[t] = self.r[t] + integers.to_grid(change, self.k_r(t))
            self.clip()

    def refine_with(self, absorb: Absorb, rounds: int = 4) -> None:
        """Let flow and multipliers take the residual together: steps on the fine grid."""
        for _ in range(rounds):
            if not self._take(*absorb(integers.to_floats(self.residual(), self.k))):
                return

    def refine_inside(self, absorb: Absorb, rounds: int = 10) -> None:
        """Do the same with flows put back into their capacities, as long as less is left."""
        rest = integers.to_floats(self.residual(), self.k)
        for _ in range(rounds):
            u, r, left = self.u, self.r.copy(), rest
            taken = self._take(*absorb(rest))
            if taken:
                self._clip_flow()
                rest = integers.to_floats(self.residual(), self.k)
            if not (taken and self._size(rest) < ENOUGH * self._size(left)):
                self.u, self.r = u, r
                return

    def _size(self, rest: FloatArray) -> float:
        return float((np.abs(rest) / self.inst.units).sum())

    def _take(self, u: FloatArray, r: list[FloatArray]) -> bool:
        """Add changes of flow and multipliers; say whether they are numbers."""
        if not all(np.isfinite(v).all() for v in (u, *r)):
            return False
        self.u = self.u + integers.to_grid(u, self.k)
        for t, change in enumerate(r):
            self.r[t] = self.r[t] + integers.to_grid(change, self.k_r(t))
        self._into_range()
        self.clip()
        return True

    def _clip_flow(self) -> None:
        """Put flows that are above their capacities back inside, a little below."""
        u = integers.to_floats(self.u, self.k)
        inside = self.inst.penalty.clip(u, self.inst.cap * (1.0 - MARGIN))
        above = (inside != u).any(axis=1)
        self.u = self.u.copy()
        self.u[above] = integers.to_grid(inside[above], self.k)
        self._into_range()
