"""Repair of flows where conjugates of losses are finite on polyhedra only.

A loss whose slopes are bounded, logistic or absolute say, absorbs only so much flow: its injection
must be ``s_i = sum_q b_q g_q``, up to free directions, with every multiplier b_q in an interval
(`gtvcvx.losses.DualDomain`). The generators g_q act like edges from the node to the ground with
capacities of their own. Over-relaxed alternating projections between

1. conservation, ``T_i ((D^T u)_i + sum_q b_q g_q) = 0``, and
2. capacities and intervals

bring (u, b) close to both; where a capacity or an interval was exceeded they aim a little inside,
so that they get there. Where they do not, what is left is closed by a step towards an anchor, a
flow that is strictly feasible; zero is one if all intervals have it inside. Otherwise the same
projections look for one with a margin; the step costs the bound what is left, relative to that
margin.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx._deadline import look
from gtvcvx._norms import EPS, norm, row_norm_2
from gtvcvx.compiled._conjugate_gradients import Ground, GroundRows, System, add_blocks
from gtvcvx.duality._conservation import FlowConservation, NullDirections, far_exponent_of, scaled
from gtvcvx.duality._domain_steps import (
    Excess,
    Generators,
    Limits,
    Margins,
    anchor_share,
    component_margins,
    ground_of,
    multipliers_of,
    next_flow,
)
from gtvcvx.duality._few_rows import FewRows, RowFactor, fits
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._refinement import refine
from gtvcvx.duality._settings import ANCHORING, GROUNDED, STEADY, GroundedAlternation
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.batched._thin import pays
from gtvcvx.penalties import Penalty


class Metric(NamedTuple):
    """How freely flows and multipliers change, and the system for potentials that goes with it."""

    conductance: FloatArray  # (m,)
    ground: FloatArray  # (Q,)
    system: System
    factor: RowFactor | None = None  # of the same system, where rows are few


class GroundedConservation(FlowConservation):
    """The linear constraint on (u, b), and the projection on it."""

    def __init__(
        self,
        graph: EmpiricalGraph,
        losses: StackedLoss,
        penalty: Penalty,
        own: BoolArray | None = None,
    ) -> None:
        super().__init__(graph, losses, penalty, own)
        g = self.generators = Generators.of(losses)
        self._null = NullDirections(losses, graph.n_nodes, grounded=True, own=own)
        # Takes the generators' multipliers to what they pull at the nodes, one after the other.
        self._pull = _pull(g, graph.n_nodes)
        self._along = self._pull.T.tocsr()
        dense = isinstance(g.vectors, np.ndarray)
        self.lengths = row_norm_2(g.vectors) if dense else np.sqrt(g.squares)

    def residual_of(self, flow: Flow) -> FloatArray:
        """Return what violates the constraint, (n, d)."""
        total = self._divergence @ flow.u
        return self._null.apply(total + (self._pull @ flow.b).reshape(total.shape))

    def conserved(self, flow: Flow) -> bool:
        """Say whether what violates the constraint is what rounding leaves of a projection."""
        size = norm(flow.u) + norm(flow.b * self.lengths)
        return norm(self.residual_of(flow)) <= self._floor(size)

    def metric(self, conductance: FloatArray, ground: FloatArray) -> Metric:
        """Return the metric of the projection.

        Edges of small conductance (m,) and generators of small ground (Q,) change little.
        """
        rows = self._few_rows
        factor = None if rows is None else rows.factor(conductance, ground)
        system = self.system(conductance, self.to_ground(ground))
        return Metric(conductance, ground, system, factor)

    @cached_property
    def _few_rows(self) -> FewRows | None:
        """The rows, where there are few and nothing but them is there beside the graph."""
        (n, d), g = self._null.projectors.full.shape, self.generators
        if not (isinstance(g.vectors, np.ndarray) and fits(len(g.node), n, d)):
            return None
        full, partial, _, thin, *_ = self._null.projectors
        alone = bool((full == 1.0).all()) and not (len(partial) or len(thin))
        return FewRows(self._graph, g.node, g.vectors) if alone and self._allowed is None else None

    def to_ground(self, ground: FloatArray) -> Ground:
        """Return what generators of some ground (Q,) add to the system."""
        (n, d), g = self._null.projectors.full.shape, self.generators
        if not isinstance(g.vectors, np.ndarray):
            return _sparse_ground(g, ground, n)
        if pays(len(g.node), n, d):
            return GroundRows(g.node, np.sqrt(ground)[:, None] * g.vectors)
        blocks = np.zeros((n, d, d))
        add_blocks(g.node, g.vectors, ground, blocks)
        return blocks

    def along(self, potential: FloatArray) -> FloatArray:
        """Return the products (Q,) of the generators with the potentials (n, d) of their nodes."""
        return np.asarray(self._along @ potential.ravel())

    def project_both(self, flow: Flow, rtol: float, metric: Metric) -> Flow:
        """Project (u, b) until the residual is at most rtol times what it was, or rounding."""
        u = self.admissible(flow.u)
        carried = flow.b * self.lengths
        if not (u.any() or carried.any()):
            return Flow(u, flow.b)
        exponent = far_exponent_of(u, carried)
        unit = Flow(scaled(u, -exponent), scaled(flow.b, -exponent))
        floor = self._floor(norm(unit.u) + norm(scaled(carried, -exponent)))

        def corrected(flow: Flow, residual: FloatArray, goal: float) -> Flow:
            if metric.factor is None:
                x = self._potential(metric.system, residual, goal)
            else:
                x = metric.factor.solve(residual, goal)
            change = self.flow_of(x, metric.conductance)
            u = np.subtract(flow.u, change, out=change)
            return Flow(u, flow.b - metric.ground * self.along(x))

        unit = refine(unit, self.residual_of, corrected, rtol, lambda _: floor, norm)
        return Flow(scaled(unit.u, exponent), scaled(unit.b, exponent))


def _pull(g: Generators, n: int) -> sp.csc_array:
    """Return the generators as columns (n d, Q), each at the place of its node."""
    Q, d = g.vectors.shape
    if isinstance(g.vectors, np.ndarray):
        rows = g.node[:, None] * d + np.arange(d)
        entries = g.vectors.ravel(), rows.ravel(), np.arange(Q + 1) * d
    else:
        counts = np.diff(g.vectors.indptr)
        places = np.repeat(g.node * d, counts) + g.vectors.indices
        entries = g.vectors.data, places, g.vectors.indptr
    return sp.csc_array(entries, shape=(n * d, Q))


def _sparse_ground(g: Generators, ground: FloatArray, n: int) -> GroundRows:
    """Return what generators of some ground (Q,), most of them coordinates, add to the system."""
    vectors, d = sp.csr_array(g.vectors), g.vectors.shape[1]
    alone = np.diff(vectors.indptr) == 1
    entry = vectors.indptr[:-1][alone]
    conductance = ground[alone] * vectors.data[entry] ** 2
    places = g.node[alone] * d + vectors.indices[entry]
    diagonal = np.bincount(places, conductance, n * d).astype(np.float64).reshape(n, d, 1)
    rows = np.sqrt(ground[~alone])[:, None] * vectors[np.flatnonzero(~alone)].toarray()
    return GroundRows(g.node[~alone], rows, diagonal)


class DomainRepair:
    """Repair of flows for one problem some of whose losses have polyhedra as dual domains.

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
        self._conservation = GroundedConservation(graph, losses, penalty)
        g = self._generators = self._conservation.generators
        self._unit = 1.0 / g.squares
        self._limits = Limits(g, penalty, capacities)

    @property
    def needed(self) -> bool:
        """Whether there is any generator."""
        return bool(len(self._generators.node))

    def repair(self, u: FloatArray, w: FloatArray | None, conductance: FloatArray | None) -> Flow:
        """Return a dual feasible flow near u (m, d), with multipliers.

        Given w (n, d), changes are to cost little there; edges of small conductance (m,) keep more
        of their flow.
        """
        b, firm = multipliers_of(self._losses, -(self._graph.divergence @ u), w)
        given = Flow(u, b)
        if self._feasible(given) and self._conservation.conserved(given):
            return given  # nothing is better than leaving an optimal flow alone
        c = np.ones(len(u)) if conductance is None else conductance
        jumps = firm * np.sqrt(self._unit)
        ground = ground_of(self._unit, jumps, float(jumps.max(initial=0.0)))
        metric = self._conservation.metric(c, ground)
        flow = self._alternate(Flow(u, b), GROUNDED.shrink, metric, GROUNDED)
        if self._feasible(flow):
            return flow
        moved = self._towards_anchor(flow)
        if moved.moved < 1.0:
            return moved
        # Where no flow has a margin, one without is looked for.
        flow = self._alternate(Flow(u, b), 0.0, metric, STEADY)
        return flow if self._feasible(flow) else self._towards_anchor(flow)

    def _alternate(
        self, flow: Flow, margin: float, metric: Metric, settings: GroundedAlternation
    ) -> Flow:
        """Over-relaxed alternating projections, on capacities and intervals less margins.

        A margin grows to a share, the overshoot, of what a capacity or interval was exceeded by.
        Returns a flow that is conserved, once it is feasible or what is missing hardly falls.
        """
        margins = Margins(np.full(len(flow.u), margin), np.full(len(flow.b), margin))
        before = np.inf
        for sweep in range(settings.sweeps):
            look()
            on = self._conservation.project_both(flow, settings.accuracy, metric)
            excess = Excess.of(on, self._limits, margins)
            if margins.hold(excess, settings.close):
                found = self._conservation.project_both(on, EPS, metric)
                if self._feasible(found, settings.enough * margin):
                    return found
            if sweep % settings.stride == 0:
                if excess.largest > settings.fall * before:
                    break
                before = excess.largest
            margins = margins.grown(excess, settings)
            flow = next_flow(on, excess, settings)
        return self._conservation.project_both(on, EPS, metric)

    def _feasible(self, flow: Flow, margin: float = 0.0) -> bool:
        """Say whether a flow that is conserved has a margin everywhere, up to rounding."""
        return bool((self._margins(flow) >= margin - 2.0 * GROUNDED.close).all())

    def _margins(self, flow: Flow) -> FloatArray:
        """Margin of every component to capacities and intervals; negative outside."""
        graph = self._graph
        return component_margins(graph.components, graph.edges[:, 0], flow, self._limits)

    @cached_property
    def _anchor(self) -> tuple[Flow, FloatArray]:
        """A flow with a margin in every component, as far as one is found, and the margins."""
        g = self._generators
        best = Flow(np.zeros((self._graph.n_edges, self._losses.dim)), np.zeros(len(g.node)))
        margins = self._margins(best)
        metric = self._conservation.metric(np.ones(self._graph.n_edges), self._unit)
        for margin in ANCHORING.margins:
            if (margins > STEADY.enough * margin).all():
                break
            middle = np.clip(best.b, g.low + margin * g.scale, g.high - margin * g.scale)
            start = Flow(best.u, middle)
            trial = self._alternate(start, margin, metric, STEADY)
            found = self._margins(trial)
            best = self._chosen(found > margins, trial, best)
            margins = np.maximum(margins, found)
        return best, margins

    def _chosen(self, components: BoolArray, first: Flow, second: Flow) -> Flow:
        """Take the first flow in some components and the second one elsewhere."""
        edges = components[self._graph.components[self._graph.edges[:, 0]]]
        generators = components[self._graph.components[self._generators.node]]
        return Flow(
            np.where(edges[:, None], first.u, second.u), np.where(generators, first.b, second.b)
        )

    def _towards_anchor(self, flow: Flow) -> Flow:
        """Move a flow that is conserved as far towards the anchor as it takes to be feasible."""
        margins = self._margins(flow)
        anchor, room = self._anchor
        share = anchor_share(margins, room)
        components = self._graph.components
        theta = share[components[self._graph.edges[:, 0]]][:, None]
        eta = share[components[self._generators.node]]
        u = (1.0 - theta) * flow.u + theta * anchor.u
        return Flow(u, (1.0 - eta) * flow.b + eta * anchor.b, float(share.max()))
