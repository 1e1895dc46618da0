"""Improve iterates by way of coarser problems, and balance the flow that goes with them.

A few hundred iterations tell for most edges that their nodes share their parameters: their flow has
much of its capacity left. Groups of nodes along such edges become the nodes of a coarser problem of
the same kind, with added losses and joined edges, on which iterations cost a fraction and carry
further. They in turn lead to a coarser problem, and so on; the last one is contracted to its
clusters and solved (`gtvcvx.solvers.polishing._contraction`). What comes back is the solution
itself where the groups were right, and a better point where they were not.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.graph import EmpiricalGraph, connected_components
from gtvcvx.losses import SquaredLoss
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver._run import Polished
from gtvcvx.solvers.polishing._cluster_flow import balance
from gtvcvx.solvers.polishing._contraction import Candidate, Contraction
from gtvcvx.solvers.polishing._quotient_graph import JoinedEdges, blocks
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual

# Nodes are grouped over edges that have this share of their capacity left.
SAFE_SLACKS = 0.8, 0.05
# A coarser problem must have at most this share of the edges; one with fewer edges than this is
# contracted at once.
SHRINKAGE, LEAST_EDGES = 0.5, 20_000
# Iterations on a coarser problem, in chunks, as long as they take less than this share of what is
# allowed; and what finding the groups costs.
ITERATIONS, CHUNK, ITERATION_SHARE, OVERHEAD = 800, 50, 0.5, 50
# Edges of a coarser problem whose jump is above this share of the spread, and whose flow has less
# than this share of the capacity left, keep their flow.
NO_JUMP, NO_SLACK = 1e-8, 1e-6
# Directions in which a group's losses are flatter than this share of their largest curvature are
# taken as flat.
FLAT = 1e-13


class Coarsening:
    """Polishes iterates of one problem.

    Parameters
    ----------
    problem : GTVProblem
        With quadratic losses, and a penalty to which contraction applies.
    rtol : float
        Relative gap that is asked for.
    """

    def __init__(self, problem: GTVProblem, rtol: float) -> None:
        self._problem, self._rtol = problem, rtol
        self._contraction = Contraction(problem)
        self._blocks = blocks(problem)

    def polish(
        self,
        w: FloatArray,
        u: FloatArray,
        allowed: float = np.inf,
        seconds: float = np.inf,
        weight: float = 1.0,
    ) -> Polished | None:
        """Improve on w (n, d) and u (m, d) at the cost of as many iterations as are allowed.

        None if it would cost more, or takes more seconds, or if the solver fails.
        """
        end = time.perf_counter() + seconds
        found = self.solve(w, u, allowed, seconds, weight)
        if found is None:
            return None
        balanced = balance(self._problem, self._blocks, *found[:3], self._rtol, end)
        self._contraction.cut(balanced.excess)
        capacities = self._problem.capacities
        share = float(np.sum(balanced.excess * capacities) / np.sum(capacities))
        cost = found.cost + balanced.cost
        return Polished(found.w, balanced.on, balanced.inside, share, cost)

    def solve(
        self, w: FloatArray, u: FloatArray, allowed: float, seconds: float, weight: float
    ) -> Candidate | None:
        """Return a better point and flow, by way of a coarser problem if that is much smaller."""
        problem, end = self._problem, time.perf_counter() + seconds
        if problem.graph.n_edges < LEAST_EDGES:
            return self._contraction.solve(w, u, allowed, seconds)
        slack = problem.capacities - problem.penalty.dual_norm(u)
        for share in SAFE_SLACKS:
            alike = slack > share * problem.capacities
            labels = connected_components(problem.graph.n_nodes, problem.graph.edges[alike])
            edges = JoinedEdges(problem, labels, 0, 1)
            if len(edges.heads) <= SHRINKAGE * problem.graph.n_edges:
                break
        else:
            return self._contraction.solve(w, u, allowed, seconds)
        coarse = self._coarser(labels, edges)
        z = _grouped(w, labels) / np.bincount(labels)[:, None]
        flow = edges.joined(u)
        method = PrimalDual(coarse)
        method.restart(z, flow, weight)
        # What an iteration here costs in iterations of the problem.
        relative = max(coarse.graph.n_edges, 1) / problem.graph.n_edges
        n_iter = int(min(ITERATIONS, ITERATION_SHARE * allowed / relative))
        while method.n_iter < n_iter and time.perf_counter() < end:
            method.run(min(CHUNK, n_iter - method.n_iter))
        found = Coarsening(coarse, self._rtol).solve(
            method.w,
            method.u,
            allowed / relative - method.n_iter,
            end - time.perf_counter(),
            method.weight,
        )
        if found is None:
            settled = self._settled(coarse, method.w, method.u)
            found = Candidate(method.w, method.u, settled, 0.0)
        # What is missing from the balance of whole groups is cheaper to bring there from here.
        balanced = balance(coarse, self._blocks, *found[:3], self._rtol, end)
        cost = OVERHEAD + relative * (method.n_iter + found.cost + balanced.cost)
        found = found._replace(flow=balanced.inside, cost=cost)
        return self._refined(found, u, flow, labels, edges)

    def _coarser(self, labels: IntArray, edges: JoinedEdges) -> GTVProblem:
        """Return the problem on groups; their losses, added up, are squared errors of d rows."""
        problem, d = self._problem, self._problem.dim
        hessian, linear = self._contraction.losses
        total = _grouped(hessian.reshape(len(labels), d * d), labels).reshape(-1, d, d)
        curvature, axes = np.linalg.eigh(total)
        curved = curvature > FLAT * np.maximum(curvature[:, -1:], 0.0)
        # (1/d) ||y - X z||^2 has the Hessian (2/d) X^T X.
        root = np.sqrt(np.where(curved, 0.5 * d * curvature, 0.0))
        along = np.einsum("kij,ki->kj", axes, _grouped(linear, labels))
        y = np.where(curved, 0.5 * d * along / np.where(curved, root, 1.0), 0.0)
        X = root[:, :, None] * axes.transpose(0, 2, 1)
        ends = np.column_stack([edges.heads[:, 0], edges.tails[:, 0]])
        graph = EmpiricalGraph(len(total), ends, edges.capacities / problem.lam)
        losses = SquaredLoss.stack(X, y, curved[:, -1])
        return GTVProblem(graph, losses, problem.penalty, problem.lam)

    def _settled(self, problem: GTVProblem, w: FloatArray, u: FloatArray) -> list[BoolArray]:
        """For each block the edges (m,) over which w jumps, and u is at capacity."""
        jumps, settled = np.abs(problem.differences(w)), []
        for block in self._blocks:
            moves = jumps[:, block].max(axis=1) > NO_JUMP * np.ptp(w[:, block], axis=0).max()
            left = problem.capacities - problem.penalty.dual_norm(u[:, block])
            settled.append(moves & (left <= NO_SLACK * problem.capacities))
        return settled

    def _refined(
        self,
        found: Candidate,
        u: FloatArray,
        flow: FloatArray,
        labels: IntArray,
        edges: JoinedEdges,
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


def _grouped(rows: FloatArray, labels: IntArray) -> FloatArray:
    """Add up rows (n, p) of the nodes of each group."""
    n = len(labels)
    members = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(int(labels.max()) + 1, n))
    return np.asarray(members @ rows)
