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
from functools import cached_property

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx._norms import EPS
from gtvcvx.compiled import _projections
from gtvcvx.duality._conservation import FlowConservation
from gtvcvx.duality._correction import Correction, correctable
from gtvcvx.duality._dual_points import Certain, FeasiblePoint
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._held import HeldSizes
from gtvcvx.duality._lengths import NEGLIGIBLE, growth
from gtvcvx.duality._polyhedral import DomainRepair
from gtvcvx.duality._settings import COMPILED, CORRECTION, GENERIC, SECOND_TRIES
from gtvcvx.duality._terms import (
    TOO_DOUBTFUL,
    Gap,
    GapTerms,
    Known,
    best_scale,
    conductance_of,
    credible,
    slack,
)
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.batched._terms import MULTINOMIAL
from gtvcvx.penalties import Penalty

# Where data ask for solutions so many times as large as points at most, nothing else is asked.
CLOSE = 2.0


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
        self._terms = GapTerms(graph, losses, penalty, capacities)
        self._divergence = graph.divergence

    @cached_property
    def _conservation(self) -> FlowConservation:
        # Corrections that keep multipliers need none, and singular values take as long as they do.
        return FlowConservation(self._graph, self._losses, self._penalty)

    @cached_property
    def _domains(self) -> DomainRepair | None:
        # Most losses need none, and its own copy of the conservation would take as much again.
        if all(batch.domain() is None for _, batch in self._losses.parts):
            return None
        return DomainRepair(self._graph, self._losses, self._penalty, self._capacities)

    def repair(self, u: FloatArray, w: FloatArray | None = None) -> FloatArray:
        """Return a dual feasible flow near u: on flow conservation and inside the capacities.

        Given w (n, d), the flow changes where that costs the bound least: on edges without a jump.
        """
        return self.repaired(u, w).u

    def repaired(self, u: FloatArray, w: FloatArray | None = None, enough: float = 0.0) -> Flow:
        """Do the same; return the multipliers of the flow, too.

        Where a gap to w of so much is enough, the repair may cost a small share of that.
        """
        conservation, penalty = self._conservation, self._penalty
        b, moved = np.empty(0), 0.0
        grounded = self._domains is not None and self._domains.needed
        free = conservation.trivial and not grounded
        conductance = None if w is None or free else self._conductance(w)
        if self._domains is not None and grounded:
            near = self._as_it_is(u, w, conductance, enough) if self._classes else None
            if near is not None:
                return near
            u, b, moved = self._domains.repair(u, w, conductance)
        elif free:
            u = self._terms.inside(conservation.admissible(u))
        elif penalty.compiled_form in _projections.CODES:
            excess = self._affordable_excess(w, enough)
            u = conservation.alternate(u, self._capacities, conductance, excess)
        else:
            u = self._alternate(u, conductance)
        # What rounding leaves off the range of a quadratic would be scaled to zero.
        u = conservation.admissible(conservation.project(u, EPS, conductance))
        flow = Flow(u, b, moved).scaled(self._terms.scale(u))
        theta = self._terms.loss_scale(flow.u)
        return flow if theta >= 1.0 else flow.scaled(theta)

    def _as_it_is(
        self, u: FloatArray, w: FloatArray | None, conductance: FloatArray | None, enough: float
    ) -> Flow | None:
        """Return the flow without a repair at the nodes, if its gap to w is enough already.

        Multipliers that are not known with it are told by the losses, beside boundaries of their
        domains better than by a repair that does not know all of these.
        """
        if w is None or enough <= 0.0:
            return None
        conservation = self._conservation
        u = conservation.admissible(conservation.project(u, EPS, conductance))
        flow = Flow(u, np.empty(0)).scaled(self._terms.scale(u))
        return flow if self._gap_of(w, flow.u, self._terms.values(w)).total <= enough else None

    def _affordable_excess(self, w: FloatArray | None, enough: float) -> float:
        """Return by what share of the capacities a flow may exceed them: scaling makes up for it.

        A pair's gap then grows by that share of the total variation, if w is a good one.
        """
        if w is None or not 0.0 < enough < np.inf:
            return 0.0
        variation = float(np.sum(self._terms.variation(w)))
        return COMPILED.spare * enough / variation if variation > enough else COMPILED.spare

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
        jumps = self._terms.jumps(w)
        return conductance_of(jumps, float(jumps.max(initial=0.0)))

    @cached_property
    def _correction(self) -> Correction | None:
        shape = self._graph.n_nodes, self._losses.dim
        if not correctable(self._losses.plain, self._penalty, shape, self._graph.n_edges):
            return None
        return Correction(self._graph, self._losses, self._penalty, self._capacities)

    @cached_property
    def _classes(self) -> bool:
        """Whether there are rows with several classes, whose multipliers no proposal carries."""
        return any(term["kind"] == MULTINOMIAL for term in self._losses.plain)

    def corrected(
        self, w: FloatArray, u: FloatArray, a: FloatArray, enough: float = 0.0
    ) -> tuple[Gap, FeasiblePoint] | None:
        """Return the gap of w (n, d) against a flow near u (m, d), and the flow with multipliers.

        Those of the rows (N,), one term of the losses after the other, are known: None where that
        is not enough, see `gtvcvx.duality._correction`. Where a gap of so much is enough it is not
        made smaller.
        """
        if self._correction is None:
            return None
        little = CORRECTION.share * enough
        found = self._correction.corrected(w, u, a, little)
        if found is None:
            return None
        if found[1].total <= little:
            gap = self._certain(w, *found, np.inf)
            if gap.total <= enough:
                return gap, found[0]
            # But for what leaks do far away it would be enough: they have to be less.
            found = self._correction.corrected(w, u, a) or found
        return self._certain(w, *found, enough), found[0]

    def gap_against(self, w: FloatArray, point: FeasiblePoint, enough: float = 0.0) -> Gap:
        """Return the gap of w (n, d) against what `corrected` has returned.

        Where it is known what is enough sums are not told more precisely, which takes long.
        """
        assert self._correction is not None
        return self._certain(w, point, self._correction.gap(w, point), enough)

    def _certain(
        self, w: FloatArray, point: FeasiblePoint, found: Certain, enough: float = 0.0
    ) -> Gap:
        values = self._terms.values(w)
        size = abs(float(np.sum(values)))
        # Far from the optimum, too: leaks pair with far solutions here whatever the point.
        noise = self._terms.noise(w, point.u, near=True, values=values).total
        rounding = self._missing(w, values, point, found) + noise
        gap = Gap(found.node, found.edge, rounding)
        # Where it is known what is enough a repaired flow comes next, which has more to offer.
        least = TOO_DOUBTFUL * size
        if enough > 0.0:
            least = SECOND_TRIES.lost * (size + float(np.sum(self._terms.variation(w))))
        if gap.total > enough and rounding > max(least, SECOND_TRIES.rounding * gap.total):
            # The same flow without its multipliers, whose sums are told more precisely.
            gap = min(gap, self._gap_of(w, point.u, values), key=lambda each: each.total)
        return gap

    def _missing(
        self, w: FloatArray, values: FloatArray, point: FeasiblePoint, found: Certain
    ) -> float:
        """Return what a point misses, paired with solutions as large as targets ask for."""
        assert self._correction is not None
        close = self._correction.reach(w, point)
        far = self._as_far(close, w, values)
        most = found.missing * growth(close, far)
        if most <= NEGLIGIBLE * found.parts:
            return most
        little = CORRECTION.doubtful * found.parts
        return self._correction.missing(w, point, far, little)

    def _as_far(self, reach: FloatArray, w: FloatArray, values: FloatArray) -> FloatArray:
        """Return how large solutions may be, (d,) or (n, d): reach of w, or what data ask for.

        But not more than what losses, of values (n,) at w, and penalty allow to whatever is no
        worse than w.
        """
        far = np.maximum(reach, self._terms.alone)
        if growth(reach, far) <= CLOSE:
            return far
        objective = float(np.sum(values) + np.sum(self._terms.variation(w)))
        held = self._held.of(objective)
        return far if held is None else np.maximum(reach, np.minimum(far, held))

    @cached_property
    def _held(self) -> HeldSizes:
        shape = self._losses.plain, self._graph, self._penalty, self._capacities
        return HeldSizes(*shape, self._losses.dim)

    def lower_bound(self, u: FloatArray) -> tuple[float, FloatArray]:
        """Repair u (m, d); return a lower bound on the optimum and the flow that attains it."""
        feasible = self.repair(u)
        theta = best_scale(lambda t: self._dual(t * feasible)[0])
        flow = theta * feasible
        known = Known(self._values, self._terms.unsure(flow))
        dual, doubtful = self._dual(flow, known)
        rounding = self._rounding(self._base, flow, self._reach, known, near=False)
        # Multipliers of zero are always good enough, beside the flow zero.
        zero, plain = np.zeros_like(u), self._plain_bound()
        noise = self._terms.noise(self._base, zero, near=False, values=self._values).total
        doubtful += rounding - noise
        # Where nothing can be told of the flow the bound is not even finite.
        if not credible(dual - rounding - plain, doubtful):
            return plain - noise, zero
        return dual - rounding, flow

    def _plain_bound(self) -> float:
        """Return what the losses are above by themselves, each row and coordinate."""
        return float(np.sum(self._values) - np.sum(self._losses.loose_gap(self._base)))

    @cached_property
    def _reach(self) -> FloatArray:
        """How far from the minimizers solutions may be where no loss tells, (d,) or (n, d)."""
        return np.maximum(self._terms.reach(self._base), self._terms.alone)

    @cached_property
    def _base(self) -> FloatArray:
        """Minimizers of the losses, (n, d)."""
        return self._losses.minimizer(self._graph.n_nodes)

    @cached_property
    def _values(self) -> FloatArray:
        """Their losses, (n,)."""
        return self._terms.values(self._base)

    def gap(self, w: FloatArray, u: FloatArray, near: Flow | None = None) -> tuple[Gap, FloatArray]:
        """Repair u (m, d); return the gap of w (n, d) against it, and the flow that gives it."""
        gap, flow = self.gap_and_flow(w, u, near)
        return gap, flow.u

    def gap_and_flow(
        self, w: FloatArray, u: FloatArray, near: Flow | None = None
    ) -> tuple[Gap, Flow]:
        """Do the same; return the multipliers of the flow, too.

        Near is ``repaired(u, w)``, if it is there already.
        """
        near = self.repaired(u, w) if near is None else near
        values = self._terms.values(w)
        found = self._gap_near(w, near, values)
        size = abs(float(np.sum(values)))
        if not near.moved * size <= SECOND_TRIES.moved * found[0].total < np.inf:
            # A repair that weighs its changes by w may take too many sweeps to end.
            found = min(found, self._gap_near(w, self.repaired(u), values), key=_total)
        if not np.isfinite(found[0].total):
            # Data that mix many orders of magnitude: zero is always feasible.
            found = self._gap_near(w, Flow(np.zeros_like(u), np.empty(0)), values)
        if not np.isfinite(found[0].total):
            # And so are its multipliers, if not those that were found for it.
            noise = self._terms.noise(w, np.zeros_like(u), near=False, values=values).total
            loose = dataclasses.replace(self._terms.loose_gap(w), rounding=noise)
            found = loose, Flow(np.zeros_like(u), np.empty(0))
        return found

    def _gap_near(self, w: FloatArray, flow: Flow, values: FloatArray) -> tuple[Gap, Flow]:
        """Return the gap of w (n, d) against a feasible flow, or the flow (m, d) made shorter.

        The losses have values (n,) at w.
        """
        look()
        terms, size = self._terms, abs(float(np.sum(values)))
        reach, known = terms.reach(w), Known(values, terms.unsure(flow.u))
        gap = terms.certain_gap(w, flow, reach, known=known)
        if flow.u.any() and gap.total > SECOND_TRIES.gap * size:
            # Far from the optimum a shorter flow may be better; close to it, none is.
            flow = flow.scaled(best_scale(lambda t: -terms.gap(w, flow.scaled(t)).total))
            known = Known(values, terms.unsure(flow.u))
            gap = terms.certain_gap(w, flow, reach, known=known)
        return self._with_rounding(gap, w, flow, reach, known), flow

    def gap_of(self, w: FloatArray, u: FloatArray, b: FloatArray | None = None) -> Gap:
        """Return the gap of w (n, d) against a flow u (m, d) that is feasible already.

        Multipliers b (Q,) of the generators that are known with it need not be sought.
        """
        return self._gap_of(w, u, self._terms.values(w), b)

    def _gap_of(
        self, w: FloatArray, u: FloatArray, values: FloatArray, b: FloatArray | None = None
    ) -> Gap:
        reach, known = self._terms.reach(w), Known(values, self._terms.unsure(u))
        flow = Flow(u, np.empty(0) if b is None else b)
        gap = self._terms.certain_gap(w, flow, reach, known=known)
        return self._with_rounding(gap, w, flow, reach, known)

    def _with_rounding(
        self, gap: Gap, w: FloatArray, flow: Flow, reach: FloatArray, known: Known
    ) -> Gap:
        """Return the certain gap of w (n, d) and a flow with all else that rounding may add."""
        assert known.values is not None
        terms = self._terms
        near = terms.near(w, gap.total, known.values)
        if near and gap.rounding == 0.0 and self._conservation.trivial:  # nothing leaks anywhere
            return dataclasses.replace(gap, rounding=self._rounding(w, flow.u, reach, known, near))
        # Solutions may be as large as targets ask for, whatever the point: one that is as good may
        # be far away where rows have kinks.
        close, reach = reach, self._as_far(reach, w, known.values)
        most = gap.rounding * growth(close, reach)
        if near and most <= NEGLIGIBLE * gap.total:
            gap = dataclasses.replace(gap, rounding=most)
        else:
            gap = terms.certain_gap(w, flow, reach, known=known)
        if not near and gap.rounding > 0.0 and flow.u.any():
            loose = terms.loose_gap(w)
            less = loose.total - (gap.total - gap.rounding)
            gap = gap if credible(less, gap.rounding) else loose
        rounding = gap.rounding + self._rounding(w, flow.u, reach, known, near)
        return dataclasses.replace(gap, rounding=rounding)

    def slack(self, u: FloatArray) -> FloatArray:
        """Capacity left on each edge, (m,); zero for penalties that have no capacities."""
        return slack(self._penalty, self._capacities, u)

    def _dual(self, u: FloatArray, known: Known | None = None) -> tuple[float, float]:
        """Return the dual value of a flow (m, d), from below, and what leaks took of it.

        As differences from the minimizers: conjugates themselves are differences of numbers that
        are large where the data are far from zero.
        """
        base, capacities, terms = self._base, self._capacities, self._terms
        known = Known(self._values) if known is None else known
        node, doubtful = terms.of_nodes(base, Flow(u, np.empty(0)), self._reach, known=known)
        own = float(np.sum(self._values)) - float(np.sum(node)) - doubtful
        # Within the few ulps that scaling leaves, the flow counts as inside its capacity.
        edge = capacities * self._penalty.conjugate(u / capacities[:, None], 1e-12)
        return own + terms.work(base, u) - float(np.sum(edge)), doubtful

    def _rounding(
        self, w: FloatArray, u: FloatArray, reach: FloatArray, known: Known, near: bool
    ) -> float:
        """First-order effect of rounding on the gap at (w, u).

        Flow that is not conserved to the last bit pairs with how far solutions may be, and the
        terms of every node and edge carry a few units in the last place.
        """
        assert known.unsure is not None
        missing = self._conservation.missing(u, known.unsure)
        noise = self._terms.noise(w, u, near, values=known.values).total
        return 2.0 * float(np.sum(missing * reach)) + noise


def _total(found: tuple[Gap, Flow]) -> float:
    total = found[0].total
    return total if np.isfinite(total) else np.inf
