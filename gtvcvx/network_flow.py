"""The dual of GTV minimization: a vector-valued network-flow problem."""

from __future__ import annotations

from functools import cached_property

from gtvcvx._lazy import cp
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.penalties import Penalty


class NetworkFlowProblem:
    r"""Dual of GTV minimization ([GTV] (24), (27), (30)).

    .. math::
        \max_u -\sum_i L_i^*(-(D^T u)_i) - \sum_e \lambda A_e \phi^*(u_e / (\lambda A_e))

    Flow u_e in R^d runs along each edge, node i injects -(D^T u)_i at the convex cost L_i^*. For
    a norm phi the edge costs are capacities: the dual norm of u_e is at most lambda A_e.

    Parameters
    ----------
    graph, losses, penalty, lam
        Those of the primal problem; `GTVProblem.dual` passes them.

    Attributes
    ----------
    flow : cvxpy.Variable, shape (m, d)
        The flow u, with the sign of `Solution.u`; shape (1, d) if there is no edge.
    injection : cvxpy.Variable, shape (n, d)
        The injections s_i = -(D^T u)_i.
    conservation : cvxpy.Constraint
        ``D^T u + s == 0``. Its dual value is -w: the potentials of the flow are the parameter
        vectors of the primal problem.
    """

    def __init__(
        self, graph: EmpiricalGraph, losses: StackedLoss, penalty: Penalty, lam: float
    ) -> None:
        self._graph, self._losses, self._penalty, self._lam = graph, losses, penalty, lam
        self.injection = cp.Variable((graph.n_nodes, losses.dim), name="s")
        # CVXPY has no empty variables: without edges there is one row, which nothing depends on.
        self.flow = cp.Variable((max(graph.n_edges, 1), losses.dim), name="u")
        balance = graph.divergence @ self.flow if graph.n_edges else 0.0
        self.conservation = balance + self.injection == 0

    def __repr__(self) -> str:
        shape = f"n_nodes={self._graph.n_nodes}, n_edges={self._graph.n_edges}"
        return (
            f"NetworkFlowProblem({shape}, dim={self._losses.dim}, "
            f"penalty={self._penalty.name!r}, lam={self._lam})"
        )

    @cached_property
    def _problem(self) -> cp.Problem:
        lam = cp.Parameter(pos=True, name="lam", value=self._lam)
        cost, constraints = self._losses.conjugate_expression(self.injection)
        if self._graph.n_edges:
            edge_cost, capacity = self._penalty.dual_expression(self.flow, self._graph.weights, lam)
            cost, constraints = cost + edge_cost, constraints + capacity
        else:
            cost = cost + lam * cp.sum(0.0 * self.flow)
        return cp.Problem(cp.Maximize(-cost), [self.conservation, *constraints])

    def cvxpy(self) -> cp.Problem:
        """Return the problem in CVXPY, vectorized and DPP; its parameter "lam" holds lambda."""
        return self._problem
