"""Valid lower bounds of a problem in shards: flows are repaired, then gaps evaluated.

The formulas are those of `gtvcvx.duality._bounds`, with sums, maxima and shares over all shards.
Arrays are lists, one array a part; points are fresh, and flows are the same on both sides of a cut.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx._norms import EPS
from gtvcvx.distributed._conservation import (
    ShardedConservation,
    ShardedFlow,
    edge_scale,
    largest_of,
)
from gtvcvx.distributed._domains import ShardedDomains
from gtvcvx.distributed._lengths import largest_lengths
from gtvcvx.distributed._parts import Parts, Rows
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._lengths import NEGLIGIBLE, Lengths, growth
from gtvcvx.duality._settings import SECOND_TRIES
from gtvcvx.duality._terms import (
    NEAR,
    Gap,
    GapTerms,
    Noise,
    best_scale,
    conductance_of,
    credible,
    slack,
)


@dataclass(frozen=True)
class ShardedGap:
    """Duality gap of a pair (w, u), u feasible, split over nodes and edges.

    Attributes
    ----------
    node : list of ndarray, shape (k,)
        Zero at ghosts.
    edge : list of ndarray, shape (l,)
        Zero where another shard counts the edge.
    rounding : float
        First-order bound on what rounding may have hidden.
    parts : float
        Sum of the two over all shards.
    """

    node: Rows
    edge: Rows
    rounding: float
    parts: float

    @property
    def total(self) -> float:
        """Sum of the parts and of the rounding allowance."""
        return self.parts + self.rounding


class ShardedBounds:
    """Repair of flows and evaluation of gaps for a problem in shards.

    Parameters
    ----------
    parts : Parts
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._terms = [
            GapTerms(p.problem.graph, p.problem.losses, parts.penalty, p.problem.capacities)
            for p in parts
        ]

    @cached_property
    def _conservation(self) -> ShardedConservation:
        return ShardedConservation(self._parts)

    @cached_property
    def _domains(self) -> ShardedDomains | None:
        """Repair of domains that are polyhedra, where there are any."""
        some = [
            any(batch.domain() is not None for _, batch in part.problem.losses.parts)
            for part in self._parts
        ]
        return ShardedDomains(self._parts) if self._parts.most(some) > 0 else None

    def value(self, w: Rows) -> float:
        """Primal objective of a point."""
        sums = []
        for terms, part, rows in zip(self._terms, self._parts, w, strict=True):
            variation = terms.variation(rows)[part.counted]
            sums.append([np.sum(terms.values(rows)[part.own]), np.sum(variation)])
        return float(np.sum(self._parts.add(sums)))

    def repaired(self, u: Rows, w: Rows | None = None) -> ShardedFlow:
        """Return a dual feasible flow near u: on flow conservation and inside the capacities.

        Given w, the flow changes where that costs the bound least: on edges without a jump.
        """
        parts, conservation, domains = self._parts, self._conservation, self._domains
        grounded = domains is not None and domains.needed
        free = conservation.trivial and not grounded
        conductance = self._conductance(None if free else w)
        b, moved = [np.empty(0) for _ in parts], 0.0
        if domains is not None and grounded:
            found = domains.repair(u, w, conductance)
            u, b, moved = found.u, found.b, found.moved
        elif free:
            u = conservation.admissible(u)
            u = [terms.inside(rows) for terms, rows in zip(self._terms, u, strict=True)]
        else:
            u = conservation.alternate(u, conductance)
        # What rounding leaves off the range of a quadratic would be scaled to zero.
        u = conservation.admissible(conservation.project(u, EPS, conductance))
        # Of the two sides of a cut one is right, to the last bit.
        parts.refresh_edges(u)
        flow = ShardedFlow(u, b, moved).scaled(edge_scale(parts, u))
        shares = [terms.loss_scale(rows) for terms, rows in zip(self._terms, flow.u, strict=True)]
        return flow.scaled(-float(parts.most([-share for share in shares])))

    def _conductance(self, w: Rows | None) -> Rows:
        """Conductances (l,): a change of flow costs the bound its product with the jump."""
        parts = self._parts
        ones = [np.ones(len(part.counted)) for part in parts]
        if w is None:
            return ones
        jumps = [terms.jumps(rows) for terms, rows in zip(self._terms, w, strict=True)]
        largest = largest_of(parts, jumps)
        found = [conductance_of(rows, largest) for rows in jumps]
        return [one if c is None else c for one, c in zip(ones, found, strict=True)]

    def gap(self, w: Rows, u: Rows, near: ShardedFlow | None = None) -> tuple[ShardedGap, Rows]:
        """Repair u; return the gap of w against it, and the flow that gives it.

        Near is ``repaired(u, w)``, if it is there already.
        """
        near = self.repaired(u, w) if near is None else near
        found = self._gap_near(w, near)
        if not near.moved * self._size(w) <= SECOND_TRIES.moved * found[0].total < np.inf:
            # A repair that weighs its changes by w may take too many sweeps to end.
            found = min(found, self._gap_near(w, self.repaired(u)), key=_total)
        if not np.isfinite(found[0].total):
            # Data that mix many orders of magnitude: zero is always feasible.
            found = self._gap_near(w, self._zero())
        return found

    def _zero(self) -> ShardedFlow:
        return ShardedFlow(self._parts.edge_zeros(), [np.empty(0) for _ in self._parts])

    def _size(self, w: Rows) -> float:
        """Return the absolute sum of the losses of a point."""
        given = zip(self._terms, self._parts, w, strict=True)
        sums = [np.sum(terms.values(rows)[part.own]) for terms, part, rows in given]
        return abs(float(self._parts.add(sums)))

    def _variation(self, w: Rows) -> float:
        """Return the penalty of a point."""
        given = zip(self._terms, self._parts, w, strict=True)
        sums = [np.sum(terms.variation(rows)[part.counted]) for terms, part, rows in given]
        return float(self._parts.add(sums))

    def _gap_near(self, w: Rows, flow: ShardedFlow) -> tuple[ShardedGap, Rows]:
        """Return the gap of w against a feasible flow, or the flow made shorter."""
        look()
        gap = self._gap(w, flow)
        far = gap.total > SECOND_TRIES.gap * self._size(w)
        if largest_of(self._parts, flow.u) > 0.0 and far:
            # Far from the optimum a shorter flow may be better; close to it, none is.
            flow = flow.scaled(best_scale(lambda t: -self._gap(w, flow.scaled(t)).total))
        return self._certain_gap(w, flow), flow.u

    def gap_of(self, w: Rows, u: Rows) -> ShardedGap:
        """Return the gap of w against a flow that is feasible already."""
        return self._certain_gap(w, ShardedFlow(u, [np.empty(0) for _ in self._parts]))

    def _gap(self, w: Rows, flow: ShardedFlow) -> ShardedGap:
        """Return the gap but for rounding."""
        given = zip(self._terms, w, flow.u, flow.b, strict=True)
        return self._summed(terms.gap(x, Flow(u, b)) for terms, x, u, b in given)

    def _certain_gap(self, w: Rows, flow: ShardedFlow) -> ShardedGap:
        """Return the gap with all that rounding may have hidden, see `gtvcvx.duality._bounds`."""
        reach = self._reach(w)
        gap = self._node_by_node(w, flow, reach)
        near = gap.total <= NEAR * (self._size(w) + self._variation(w))
        close, reach = reach, np.maximum(reach, self._together)
        most = gap.rounding * growth(close, reach)
        if near and most <= NEGLIGIBLE * gap.total:
            gap = dataclasses.replace(gap, rounding=most)
        else:
            gap = self._node_by_node(w, flow, reach)
        if not near and gap.rounding > 0.0:
            loose = self.loose_gap(w)
            if not credible(loose.parts - gap.parts, gap.rounding):
                gap = dataclasses.replace(loose, rounding=0.0)
        rounding = gap.rounding + self._rounding(w, flow.u, reach, near)
        return dataclasses.replace(gap, rounding=rounding)

    def _node_by_node(self, w: Rows, flow: ShardedFlow, reach: FloatArray) -> ShardedGap:
        """Return the gap with what rounding may hide at the nodes."""
        level = self._level(w)
        gaps = [
            terms.certain_gap(x, Flow(u, b), reach, level)
            for terms, x, u, b in zip(self._terms, w, flow.u, flow.b, strict=True)
        ]
        doubtful = float(self._parts.add([part.rounding for part in gaps]))
        return dataclasses.replace(self._summed(gaps), rounding=doubtful)

    def loose_gap(self, w: Rows) -> ShardedGap:
        """Return a gap of w against the flow zero, from above, that costs next to nothing."""
        given = zip(self._terms, w, strict=True)
        gap = self._summed(terms.loose_gap(rows) for terms, rows in given)
        return dataclasses.replace(gap, rounding=4.0 * EPS * self._size(w))

    def _summed(self, gaps: Iterable[Gap]) -> ShardedGap:
        node, edge = [], []
        for gap, part in zip(gaps, self._parts, strict=True):
            node.append(np.where(part.own, gap.node, 0.0))
            edge.append(np.where(part.counted, gap.edge, 0.0))
        sums = [[np.sum(a), np.sum(b)] for a, b in zip(node, edge, strict=True)]
        return ShardedGap(node, edge, 0.0, float(np.sum(self._parts.add(sums))))

    def slack(self, u: Rows) -> Rows:
        """Capacity left on each edge, (l,); zero for penalties that have no capacities."""
        parts = self._parts
        return [
            slack(parts.penalty, part.problem.capacities, rows)
            for part, rows in zip(parts, u, strict=True)
        ]

    def _rounding(self, w: Rows, u: Rows, reach: FloatArray, near: bool) -> float:
        """First-order effect of rounding on the gap at (w, u), see `gtvcvx.duality._bounds`."""
        parts, sums = self._parts, []
        unsure = [terms.unsure(rows) for terms, rows in zip(self._terms, u, strict=True)]
        missing = self._conservation.missing(u, unsure)
        for terms, part, x, flow, left in zip(self._terms, parts, w, u, missing, strict=True):
            noise = terms.noise(x, flow, near, part.counted)
            sums.append([np.sum(left @ reach), *noise])
        residual, *noises = parts.add(sums).tolist()
        return 2.0 * residual + Noise(*noises).total

    def _reach(self, w: Rows) -> FloatArray:
        """Return how far from w solutions may be where no loss tells, (d,): of all nodes."""
        parts = self._parts
        own = [rows[part.own] for rows, part in zip(w, parts, strict=True)]
        mean: FloatArray = parts.add([np.sum(rows, axis=0) for rows in own]) / parts.n_nodes
        spread = parts.most([np.abs(rows - mean).max(axis=0, initial=0.0) for rows in own])
        return np.maximum(spread, self._lengths.longest)

    @cached_property
    def _lengths(self) -> Lengths:
        return Lengths(self._parts.add([terms.totals for terms in self._terms]))

    @cached_property
    def _together(self) -> FloatArray:
        """How large each coordinate may be that alone, or with others, makes up targets, (d,)."""
        return largest_lengths(self._parts, [terms.tables for terms in self._terms])

    def _level(self, w: Rows) -> float:
        """Return how far the objective may be above what the losses are at least."""
        return self.loose_gap(w).parts


def _total(found: tuple[ShardedGap, Rows]) -> float:
    total = found[0].total
    return total if np.isfinite(total) else np.inf
