"""Improve iterates by way of coarser problems, and route the flow that goes with them.

A few hundred iterations tell for most edges that their nodes share their parameters: their flow has
much of its capacity left. Groups of nodes along such edges become the nodes of a coarser problem of
the same kind, with added losses and joined edges, on which iterations cost a fraction and carry
further. They in turn lead to a coarser problem, and so on; the last one is contracted to its
clusters and solved (`gtvcvx.solvers.polishing._contraction`). What comes back is the solution
itself where the groups were right, and a better point where they were not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.graph import EmpiricalGraph, connected_components
from gtvcvx.losses import SquaredLoss, StackedLoss
from gtvcvx.losses.batched._point import BatchedPoint
from gtvcvx.losses.batched._rows import stacked_thin
from gtvcvx.losses.batched._thin import grouped_form
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.polishing._cluster_flow import cluster_flow
from gtvcvx.solvers.polishing._contraction import Candidate, Contraction
from gtvcvx.solvers.polishing._policy import PolishedPair
from gtvcvx.solvers.polishing._quotient_graph import QuotientEdges, blocks
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual


@dataclass(frozen=True)
class CoarseningSettings:
    """When a coarser problem is made, and how long it is iterated on.

    Attributes
    ----------
    safe_slacks : tuple of float
        Nodes are grouped over edges that have this share of their capacity left: as few wrong
        groups as possible, and more of them where that leaves too many edges.
    shrinkage : float
        A coarser problem must have at most this share of the edges, or it does not pay.
    least_edges, fewest_edges : int
        A problem with fewer edges than the first is contracted at once, where that is allowed.
        Where it costs too much it is made coarser if it has as many as the second, and rtol is
        not below `rough`.
    rough : float
        Relative gap that iterations on a coarser problem lead to as a rule.
    many_edges, loose : int, float
        With as many edges, and an rtol that is not below the second, only groups over edges with
        the first of the slacks are worth a polish: where they leave too many edges, nodes form
        many small clusters, and iterations alone are through sooner.
    iterations, chunk : int
        Iterations on a coarser problem, and after how many of them the clock is looked at.
    iteration_share : float
        They take at most this share of what is allowed.
    overhead : float
        What finding the groups costs, in iterations.
    no_slack : float
        Edges of a coarser problem over which the point jumps keep their flow where it has less
        than this share of the capacity left.
    maps : float
        So many proximal maps are made on a coarser problem, one a restart; each takes the square
        of a group's rows, where an iteration takes its edges.
    flat : float
        Directions in which a group's losses are flatter than this share of their largest
        curvature are taken as flat: what is left of them is rounding.
    """

    safe_slacks: tuple[float, ...] = (0.8, 0.05)
    shrinkage: float = 0.5
    least_edges: int = 20_000
    fewest_edges: int = 5_000
    rough: float = 1e-7
    many_edges: int = 100_000
    loose: float = 5e-7
    iterations: int = 800
    chunk: int = 50
    iteration_share: float = 0.5
    overhead: float = 50
    no_slack: float = 1e-6
    maps: float = 10
    flat: float = 1e-13


DEFAULTS = CoarseningSettings()


class Coarsening:
    """Polishes iterates of one problem.

    Parameters
    ----------
    problem : GTVProblem
        That fulfils the requirements of `Contraction`.
    rtol : float
        Relative gap that is asked for.
    settings : CoarseningSettings
    """

    def __init__(
        self, problem: GTVProblem, rtol: float, settings: CoarseningSettings = DEFAULTS
    ) -> None:
        self._problem, self._rtol, self._settings = problem, rtol, settings
        self._contraction = Contraction(problem)
        self._blocks = blocks(problem)

    def polish(
        self,
        w: FloatArray,
        u: FloatArray,
        allowed: float = np.inf,
        seconds: float = np.inf,
        weight: float | list[float] = 1.0,
        enough: float = 0.0,
    ) -> PolishedPair | None:
        """Improve on w (n, d) and u (m, d) at the cost of as many iterations as are allowed.

        None if it would cost more, or takes more seconds, or if the solver fails.
        """
        end = time.perf_counter() + seconds
        settings, n_edges = self._settings, self._problem.graph.n_edges
        safe = n_edges >= settings.many_edges and self._rtol >= settings.loose
        found = self.solve(w, u, allowed, seconds, weight, enough, safe=safe)
        if found is None:
            return None
        flows = cluster_flow(self._problem, self._blocks, *found[:3], self._rtol, end)
        self._contraction.cut(flows.overload)
        capacities = self._problem.capacities
        share = float(np.sum(flows.overload * capacities) / np.sum(capacities))
        cost = found.cost + flows.cost
        return PolishedPair(found.w, flows.conserved, flows.inside, share, cost)

    def solve(
        self,
        w: FloatArray,
        u: FloatArray,
        allowed: float,
        seconds: float,
        weight: float | list[float],
        enough: float = 0.0,
        *,
        safe: bool = False,
    ) -> Candidate | None:
        """Return a better point and flow, by way of a coarser problem if that is much smaller.

        Where iterations bring the residual there to what is enough, they are all that it takes.
        Safe: by way of the safest groups, or None.
        """
        problem, end = self._problem, time.perf_counter() + seconds
        settings = self._settings
        if problem.graph.n_edges < settings.least_edges:
            found = self._contraction.solve(w, u, allowed, seconds)
            small = problem.graph.n_edges < settings.fewest_edges
            if found is not None or small or self._rtol < settings.rough:
                return found
        groups = self._groups(u, settings.safe_slacks[:1] if safe else settings.safe_slacks)
        if groups is None:
            return None if safe else self._contraction.solve(w, u, allowed, seconds)
        labels, edges = groups
        losses = self._grouped_losses(labels)
        if self._setup(losses, int(labels.max()) + 1) > settings.iteration_share * allowed:
            return self._contraction.solve(w, u, allowed, seconds)
        coarse = self.coarser(labels, edges, losses)
        z = grouped(w, labels) / np.bincount(labels)[:, None]
        flow = edges.joined(u)
        method = PrimalDual(coarse, weight=weight)
        method.move_to(z, flow)
        # What an iteration here costs in iterations of the problem.
        relative = max(coarse.graph.n_edges, 1) / problem.graph.n_edges
        n_iter = int(min(settings.iterations, settings.iteration_share * allowed / relative))
        while method.n_iter < n_iter and time.perf_counter() < end and method.residual() > enough:
            method.run(min(settings.chunk, n_iter - method.n_iter))
        found = None
        if method.residual() > enough:
            found = Coarsening(coarse, self._rtol, settings).solve(
                method.w,
                method.u,
                allowed / relative - method.n_iter,
                end - time.perf_counter(),
                method.weight,
                enough,
            )
        if found is None:
            settled = self._settled(coarse, method.w, method.u)
            found = Candidate(method.w, method.u, settled, 0.0)
        # What whole groups lack of conservation is cheaper to bring there from here.
        flows = cluster_flow(coarse, self._blocks, *found[:3], self._rtol, end)
        spent = relative * (method.n_iter + found.cost + flows.cost)
        found = found._replace(flow=flows.inside, cost=settings.overhead + spent)
        return self._refined(found, u, flow, labels, edges)

    def _groups(
        self, u: FloatArray, slacks: tuple[float, ...]
    ) -> tuple[IntArray, QuotientEdges] | None:
        """Group nodes (n,) over edges with slack, and join edges; None if too many are left."""
        problem, graph = self._problem, self._problem.graph
        slack = problem.capacities - problem.penalty.dual_norm(u)
        for share in slacks:
            alike = slack > share * problem.capacities
            labels = connected_components(graph.n_nodes, graph.edges[alike])
            edges = QuotientEdges(problem, labels, 0, 1)
            if len(edges.heads) <= self._settings.shrinkage * graph.n_edges:
                return labels, edges
        return None

    def _setup(self, losses: StackedLoss, n_groups: int) -> float:
        """Return what proximal maps with the rows of groups take, in iterations of the problem."""
        form = None if self._contraction.scalar is not None else losses.thin(n_groups)
        if form is None:
            return 0.0
        work = float(np.sum(np.diff(form.indptr) ** 2))
        return self._settings.maps * work / self._problem.graph.n_edges

    def coarser(
        self, labels: IntArray, edges: QuotientEdges, losses: StackedLoss | None = None
    ) -> GTVProblem:
        """Return the problem on groups, their losses added up."""
        problem = self._problem
        ends = np.column_stack([edges.heads[:, 0], edges.tails[:, 0]])
        graph = EmpiricalGraph(int(labels.max()) + 1, ends, edges.capacities / problem.lam)
        losses = self._grouped_losses(labels) if losses is None else losses
        return GTVProblem(graph, losses, problem.penalty, problem.lam)

    def _grouped_losses(self, labels: IntArray) -> StackedLoss:
        """Add up the losses of each group: weighted points, all rows, or as many as d."""
        form = self._contraction.scalar
        if form is not None and np.all(form.curvature == form.curvature[:, :1]):
            weight = 0.5 * grouped(form.curvature[:, :1], labels)[:, 0]
            known = np.flatnonzero(weight > 0.0)
            points = 0.5 * grouped(form.linear, labels)[known] / weight[known, None]
            parts = [(known, BatchedPoint(points, weight[known]))] if len(known) else []
            return StackedLoss(parts, self._problem.dim).completed(len(weight))
        thin = self._contraction.thin if form is None else None
        if thin is not None:
            return stacked_thin(grouped_form(thin, labels))
        d = self._problem.dim
        hessian, linear = self._contraction.losses
        total = grouped(hessian.reshape(len(labels), d * d), labels).reshape(-1, d, d)
        return quadratic_rows(total, grouped(linear, labels), self._settings.flat)

    def _settled(self, problem: GTVProblem, w: FloatArray, u: FloatArray) -> list[BoolArray]:
        """For each block the edges (m,) over which w jumps, and u is at capacity."""
        jumps, settled = np.abs(problem.differences(w)), []
        no_jump = self._contraction.settings.no_jump
        for block in self._blocks:
            moves = jumps[:, block].max(axis=1) > no_jump * np.ptp(w[:, block], axis=0).max()
            left = problem.capacities - problem.penalty.dual_norm(u[:, block])
            settled.append(moves & (left <= self._settings.no_slack * problem.capacities))
        return settled

    def _refined(
        self,
        found: Candidate,
        u: FloatArray,
        flow: FloatArray,
        labels: IntArray,
        edges: QuotientEdges,
    ) -> Candidate:
        """Bring a candidate back from the coarser problem, where u was the flow."""
        out, jumping = u.copy(), []
        # Parallel edges keep their differences, as far as the capacities allow it.
        out[edges.between] += edges.split(found.flow - flow)
        for block, jumps in zip(self._blocks, found.jumping, strict=True):
            chosen = jumps[edges.reduced]
            settled = edges.split(found.flow[:, block])[chosen]
            out[np.ix_(edges.between[chosen], np.array(block))] = settled
            mask = np.zeros(len(u), dtype=bool)
            mask[edges.between[chosen]] = True
            jumping.append(mask)
        return Candidate(found.w[labels], out, jumping, found.cost)


def quadratic_rows(
    hessian: FloatArray, linear: FloatArray, flat: float = DEFAULTS.flat
) -> StackedLoss:
    """Return ``(1/2) z^T Q_i z - b_i^T z``, up to a constant, as d squared errors a node.

    For Q (n, d, d) and b (n, d); curvatures below the share flat of the largest count as none.
    """
    d = linear.shape[1]
    curvature, axes = np.linalg.eigh(hessian)
    curved = curvature > flat * np.maximum(curvature[:, -1:], 0.0)
    # (1/d) ||y - X z||^2 has the Hessian (2/d) X^T X.
    root = np.sqrt(np.where(curved, 0.5 * d * curvature, 0.0))
    along = np.einsum("kij,ki->kj", axes, linear)
    y = np.where(curved, 0.5 * d * along / np.where(curved, root, 1.0), 0.0)
    X = root[:, :, None] * axes.transpose(0, 2, 1)
    return SquaredLoss.stack(X, y, curved[:, -1])


def grouped(rows: FloatArray, labels: IntArray) -> FloatArray:
    """Add up rows (n, p) of the nodes of each group."""
    n = len(labels)
    members = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(int(labels.max()) + 1, n))
    return np.asarray(members @ rows)
