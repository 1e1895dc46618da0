"""Flow conservation: where the losses give a flow no room, and the projection on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx._norms import EPS, norm
from gtvcvx.compiled import dims_of
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._conjugate_gradients import (
    Ground,
    GroundRows,
    Projectors,
    System,
    solve,
    write_projected,
)
from gtvcvx.compiled._projections import Flows, Limits, sweep
from gtvcvx.duality._few_rows import FewRows, fits
from gtvcvx.duality._refinement import refine
from gtvcvx.duality._settings import COMPILED
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import BatchedLoss, DualDomain, StackedLoss
from gtvcvx.losses.batched._base import RangeRows
from gtvcvx.losses.batched._thin import pays
from gtvcvx.losses.node._segments import MANY, images, sums
from gtvcvx.penalties import Penalty

# Squares of sizes up to 2^FAR, and of roundings beside sizes of 2^-FAR, are normal numbers.
FAR = 400
# What bases of few rows conduct to the ground, beside the edges of a node: as good as everything.
_STIFF = 1e4

#: Returns potentials (n, d) whose flow makes up a residual (n, d) but for a norm.
Potentials = Callable[[FloatArray, float], FloatArray]


def _rows(batch: BatchedLoss, domain: DualDomain | None) -> RangeRows | None:
    """Return bases of the directions with room where they take less than projectors."""
    if domain is not None:
        return domain.projector if isinstance(domain.projector, RangeRows) else None
    count = batch.n_thin_rows
    if count is not None and not pays(count, batch.n_nodes, batch.dim):
        return None
    return batch.range_rows()


def _of_nodes(basis: RangeRows, some: BoolArray) -> RangeRows:
    counts = np.diff(basis.indptr)
    rows = basis.rows[np.repeat(some, counts)]
    return RangeRows(rows, np.concatenate([[0], np.cumsum(counts[some])]))


def _joined(
    nodes: list[IntArray], bases: list[RangeRows], d: int
) -> tuple[IntArray, FloatArray, IntArray]:
    """Join bases of several batches, at their nodes."""
    counts = np.concatenate([np.empty(0, np.int64), *(np.diff(basis.indptr) for basis in bases)])
    return (
        np.concatenate([np.empty(0, np.int64), *nodes]),
        np.concatenate([np.empty((0, d)), *(basis.rows for basis in bases)]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )


def _at(projectors: Projectors, own: BoolArray) -> Projectors:
    """Return the projectors of some nodes (n,), and zero at all others."""
    full, partial, matrices, thin, rows, indptr = projectors
    kept, short = own[partial], own[thin]
    basis = _of_nodes(RangeRows(rows, indptr), short)
    # The identity less nothing is the identity, which other nodes must not have.
    full = np.where(own[:, None], full, 0.0)
    return Projectors(full, partial[kept], matrices[kept], thin[short], *basis)


class NullDirections:
    """Per node, the orthogonal projector T_i on the directions in which flow is conserved.

    They are the directions in which L_i^* has no room: all of R^d at unlabelled nodes, the null
    space of X_i at nodes with squared error, none at nodes with a point. Grounded, they are those
    in which L_i^* has no or only some room, see `gtvcvx.losses.DualDomain`. Of nodes that are not
    own (n,), if that is given, they are none.
    """

    def __init__(
        self,
        losses: StackedLoss,
        n_nodes: int,
        grounded: bool = False,
        own: BoolArray | None = None,
    ) -> None:
        d, full = losses.dim, np.zeros((n_nodes, losses.dim))
        nodes, projectors = [], []
        thin, bases = [], []
        for at, batch in losses.parts:
            domain = batch.domain() if grounded else None
            rows = _rows(batch, domain)
            if rows is not None:
                # Full rank is full rank: no rounding error may pass for a null direction.
                short = np.diff(rows.indptr) < d
                thin.append(at[short])
                bases.append(_of_nodes(rows, short))
                continue
            projector = batch.null_projector() if domain is None else domain.projector
            assert not isinstance(projector, RangeRows)
            if isinstance(projector, float) or projector.ndim == 2:
                full[at] = projector
            else:
                some = projector.any(axis=(1, 2))
                nodes.append(at[some])
                projectors.append(projector[some])
        partial = np.concatenate([*nodes, np.empty(0, np.int64)]).astype(np.int64)
        matrices = np.concatenate([*projectors, np.empty((0, d, d))])
        self.projectors = Projectors(full, partial, matrices, *_joined(thin, bases, d))
        if own is not None:
            self.projectors = _at(self.projectors, own)
            full, partial = self.projectors.full, self.projectors.partial
        #: Nodes with such directions.
        self.nodes = np.concatenate(
            [np.flatnonzero(full.any(axis=1)), partial, self.projectors.thin]
        )
        self.any = bool(full.any() or len(partial) or len(self.projectors.thin))

    def apply(self, x: FloatArray) -> FloatArray:
        """Return T_i x_i for all rows of x (n, d)."""
        # What rounding leaves outside the range of T would be amplified by conjugate gradients.
        return self._once(self._once(x))

    def _once(self, x: FloatArray) -> FloatArray:
        """Return T_i x_i, rounded: what `project_nodes` does inside compiled code."""
        full, partial, matrices, thin, rows, indptr = self.projectors
        if x.shape[1] > MANY:
            out = np.empty_like(x)
            write_projected(x, out, *self.projectors)
            return out
        out = full * x
        if len(partial):
            out[partial] = np.einsum("pkj,pj->pk", matrices, x[partial])
        if len(thin):
            inside = x[thin]
            along = images(rows, indptr, inside)
            out[thin] = inside - sums(indptr, along[:, None] * rows)
        return out


class LocalConservation:
    """The linear constraint ``T_i (D^T u)_i = 0`` on flows u, node by node and edge by edge.

    Parameters
    ----------
    graph, losses, penalty
        Of the problem.
    own : ndarray of bool, shape (n,), optional
        Nodes at which flow is conserved; at others that is somebody else's business. Default: all.
    """

    def __init__(
        self,
        graph: EmpiricalGraph,
        losses: StackedLoss,
        penalty: Penalty,
        own: BoolArray | None = None,
    ) -> None:
        self._graph, self._penalty = graph, penalty
        self._null = NullDirections(losses, graph.n_nodes, own=own)
        self._incidence, self._divergence = graph.incidence, graph.divergence
        self._arcs, self._ends = graph.by_head, graph.edges.ravel()
        self.largest_degree = max(int(graph.degrees.max()), 1)
        # The projector R as a matrix; most penalties allow all flows and need none.
        self._allowed = penalty.span_projector(losses.dim)

    @property
    def trivial(self) -> bool:
        """Whether every flow satisfies the constraint."""
        return not self._null.any

    def residual(self, u: FloatArray) -> FloatArray:
        """Return ``T_i (D^T u)_i``, shape (n, d): what violates the constraint."""
        if self.trivial:
            return np.zeros((self._divergence.shape[0], u.shape[1]))
        return self._null.apply(self._divergence @ u)

    def missing(self, u: FloatArray, unsure: FloatArray) -> FloatArray:
        """Return bounds (n, d) on what violates the constraint, its divergence being unsure."""
        size = np.abs(self.residual(u))
        at = self._null.nodes
        size[at] += unsure[at]
        return size

    def system(self, conductance: FloatArray, ground: Ground | None = None) -> System:
        """Return the system for potentials, given conductances (m,) and those to the ground."""
        n = len(self._null.projectors.full)
        degrees: FloatArray = np.bincount(self._ends, np.repeat(conductance, 2), n).astype(float)
        if isinstance(ground, GroundRows):
            squares = np.einsum("qj,qj->q", ground.rows, ground.rows)
            degrees += np.bincount(ground.node, squares, n) / ground.rows.shape[1]
            if ground.diagonal is not None:
                degrees += ground.diagonal.sum(axis=(1, 2)) / ground.rows.shape[1]
        elif ground is not None:
            degrees = degrees + np.trace(ground, axis1=1, axis2=2) / ground.shape[1]
        degrees = np.where(degrees > 0.0, degrees, 1.0)
        projectors = self._null.projectors
        return System(self._arcs, conductance, degrees, projectors, self._allowed, ground)

    def flow_of(self, potential: FloatArray, conductance: FloatArray) -> FloatArray:
        """Return the admissible part of the flow c_e (x_head - x_tail) of a potential x (n, d)."""
        flow = np.asarray(self._incidence @ potential)
        flow *= conductance[:, None]
        return self.admissible(flow)

    def admissible(self, rows: FloatArray) -> FloatArray:
        """Project on the subspace of flows that the penalty allows: range(Q) of a quadratic."""
        return rows if self._allowed is None else rows @ self._allowed

    def alternation(self, u: FloatArray, capacities: FloatArray, exponent: int) -> Alternation:
        """Begin over-relaxed alternating projections of a flow u (m, d), in units 2^exponent."""
        u = np.ldexp(u, -exponent)
        with np.errstate(over="ignore", under="ignore"):
            target = np.ldexp((1.0 - COMPILED.shrink) * capacities, -exponent)
        target = np.maximum(target, np.finfo(np.float64).tiny)
        limits = Limits(self._penalty.compiled_form, target)
        flows = Flows(u, np.empty_like(u), -(self._divergence @ u))
        return Alternation(self._arcs, self._null, limits, flows)


class Alternation(NamedTuple):
    """Over-relaxed alternating projections on conservation and capacities, between two sweeps."""

    arcs: Arcs
    null: NullDirections
    limits: Limits
    flows: Flows

    def residual(self) -> FloatArray:
        """Return what the next projection on conservation makes up, (n, d)."""
        return self.null.apply(self.flows.missing)

    def sweep(self, conductance: FloatArray, potential: FloatArray) -> float:
        """Move on with the potential (n, d) of the projection; return the largest violation."""
        dims, step = dims_of(potential.shape[1]), COMPILED.relaxation - 1.0
        found: float = sweep(dims, self.arcs, self.limits, self.flows, conductance, potential, step)
        return found


class FlowConservation(LocalConservation):
    """The projection on the constraint.

    That of u in the norm ``sum_e ||u_e||^2 / c_e``, with conductances c, is ``u - C D T x`` with x
    from ``T D^T C D T x = T D^T u``, solved by conjugate gradients. For a singular quadratic
    penalty all flows stay in range(Q).
    """

    _solver: tuple[FloatArray | None, Potentials] | None = None  # of the last conductance

    def project(
        self, u: FloatArray, rtol: float, conductance: FloatArray | None = None
    ) -> FloatArray:
        """Project u (m, d) until the residual is at most rtol times that of u, or rounding.

        Edges of small conductance (m,), in (0, 1] with default 1, keep more of their flow.
        """
        u = self.admissible(u)
        if self.trivial or not u.any():
            return u
        exponent = far_exponent_of(u)
        return scaled(self._project_unit(scaled(u, -exponent), rtol, conductance), exponent)

    def _project_unit(
        self, u: FloatArray, rtol: float, conductance: FloatArray | None
    ) -> FloatArray:
        potentials, floor = self._potentials(conductance), self._floor(norm(u))
        c = np.ones(len(u)) if conductance is None else conductance

        def corrected(u: FloatArray, residual: FloatArray, goal: float) -> FloatArray:
            change = self.flow_of(potentials(residual, goal), c)
            return np.subtract(u, change, out=change)

        return refine(u, self.residual, corrected, rtol, lambda _: floor, norm)

    def alternate(
        self,
        u: FloatArray,
        capacities: FloatArray,
        conductance: FloatArray | None,
        excess: float = 0.0,
    ) -> FloatArray:
        """Over-relaxed alternating projections of u (m, d) on conservation and capacities (m,).

        For norms that the compiled sweep knows. They aim a little inside the capacities, and end
        when a projection on conservation stays within capacity, or exceeds it by no more than a
        share of it, the excess.
        """
        exponent = exponent_of(u)
        state = self.alternation(u, capacities, exponent)
        u, on = state.flows.u, state.flows.on
        c = np.ones(len(u)) if conductance is None else conductance
        potentials = self._potentials(conductance)
        for _ in range(COMPILED.sweeps):
            look()
            residual = state.residual()
            goal = max(COMPILED.accuracy * norm(residual), self._floor(norm(u)))
            potential = potentials(residual, goal)
            if state.sweep(c, potential) <= max(COMPILED.shrink, excess):
                return np.ldexp(on, exponent)
        return np.ldexp(u, exponent)

    def _floor(self, size: float) -> float:
        """Residual of flows of norm `size` that is rounding: it would only be amplified."""
        return rounding_of(size, self.largest_degree)

    def _potentials(self, conductance: FloatArray | None) -> Potentials:
        """Return what finds potentials for residuals: one for sweeps and the projection after."""
        if self._solver is not None and self._solver[0] is conductance:
            return self._solver[1]
        c = np.ones(len(self._arcs.tails)) if conductance is None else conductance
        held = self._held_by_few
        if held is None:
            found: Potentials = partial(self._potential, self.system(c))
        else:
            rows, nodes = held
            stiff = _STIFF * self.largest_degree  # edges conduct at most 1
            found = rows.factor(c, np.full(rows.size, stiff), stiff * nodes).solve
        self._solver = conductance, found
        return found

    @cached_property
    def _held_by_few(self) -> tuple[FewRows, FloatArray] | None:
        """Bases of the directions with room where there are few, and which nodes have no others.

        What they pull at their nodes is room, however much it is; so they are as good as a ground.
        """
        full, some, _, thin, rows, indptr = self._null.projectors
        n, d = full.shape
        if len(some) or self._allowed is not None or not fits(len(rows), n, d):
            return None
        held = 1.0 - full[:, 0]
        held[thin] = 0.0
        # Coordinates that differ from each other are told by no row.
        if not (full == full[:, :1]).all():
            return None
        return FewRows(self._graph, np.repeat(thin, np.diff(indptr)), rows), held

    def _potential(self, system: System, residual: FloatArray, goal: float) -> FloatArray:
        """Return x (n, d) whose flow, c_e (x_head - x_tail), makes up the residual."""
        n, d = residual.shape
        return solve(system, residual, goal, most_steps(system, n, d))


def most_steps(system: System, n: int, d: int) -> int:
    """Return after how many steps conjugate gradients on n nodes have to end."""
    return 10 * n + 100 if system.ground is None else 10 * n * d + 100


def rounding_of(size: float, degree: int) -> float:
    """Return the residual of flows of norm `size` that is rounding, in a graph of some degree."""
    return 4.0 * EPS * size * float(np.sqrt(degree))


def exponent_of(*arrays: FloatArray) -> int:
    """Return k such that the largest entry is 2^k times a number in [1/2, 1).

    Squares of very small or large flows would leave the range of double precision. A power of two
    changes no bit of a flow that is conserved already.
    """
    return int(np.frexp(max(float(np.abs(array).max(initial=0.0)) for array in arrays))[1])


def far_exponent_of(*arrays: FloatArray) -> int:
    """Return the same where squares would leave the range of double precision, else 0."""
    exponent = exponent_of(*arrays)
    return exponent if abs(exponent) > FAR else 0


def scaled(x: FloatArray, exponent: int) -> FloatArray:
    """Return x times a power of two; x itself, which may be large, where that is one."""
    return np.ldexp(x, exponent) if exponent else x
