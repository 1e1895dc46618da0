"""Repair of flows over shards where conjugates of losses are finite on polyhedra only.

The formulas are those of `gtvcvx.duality._polyhedral`; a component of the graph, and its anchor,
may reach over any number of shards.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx._norms import EPS
from gtvcvx.distributed._conservation import (
    Laplacian,
    ShardedConservation,
    ShardedFlow,
    edge_norm,
    largest_of,
    node_norm,
)
from gtvcvx.distributed._groups import Groups
from gtvcvx.distributed._parts import Parts, Rows
from gtvcvx.duality._domain_steps import (
    Excess,
    Limits,
    Margins,
    anchor_share,
    component_margins,
    ground_of,
    multipliers_of,
    next_flow,
)
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._polyhedral import GroundedConservation
from gtvcvx.duality._refinement import refine
from gtvcvx.duality._settings import ANCHORING, GROUNDED, STEADY, GroundedAlternation


class Metric(NamedTuple):
    """How freely flows and multipliers change, and the system for potentials that goes with it."""

    conductance: Rows  # (l,) a part
    ground: Rows  # (Q,) a part
    system: Laplacian


class GroundedProjection:
    """The projection of flows and multipliers on conservation.

    Parameters
    ----------
    parts : Parts
    pieces : list of GroundedConservation
        The constraint at the own nodes of each part.
    """

    def __init__(self, parts: Parts, pieces: list[GroundedConservation]) -> None:
        self._parts, self._pieces = parts, pieces
        self._conservation = ShardedConservation(parts, pieces)

    def metric(self, conductance: Rows, ground: Rows) -> Metric:
        """Return the metric in which edges and generators of small numbers change little."""
        to_ground = [piece.to_ground(c) for piece, c in zip(self._pieces, ground, strict=True)]
        return Metric(conductance, ground, self._conservation.system(conductance, to_ground))

    def conserved(self, flow: ShardedFlow) -> bool:
        """Say whether what violates the constraint is what rounding leaves of a projection."""
        missing = node_norm(self._parts, self._residual(flow))
        return missing <= self._conservation.floor(self._size(flow))

    def project(self, flow: ShardedFlow, rtol: float, metric: Metric) -> ShardedFlow:
        """Project a flow until the residual is at most rtol times what it was, or rounding."""
        u = self._conservation.admissible(flow.u)
        largest = largest_of(self._parts, u, self._carried(flow))
        if not largest > 0.0:
            return ShardedFlow(u, flow.b)
        exponent = int(np.frexp(largest)[1])
        unit = _ldexp(ShardedFlow(u, flow.b), -exponent)
        floor = self._conservation.floor(self._size(unit))

        def corrected(flow: ShardedFlow, residual: Rows, goal: float) -> ShardedFlow:
            x = self._conservation.potential(metric.system, residual, goal)
            change = self._conservation.flow_of(x, metric.conductance)
            along = [piece.along(rows) for piece, rows in zip(self._pieces, x, strict=True)]
            b = zip(flow.b, metric.ground, along, strict=True)
            return ShardedFlow(
                [rows - step for rows, step in zip(flow.u, change, strict=True)],
                [rows - c * step for rows, c, step in b],
            )

        def size(residual: Rows) -> float:
            return node_norm(self._parts, residual)

        unit = refine(unit, self._residual, corrected, rtol, lambda _: floor, size)
        return _ldexp(unit, exponent)

    def _residual(self, flow: ShardedFlow) -> Rows:
        given = zip(self._pieces, flow.u, flow.b, strict=True)
        return [piece.residual_of(Flow(u, b)) for piece, u, b in given]

    def _carried(self, flow: ShardedFlow) -> Rows:
        """Return the flows of the generators, whose nodes are own ones."""
        return [b * piece.lengths for b, piece in zip(flow.b, self._pieces, strict=True)]

    def _size(self, flow: ShardedFlow) -> float:
        return edge_norm(self._parts, flow.u) + node_norm(self._parts, self._carried(flow))


class ShardedDomains:
    """Repair of flows for a problem in shards some of whose losses have polyhedra as dual domains.

    Parameters
    ----------
    parts : Parts

    Attributes
    ----------
    needed : bool
        Whether there is any generator.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        given = [(part.problem, part.own) for part in parts]
        pieces = [GroundedConservation(p.graph, p.losses, parts.penalty, own) for p, own in given]
        self._projection = GroundedProjection(parts, pieces)
        self._generators = [piece.generators for piece in pieces]
        self._unit = [1.0 / g.squares for g in self._generators]
        self._limits = [
            Limits(g, parts.penalty, part.problem.capacities)
            for g, part in zip(self._generators, parts, strict=True)
        ]
        self.needed = bool(parts.most([len(g.node) for g in self._generators]) > 0)

    @cached_property
    def _groups(self) -> Groups:
        """Components of the graph."""
        return Groups.of_graph(self._parts)

    def repair(self, u: Rows, w: Rows | None, conductance: Rows) -> ShardedFlow:
        """Return a dual feasible flow near u, with multipliers.

        Given w, changes are to cost little there; edges of small conductance keep more of their
        flow.
        """
        b, firm = self._multipliers(u, w)
        given = ShardedFlow(u, b)
        if self._feasible(given) and self._projection.conserved(given):
            return given  # nothing is better than leaving an optimal flow alone
        metric = self._projection.metric(conductance, self._ground(firm))
        flow = self._alternate(given, GROUNDED.shrink, metric, GROUNDED)
        if self._feasible(flow):
            return flow
        moved = self._towards_anchor(flow)
        if moved.moved < 1.0:
            return moved
        # Where no flow has a margin, one without is looked for.
        flow = self._alternate(given, 0.0, metric, STEADY)
        return flow if self._feasible(flow) else self._towards_anchor(flow)

    def _multipliers(self, u: Rows, w: Rows | None) -> tuple[Rows, Rows]:
        points: Iterable[FloatArray | None] = [None] * len(u) if w is None else w
        found = [
            multipliers_of(part.problem.losses, -(part.problem.graph.divergence @ flow), point)
            for part, flow, point in zip(self._parts, u, points, strict=True)
        ]
        return [b for b, _ in found], [firm for _, firm in found]

    def _ground(self, firm: Rows) -> Rows:
        jumps = [rows * np.sqrt(unit) for rows, unit in zip(firm, self._unit, strict=True)]
        largest = largest_of(self._parts, jumps)
        given = zip(self._unit, jumps, strict=True)
        return [ground_of(unit, rows, largest) for unit, rows in given]

    def _alternate(
        self, flow: ShardedFlow, margin: float, metric: Metric, settings: GroundedAlternation
    ) -> ShardedFlow:
        """Over-relaxed alternating projections, on capacities and intervals less margins.

        Returns a flow that is conserved, once it is feasible or what is missing hardly falls.
        """
        project, before = self._projection.project, np.inf
        margins = [
            Margins(np.full(len(u), margin), np.full(len(b), margin))
            for u, b in zip(flow.u, flow.b, strict=True)
        ]
        for sweep in range(settings.sweeps):
            look()
            on = project(flow, settings.accuracy, metric)
            excess = [
                Excess.of(Flow(u, b), limits, own)
                for u, b, limits, own in zip(on.u, on.b, self._limits, margins, strict=True)
            ]
            out, largest = self._how_far(excess, margins, settings.close)
            if not out:
                found = project(on, EPS, metric)
                if self._feasible(found, settings.enough * margin):
                    return found
            if sweep % settings.stride == 0:
                if largest > settings.fall * before:
                    break
                before = largest
            margins = [own.grown(e, settings) for own, e in zip(margins, excess, strict=True)]
            flow = self._next(on, excess, settings)
        return project(on, EPS, metric)

    def _how_far(
        self, excess: list[Excess], margins: list[Margins], close: float
    ) -> tuple[bool, float]:
        """Say whether a flow is outside in any shard, and how far at most."""
        given = zip(excess, margins, strict=True)
        rows = [[not own.hold(e, close), e.largest] for e, own in given]
        out, largest = self._parts.most(rows).tolist()
        return bool(out), largest

    def _next(
        self, on: ShardedFlow, excess: list[Excess], settings: GroundedAlternation
    ) -> ShardedFlow:
        given = zip(on.u, on.b, excess, strict=True)
        found = [next_flow(Flow(u, b), e, settings) for u, b, e in given]
        u = [flow.u for flow in found]
        # One copy of a cut edge might drift from the other otherwise.
        self._parts.refresh_edges(u)
        return ShardedFlow(u, [flow.b for flow in found])

    def _feasible(self, flow: ShardedFlow, margin: float = 0.0) -> bool:
        """Say whether a flow that is conserved has a margin everywhere, up to rounding."""
        return self._least(self._margins(flow)) >= margin - 2.0 * GROUNDED.close

    def _least(self, margins: Rows) -> float:
        return -float(self._parts.most([(-rows).max(initial=-np.inf) for rows in margins]))

    def _margins(self, flow: ShardedFlow) -> Rows:
        """Margin of every component, (c,) a part, to capacities and intervals."""
        groups, rows = self._groups, []
        given = zip(self._parts, groups.labels, flow.u, flow.b, self._limits, strict=True)
        for part, labels, u, b, limits in given:
            heads = part.shard.edges[:, 0]
            rows.append(component_margins(labels, heads, Flow(u, b), limits)[:, None])
        return [found[:, 0] for found in groups.combined(rows, np.minimum)]

    @cached_property
    def _anchor(self) -> tuple[ShardedFlow, Rows]:
        """A flow with a margin in every component, as far as one is found, and the margins."""
        parts, generators = self._parts, self._generators
        best = ShardedFlow(parts.edge_zeros(), [np.zeros(len(g.node)) for g in generators])
        margins = self._margins(best)
        ones = [np.ones(len(part.counted)) for part in parts]
        metric = self._projection.metric(ones, self._unit)
        for margin in ANCHORING.margins:
            if self._least(margins) > STEADY.enough * margin:
                break
            middle = [
                np.clip(b, g.low + margin * g.scale, g.high - margin * g.scale)
                for b, g in zip(best.b, generators, strict=True)
            ]
            trial = self._alternate(ShardedFlow(best.u, middle), margin, metric, STEADY)
            found = self._margins(trial)
            better = [new > old for new, old in zip(found, margins, strict=True)]
            best = self._blended(trial, best, [some.astype(float) for some in better])
            margins = [np.maximum(a, b) for a, b in zip(margins, found, strict=True)]
        return best, margins

    def _blended(self, first: ShardedFlow, second: ShardedFlow, share: Rows) -> ShardedFlow:
        """Take a share (c,) of the first flow in each component, and the rest of the second."""
        u, b = [], []
        given = zip(self._parts, self._groups.labels, self._generators, share, strict=True)
        for k, (part, labels, g, part_share) in enumerate(given):
            theta = part_share[labels[part.shard.edges[:, 0]]][:, None]
            eta = part_share[labels[g.node]]
            u.append((1.0 - theta) * second.u[k] + theta * first.u[k])
            b.append((1.0 - eta) * second.b[k] + eta * first.b[k])
        return ShardedFlow(u, b)

    def _towards_anchor(self, flow: ShardedFlow) -> ShardedFlow:
        """Move a flow that is conserved as far towards the anchor as it takes to be feasible."""
        margins = self._margins(flow)
        anchor, room = self._anchor
        share = [anchor_share(own, a) for own, a in zip(margins, room, strict=True)]
        moved = self._blended(anchor, flow, share)
        most = max(float(self._parts.most([rows.max(initial=0.0) for rows in share])), 0.0)
        return ShardedFlow(moved.u, moved.b, most)


def _ldexp(flow: ShardedFlow, exponent: int) -> ShardedFlow:
    u, b = ([np.ldexp(rows, exponent) for rows in arrays] for arrays in (flow.u, flow.b))
    return ShardedFlow(u, b)
