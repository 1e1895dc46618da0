"""The gap of a pair, edge by edge and node by node; what belongs to the whole is elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx._deadline import look
from gtvcvx._lazy import sp
from gtvcvx._norms import EPS, row_norm_2, row_norm_inf
from gtvcvx._pieces import COLUMNS, rows_at_once, rowwise
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._lengths import (
    ENDLESS,
    MONOTONE,
    Lengths,
    ends_of_sets,
    lengths_of_components,
    rows_of_forms,
    triangle,
)
from gtvcvx.duality._settings import GENERIC
from gtvcvx.duality._value_rounding import ValueRounding
from gtvcvx.graph import EmpiricalGraph, differences
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.batched._doubt import SUM_ULPS, Doubt
from gtvcvx.losses.batched._terms import Term
from gtvcvx.penalties import Penalty

#: Sums of flows are done again, in extended precision, where what rounding may make of them is more
#: than this share of the losses.
TOO_DOUBTFUL = 1e-10

#: Where a gap is more than this share of the objective, points do not tell how far solutions are.
#: Rounding of the sizes of all products, which residuals in twice the precision are spared, stands
#: for that then.
NEAR = 1e-3

#: Sizes of flows with more entries, 64 MB, are taken some columns at a time.
_AT_ONCE = 2**23

#: What a flow adds to the bound of the flow zero is believed where it is so many times what leaks
#: and rounding may make of it: those are told by sizes of solutions that are known to first order.
CREDIBLE = 100.0


@dataclass(frozen=True)
class Gap:
    """Duality gap of a pair (w, u), u feasible, split over nodes and edges."""

    node: FloatArray  # (n,), each >= 0
    edge: FloatArray  # (m,), each >= 0
    rounding: float  # first-order bound on what rounding may have hidden

    @cached_property
    def total(self) -> float:
        """Sum of the parts and of the rounding allowance."""
        return float(np.sum(self.node) + np.sum(self.edge) + self.rounding)


class Noise(NamedTuple):
    """Sums that the effect of rounding on a gap is told by, over some nodes and edges."""

    work: float  # of flows and jumps
    values: float  # of the losses, their sizes
    own: float  # of what the losses' own sums lose

    @property
    def total(self) -> float:
        """A few units in the last place of every term."""
        return float(4.0 * EPS * (self.work + self.values)) + self.own


class Known(NamedTuple):
    """What is known of a pair already, and need not be computed again; None: nothing is."""

    values: FloatArray | None = None  # (n,), of the losses at w
    unsure: FloatArray | None = None  # (n, d), `GapTerms.unsure` of the flow


NOTHING_KNOWN = Known()


class GapTerms:
    """Terms of gaps for one problem, or for a part of one.

    Parameters
    ----------
    graph, losses, penalty
        Of the problem.
    capacities : ndarray, shape (m,)
        lambda A_e.
    """

    def __init__(
        self,
        graph: EmpiricalGraph,
        losses: StackedLoss,
        penalty: Penalty,
        capacities: FloatArray,
    ) -> None:
        self._graph, self._losses, self._penalty = graph, losses, penalty
        self._capacities = capacities

    def scale(self, u: FloatArray) -> float:
        """Return the largest share of a flow u (m, d) that is inside the capacities."""
        scale, capacities = self._penalty.scale_to_feasible, self._capacities
        pieces = rows_at_once(*u.shape)
        return min((scale(u[rows], capacities[rows]) for rows in pieces), default=1.0)

    def loss_scale(self, u: FloatArray) -> float:
        """Return the largest share of a flow u (m, d) that the losses can take."""
        return self._losses.scale_to_feasible(-(self._graph.divergence @ u))

    def inside(self, u: FloatArray) -> FloatArray:
        """Project flows (m, d) on the capacities, or a little inside."""
        target, out = (1.0 - GENERIC.shrink) * self._capacities, np.empty_like(u)
        for rows in rows_at_once(*u.shape):
            out[rows] = self._penalty.project_domain(u[rows], target[rows])
        return out

    def jumps(self, w: FloatArray) -> FloatArray:
        """Return the largest entries (m,) of the jumps of w (n, d)."""
        return self._of_jumps(lambda jumps, _: row_norm_inf(jumps), w)

    def gap(self, w: FloatArray, flow: Flow) -> Gap:
        """Return the gap of w (n, d) against a feasible flow, but for rounding."""
        given = flow.b if len(flow.b) else None
        node = self._losses.fenchel_gap(w, -(self._graph.divergence @ flow.u), given)
        return Gap(node, self.gap_of_edges(w, flow.u), 0.0)

    def gap_of_edges(self, w: FloatArray, u: FloatArray) -> FloatArray:
        """Return the edges' parts (m,) of the gap of w (n, d) against a feasible flow (m, d)."""
        capacities, gap = self._capacities, self._penalty.fenchel_gap
        return self._of_jumps(lambda jumps, at: gap(jumps, u[at], capacities[at]), w)

    def certain_gap(
        self,
        w: FloatArray,
        flow: Flow,
        reach: FloatArray | None = None,
        level: float | None = None,
        known: Known = NOTHING_KNOWN,
    ) -> Gap:
        """Return the same with what rounding may add at the nodes.

        A part of a problem is told the reach of the whole, see `of_nodes`, and how far the
        objective of the whole may be above what losses are at least.
        """
        reach = self.reach(w) if reach is None else reach
        node, doubtful = self.of_nodes(w, flow, reach, level, known)
        return Gap(node, self.gap_of_edges(w, flow.u), doubtful)

    def of_nodes(
        self,
        w: FloatArray,
        flow: Flow,
        reach: FloatArray,
        level: float | None = None,
        known: Known = NOTHING_KNOWN,
    ) -> tuple[FloatArray, float]:
        """Return the nodes' gaps (n,), and what rounding may add to them.

        Solutions may be as far as reach, (d,) or (n, d), from w where no loss tells.
        """
        values = self.values(w) if known.values is None else known.values
        unsure = self.unsure(flow.u) if known.unsure is None else known.unsure
        given = flow.b if len(flow.b) else None

        def variation() -> float:
            return float(np.sum(self.variation(w))) if level is None else level

        injection = -(self._graph.divergence @ flow.u)
        doubt = Doubt(unsure, reach, variation)
        node, doubtful = self._losses.certain_gap(w, injection, doubt, given)
        if doubtful > TOO_DOUBTFUL * abs(float(np.sum(values))):
            # Flows that nearly cancel at a node whose loss is flat beside them.
            injection, unsure = self._precise(flow.u)
            doubt = doubt._replace(injection=unsure)
            node, doubtful = self._losses.certain_gap(w, injection, doubt, given)
        return node, doubtful

    def _precise(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return -D^T u (n, d) from sums in extended precision, and what rounding makes of it.

        Where the machine has no wider numbers, that is no less than before.
        """
        D = self._graph.divergence
        wide = D.astype(np.longdouble) @ u.astype(np.longdouble)
        found = -np.asarray(wide, dtype=np.float64)
        lost = SUM_ULPS * float(np.finfo(np.longdouble).eps) * self._through(u)
        return found, np.asarray(EPS * np.abs(found) + lost)

    def unsure(self, u: FloatArray) -> FloatArray:
        """Return what rounding makes of the divergence of u (m, d), (n, d)."""
        return np.asarray(SUM_ULPS * EPS * self._through(u))

    def _through(self, u: FloatArray) -> FloatArray:
        """Return the sums (n, d) of the sizes of flows (m, d) at the nodes.

        Many columns are taken some at a time: sizes of all would be one more array like u.
        """
        if u.size <= _AT_ONCE:
            return np.asarray(self._sizes @ np.abs(u))
        out = np.empty((self._graph.n_nodes, u.shape[1]))
        for first in range(0, u.shape[1], COLUMNS):
            look()
            columns = slice(first, first + COLUMNS)
            out[:, columns] = self._sizes @ np.abs(u[:, columns])
        return out

    @cached_property
    def _sizes(self) -> sp.csr_array:
        D = self._graph.divergence
        return sp.csr_array((np.abs(D.data), D.indices, D.indptr), shape=D.shape)

    def work(self, w: FloatArray, u: FloatArray) -> float:
        """Return the sum of the products of flows (m, d) and jumps of w (n, d)."""
        return float(np.sum(self._of_jumps(lambda jumps, at: np.sum(jumps * u[at], axis=1), w)))

    def reach(self, w: FloatArray) -> FloatArray:
        """Return how far from points w (n, d) solutions may be where no loss tells, (d,)."""
        # Of losses that users have written not all is known: as large as w itself, at least.
        centre = np.zeros(w.shape[1]) if self._written else w.mean(axis=0)
        spread = np.abs(w - centre).max(axis=0)
        return np.asarray(np.maximum(spread, self._long))

    @cached_property
    def alone(self) -> FloatArray:
        """How large each coordinate may be that alone, or with others, makes up targets.

        Of all nodes (d,); (n, d) where several components of the graph have rows.
        """
        ends = ends_of_sets(self._plain, self._shape, self._clipping)
        if np.isfinite(ends).all():
            return ends
        components = self._graph.components
        owner = np.concatenate([[], *(components[table["node"]] for table in self.tables)])
        if len(np.unique(owner)) <= 1:
            return np.minimum(ends, self._lengths.together(self.triangle(self._lengths.units)))
        lengths = lengths_of_components(self.tables, self._losses.dim, components)
        return np.minimum(ends, lengths)

    @property
    def _shape(self) -> tuple[int, int]:
        return self._graph.n_nodes, self._losses.dim

    @property
    def _clipping(self) -> bool:
        """Whether the penalty of points, cut off at some sizes, is no more than theirs."""
        return self._penalty.to_data()["kind"] in MONOTONE

    def triangle(self, units: FloatArray) -> FloatArray:
        """Return the rows' `gtvcvx.duality._lengths.triangle`, columns in units (d,)."""
        return triangle((table["X"] for table in self.tables), units)

    @cached_property
    def _long(self) -> FloatArray:
        return self._lengths.longest

    @cached_property
    def _lengths(self) -> Lengths:
        return Lengths(self.totals)

    @cached_property
    def totals(self) -> FloatArray:
        """What `Lengths` asks for, (3 + d,); it adds up over parts."""
        tables = self.tables
        endless = sum(term["kind"] in ENDLESS for term in tables)
        rows = sum(len(term["y"]) for term in tables)
        targets = sum(float(np.sum(term["y"] ** 2)) for term in tables)
        squares = sum((np.sum(t["X"] ** 2, axis=0) for t in tables), np.zeros(self._losses.dim))
        return np.concatenate([[endless, rows, targets], squares])

    @cached_property
    def tables(self) -> list[Term]:
        """Terms with rows in all coordinates."""
        d = self._losses.dim
        own = [t for t in self._plain if "X" in t and t["X"].shape[1] == d]
        return own + self._written

    @cached_property
    def _written(self) -> list[Term]:
        return rows_of_forms(self._losses)

    @property
    def _plain(self) -> list[Term]:
        return self._losses.plain

    def variation(self, w: FloatArray) -> FloatArray:
        """Return the penalties (m,) of the jumps of w (n, d)."""
        return self._capacities * self._of_jumps(lambda jumps, _: self._penalty.value(jumps), w)

    def values(self, w: FloatArray) -> FloatArray:
        """Return the losses (n,) of w (n, d)."""
        return self._losses.value(w)

    def loose_gap(self, w: FloatArray) -> Gap:
        """Return a gap of w (n, d) against the flow zero, from above, that costs next to nothing.

        Zero is feasible wherever losses are bounded below, and nothing has to be prepared for it.
        """
        # phi*(0) = 0: phi(0) = 0 is the least value of every penalty.
        edge = self.variation(w)
        return Gap(self._losses.loose_gap(w), edge, 0.0)

    def near(self, w: FloatArray, gap: float, values: FloatArray) -> bool:
        """Say whether a gap of w (n, d) is at most the share `NEAR` of its objective.

        The losses have values (n,) there.
        """
        size = abs(float(np.sum(values)))
        # Jumps are looked at where the losses do not suffice.
        return gap <= NEAR * size or gap <= NEAR * (size + float(np.sum(self.variation(w))))

    def noise(
        self,
        w: FloatArray,
        u: FloatArray,
        near: bool,
        counted: BoolArray | None = None,
        values: FloatArray | None = None,
    ) -> Noise:
        """Return what rounding makes of the terms of w (n, d) and u (m, d).

        Near says that w is, see `near`. Edges count that are counted (m,), all by default. Values
        (n,) of the losses at w need not be computed again where they are known.
        """
        work = self._of_jumps(lambda jumps, _: row_norm_2(jumps), w) * row_norm_2(u)
        values = self.values(w) if values is None else values
        own = (self._value_rounding if near else self._plain_rounding).at(w, values)
        work = work if counted is None else work[counted]
        return Noise(float(np.sum(work)), float(np.sum(np.abs(values))), own)

    @cached_property
    def _value_rounding(self) -> ValueRounding:
        precise = np.zeros(self._graph.n_nodes, dtype=bool)
        for nodes, batch in self._losses.parts:
            precise[nodes] = batch.precise
        return ValueRounding(self._plain, self._graph.n_nodes, self._losses.dim, precise)

    @cached_property
    def _plain_rounding(self) -> ValueRounding:
        return ValueRounding(self._plain, self._graph.n_nodes, self._losses.dim)

    def _of_jumps(
        self, function: Callable[[FloatArray, slice], FloatArray], w: FloatArray
    ) -> FloatArray:
        """Return what a function tells of the jumps of w over some edges, (m,)."""
        edges = self._graph.edges
        return rowwise(lambda at: function(differences(edges[at], w), at), len(edges), w.shape[1])


def credible(less: float, doubtful: float) -> bool:
    """Say whether leaks and rounding may not be why a gap is less than that to the flow zero."""
    return less > CREDIBLE * doubtful


def slack(penalty: Penalty, capacities: FloatArray, u: FloatArray) -> FloatArray:
    """Capacity that a flow u (m, d) leaves on each edge, (m,); zero without capacities."""
    if not penalty.is_norm:
        return np.zeros(len(u))
    if not u.any():
        return capacities.copy()
    left = rowwise(lambda rows: penalty.dual_norm(u[rows]), *u.shape)
    np.subtract(capacities, left, out=left)
    return np.maximum(left, 0.0, out=left)


def conductance_of(jumps: FloatArray, largest: float) -> FloatArray | None:
    """Conductances (m,) for jumps (m,), the largest of all of them given; None if there is none.

    A change of flow costs the bound its product with the jump.
    """
    floor = GENERIC.jump_share * largest
    if not (floor > 0.0 and np.isfinite(floor)):
        return None
    return floor / (jumps + floor)


def best_scale(concave: Callable[[float], float]) -> float:
    """Maximize a concave function of theta over [0, 1] by its parabola; exact for quadratics."""
    low, middle, high = concave(0.0), concave(0.5), concave(1.0)
    curvature = 2.0 * (low - 2.0 * middle + high)
    slope = high - low - curvature
    best, value = (1.0, high) if high >= low else (0.0, low)
    if np.isfinite(curvature) and curvature < 0:
        theta = min(max(-slope / (2.0 * curvature), 0.0), 1.0)
        if concave(theta) > value:
            best = theta
    return best
