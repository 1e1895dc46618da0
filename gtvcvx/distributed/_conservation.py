"""Flow conservation over shards: the projection on it, by conjugate gradients of all workers.

The formulas are those of `gtvcvx.duality._conservation`. An iteration takes one exchange of the
directions at ghosts, and two sums over all nodes; everything else is done shard by shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gtvcvx._deadline import look, spend
from gtvcvx.compiled import Dims, dims_of
from gtvcvx.compiled._conjugate_gradients import (
    MULTIPLICATION,
    Ground,
    State,
    System,
    advance,
    energies,
    multiplications,
    multiply,
    turn,
)
from gtvcvx.compiled._projections import CODES
from gtvcvx.distributed._parts import Parts, Rows
from gtvcvx.duality._conservation import LocalConservation, most_steps, rounding_of
from gtvcvx.duality._refinement import refine
from gtvcvx.duality._settings import COMPILED, GENERIC


@dataclass(frozen=True)
class ShardedFlow:
    """A flow on the edges, with the multipliers of the generators of own nodes.

    See `gtvcvx.duality._flow.Flow`.
    """

    u: Rows
    b: Rows
    moved: float = 0.0

    def scaled(self, theta: float) -> ShardedFlow:
        """Return theta times the flow, which is feasible for theta in [0, 1] if the flow is."""
        if theta == 1.0:
            return self
        u, b = ([theta * rows for rows in arrays] for arrays in (self.u, self.b))
        return ShardedFlow(u, b, self.moved)


class Laplacian(NamedTuple):
    """The system for potentials: a piece for each part, and what an iteration takes in all."""

    pieces: list[System]
    work: float


class ShardedConservation:
    """The projection of flows on conservation, ``T_i (D^T u)_i = 0``, at the nodes of all shards.

    Parameters
    ----------
    parts : Parts
    pieces : sequence of LocalConservation, optional
        The constraint at the own nodes of each part. Default: that of the losses.
    """

    def __init__(self, parts: Parts, pieces: Sequence[LocalConservation] | None = None) -> None:
        self._parts = parts
        if pieces is None:
            pieces = [
                LocalConservation(p.problem.graph, p.problem.losses, parts.penalty, p.own)
                for p in parts
            ]
        self._pieces = list(pieces)
        degrees, some = parts.most([[p.largest_degree, not p.trivial] for p in pieces]).tolist()
        self._largest_degree = int(degrees)
        #: Whether every flow satisfies the constraint.
        self.trivial = not some

    def residual(self, u: Rows) -> Rows:
        """Return ``T_i (D^T u)_i`` at own nodes and zero at ghosts, (k, d) a part."""
        return [piece.residual(rows) for piece, rows in zip(self._pieces, u, strict=True)]

    def missing(self, u: Rows, unsure: Rows) -> Rows:
        """Return bounds (k, d) on what violates it, divergences being unsure; zero at ghosts."""
        given = zip(self._pieces, u, unsure, strict=True)
        return [piece.missing(rows, doubt) for piece, rows, doubt in given]

    def admissible(self, u: Rows) -> Rows:
        """Project on the subspace of flows that the penalty allows."""
        return [piece.admissible(rows) for piece, rows in zip(self._pieces, u, strict=True)]

    def project(self, u: Rows, rtol: float, conductance: Rows) -> Rows:
        """Project flows until the residual is at most rtol times that of u, or rounding.

        Edges of small conductance (l,) keep more of their flow.
        """
        u = self.admissible(u)
        largest = largest_of(self._parts, u)
        if self.trivial or not largest > 0.0:
            return u
        exponent = int(np.frexp(largest)[1])
        unit = self._project_unit([np.ldexp(rows, -exponent) for rows in u], rtol, conductance)
        out = [np.ldexp(rows, exponent) for rows in unit]
        self._parts.refresh_edges(out)
        return out

    def _project_unit(self, u: Rows, rtol: float, conductance: Rows) -> Rows:
        parts, system = self._parts, self.system(conductance)
        floor = self.floor(edge_norm(parts, u))

        def corrected(u: Rows, residual: Rows, goal: float) -> Rows:
            flow = self.flow_of(self.potential(system, residual, goal), conductance)
            return [rows - change for rows, change in zip(u, flow, strict=True)]

        return refine(
            u, self.residual, corrected, rtol, lambda _: floor, lambda r: node_norm(parts, r)
        )

    def alternate(self, u: Rows, conductance: Rows) -> Rows:
        """Over-relaxed alternating projections of flows on conservation and capacities."""
        if self._parts.penalty.compiled_form in CODES:
            return self._alternate(u, conductance)
        return self._alternate_generic(u, conductance)

    def _alternate(self, u: Rows, conductance: Rows) -> Rows:
        """Do it for norms that the compiled sweep knows; cut edges are swept on both sides."""
        parts, largest = self._parts, largest_of(self._parts, u)
        exponent = int(np.frexp(largest)[1])
        states = [
            piece.alternation(rows, part.problem.capacities, exponent)
            for piece, rows, part in zip(self._pieces, u, parts, strict=True)
        ]
        moving, on = [state.flows.u for state in states], [state.flows.on for state in states]
        system = self.system(conductance)
        for _ in range(COMPILED.sweeps):
            look()
            residual = [state.residual() for state in states]
            size = node_norm(parts, residual)
            goal = max(COMPILED.accuracy * size, self.floor(edge_norm(parts, moving)))
            potential = self.potential(system, residual, goal)
            swept = zip(states, conductance, potential, strict=True)
            violation = float(parts.most([state.sweep(c, x) for state, c, x in swept]))
            if violation <= COMPILED.shrink:
                moving = on
                break
        out = [np.ldexp(rows, exponent) for rows in moving]
        parts.refresh_edges(out)
        return out

    def _alternate_generic(self, u: Rows, conductance: Rows) -> Rows:
        """Do it for other penalties, with their own projections."""
        parts, penalty = self._parts, self._parts.penalty
        for _ in range(GENERIC.sweeps):
            look()
            on = self.project(u, GENERIC.accuracy, conductance)
            if edge_scale(parts, on) >= 1.0:
                break
            inside = [
                penalty.project_domain(rows, (1.0 - GENERIC.shrink) * part.problem.capacities)
                for rows, part in zip(on, parts, strict=True)
            ]
            step = GENERIC.relaxation - 1.0
            u = [a + step * (a - rows) for a, rows in zip(inside, on, strict=True)]
        return u

    def floor(self, size: float) -> float:
        """Residual of flows of norm `size` that is rounding."""
        return rounding_of(size, self._largest_degree)

    def system(self, conductance: Rows, ground: Sequence[Ground] | None = None) -> Laplacian:
        """Return the system for potentials, given conductances (l,) and those to the ground."""
        blocks: Sequence[Ground | None] = ground or [None] * len(self._pieces)
        pieces = [
            piece.system(c, block)
            for piece, c, block in zip(self._pieces, conductance, blocks, strict=True)
        ]
        work = self._parts.add([multiplications(piece, self._parts.dim) for piece in pieces])
        return Laplacian(pieces, float(work))

    def flow_of(self, potential: Rows, conductance: Rows) -> Rows:
        """Return the admissible part of the flows of potentials that are fresh."""
        given = zip(self._pieces, potential, conductance, strict=True)
        return [piece.flow_of(x, c) for piece, x, c in given]

    def potential(self, system: Laplacian, residual: Rows, goal: float) -> Rows:
        """Return potentials, fresh, whose flow makes up the residual."""
        n, d = self._parts.n_nodes, self._parts.dim
        steps = most_steps(system.pieces[0], n, d)
        return solve(self._parts, system, residual, goal, steps)


def solve(parts: Parts, system: Laplacian, b: Rows, goal: float, max_iter: int) -> Rows:
    """Solve for b in the range, zero at ghosts, to a residual of norm goal.

    The recurrence of `gtvcvx.compiled._conjugate_gradients`, with its pieces.

    Returns
    -------
    list of ndarray, shape (k, d)
        Fresh.

    Raises
    ------
    Expired, Unaffordable
        Time or work is over, see `gtvcvx._deadline`.
    """
    states = [State.of(piece, rows) for piece, rows in zip(system.pieces, b, strict=True)]
    inverses = [1.0 / piece.degrees for piece in system.pieces]
    directions = [state.direction for state in states]
    dims, previous = dims_of(parts.dim), 0.0
    for _ in range(max_iter):
        # Residuals are zero at ghosts: so are products, as projectors are.
        sums = [
            energies(dims, state.residual, inverse)
            for state, inverse in zip(states, inverses, strict=True)
        ]
        square, energy = parts.add(sums).tolist()
        look()
        if not square > goal * goal:
            break
        beta, previous = energy / previous if previous > 0.0 else 0.0, energy
        for state, inverse in zip(states, inverses, strict=True):
            turn(dims, state.direction, state.residual, inverse, beta)
        parts.refresh(directions)
        products = [
            _multiplied(dims, state, piece)
            for state, piece in zip(states, system.pieces, strict=True)
        ]
        curvature = float(parts.add(products))
        if not curvature > 0.0:
            break
        for state in states:
            length = energy / curvature
            advance(dims, state.x, state.residual, state.direction, state.product, length)
        spend(MULTIPLICATION * system.work)
    found = [state.x for state in states]
    parts.refresh(found)
    return found


def _multiplied(dims: Dims, state: State, system: System) -> float:
    """Multiply the direction of one part, which is fresh; return the curvature along it."""
    curvature: float = multiply(
        dims,
        *state[2:7],
        system.arcs.starts,
        system.arcs.tails,
        system.conductance,
        *(system.projectors or (None,) * 6),
        system.allowed,
        *system.to_ground,
        system.normals,
    )
    return curvature


def node_norm(parts: Parts, rows: Rows) -> float:
    """Return the norm of arrays of nodes (k, d) that are zero at ghosts."""
    return float(np.sqrt(parts.add([np.sum(a * a) for a in rows])))


def edge_norm(parts: Parts, rows: Rows) -> float:
    """Return the norm of arrays of edges (l, d), each counted once."""
    counted = [a[part.counted] for a, part in zip(rows, parts, strict=True)]
    return float(np.sqrt(parts.add([np.sum(a * a) for a in counted])))


def largest_of(parts: Parts, *rows: Rows) -> float:
    """Return the largest absolute entry of some arrays."""
    # NaN is the largest of all, as in NumPy and unlike in Python.
    most = [np.max([np.abs(a).max(initial=0.0) for a in some]) for some in zip(*rows, strict=True)]
    return float(parts.most(most))


def edge_scale(parts: Parts, u: Rows) -> float:
    """Return the largest share of a flow that is inside the capacities of all shards."""
    scales = [
        parts.penalty.scale_to_feasible(rows, part.problem.capacities)
        for rows, part in zip(u, parts, strict=True)
    ]
    return -float(parts.most([-scale for scale in scales]))
