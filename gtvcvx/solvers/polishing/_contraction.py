"""Solve exactly on the clusters that an iterate has found, and find the flow inside them.

First-order methods find which nodes share their parameters long before the parameters and the
flow are accurate; worst are small unlabelled clusters between others, held by the flow across
their boundaries alone. So: contract every cluster to one node, solve the small problem that is
left by a conic solver, and keep its flow across the boundaries. Edges that turn out to be above
capacity when the flow inside the clusters is found are cut the next time: too few nodes in a
cluster cost time, too many the optimum.

Everything is done per block of coordinates in which clusters form: all of them for l2, each one
alone for l1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx._norms import row_norm_inf
from gtvcvx._pieces import rowwise
from gtvcvx.graph import connected_components, differences
from gtvcvx.losses import QuadraticForm, ScalarForm
from gtvcvx.losses.batched._base import ThinForm
from gtvcvx.losses.batched._thin import linear_of
from gtvcvx.penalties import CompiledForm
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Requirement
from gtvcvx.solvers.driver._scalar import scalar_form
from gtvcvx.solvers.interior_point._prices import quadratic_iteration
from gtvcvx.solvers.polishing._cluster_problem import ClusterProblem
from gtvcvx.solvers.polishing._quotient_graph import QuotientEdges, blocks
from gtvcvx.solvers.primal_dual._proximal_maps import thin_form


@dataclass(frozen=True)
class ContractionSettings:
    """What counts as one cluster, and what contracting costs.

    Attributes
    ----------
    fused_slack, fused_jump : float
        Nodes are taken as fused over an edge that has this share of its capacity left, and whose
        jump is at most this share of the spread of w: too few nodes in a cluster cost time, too
        many the optimum.
    no_jump : float
        In the solution of the contracted problem smaller jumps, relative to the spread, are none:
        the conic solver's accuracy, with some room.
    cut : float
        Edges this far above their capacity inside a cluster are cut.
    edge_cost : float
        The conic solver takes about as long for each edge between clusters, times its squared
        width, as so many iterations for each edge of the problem.
    """

    fused_slack: float = 1e-3
    fused_jump: float = 1e-2
    no_jump: float = 1e-8
    cut: float = 1e-4
    edge_cost: float = 2000


DEFAULTS = ContractionSettings()


def has_edges(problem: GTVProblem) -> str | None:
    """Ask for an edge to contract."""
    return None if problem.graph.n_edges else "a graph with edges"


def capacities_split(problem: GTVProblem) -> str | None:
    """Ask for a penalty whose flow splits between parallel edges by their capacities.

    With linf, where the largest coordinates of a jump tie, that is a start: there the split is
    found with the flow inside the clusters.
    """
    known = problem.penalty.compiled_form in (CompiledForm.L1, CompiledForm.L2, CompiledForm.LINF)
    return None if known else "the penalty 'l1', 'l2' or 'linf'"


def quadratic_losses(problem: GTVProblem) -> str | None:
    """Ask for losses that add up to quadratic ones."""
    return None if problem.losses.is_quadratic else "quadratic losses"


class Candidate(NamedTuple):
    """A better point, and a flow that is settled where the point jumps."""

    w: FloatArray  # (n, d)
    flow: FloatArray  # (m, d)
    jumping: list[BoolArray]  # (m,) for each block
    cost: float  # how many iterations would have taken about as long


class Contraction:
    """Contracts the clusters of iterates of one problem.

    Parameters
    ----------
    problem : GTVProblem
    settings : ContractionSettings
    """

    #: What it needs of a problem.
    requires: ClassVar[tuple[Requirement, ...]] = (has_edges, capacities_split, quadratic_losses)

    def __init__(self, problem: GTVProblem, settings: ContractionSettings = DEFAULTS) -> None:
        self._problem, self.settings = problem, settings
        self._cut = np.zeros(problem.graph.n_edges, dtype=bool)
        self._blocks = blocks(problem)

    @property
    def scalar(self) -> ScalarForm | None:
        """Second derivatives and b (n, d), where losses do not couple coordinates."""
        return scalar_form(self._problem)

    @property
    def thin(self) -> ThinForm | None:
        """Losses as diagonals and rows, where that takes less than their Hessians."""
        return thin_form(self._problem)

    @cached_property
    def losses(self) -> QuadraticForm:
        """Q (n, d, d) and b (n, d) of the losses ``(1/2) w^T Q_i w - b_i^T w``."""
        losses = self._problem.losses.quadratic(self._problem.graph.n_nodes)
        assert losses is not None, "only problems with quadratic losses are contracted"
        return losses

    def solve(
        self, w: FloatArray, u: FloatArray, allowed: float, seconds: float
    ) -> Candidate | None:
        """Improve on w (n, d) and u (m, d) at the cost of as many iterations as are allowed.

        None if it would cost more, or takes more seconds, or if the solver fails.
        """
        fused = [mask & ~self._cut for mask in fused_edges(self._problem, w, u, self.settings)]
        contracted = Contracted(self._problem, self._blocks, fused, self.settings.no_jump)
        width = max(len(self._blocks[0]), 2)
        cost = (
            self.settings.edge_cost
            * width**2
            * contracted.n_edges
            / max(self._problem.graph.n_edges, 1)
        )
        if cost > allowed:
            return None
        most = allowed * quadratic_iteration(self._problem)
        answer = self._cluster_problem(contracted).solve(seconds, most)
        if answer is None:
            return None
        z, flows = answer
        flow = u.copy()
        point = z[contracted.variables]
        jumping = contracted.put_flows(point, flows, flow)
        return Candidate(point, flow, jumping, cost)

    def _cluster_problem(self, contracted: Contracted) -> ClusterProblem:
        thin = self.thin if self.scalar is None else None
        if thin is not None:
            return contracted.thin_problem(thin)
        return contracted.problem(*(self.losses if self.scalar is None else self.scalar))

    def cut(self, overload: FloatArray) -> None:
        """Take edges far above their capacity, by this share of it (m,), for jumps next time."""
        self._cut = overload > self.settings.cut


def fused_edges(
    problem: GTVProblem, w: FloatArray, u: FloatArray, settings: ContractionSettings
) -> list[BoolArray]:
    """Return for each block the edges (m,) over which w (n, d) and u (m, d) look fused."""
    out = []
    for block in blocks(problem):
        jumps, loads = _jumps_and_loads(problem, w, u, block)
        spread, slack = float(np.ptp(w[:, block], axis=0).max()), problem.capacities - loads
        free = slack > settings.fused_slack * problem.capacities
        out.append(free & (jumps <= settings.fused_jump * spread))
    return out


def _jumps_and_loads(
    problem: GTVProblem, w: FloatArray, u: FloatArray, block: list[int]
) -> tuple[FloatArray, FloatArray]:
    """Return the largest jumps over edges (m,), and dual norms of flows (m,), of a block."""
    edges, x, shape = problem.graph.edges, w[:, block], (len(u), len(block))
    jumps = rowwise(lambda at: row_norm_inf(differences(edges[at], x)), *shape)
    return jumps, rowwise(lambda at: problem.penalty.dual_norm(u[at][:, block]), *shape)


class Contracted:
    """The variables and edges that are left when nodes are fused over some edges per block."""

    def __init__(
        self,
        problem: GTVProblem,
        blocks: list[list[int]],
        fused: list[BoolArray],
        no_jump: float,
    ) -> None:
        graph, self._blocks, self._no_jump = problem.graph, blocks, no_jump
        self._norm = problem.penalty.name
        self.variables = np.empty((graph.n_nodes, problem.dim), np.int64)
        self.n_variables = 0
        self.edges: list[QuotientEdges] = []
        for block, mask in zip(blocks, fused, strict=True):
            labels = connected_components(graph.n_nodes, graph.edges[mask])
            for k, coordinate in enumerate(block):
                self.variables[:, coordinate] = self.n_variables + labels * len(block) + k
            self.edges.append(QuotientEdges(problem, labels, self.n_variables, len(block)))
            self.n_variables += (int(labels.max()) + 1) * len(block)

    @property
    def n_edges(self) -> int:
        """Number of reduced edges of all blocks."""
        return sum(len(edges.heads) for edges in self.edges)

    def problem(self, hessian: FloatArray, linear: FloatArray) -> ClusterProblem:
        """Add up losses, their Hessians (n, d, d) or the diagonals (n, d), and capacities."""
        rows = columns = self.variables
        if hessian.ndim == 3:
            rows = np.broadcast_to(rows[:, :, None], hessian.shape)
            columns = np.broadcast_to(columns[:, None, :], hessian.shape)
        kept = (hessian != 0.0) & (rows <= columns)
        size = self.n_variables
        upper = sp.csc_array((hessian[kept], (rows[kept], columns[kept])), shape=(size, size))
        total = np.bincount(self.variables.ravel(), linear.ravel(), size).astype(np.float64)
        return ClusterProblem(
            upper,
            total,
            np.concatenate([e.heads for e in self.edges]),
            np.concatenate([e.tails for e in self.edges]),
            np.concatenate([e.capacities for e in self.edges]),
            self._norm,
        )

    def thin_problem(self, form: ThinForm) -> ClusterProblem:
        """Do the same with diagonals and rows: the variables of a node's rows are its own."""
        owner = np.repeat(np.arange(len(form.own)), np.diff(form.indptr))
        columns, (N, d) = self.variables[owner], form.rows.shape
        indptr = np.arange(N + 1) * d
        shape = N, self.n_variables
        rows = sp.csr_array((form.rows.ravel(), columns.ravel(), indptr), shape=shape)
        return self.problem(form.diagonal, linear_of(form))._replace(rows=rows)

    def put_flows(self, w: FloatArray, flows: FloatArray, u: FloatArray) -> list[BoolArray]:
        """Write the boundary flows to u (m, d); say per block over which edges w (n, d) jumps."""
        jumping, first = [], 0
        z = np.empty(self.n_variables)
        z[self.variables] = w
        for block, edges in zip(self._blocks, self.edges, strict=True):
            last = first + len(edges.heads)
            jumps = np.abs(z[edges.heads] - z[edges.tails]).max(axis=1, initial=0.0)
            spread = float(np.ptp(w[:, block], axis=0).max())
            u[np.ix_(edges.between, np.array(block))] = edges.split(flows[first:last])
            mask = np.zeros(len(u), dtype=bool)
            mask[edges.between] = (jumps > self._no_jump * spread)[edges.reduced]
            jumping.append(mask)
            first = last
        return jumping
