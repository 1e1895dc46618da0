"""The flow inside clusters that makes up for the gradients of the losses, within the capacities.

Given parameters w and the flow over the edges where w jumps, which is settled, the flow over the
other edges must satisfy

    D^T u = -grad L(w),  ||u_e||_2 <= c_e.

The closest such flow to a given z^0 is ``clip(z^0 + D x)``, edge by edge, for the potentials x that
minimize a sum of Huber functions less a linear one,

    sum_e h_e(z^0_e + (D x)_e) - <demand, x>,  grad h_e = clip,

by duality. A semismooth Newton method finds them: each step is a Laplacian system, in which an edge
at capacity conducts across its flow only. Where no such flow exists, since nodes were taken as one
cluster that are not, the sum is unbounded; the steps then end early, and what is left is spread by
least squares, so that the edges that it overloads show where the cluster wants to be cut.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx._norms import EPS, norm
from gtvcvx.compiled._cluster_flow import Clipped, shift
from gtvcvx.compiled._conjugate_gradients import System, solve
from gtvcvx.graph import EmpiricalGraph, connected_components
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.polishing._flow_sets import FlowSets, flow_sets


@dataclass(frozen=True)
class ClusterFlowSettings:
    """Accuracy and limits of Newton's method.

    Attributes
    ----------
    shrink : float
        The flow stays this far inside the capacities, as a share of them: what rounding may add.
    steps, patience, fall : int, int, float
        It ends after so many steps, or when so many in turn have not brought what is missing down
        to this share of the least before: then there is no such flow, or rounding has the word.
    forcing, iterations : float, int
        Conjugate gradients stop at this share of the residual, or after so many iterations: a
        Newton step need not be accurate.
    step_cost : float
        A step takes about as long as so many iterations of the primal-dual method.
    decrease, shortest : float
        Sufficient decrease, and the shortest step that is tried for it.
    accuracy : float
        What is left in the end is spread to this accuracy.
    tie : float
        Coordinates of a jump tie if they differ by this share of the spread of w: what the conic
        solver leaves, with some room.
    """

    shrink: float = 1e-12
    steps: int = 20
    patience: int = 2
    fall: float = 0.7
    forcing: float = 0.1
    iterations: int = 60
    step_cost: float = 50
    decrease: float = 1e-4
    shortest: float = 1e-3
    accuracy: float = 1e-3
    tie: float = 1e-6


DEFAULTS = ClusterFlowSettings()


class ClusterFlow(NamedTuple):
    """Two flows that agree where one was found that is conserved within the capacities."""

    conserved: FloatArray  # (m, d), with D^T u = -grad L(w), nearly
    inside: FloatArray  # (m, d), within capacity
    overload: FloatArray  # (m,), of `conserved` over the capacities, relative to them
    cost: float  # how many iterations of the primal-dual method would have taken about as long


def cluster_flow(
    problem: GTVProblem,
    blocks: list[list[int]],
    w: FloatArray,
    u: FloatArray,
    jumping: list[BoolArray],
    tolerance: float = 0.0,
    end: float = np.inf,
    settings: ClusterFlowSettings = DEFAULTS,
    slopes: FloatArray | None = None,
    *,
    spread: bool = True,
) -> ClusterFlow:
    """Find a flow near u (m, d) that makes up for the gradients at w (n, d).

    Parameters
    ----------
    problem : GTVProblem
    blocks : list of lists of int
        Coordinates, one after the other, whose flows share a capacity, in the Euclidean norm.
    w, u : ndarray, shapes (n, d) and (m, d)
    jumping : list of ndarray, shape (m,)
        For each block, the edges whose flow stays as it is; with linf, where largest coordinates
        tie, as long as it is in all.
    tolerance : float
        What may be missing from D^T u = -grad L(w), as a share of the sum of the capacities.
    end : float
        When to stop, by `time.perf_counter`.
    settings : ClusterFlowSettings
    slopes : ndarray, shape (n, d), optional
        Subgradients of the losses at w instead of their gradients.
    spread : bool
        Whether what is missing within the tolerance is made up for, too. Where all nodes take any
        flow it costs the gap next to nothing; elsewhere a repair would have to make up for it.
    """
    demand = -(problem.losses.gradient(w) if slopes is None else slopes)
    parts: list[ClusterFlow] = []
    for block, jump in zip(blocks, jumping, strict=True):
        at = slice(block[0], block[-1] + 1)  # no copies: with many coordinates they take as long
        sets = flow_sets(problem, w[:, at], jump, settings.shrink, settings.tie)
        part = _Block(problem, demand[:, at], u[:, at], sets, settings)
        goal = tolerance * float(np.sum(problem.capacities))
        part.solve(goal, end)
        cost = settings.step_cost * (1 + part.steps) * len(block) / problem.dim
        parts.append(ClusterFlow(*part.result(0.0 if spread else goal), cost))
    if len(parts) == 1:
        return parts[0]
    return ClusterFlow(
        np.concatenate([part.conserved for part in parts], axis=1),
        np.concatenate([part.inside for part in parts], axis=1),
        np.max([part.overload for part in parts], axis=0),
        sum(part.cost for part in parts),
    )


class _Block:
    """Newton's method for one block of q coordinates."""

    def __init__(
        self,
        problem: GTVProblem,
        demand: FloatArray,
        u: FloatArray,
        sets: FlowSets,
        settings: ClusterFlowSettings,
    ) -> None:
        graph, self._settings = problem.graph, settings
        self._arcs = graph.by_head
        self._ends = graph.edges.ravel()
        self._sets, self._inner = sets, sets.free
        inner = sets.free
        self.steps = 0
        self._members = connected_components(graph.n_nodes, graph.edges[inner])
        self._sizes = np.bincount(self._members)[:, None]
        nodes = np.arange(graph.n_nodes)
        self._sums = sp.csr_array((np.ones(graph.n_nodes), (self._members, nodes)))
        self._demand = self._consistent(demand - _divergence(graph, u, ~inner))
        # What rounding leaves over is not in the range of the system.
        self._floor = 16.0 * EPS * float(np.hypot(norm(u), norm(demand)))
        self._flow = np.ascontiguousarray(sets.project(u))  # what is settled is never touched
        self._clipped = Clipped(
            self._flow, np.zeros(len(u)), np.zeros_like(self._flow), np.zeros(graph.n_nodes)
        )
        self._z = self._flow.copy()
        self._value = self._clip(self._z)

    def _consistent(self, missing: FloatArray) -> FloatArray:
        """Take the mean over each component from rows (n, q): no flow inside can make it up.

        It is what the conic solver's tolerance left over, and conjugate gradients would amplify it.
        """
        means = (self._sums @ missing) / self._sizes
        return missing - means[self._members]

    def _clip(self, z: FloatArray) -> float:
        """Clip z to the flow, linearize, and set what is missing; returns the Huber functions."""
        missing, self._at = self._demand.copy(), z
        value = self._sets.clip(z, self._clipped, missing)
        self._missing = self._consistent(missing)
        self._left = norm(self._missing)
        return value

    def solve(self, tolerance: float, end: float) -> None:
        """Take steps until the flow is conserved, or it looks as if none could be."""
        settings = self._settings
        best, since = (self._left, self._z), 0
        goal = max(self._floor, tolerance)
        while self.steps < settings.steps and since < settings.patience and self._left > goal:
            self.steps += 1
            if time.perf_counter() >= end or not self._step():
                break
            since = 0 if self._left <= settings.fall * best[0] else since + 1
            if self._left < best[0]:
                best = self._left, self._z
        if self._at is not best[1]:
            self._clip(best[1])

    def _step(self) -> bool:
        """Take a Newton step, shortened until it is good enough; say whether there was one."""
        z, left, value, missing = self._z, self._left, self._value, self._missing
        forcing, shortest = self._settings.forcing, self._settings.shortest
        newton = self._sets.potential(
            self._clipped, missing, self._goal(forcing), self._settings.iterations
        )
        if self._moved(z, newton, left, value, missing, shortest):
            return True
        # Newton steps are far too long where only flows at capacity connect two parts of a cluster.
        # With all edges conducting the full step is short enough, always.
        self._left, self._missing = left, missing
        return self._moved(z, self._spread(forcing), left, value, missing, 1.0)

    def _moved(
        self,
        z: FloatArray,
        x: FloatArray,
        left: float,
        value: float,
        missing: FloatArray,
        shortest: float,
    ) -> bool:
        """Shift z by potentials x (n, q), halved until it is good enough; say if it ever is."""
        slope, linear = float(np.sum(missing * x)), float(np.sum(self._demand * x))
        trial, length = np.empty_like(z), 1.0
        while length >= shortest:
            shift(self._arcs, self._inner, z, x, length, trial)
            self._value = self._clip(trial)
            enough = value - self._settings.decrease * length * slope
            decreased = self._value - length * linear <= enough
            if decreased or self._left <= 0.5 * left:
                self._z = trial
                return True
            length *= 0.5
        return False

    def _spread(self, accuracy: float) -> FloatArray:
        """Return the potentials of the least flow that makes up what is missing."""
        everywhere = self._inner.astype(np.float64)
        degrees = np.bincount(self._ends, np.repeat(everywhere, 2), len(self._missing))
        system = System(self._arcs, everywhere, np.where(degrees > 0.0, degrees, 1.0))
        return solve(system, self._missing, self._goal(accuracy), self._settings.iterations)

    def _goal(self, accuracy: float) -> float:
        return max(accuracy * self._left, self._floor)

    def result(self, enough: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the conserved flow, the one within capacity (m, q), and the overload (m,).

        They are one where no more is missing than is enough.
        """
        if self._left <= enough:
            return self._flow, self._flow, np.zeros(len(self._flow))
        x = self._spread(self._settings.accuracy)
        conserved = self._flow.copy()
        shift(self._arcs, self._inner, self._flow, x, 1.0, conserved)
        over = self._sets.overload(conserved)
        return conserved, self._flow, np.where(self._inner, over, 0.0)


def _divergence(graph: EmpiricalGraph, u: FloatArray, some: BoolArray) -> FloatArray:
    """Return the divergence (n, q) of a flow u (m, q) over some edges (m,), the others left out."""
    at = np.flatnonzero(some)
    signs, ends = np.tile([1.0, -1.0], len(at)), graph.edges[at].ravel()
    rows = sp.csr_array((signs, ends, np.arange(len(at) + 1) * 2), shape=(len(at), graph.n_nodes))
    return np.asarray(rows.T @ u[at])
