"""The sets that flows over single edges are in, and the projections on them.

For l1 and l2 these are balls, for linf balls of the 1-norm; and where the largest coordinates of a
jump tie, the faces of these balls that go with it: only what such an edge carries in all is known.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx._norms import norm, row_norm_1, row_norm_2
from gtvcvx.compiled import dims_of
from gtvcvx.compiled._cluster_flow import ALONG, Clipped, clip, masked_laplacian
from gtvcvx.compiled._conjugate_gradients import System, solve
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.penalties._projections import project_l1_ball
from gtvcvx.problem import GTVProblem


class FlowSets(Protocol):
    """Sets of the flows over the edges whose flow is not settled yet."""

    free: BoolArray  # (m,)

    def project(self, u: FloatArray) -> FloatArray:
        """Return the closest flow (m, q) in the sets."""

    def clip(self, z: FloatArray, clipped: Clipped, missing: FloatArray) -> float:
        """Project z (m, q) and linearize the projection; see `gtvcvx.compiled._cluster_flow`."""

    def potential(
        self, clipped: Clipped, missing: FloatArray, goal: float, iterations: int
    ) -> FloatArray:
        """Return x (n, q) whose flow in the linearization nearly is what is missing (n, q)."""

    def overload(self, u: FloatArray) -> FloatArray:
        """Return how far flows (m, q) are outside, relative to the capacities, (m,)."""


def flow_sets(
    problem: GTVProblem, w: FloatArray, jumping: BoolArray, shrink: float, tie: float
) -> FlowSets:
    """Return the sets for a block of w (n, q) that jumps over some edges (m,).

    Parameters
    ----------
    problem : GTVProblem
    w : ndarray, shape (n, q)
    jumping : ndarray, shape (m,)
    shrink : float
        Flows stay this share of the capacities inside them.
    tie : float
        Coordinates of jumps tie if they differ by this share of the spread of w.
    """
    capacities = (1.0 - shrink) * problem.capacities
    if problem.penalty.name == "linf" and w.shape[1] > 1:
        return Faces(problem.graph, capacities, problem.differences(w), jumping, tie * np.ptp(w))
    return Balls(problem.graph, capacities, ~jumping)


class Balls:
    """Flows of a bounded length each."""

    def __init__(self, graph: EmpiricalGraph, capacities: FloatArray, free: BoolArray) -> None:
        self._arcs, self._capacities, self.free = graph.by_head, capacities, free

    def project(self, u: FloatArray) -> FloatArray:
        """Return the closest flow (m, q) in the sets."""
        out, length = u.copy(), row_norm_2(u)
        over = self.free & (length > self._capacities)
        out[over] *= (self._capacities[over] / length[over])[:, None]
        return out

    def clip(self, z: FloatArray, clipped: Clipped, missing: FloatArray) -> float:
        """Project z (m, q) and linearize the projection."""
        dims = dims_of(z.shape[1])
        return float(clip(dims, self._arcs, self._capacities, self.free, z, clipped, missing))

    def potential(
        self, clipped: Clipped, missing: FloatArray, goal: float, iterations: int
    ) -> FloatArray:
        """Return potentials whose flow in the linearization nearly is what is missing."""
        degrees = np.where(clipped.degrees > 0.0, clipped.degrees, 1.0)
        system = System(self._arcs, clipped.conductance, degrees, normals=clipped.normals)
        return solve(system, missing, goal, iterations)

    def overload(self, u: FloatArray) -> FloatArray:
        """Return how far flows (m, q) are outside, relative to the capacities, (m,)."""
        return np.maximum(row_norm_2(u) / self._capacities - 1.0, 0.0)


class Faces:
    """Flows whose moduli have a bounded sum, which jumps attain in their largest coordinates."""

    def __init__(
        self,
        graph: EmpiricalGraph,
        capacities: FloatArray,
        jumps: FloatArray,
        jumping: BoolArray,
        near: float,
    ) -> None:
        self._graph, self._capacities = graph, capacities
        sizes = np.abs(jumps)
        largest = sizes >= sizes.max(axis=1, keepdims=True) - near
        tied = jumping & (np.count_nonzero(largest, axis=1) > 1)
        self.free = ~jumping | tied
        self._inner, self._tied = np.flatnonzero(~jumping), np.flatnonzero(tied)
        self._signs = np.where(largest, np.sign(jumps), 0.0)[tied]
        self._weights = np.ones_like(jumps)  # of the last linearization

    def project(self, u: FloatArray) -> FloatArray:
        """Return the closest flow (m, q) in the sets."""
        out, capacities = u.copy(), self._capacities
        out[self._inner] = project_l1_ball(u[self._inner], capacities[self._inner])
        if len(self._tied):
            along = np.where(self._signs != 0.0, self._signs * u[self._tied], -np.inf)
            out[self._tied] = self._signs * _on_simplex(along, capacities[self._tied])
        return out

    def clip(self, z: FloatArray, clipped: Clipped, missing: FloatArray) -> float:
        """Project z (m, q) and linearize the projection: P - a a^T, P onto its support."""
        found, free = self.project(z), self.free
        clipped.flow[free] = found[free]
        inner, tied = self._inner, self._tied
        direction = np.zeros_like(z)
        outside = inner[(found[inner] != z[inner]).any(axis=1)]
        direction[outside] = np.sign(found[outside])
        direction[tied] = self._signs * (found[tied] != 0.0)
        count = np.maximum(np.sqrt(np.count_nonzero(direction, axis=1)), 1.0)
        clipped.normals[:] = np.sqrt(1.0 - ALONG) * direction / count[:, None]
        self._weights[:] = free[:, None]
        for edges in (outside, tied):
            self._weights[edges] = np.where(direction[edges] != 0.0, 1.0, ALONG)
        missing -= self._graph.divergence @ np.where(free[:, None], found, 0.0)
        # Of the envelope of any set: its gradient is the projection.
        return float(0.5 * np.sum(z[free] ** 2) - 0.5 * np.sum((z[free] - found[free]) ** 2))

    def potential(
        self, clipped: Clipped, missing: FloatArray, goal: float, iterations: int
    ) -> FloatArray:
        """Return potentials whose flow in the linearization nearly is what is missing."""
        normals, n = clipped.normals, len(missing)
        ends = self._graph.edges.ravel()
        each = np.repeat(self._weights - normals**2, 2, axis=0)
        degrees = np.stack([np.bincount(ends, column, n) for column in each.T], axis=1)
        preconditioner = 1.0 / np.where(degrees > 0.0, degrees, 1.0)
        x, residual, image = np.zeros_like(missing), missing.copy(), np.empty_like(missing)
        direction, energy = np.zeros_like(missing), 1.0
        for _ in range(iterations):
            if norm(residual) <= goal:
                break
            scaled = preconditioner * residual
            before, energy = energy, float(np.vdot(residual, scaled))
            direction = scaled + (energy / before) * direction
            masked_laplacian(self._graph.by_head, direction, self._weights, normals, image)
            length = energy / float(np.vdot(direction, image))
            x += length * direction
            residual -= length * image
        return x

    def overload(self, u: FloatArray) -> FloatArray:
        """Return how far flows (m, q) are outside, relative to the capacities, (m,)."""
        over = np.maximum(row_norm_1(u) / self._capacities - 1.0, 0.0)
        away = row_norm_1(u - self.project(u)) / self._capacities
        over[self._tied] = away[self._tied]
        return over


def _on_simplex(z: FloatArray, total: FloatArray) -> FloatArray:
    """Project rows z (k, q) on ``x >= 0, sum x = total``; entries -inf are zero there."""
    ordered = -np.sort(-z, axis=1)
    rank = np.arange(1, z.shape[1] + 1)
    with np.errstate(invalid="ignore"):
        level = (np.cumsum(ordered, axis=1) - total[:, None]) / rank
    support = np.maximum(np.count_nonzero(ordered > level, axis=1), 1)
    found = np.take_along_axis(level, support[:, None] - 1, axis=1)
    return np.maximum(z - found, 0.0)
