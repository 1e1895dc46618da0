"""Dual points of pieces made exact together: as `grid_flow` does it with a whole."""

from __future__ import annotations

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.certificates._exact_flow import NoWitness
from verify.certificates._forest import components
from verify.certificates.arrays import _limbs as limbs
from verify.certificates.arrays._archive import Array
from verify.certificates.arrays._grid import Grid, Sizes, sizes_of
from verify.certificates.arrays._grid_flow import SHRINKS, rounded_flow, within
from verify.certificates.arrays._grid_point import GridPoint
from verify.certificates.arrays._root import WELL, GridAbsorber
from verify.certificates.pieces._float_point import FloatPoint, Read, inside
from verify.certificates.pieces._piece import Team
from verify.certificates.pieces._ties import Found, Ties, choose, thinned


class _PiecePoint(GridPoint):
    """A grid point of a piece: its ghosts' residuals are for others to know."""

    def __init__(self, one: Read, point: FloatPoint, grid: Grid, places: list[int]) -> None:
        self._ghosts = ~one.piece.own
        own = grid.some(places)
        super().__init__(one.inst, point.u, point.r, one.point, one.rows, own)

    def residual(self) -> Array:
        """Return that of own nodes, 0 for ghosts."""
        rho = super().residual()
        rho[self._ghosts] = 0
        return rho

    def missing(self) -> FloatArray:
        """Return the sums of the residuals' sizes, (d,)."""
        return np.asarray(np.abs(limbs.doubles(self.residual(), self.k)).sum(axis=0))


class PieceAbsorber(GridAbsorber):
    """Makes the residual of a piece vanish, but for what goes to other pieces.

    Attributes
    ----------
    label : ndarray of int, shape (k,)
        Component of each node, of the active edges inside.
    tied : ndarray of bool
        Per component, whether active cut edges end there.
    crossing : dict of int to ndarray of uint64, shape (d, words)
        What is added to the flow on cut edges.
    """

    def __init__(
        self, one: Read, exact: GridPoint, point: FloatPoint, all_that: FloatArray
    ) -> None:
        self.one, self._all_that = one, all_that
        penalty, active = one.inst.penalty, point.active
        slack = one.inst.cap - penalty.dual_norm(point.u) if penalty.bounded else one.inst.cap
        here = active & inside(one)
        count, self.label = components(one.inst.edges[here], one.inst.n)
        self.cut = active & ~here
        self.tied = np.zeros(count, dtype=bool)
        ends = one.inst.edges[self.cut]
        self.tied[self.label[ends[one.piece.own[ends]]]] = True
        self.crossing: dict[int, Array] = {}
        self._exits: IntArray = np.empty(0, dtype=np.int64)
        super().__init__(exact, slack, here, self.label)

    def _arriving(self) -> FloatArray:
        """Whatever there is anywhere may arrive."""
        return np.broadcast_to(self._all_that, (self.inst.n, self.inst.d))

    def found(self, far: IntArray) -> Found:
        """Say what others need to know to choose trees; `far` are the labels (k,) of ghosts too."""
        piece, edges = self.one.piece, self.inst.edges
        chosen = np.flatnonzero(self.cut & piece.counted)
        ends = edges[chosen]
        columns = [piece.owners[ends], far[ends], piece.nodes[ends]]
        table = np.stack([c[:, k] for k in (0, 1) for c in columns[:2]], axis=1)
        table = np.concatenate([table, columns[2]], axis=1)
        tied = np.flatnonzero(self.tied)
        known = np.stack([np.full(len(tied), piece.number), tied, self._quality(tied)], axis=1)
        return Found(known, *thinned(table, self.slack[chosen]))

    def _quality(self, tied: IntArray) -> IntArray:
        """Return how good roots some components have, see `Found`."""
        curvature = self.grid.curvature
        low, top = curvature.eigenvalues[:, 0], curvature.eigenvalues[:, -1]
        of_node = np.where(low > WELL * top, 3, np.where(top > 0, 1, 0))
        of_node = np.where(self.absorbing, 4, of_node)
        out = np.zeros(len(self.tied), dtype=np.int64)
        np.maximum.at(out, self.label[self.one.piece.own], of_node[self.one.piece.own])
        for c in tied[out[tied] == 1].tolist():
            values = np.linalg.eigvalsh(curvature.total(self.label == c))
            out[c] = 2 if values[0] > WELL * values[-1] else 1
        return out[tied]

    def leave(self, ties: Ties) -> tuple[IntArray, Array]:
        """Carry residuals to roots, those of components that give to the edges they give over.

        Returns
        -------
        places : ndarray of int64
            In the table, of these components.
        loads : ndarray of uint64, shape (places, d, words)
        """
        mine = np.flatnonzero(ties.table[:, 0] == self.one.piece.number)
        self._exits = self._end_of(ties.table[mine])
        given = np.isin(self.label, ties.table[mine, 1])
        self.roots = np.where(given, False, self._roots())
        self.roots[self._exits] = True
        self._carry()
        return mine, self.rho[self._exits].copy()

    def arrive(self, ties: Ties, totals: Array) -> None:
        """Take what comes from other pieces, and give what others take."""
        number = self.one.piece.number
        giver, taker = ties.table[:, 0], ties.table[:, 2]
        taken = np.flatnonzero(taker == number)
        for i, k in zip(self._end_of(ties.table[taken]).tolist(), taken.tolist(), strict=True):
            self.rho[i] = limbs.plus(self.rho[i], totals[k])
        self._carry_on()
        self.rho[self._exits] = 0
        for k in np.flatnonzero((giver == number) | (taker == number)).tolist():
            self._cross(ties.table[k], totals[k])
        self._absorb_all()

    def _cross(self, row: IntArray, load: Array) -> None:
        """Note the flow on the edge over which a component gives its load."""
        piece = self.one.piece
        head, tail = np.searchsorted(piece.nodes, row[4:]).tolist()
        from_head = piece.owners[head] == row[0]
        self.crossing[self._edge(head, tail)] = limbs.negated(load) if from_head else load

    def _end_of(self, rows: IntArray) -> IntArray:
        """Return this piece's ends of the edges of some rows of a table."""
        ends = np.searchsorted(self.one.piece.nodes, rows[:, 4:])
        own = self.one.piece.own[ends]
        return np.where(own[:, 0], ends[:, 0], ends[:, 1])

    def _edge(self, head: int, tail: int) -> int:
        n, edges = self.inst.n, self.inst.edges
        return int(np.searchsorted(edges[:, 0] * n + edges[:, 1], head * n + tail))

    def _zero_component(self, members: IntArray) -> None:
        if self.tied[self.label[members[0]]]:
            raise NoWitness("losses at the root of a tree over several shards absorb too little")
        super()._zero_component(members)

    def fits(self) -> bool:
        """Whether the flow is within the capacities, and multipliers in their intervals."""
        if not all(self._contained(t, row) for t, rows in enumerate(self.r) for row in rows):
            return False
        if not self.inst.penalty.bounded:
            return True
        u, edges = rounded_flow(self.grid, self), list(self.crossing)
        if edges:
            crossing = np.stack([self.crossing[e] for e in edges])
            u[edges] += limbs.doubles(crossing, self.grid.k)
        return within(self.inst, u)

    def _contained(self, t: int, row: int) -> bool:
        """Whether the multipliers in a row that takes a load are in their intervals."""
        domain, recorder = self.inst.terms[t].domain, self.view.r[t]
        first, k = row * recorder.columns, self.view.k_r(t)
        return domain is None or all(
            domain.contains(recorder.flat[b], k, b) for b in range(first, first + recorder.columns)
        )


def exact_points(
    team: Team, pieces: list[Read], points: list[FloatPoint], places: list[list[int]], n_terms: int
) -> tuple[Grid, list[PieceAbsorber]] | None:
    """Return exactly feasible dual points next to those in floats; None where none is found."""
    bounded = team.most([_bounded(one) for one in pieces])
    for shrink in SHRINKS if bounded else (0.0,):
        smaller = [_scaled(point, 1 - shrink) for point in points]
        grid = Grid.of(_sizes(team, pieces, smaller, places, n_terms))
        found = [
            _PiecePoint(one, point, grid, at)
            for one, point, at in zip(pieces, smaller, places, strict=True)
        ]
        absorbers = _absorbed(team, pieces, points, found)
        if absorbers is None:
            return None
        if not team.most([not absorber.fits() for absorber in absorbers]):
            return grid, absorbers
    return None


def _bounded(one: Read) -> bool:
    return one.inst.penalty.bounded or any(t.domain is not None for t in one.inst.terms)


def _scaled(point: FloatPoint, factor: float) -> FloatPoint:
    return FloatPoint(point.u * factor, [v * factor for v in point.r], point.active)


def _sizes(
    team: Team,
    pieces: list[Read],
    points: list[FloatPoint],
    places: list[list[int]],
    n_terms: int,
) -> Sizes:
    """Measure the whole."""
    tops, sums = [], []
    for one, point, at in zip(pieces, points, places, strict=True):
        sizes = sizes_of(one.inst, one.rows, point.u, point.r, one.piece.own)
        top_r, k_x = np.zeros(n_terms), np.full(n_terms, -1.0)
        top_r[at], k_x[at] = sizes.top_r, sizes.k_x
        tops.append(np.concatenate([[sizes.top_u, sizes.summand], top_r, k_x]))
        sums.append([sizes.missing, sizes.nodes])
    top, total = team.most(tops), team.add(sums)
    return Sizes(
        top_u=float(top[0]),
        top_r=top[2 : 2 + n_terms],
        k_x=top[2 + n_terms :],
        summand=float(top[1]),
        missing=float(total[0]),
        nodes=float(total[1]),
    )


def _absorbed(
    team: Team, pieces: list[Read], points: list[FloatPoint], found: list[_PiecePoint]
) -> list[PieceAbsorber] | None:
    """Make the residuals of all pieces vanish; None where no losses can absorb them."""
    for point in found:
        point.refine()
    all_that = team.add([point.missing() for point in found])
    absorbers = [
        PieceAbsorber(one, exact, point, all_that)
        for one, exact, point in zip(pieces, found, points, strict=True)
    ]
    ties = _agreed(team, absorbers)
    left = [absorber.leave(ties) for absorber in absorbers]
    gathered = team.gather([array for pair in left for array in pair])
    total = None if gathered is None else [ties.totals(gathered[::2], gathered[1::2])]
    (totals,) = team.broadcast(total)
    failed = []
    for absorber in absorbers:
        try:
            absorber.arrive(ties, totals)
        except NoWitness:
            failed.append(True)
        else:
            failed.append(False)
    return None if team.most(failed) else absorbers


def _agreed(team: Team, absorbers: list[PieceAbsorber]) -> Ties:
    labels = [absorber.label.astype(float)[:, None] for absorber in absorbers]
    team.refresh(labels)
    pairs = zip(absorbers, labels, strict=True)
    own = [absorber.found(far[:, 0].astype(np.int64)) for absorber, far in pairs]
    found = team.gather([array for one in own for array in one])
    every = None
    if found is not None:
        pieces = zip(found[::3], found[1::3], found[2::3], strict=True)
        every = [choose([Found(*arrays) for arrays in pieces]).table]
    return Ties(team.broadcast(every)[0])
