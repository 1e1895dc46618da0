"""Renumber nodes so that neighbours lie near each other in memory."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution


class Ordering:
    """A problem with its nodes in reverse Cuthill-McKee order, and the way back.

    Attributes
    ----------
    problem : GTVProblem
        The renumbered problem.
    """

    def __init__(self, problem: GTVProblem) -> None:
        graph = problem.graph
        adjacency = abs(graph.divergence) @ abs(graph.incidence)
        order = sp.csgraph.reverse_cuthill_mckee(adjacency.tocsr(), symmetric_mode=True)
        self._order = order.astype(np.int64)
        self._place = np.empty_like(self._order)
        self._place[self._order] = np.arange(graph.n_nodes)
        head, tail = self._place[graph.edges].T
        # Edge e of the problem is edge _edge[e] of the renumbered one, with its flow reversed
        # where head and tail have changed places.
        low, high = np.minimum(head, tail), np.maximum(head, tail)
        sorting = np.argsort(low * graph.n_nodes + high)
        self._edge = np.empty_like(sorting)
        self._edge[sorting] = np.arange(len(sorting))
        self._sign = np.where(head < tail, 1.0, -1.0)
        ends = np.column_stack([low[sorting], high[sorting]])
        moved = EmpiricalGraph(graph.n_nodes, ends, graph.weights[sorting])
        parts = [(self._place[nodes], batch) for nodes, batch in problem.losses.parts]
        losses = StackedLoss(parts, problem.dim)
        self.problem = GTVProblem(moved, losses, problem.penalty, problem.lam)

    @classmethod
    def of(cls, problem: GTVProblem) -> Ordering:
        """Return the ordering of a problem, made once for all values of lambda."""
        ordering = copy.copy(problem.cached("ordering", lambda: cls(problem)))
        ordering.problem = ordering.problem.with_lam(problem.lam)
        return ordering

    def apply_w(self, w: FloatArray) -> FloatArray:
        """Rows of w (n, d) in the new order."""
        return w[self._order]

    def apply_u(self, u: FloatArray) -> FloatArray:
        """Flows u (m, d) along the new edges."""
        out = np.empty_like(u)
        out[self._edge] = u * self._sign[:, None]
        return out

    def restore_w(self, w: FloatArray) -> FloatArray:
        """Undo `apply_w`."""
        return w[self._place]

    def restore_u(self, u: FloatArray) -> FloatArray:
        """Undo `apply_u`."""
        out = u[self._edge]
        out *= self._sign[:, None]
        return out

    def apply(self, solution: Solution) -> Solution:
        """Return a solution of the original problem as one of the renumbered problem."""
        return dataclasses.replace(solution, w=self.apply_w(solution.w), u=self.apply_u(solution.u))

    def restore(self, solution: Solution, problem: GTVProblem) -> Solution:
        """Return a solution of the renumbered problem as one of the original problem."""
        return dataclasses.replace(
            solution,
            w=self.restore_w(solution.w),
            u=self.restore_u(solution.u),
            nodes=problem.graph.nodes,
            node_gaps=solution.node_gaps[self._place],
            edge_gaps=solution.edge_gaps[self._edge],
            edges=problem.graph.edges,
            slack=solution.slack[self._edge],
        )
