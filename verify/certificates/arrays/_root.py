"""What arrives at the roots of a forest: absorbed by multipliers there, few of them ratios."""

from __future__ import annotations

from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import scipy.linalg as la

from verify._arrays import BoolArray, FloatArray, IntArray
from verify._deadline import look
from verify.certificates._absorb import Absorber, BlockIndex, Load
from verify.certificates._coordinates import FEWEST
from verify.certificates.arrays import _lifting
from verify.certificates.arrays import _limbs as limbs
from verify.certificates.arrays._archive import Array
from verify.certificates.arrays._grid_point import GridPoint
from verify.certificates.arrays._takers import hand_out
from verify.instance import _integers as integers
from verify.kernel.numbers import whole

#: Condition of blocks that take a load: residuals are far below anything that this enlarges.
WELL = 1e-6
Changes = dict[int, list[Any]]  # per row of a table, what is added, in units 2^-k


class _Recorder:
    """A table of the grid point as `Absorber` sees it: changes are kept apart."""

    def __init__(self, base: IntArray, scale: int) -> None:
        self.base, self.scale = base, scale
        self.columns = base.shape[1] if base.ndim == 2 else 1
        self.changes: dict[int, Any] = {}
        self.zero: BoolArray = np.zeros(len(base), dtype=bool)  # rows that are nothing

    def _flat(self, index: Any) -> int:
        row, column = index if isinstance(index, tuple) else (index, 0)
        return int(row) * self.columns + int(column)

    @property
    def flat(self) -> _Flat:
        return _Flat(self)

    def __getitem__(self, index: Any) -> Any:
        return self.flat[self._flat(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, np.ndarray):  # of rows, which are all set to zero
            self.zero |= index
            return
        self.flat[self._flat(index)] = value

    def rows(self) -> Changes:
        """Return the changes, row by row."""
        out: Changes = {}
        for b, change in sorted(self.changes.items()):
            row, column = divmod(b, self.columns)
            if change and not self.zero[row]:
                out.setdefault(row, [0] * self.columns)[column] = change
        return out


class _Flat:
    """The entries of a `_Recorder`, counted through."""

    def __init__(self, of: _Recorder) -> None:
        self.of = of

    def __getitem__(self, b: int) -> Any:
        return int(self.of.base.flat[b]) * self.of.scale + self.of.changes.get(b, 0)

    def __setitem__(self, b: int, value: Any) -> None:
        self.of.changes[b] = value - int(self.of.base.flat[b]) * self.of.scale


class _View:
    """A grid point as `Absorber` sees an `ExactPoint`."""

    free: list[int] = []  # noqa: RUF012

    def __init__(self, point: GridPoint) -> None:
        self.point, self.inst = point, point.inst
        self.k, self.k_x = point.k, point.k_x
        self.curvature = point.curvature
        self.u = _Recorder(point.u, 1 << (point.k - point.k_u))
        self.r = [
            _Recorder(r, 1 << (self.k_r(t) - k))
            for t, (r, k) in enumerate(zip(point.r, point.k_r, strict=True))
        ]

    def k_r(self, t: int) -> int:
        """Return the exponent of the unit in which changes of r[t] are."""
        return self.k - self.k_x[t]

    def vector(self, t: int, b: int) -> Any:
        """Return B^T of block b of term t, counted through, in units 2^-k_x[t]."""
        rows = self.point.rows[t]
        if rows is not None:
            return rows.integers(b, self.k_x[t])
        unit = np.zeros(self.inst.d, dtype=object)
        unit[b % self.inst.d] = 1
        return unit

    def node(self, t: int, b: int) -> int:
        """Return the node of block b of term t."""
        term = self.inst.terms[t]
        return int(term.node[b if term.x is not None else b // self.inst.d])


class GridAbsorber(Absorber):
    """Makes the residual of a grid point vanish.

    Attributes
    ----------
    flow : ndarray of uint64, shape (n, d, words)
        What is added to the flow on the edge to each node's parent.
    u, r : dict and list of dict
        What is added to rows of the flow and of the multipliers besides, with ratios.
    taken : list of (ndarray of int, ndarray of uint64)
        Per term the rows of identity blocks that take what arrives at their nodes, and how much,
        (rows, d, words).
    """

    def __init__(
        self, point: GridPoint, slack: FloatArray, active: BoolArray, component: IntArray
    ) -> None:
        self.grid, self.rho = point, point.residual()
        view: Any = _View(point)
        super().__init__(view, slack, active, component)
        self.view: _View = view
        # The term that takes what is in a coordinate of a node, -1: none.
        self.taking = np.where(self.absorbing[:, None], self.block, -1)

    def _arriving(self) -> FloatArray:
        size = np.abs(limbs.doubles(self.rho, self.grid.k))
        total = np.zeros((int(self.component.max(initial=-1)) + 1, self.inst.d))
        np.add.at(total, self.component, size)
        return np.asarray(total[self.component])

    def run(self) -> None:
        """Make the residual of the point exactly zero."""
        self._carry()
        self._hand_out()
        self._absorb_all()

    def _hand_out(self) -> None:
        """Let other nodes take what roots have no room for, where dimensions are many."""
        if self.inst.d < FEWEST:
            return
        far = self.roots & ~self.absorbing & self.rho.any(axis=(1, 2))
        for i in np.flatnonzero(far).tolist():
            members = self.forest.members[self.component[i]]
            nodes, there = hand_out(self.rho, self.flow, i, members, self.ease, self.forest)
            self.taking[nodes, there] = self.some[nodes, there]

    def _carry(self) -> None:
        """Carry what is at the nodes to the roots."""
        self.flow = np.zeros_like(self.rho)
        self.parent_edge = np.array(self.forest.parent_edge, dtype=np.int64)
        self._carry_on()

    def _carry_on(self) -> None:
        """Carry what is at the nodes to the roots, besides what was carried before."""
        forest = self.forest
        parent, sign, order = (
            np.array(v, dtype=np.int64) for v in (forest.parent, forest.sign, forest.order)
        )
        limbs.route(self.rho, self.flow, order, parent, self.parent_edge, sign)

    def _absorb_all(self) -> None:
        """Let multipliers take what is at the roots."""
        rho = self.rho
        self.taken = self._take()
        left = np.flatnonzero(self.roots & rho.any(axis=(1, 2)))
        for i in left.tolist():
            load: Load = [-limbs.integer(rho[i, j]) for j in range(self.inst.d)]
            self._absorb(i, load)
        self._vanish()
        self.u = self.view.u.rows()
        self.r = [recorder.rows() for recorder in self.view.r]

    def _candidates(
        self, root: int, members: IntArray, avoided: set[BlockIndex]
    ) -> list[BlockIndex]:
        """Return well-conditioned blocks at few nodes: the flow from there has ratios."""
        order = [root, *members[members != root].tolist()]
        d, count = self.inst.d, 1
        while True:
            found = [b for b in self._blocks_at(np.array(order[:count])) if b not in avoided]
            if len(found) >= d:
                _, pivots = la.qr(self._weighted(found).T, mode="r", pivoting=True)
                found = [found[i] for i in pivots]
                values = la.svdvals(self._weighted(found[:d]))
                if values[-1] > WELL * values[0]:
                    return found
            if count >= len(order):
                return super()._candidates(root, members, avoided)
            count += 1 + count // 4

    def _solve(
        self, root: int, members: IntArray, load: Load, avoided: set[BlockIndex]
    ) -> tuple[list[BlockIndex], list[Fraction]] | None:
        """Find changes of the multipliers of a few blocks whose images add up to the load."""
        d = self.inst.d
        if d >= _lifting.LARGE and not avoided:
            chosen = self._candidates(root, members, avoided)[:d]
            if len(chosen) == d:
                columns = np.stack([self.view.vector(t, b) for t, b in chosen], axis=1)
                solution = _lifting.solve(columns, np.array(load, dtype=object))
                if solution is not None:
                    return chosen, solution
        return super()._solve(root, members, load, avoided)

    def _route_to_root(self, node: int, load: Load) -> None:
        """Note the flow that carries a load to the root of its tree."""
        changes = self.view.u.changes
        while (e := self.forest.parent_edge[node]) >= 0:
            sign = -self.forest.sign[node]
            for j, x in enumerate(load):
                index = e * self.inst.d + j
                changes[index] = changes.get(index, 0) + sign * x
            node = self.forest.parent[node]

    def _route_images(self, common: int, sums: dict[int, integers.Exact]) -> None:
        """Do what it does in `Absorber`: integers add up, and each edge is reduced once."""
        forest, changes = self.forest, self.view.u.changes
        place = {node: p for p, node in enumerate(forest.order)}
        waiting = [-place[node] for node in sums]
        heapify(waiting)
        while waiting:
            look()
            node = forest.order[-heappop(waiting)]
            load, e = sums.pop(node), forest.parent_edge[node]
            if e < 0:
                continue
            sign, parent = -forest.sign[node], forest.parent[node]
            for j, x in enumerate(load):
                index = e * self.inst.d + j
                changes[index] = changes.get(index, 0) + sign * whole(Fraction(x, common))
            if parent in sums:
                sums[parent] = sums[parent] + load
            else:
                sums[parent] = load
                heappush(waiting, -place[parent])

    def _vanish(self) -> None:
        """Set flow and multipliers to zero in components where nothing else was found."""
        gone = self.view.u.zero
        self.grid.u[gone] = 0
        if gone.any():
            self.flow[(self.parent_edge >= 0) & gone[self.parent_edge]] = 0
        for r, recorder in zip(self.grid.r, self.view.r, strict=True):
            r[recorder.zero] = 0

    def _take(self) -> list[tuple[IntArray, Array]]:
        """Let identity blocks take what is at their nodes, all at once."""
        out = []
        for t, term in enumerate(self.inst.terms):
            chosen = self.taking == t if term.x is None else None
            if chosen is None or not chosen.any():
                out.append((np.zeros(0, dtype=np.int64), self.rho[:0]))
                continue
            rows = np.flatnonzero(chosen[term.node].any(axis=1))
            nodes = term.node[rows]
            taken = np.where(chosen[nodes][:, :, None], self.rho[nodes], np.uint64(0))
            self.rho[nodes] = np.where(chosen[nodes][:, :, None], np.uint64(0), self.rho[nodes])
            out.append((rows, limbs.negated(taken)))
        return out


def ratio(x: Any, k: int) -> str:
    """Return x 2^-k as a witness number."""
    value = Fraction(x) / (1 << k)
    return f"{value.numerator:#x}/{value.denominator:#x}"
