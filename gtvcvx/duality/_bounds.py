"""Duality gaps that are true: repair a flow until it is dual feasible, then evaluate the gap.

The gap printed in [GTV] (34) evaluates L_i^* at s_i = -(D^T u)_i, where it is infinite at every
unlabelled or rank-deficient node of every iterate. Here the flow is first

1. projected on flow conservation, ``T_i (D^T u)_i = 0`` with T_i the projector on the directions
   in which L_i^* has no room (`gtvcvx.duality._conservation`);
2. moved into the capacities by over-relaxed alternating projections between 1 and the
   capacities, which keeps the bound as tight as the iterate is good;
3. scaled by the largest theta <= 1 that makes every capacity hold: 1 is homogeneous, so it stays.

Where conjugates are finite on polyhedra only, `gtvcvx.duality._polyhedral` sees to 1 and 2.

What rounding leaves over is bounded to first order and subtracted from the bound; the exact
proof is the business of the package ``verify``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx._norms import EPS, row_norm_2, row_norm_inf
from gtvcvx._pieces import rows_at_once, rowwise
from gtvcvx.compiled import _projections
from gtvcvx.duality._conservation import FlowConservation
from gtvcvx.duality._correction import Certain, Correction, FeasiblePoint, correctable
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._polyhedral import DomainRepair
from gtvcvx.duality._settings import GENERIC, SECOND_TRIES
from gtvcvx.duality._value_rounding import ValueRounding
from gtvcvx.graph import EmpiricalGraph, differences
from gtvcvx.losses import StackedLoss
from gtvcvx.penalties import Penalty


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


class DualBounds:
    """Repair of flows and evaluation of gaps for one problem.

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
        self._divergence = graph.divergence
        look()
        self._conservation = FlowConservation(graph, losses, penalty)
        look()
        # Most losses need none, and its own copy of the conservation would take as much again.
        polyhedral = any(batch.domain() is not None for _, batch in losses.parts)
        self._domains = DomainRepair(graph, losses, penalty, capacities) if polyhedral else None

    def repair(self, u: FloatArray, w: FloatArray | None = None) -> FloatArray:
        """Return a dual feasible flow near u: on flow conservation and inside the capacities.

        Given w (n, d), the flow changes where that costs the bound least: on edges without a jump.
        """
        return self.repaired(u, w).u

    def repaired(self, u: FloatArray, w: FloatArray | None = None) -> Flow:
        """Do the same; return the multipliers of the flow, too."""
        conservation, penalty = self._conservation, self._penalty
        b, moved = np.empty(0), 0.0
        grounded = self._domains is not None and self._domains.needed
        free = conservation.trivial and not grounded
        conductance = None if w is None or free else self._conductance(w)
        if self._domains is not None and grounded:
            u, b, moved = self._domains.repair(u, w, conductance)
        elif free:
            u = self._inside(conservation.admissible(u))
        elif penalty.compiled_form in _projections.CODES:
            u = conservation.alternate(u, self._capacities, conductance)
        else:
            u = self._alternate(u, conductance)
        # What rounding leaves off the range of a quadratic would be scaled to zero.
        u = conservation.admissible(conservation.project(u, EPS, conductance))
        flow = Flow(u, b, moved).scaled(self._scale(u))
        theta = self._losses.scale_to_feasible(-(self._divergence @ flow.u))
        return flow if theta >= 1.0 else flow.scaled(theta)

    def _scale(self, u: FloatArray) -> float:
        """Return the largest share of a flow u (m, d) that is inside the capacities."""
        scale, capacities = self._penalty.scale_to_feasible, self._capacities
        pieces = rows_at_once(*u.shape)
        return min((scale(u[rows], capacities[rows]) for rows in pieces), default=1.0)

    def _inside(self, u: FloatArray) -> FloatArray:
        """Project flows (m, d) on the capacities, or a little inside."""
        target, out = (1.0 - GENERIC.shrink) * self._capacities, np.empty_like(u)
        for rows in rows_at_once(*u.shape):
            out[rows] = self._penalty.project_domain(u[rows], target[rows])
        return out

    def _alternate(self, u: FloatArray, conductance: FloatArray | None) -> FloatArray:
        """Over-relaxed alternating projections for penalties beyond the compiled sweep."""
        conservation, penalty = self._conservation, self._penalty
        target = (1.0 - GENERIC.shrink) * self._capacities
        for _ in range(GENERIC.sweeps):
            look()
            on = conservation.project(u, GENERIC.accuracy, conductance)
            if penalty.scale_to_feasible(on, self._capacities) >= 1.0:
                break
            inside = penalty.project_domain(on, target)
            u = inside + (GENERIC.relaxation - 1.0) * (inside - on)
        return u

    def _conductance(self, w: FloatArray) -> FloatArray | None:
        """Conductances (m,): a change of flow costs the bound its product with the jump."""
        jumps = self._of_jumps(lambda jumps, _: row_norm_inf(jumps), w)
        floor = GENERIC.jump_share * float(jumps.max(initial=0.0))
        if not (floor > 0.0 and np.isfinite(floor)):
            return None
        return floor / (jumps + floor)

    @cached_property
    def _correction(self) -> Correction | None:
        shape = self._graph.n_nodes, self._losses.dim
        if not correctable(self._losses.terms(), self._penalty, shape, self._graph.n_edges):
            return None
        return Correction(self._graph, self._losses, self._penalty, self._capacities)

    def corrected(
        self, w: FloatArray, u: FloatArray, a: FloatArray
    ) -> tuple[Gap, FeasiblePoint] | None:
        """Return the gap of w (n, d) against a flow near u (m, d), and the flow with multipliers.

        Those of the rows (N,), one term of the losses after the other, are known: None where that
        is not enough, see `gtvcvx.duality._correction`.
        """
        if self._correction is None:
            return None
        found = self._correction.corrected(w, u, a)
        return None if found is None else (self._certain(w, found[0], found[1]), found[0])

    def gap_against(self, w: FloatArray, point: FeasiblePoint) -> Gap:
        """Return the gap of w (n, d) against what `corrected` has returned."""
        assert self._correction is not None
        return self._certain(w, point, self._correction.gap(w, point))

    def _certain(self, w: FloatArray, point: FeasiblePoint, found: Certain) -> Gap:
        return Gap(found.node, found.edge, found.missing + self._noise(w, point.u))

    def lower_bound(self, u: FloatArray) -> tuple[float, FloatArray]:
        """Repair u (m, d); return a lower bound on the optimum and the flow that attains it."""
        feasible = self.repair(u)
        theta = _best_scale(lambda t: self._dual(t * feasible))
        flow = theta * feasible
        # A conjugate counts from the minimizer, which is far from zero where the data are.
        injection = row_norm_2(self._divergence @ flow)
        own = 4.0 * EPS * float(np.sum(injection * row_norm_2(self._base)))
        return self._dual(flow) - self._rounding(self._base, flow) - own, flow

    @cached_property
    def _base(self) -> FloatArray:
        """Minimizers of the losses, (n, d)."""
        return self._losses.minimizer(self._graph.n_nodes)

    def gap(self, w: FloatArray, u: FloatArray, near: Flow | None = None) -> tuple[Gap, FloatArray]:
        """Repair u (m, d); return the gap of w (n, d) against it, and the flow that gives it.

        Near is ``repaired(u, w)``, if it is there already.
        """
        near = self.repaired(u, w) if near is None else near
        found = self._gap_near(w, near)
        size = abs(float(np.sum(self._losses.value(w))))
        if not near.moved * size <= SECOND_TRIES.moved * found[0].total < np.inf:
            # A repair that weighs its changes by w may take too many sweeps to end.
            found = min(found, self._gap_near(w, self.repaired(u)), key=_total)
        if not np.isfinite(found[0].total):
            # Data that mix many orders of magnitude: zero is always feasible.
            found = self._gap_near(w, Flow(np.zeros_like(u), np.empty(0)))
        return found

    def _gap_near(self, w: FloatArray, flow: Flow) -> tuple[Gap, FloatArray]:
        """Return the gap of w (n, d) against a feasible flow, or the flow (m, d) made shorter."""
        look()
        gap = self._parts(w, flow)
        size = abs(float(np.sum(self._losses.value(w))))
        if flow.u.any() and gap.total > SECOND_TRIES.gap * size:
            # Far from the optimum a shorter flow may be better; close to it, none is.
            flow = flow.scaled(_best_scale(lambda t: -self._parts(w, flow.scaled(t)).total))
            gap = self._parts(w, flow)
        return dataclasses.replace(gap, rounding=self._rounding(w, flow.u)), flow.u

    def gap_of(self, w: FloatArray, u: FloatArray) -> Gap:
        """Return the gap of w (n, d) against a flow u (m, d) that is feasible already."""
        gap = self._parts(w, Flow(u, np.empty(0)))
        return dataclasses.replace(gap, rounding=self._rounding(w, u))

    def _parts(self, w: FloatArray, flow: Flow) -> Gap:
        given = flow.b if len(flow.b) else None
        node = self._losses.fenchel_gap(w, -(self._divergence @ flow.u), given)
        u, capacities, gap = flow.u, self._capacities, self._penalty.fenchel_gap
        edge = self._of_jumps(lambda jumps, at: gap(jumps, u[at], capacities[at]), w)
        return Gap(node, edge, 0.0)

    def _of_jumps(
        self, function: Callable[[FloatArray, slice], FloatArray], w: FloatArray
    ) -> FloatArray:
        """Return what a function tells of the jumps of w over some edges, (m,)."""
        edges = self._graph.edges
        return rowwise(lambda at: function(differences(edges[at], w), at), len(edges), w.shape[1])

    def slack(self, u: FloatArray) -> FloatArray:
        """Capacity left on each edge, (m,); zero for penalties that have no capacities."""
        return slack(self._penalty, self._capacities, u)

    def _dual(self, u: FloatArray) -> float:
        injection = -(self._divergence @ u)
        unlimited = np.full(len(injection), np.inf)
        cost = np.sum(self._losses.conjugate(injection, unlimited))
        capacities = self._capacities
        # Within the few ulps that scaling leaves, the flow counts as inside its capacity.
        edge = capacities * self._penalty.conjugate(u / capacities[:, None], 1e-12)
        return float(-cost - np.sum(edge))

    def _rounding(self, w: FloatArray, u: FloatArray) -> float:
        """First-order effect of rounding on the gap at (w, u).

        Flow that is not conserved to the last bit pairs with the spread of w, and every node's
        and edge's own terms carry a few units in the last place.
        """
        spread = row_norm_2(w - w.mean(axis=0)).max()
        residual = np.sum(row_norm_2(self._conservation.residual(u)))
        return float(2.0 * residual * spread) + self._noise(w, u)

    def _noise(self, w: FloatArray, u: FloatArray) -> float:
        """Return a few units in the last place of every node's and edge's own terms."""
        work = np.sum(self._of_jumps(lambda jumps, _: row_norm_2(jumps), w) * row_norm_2(u))
        values = self._losses.value(w)
        own = self._value_rounding.at(w, values)
        return float(4.0 * EPS * (work + abs(float(np.sum(values))))) + own

    @cached_property
    def _value_rounding(self) -> ValueRounding:
        return ValueRounding(self._losses.terms(), self._graph.n_nodes, self._losses.dim)


def _total(found: tuple[Gap, FloatArray]) -> float:
    total = found[0].total
    return total if np.isfinite(total) else np.inf


def slack(penalty: Penalty, capacities: FloatArray, u: FloatArray) -> FloatArray:
    """Capacity that a flow u (m, d) leaves on each edge, (m,); zero without capacities."""
    if not penalty.is_norm:
        return np.zeros(len(u))
    norms = rowwise(lambda rows: penalty.dual_norm(u[rows]), *u.shape)
    return np.maximum(capacities - norms, 0.0)


def loose_gap(
    graph: EmpiricalGraph,
    losses: StackedLoss,
    penalty: Penalty,
    capacities: FloatArray,
    w: FloatArray,
) -> Gap:
    """Return a gap of w (n, d) against the flow zero, from above, that costs next to nothing.

    Zero is feasible wherever losses are bounded below, and nothing has to be prepared for it.
    """
    # phi*(0) = 0: phi(0) = 0 is the least value of every penalty.
    edges = graph.edges
    variation = rowwise(lambda at: penalty.value(differences(edges[at], w)), len(edges), w.shape[1])
    edge = capacities * variation
    size = abs(float(np.sum(losses.value(w))))
    return Gap(losses.loose_gap(w), edge, 4.0 * EPS * size)


def _best_scale(concave: Callable[[float], float]) -> float:
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
