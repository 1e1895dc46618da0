"""Flow conservation: where the losses give a flow no room, and the projection on it."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import norm
from gtvcvx.compiled import _conjugate_gradients as conjugate_gradients
from gtvcvx.compiled import _projections as projection_kernels
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.penalties import Penalty

EPS = float(np.finfo(np.float64).eps)
# One run of conjugate gradients is not asked for more than this; further digits come from
# further runs on what is left, which rounding does not disturb.
REFINEMENT = 1e-6
MAX_REFINEMENTS = 5
# Alternating projections need no accurate ones.
ALTERNATING = 1e-2


class NullDirections:
    """Per node, the orthogonal projector T_i on the directions in which flow is conserved.

    They are the directions in which L_i^* has no room: all of R^d at unlabelled nodes, the null
    space of X_i at nodes with squared error, none at nodes with a point. Grounded, they are those
    in which L_i^* has no or only some room, see `gtvcvx.losses.DualDomain`.
    """

    def __init__(self, losses: StackedLoss, n_nodes: int, grounded: bool = False) -> None:
        self.full = np.zeros(n_nodes)
        nodes, projectors = [], []
        for at, batch in losses.parts:
            domain = batch.domain() if grounded else None
            projector = batch.null_projector() if domain is None else domain.projector
            if isinstance(projector, float):
                self.full[at] = projector
            else:
                some = projector.any(axis=(1, 2))
                nodes.append(at[some])
                projectors.append(projector[some])
        d = losses.dim
        self.partial = np.concatenate([*nodes, np.empty(0, np.int64)]).astype(np.int64)
        self.projectors = np.concatenate([*projectors, np.empty((0, d, d))])
        self.any = bool(self.full.any() or len(self.partial))

    def apply(self, x: FloatArray) -> FloatArray:
        """Return T_i x_i for all rows of x (n, d)."""
        once, twice = np.empty_like(x), np.empty_like(x)
        conjugate_gradients.project_nodes(x, once, self.full, self.partial, self.projectors)
        # What rounding leaves outside the range of T would be amplified by conjugate gradients.
        conjugate_gradients.project_nodes(once, twice, self.full, self.partial, self.projectors)
        return twice


class FlowConservation:
    """The linear constraint ``T_i (D^T u)_i = 0`` on flows u, and the projection on it.

    The projection of u in the norm ``sum_e ||u_e||^2 / c_e``, with conductances c, is
    ``u - C D T x`` with x from ``T D^T C D T x = T D^T u``, solved by conjugate gradients. For a
    singular quadratic penalty all flows stay in range(Q).

    Parameters
    ----------
    graph, losses, penalty
        Of the problem.
    """

    def __init__(self, graph: EmpiricalGraph, losses: StackedLoss, penalty: Penalty) -> None:
        self._penalty = penalty
        self._null = NullDirections(losses, graph.n_nodes)
        self._incidence, self._divergence = graph.incidence, graph.divergence
        self._starts, self._tails = graph.by_head
        self._ends = graph.edges.ravel()
        self._largest_degree = max(int(graph.degrees.max()), 1)
        # The projector R as a matrix; most penalties allow all flows and need none.
        allowed = penalty.span_projector(losses.dim)
        self._allowed = np.empty((0, 0)) if allowed is None else allowed

    @property
    def trivial(self) -> bool:
        """Whether every flow satisfies the constraint."""
        return not self._null.any

    def excess(self, u: FloatArray) -> FloatArray:
        """Return ``T_i (D^T u)_i``, shape (n, d): what violates the constraint."""
        return self._null.apply(self._divergence @ u)

    def project(
        self, u: FloatArray, rtol: float, conductance: FloatArray | None = None
    ) -> FloatArray:
        """Project u (m, d) until the excess is at most rtol times that of u, or rounding.

        Edges of small conductance (m,), in (0, 1] with default 1, keep more of their flow.
        """
        u = self._admissible(u)
        largest = float(np.abs(u).max(initial=0.0))
        if self.trivial or largest == 0.0:
            return u
        # Squares of very small or large flows would leave the range of double precision. A power
        # of two changes no bit of a flow that is conserved already.
        exponent = int(np.frexp(largest)[1])
        c = np.ones(len(u)) if conductance is None else conductance
        return np.ldexp(self._project_unit(np.ldexp(u, -exponent), rtol, c), exponent)

    def alternate(
        self,
        u: FloatArray,
        capacities: FloatArray,
        conductance: FloatArray | None,
        shrink: float,
        *,
        sweeps: int,
        relaxation: float,
    ) -> FloatArray:
        """Over-relaxed alternating projections of u (m, d) on conservation and capacities (m,).

        For norms that the compiled kernels know. They aim inside the capacities by the share
        ``shrink``, and end when a projection on conservation stays within capacity.
        """
        exponent = int(np.frexp(float(np.abs(u).max(initial=0.0)))[1])
        u = np.ldexp(u, -exponent)
        with np.errstate(over="ignore", under="ignore"):
            target = np.ldexp((1.0 - shrink) * capacities, -exponent)
        target = np.maximum(target, np.finfo(np.float64).tiny)
        c = np.ones(len(u)) if conductance is None else conductance
        on, missing, degrees = np.empty_like(u), -(self._divergence @ u), self._conductances(c)
        for _ in range(sweeps):
            leak = self._null.apply(missing)
            goal = max(ALTERNATING * norm(leak), self._floor(u))
            largest = projection_kernels.sweep(
                (0,) * u.shape[1],
                self._penalty.kernel_code,
                self._starts,
                self._tails,
                target,
                c,
                self._potential(leak, goal, c, degrees),
                relaxation - 1.0,
                u,
                on,
                missing,
            )
            if largest <= shrink:
                return np.ldexp(on, exponent)
        return np.ldexp(u, exponent)

    def _floor(self, u: FloatArray) -> float:
        """Excess that is rounding: conjugate gradients would only amplify it."""
        return 4.0 * EPS * norm(u) * float(np.sqrt(self._largest_degree))

    def _project_unit(self, u: FloatArray, rtol: float, conductance: FloatArray) -> FloatArray:
        excess = self.excess(u)
        size = norm(excess)
        goal = max(rtol * size, self._floor(u))
        degrees = self._conductances(conductance)
        for _ in range(MAX_REFINEMENTS):
            if size <= goal:
                break
            accuracy = max(REFINEMENT * size, 0.5 * goal)
            candidate = u - self._correction(excess, accuracy, conductance, degrees)
            excess = self.excess(candidate)
            left = norm(excess)
            if not left < size:
                break
            u, size = candidate, left
        return u

    def _correction(
        self, excess: FloatArray, goal: float, conductance: FloatArray, degrees: FloatArray
    ) -> FloatArray:
        """Return the least change of flows that removes the excess, up to a norm of goal."""
        potential = self._potential(excess, goal, conductance, degrees)
        return self._admissible(conductance[:, None] * (self._incidence @ potential))

    def _conductances(self, conductance: FloatArray) -> FloatArray:
        """Add up conductances (m,) around each node, (n,); 1 where there are none."""
        n = len(self._null.full)
        degrees = np.bincount(self._ends, np.repeat(conductance, 2), n)
        return np.where(degrees > 0.0, degrees, 1.0)

    def _potential(
        self, excess: FloatArray, goal: float, conductance: FloatArray, degrees: FloatArray
    ) -> FloatArray:
        """Return x (n, d) such that the flow c_e (x_head - x_tail) makes up the excess."""
        n, d = excess.shape
        return conjugate_gradients.solve(
            (0,) * d,
            excess,
            goal,
            10 * n + 100,
            self._starts,
            self._tails,
            conductance,
            degrees,
            self._null.full,
            self._null.partial,
            self._null.projectors,
            self._allowed,
        )

    def _admissible(self, rows: FloatArray) -> FloatArray:
        """Project on the subspace of flows that the penalty allows: range(Q) of a quadratic."""
        return rows @ self._allowed if len(self._allowed) else rows
