"""From the clusters of a smaller lambda: their problem is solved, and the flow inside proves it.

Where every node has a point of its own, clusters mostly only fuse as lambda grows. So the clusters
of a solution for a smaller lambda become the nodes of a coarser problem, from the first iteration
on: it costs what the clusters cost, not the nodes. Whether they have stayed together is for the
flow inside them to say, and for the gap of the whole problem; where they have not, iterations go
on from what was found.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._logging import room_logger
from gtvcvx.graph import connected_components
from gtvcvx.penalties import CompiledForm
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver import Incumbent, Limits, Proposal
from gtvcvx.solvers.driver._requirements import Requirement, missing
from gtvcvx.solvers.driver._scalar import scalar_form, separable_penalty
from gtvcvx.solvers.driver._schedule import checked_ratio
from gtvcvx.solvers.polishing._cluster_flow import cluster_flow
from gtvcvx.solvers.polishing._coarsening import Coarsening, grouped
from gtvcvx.solvers.polishing._contraction import DEFAULTS as CONTRACTION
from gtvcvx.solvers.polishing._contraction import fused_edges, has_edges
from gtvcvx.solvers.polishing._policy import Polished
from gtvcvx.solvers.polishing._quotient_graph import QuotientEdges, blocks
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual


@dataclass(frozen=True)
class FromFinerSettings:
    """How accurately clusters are solved, and when they are left alone.

    Attributes
    ----------
    shrinkage : float
        The clusters' problem must have at most this share of the edges, or it does not pay.
    accuracy : float
        Its gap, as a share of the one that is asked for: what it leaves overloads the flow inside
        clusters, and points fuse wrongly that are the next value's clusters.
    iterations : int
        On the clusters' problem. Those of paths took 200 to 500.
    flow : float
        What may be missing from the conservation inside clusters, as a share of the gap asked for.
    patience : int
        After so many failures in turn along a path clusters are taken to come apart everywhere.
    no_slack : float
        Flows settle where the point jumps and less than this share of the capacity is left.
    """

    shrinkage: float = 0.7
    accuracy: float = 0.01
    iterations: int = 3000
    flow: float = 0.1
    patience: int = 3
    no_slack: float = 1e-6


_LOG = room_logger("solvers.polishing")
DEFAULTS = FromFinerSettings()
# What a solution tells the next one along a path, in its `info`: its lambda, the primal weight and
# the ratio of gap to residual of its clusters' problem, and how many of these have failed in turn.
LAM, WEIGHT, RATIO, FAILED = "lam", "cluster_weight", "cluster_gap_ratio", "cluster_failures"
# The weight and the ratio of the whole problem wait for the next iterations on it.
_KEPT = ("primal_weight", "gap_ratio", WEIGHT, RATIO)


def points_everywhere(problem: GTVProblem) -> str | None:
    """Ask for nodes that are all drawn to a point, in all directions alike."""
    form = scalar_form(problem) if problem.losses.is_quadratic else None
    if form is not None:
        curvature = form.curvature
        if np.all(curvature == curvature[:, :1]) and np.all(curvature > 0.0):
            return None
    return "a point loss at every node"


def joint_clusters(problem: GTVProblem) -> str | None:
    """Ask for a penalty whose clusters form in all coordinates together."""
    known = problem.penalty.compiled_form in (CompiledForm.L2, CompiledForm.LINF)
    return None if known and separable_penalty(problem) else "the penalty 'l2' or 'linf', d > 1"


#: What a problem needs for its clusters to be taken from a smaller lambda.
REQUIRES: tuple[Requirement, ...] = (has_edges, joint_clusters, points_everywhere)


def grows_from_clusters(problem: GTVProblem) -> bool:
    """Say whether solutions for growing lambda start from each other's clusters."""
    return problem.cached("from finer", lambda: missing(problem, REQUIRES) is None)


class Clusters(NamedTuple):
    """The clusters of a solution, and the problem on them."""

    labels: IntArray  # (n,)
    edges: QuotientEdges
    problem: GTVProblem

    def lifted(
        self,
        problem: GTVProblem,
        point: ClusterPoint,
        u: FloatArray,
        tolerance: float,
        seconds: float = np.inf,
    ) -> tuple[FloatArray, FloatArray]:
        """Return a solution on clusters as one of the whole problem: w (n, d), conserved u (m, d).

        Newton's method finds the flow inside clusters, near the given one, to a tolerance that is
        a share of the sum of the capacities, or for so many seconds.
        """
        w, u = point.w[self.labels], u.copy()
        u[self.edges.between] = self.edges.split(point.u)
        jumping = np.zeros(len(u), dtype=bool)
        jumping[self.edges.between] = point.settled[self.edges.reduced]
        parts, end = blocks(problem), time.perf_counter() + seconds
        jumps = [jumping] * len(parts)
        found = cluster_flow(problem, parts, w, u, jumps, tolerance, end, spread=False)
        return w, found.conserved


class ClusterPoint(NamedTuple):
    """A solution of the clusters' problem."""

    w: FloatArray  # (K, d)
    u: FloatArray  # (r, d)
    settled: BoolArray  # (r,), where w jumps and the flow is at capacity

    @classmethod
    def of(cls, problem: GTVProblem, w: FloatArray, u: FloatArray, no_slack: float) -> ClusterPoint:
        """Look where a solution's flow is settled: less than this share of capacity is left."""
        moves = problem.differences(w).any(axis=1)
        left = problem.bounds.slack(u)
        return cls(w, u, moves & (left <= no_slack * problem.capacities))


class FromFiner:
    """One round: solve on the clusters of a solution for a smaller lambda, and prove it.

    Parameters
    ----------
    problem : GTVProblem
        That fulfils `REQUIRES`.
    start : Solution
        For a smaller lambda.
    settings : FromFinerSettings
    """

    stride = 1

    def __init__(
        self, problem: GTVProblem, start: Solution, settings: FromFinerSettings = DEFAULTS
    ) -> None:
        self._problem, self._settings = problem, settings
        self._start = dataclasses.replace(start, u=stretched(problem, start))
        self._pair: tuple[FloatArray, FloatArray] | None = None
        self._info = kept(start)
        self._info[FAILED] = _count(start.info.get(FAILED))
        self.n_iter = 0

    @classmethod
    def of(cls, problem: GTVProblem, start: Solution | None) -> FromFiner | None:
        """Return the method where there is a start for a smaller lambda, and it fits."""
        if start is None or not grows_from_clusters(problem):
            return None
        lam = start.info.get(LAM)
        if not (isinstance(lam, float) and 0.0 < lam < problem.lam):
            return None
        found = cls(problem, start)
        return None if found._info[FAILED] >= DEFAULTS.patience else found

    @property
    def finished(self) -> bool:
        """Whether the round is over."""
        return self.n_iter > 0

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits."""
        self._limits = limits

    def run(self, n_iter: int) -> None:
        """Solve on the clusters, and look for the flow inside them."""
        self.n_iter = 1
        clusters = self._clusters()
        if clusters is None:
            return
        tolerance, left = self._settings.flow * self._limits.rtol, self._limits.seconds_left
        point = self._solved(clusters)
        self._pair = clusters.lifted(self._problem, point, self._start.u, tolerance, left)

    def _clusters(self) -> Clusters | None:
        """Return the clusters of the start; None if they are too many to pay."""
        problem, w, u = self._problem, self._start.w, self._start.u
        tied = ~problem.differences(w).any(axis=1)
        # Iterates that were good enough need not be constant on clusters.
        for alike in (tied, tied | fused_edges(problem, w, u, CONTRACTION)[0]):
            if not alike.any():
                continue
            labels = connected_components(problem.graph.n_nodes, problem.graph.edges[alike])
            edges = QuotientEdges(problem, labels, 0, 1)
            if len(edges.heads) <= self._settings.shrinkage * problem.graph.n_edges:
                coarse = Coarsening(problem, self._limits.rtol).coarser(labels, edges)
                return Clusters(labels, edges, coarse)
        return None

    def _solved(self, clusters: Clusters) -> ClusterPoint:
        """Return the solution of the clusters' problem."""
        problem = clusters.problem
        n = problem.graph.n_nodes
        if not problem.graph.n_edges:
            nothing = np.zeros((0, problem.dim))
            return ClusterPoint(problem.losses.minimizer(n), nothing, np.zeros(0, dtype=bool))
        found = self._iterated(clusters)
        return ClusterPoint.of(problem, found.w, found.u, self._settings.no_slack)

    def _iterated(self, clusters: Clusters) -> Incumbent:
        problem, limits = clusters.problem, self._limits
        inner = self._inner_limits(clusters)
        iteration = PrimalDual(problem, weight=self._weight)
        z = grouped(self._start.w, clusters.labels) / np.bincount(clusters.labels)[:, None]
        iteration.warm = True
        iteration.move_to(z, clusters.edges.joined(self._start.u))
        iteration.gap_ratio = checked_ratio(self._info.get(RATIO))
        method = Polished(problem, iteration, Coarsening(problem, inner.rtol))
        method.begin(inner, np.inf)
        incumbent = Incumbent(problem)
        while True:
            method.run(method.stride)
            over = method.n_iter >= inner.max_iter or limits.expired
            if method.due() or over:
                found = method.proposal()
                incumbent.update(found.w, found.u)
                method.learn(inner.relative(incumbent.gap, incumbent.value))
                if over or inner.relative(incumbent.gap, incumbent.value) <= inner.rtol:
                    break
        _LOG.debug("%d clusters: %d iterations", problem.graph.n_nodes, method.n_iter)
        self._info[WEIGHT], self._info[RATIO] = iteration.weight, iteration.gap_ratio
        return incumbent

    @property
    def _weight(self) -> float:
        """Primal weight that the clusters' problem begins with."""
        given = self._info.get(WEIGHT, self._info.get("primal_weight"))
        return given if isinstance(given, float) and 0.0 < given < np.inf else 1.0

    def _inner_limits(self, clusters: Clusters) -> Limits:
        """Ask of the clusters a share of the gap; their objective lacks what is constant."""
        limits, settings = self._limits, self._settings
        floor = 1.0 if limits.atol is None else limits.atol / limits.rtol
        size = max(floor, abs(self._start.value))
        goal = settings.accuracy * limits.rtol
        # rtol is a formality: the absolute part decides.
        return Limits(goal, settings.iterations, limits.seconds_left, atol=goal * size)

    def due(self) -> bool:
        """Say whether there is something to check."""
        return self._pair is not None

    def proposal(self, final: bool = False) -> Proposal | None:
        """Return the pair that was found; in the end the start if there is none."""
        if self._pair is not None:
            return Proposal(*self._pair, np.inf, exact=True)
        return Proposal(self._start.w, self._start.u, np.inf) if final else None

    def learn(self, rel_gap: float) -> None:
        """Count failures in turn."""
        self._info[FAILED] = 0 if rel_gap <= self._limits.rtol else self._info[FAILED] + 1

    def info(self) -> dict[str, Any]:
        """Return what the next solution needs: of the start, and of the clusters' problem."""
        return self._info


def stretched(problem: GTVProblem, start: Solution) -> FloatArray:
    """Return the flow of a start, scaled to the larger lambda where nobody has done so."""
    congestion = float(np.max(problem.penalty.dual_norm(start.u) / problem.capacities))
    most = problem.lam / start.info[LAM]
    return start.u * min(most, 1.0 / congestion) if 0.0 < congestion < 1.0 else start.u


def kept(start: Solution) -> dict[str, Any]:
    """Return what a start knows that waits for values of lambda after the next one."""
    return {name: start.info[name] for name in _KEPT if name in start.info}


def _count(given: object) -> int:
    """Return a number of failures that may come from a file."""
    return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else 0
