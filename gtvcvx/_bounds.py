"""Duality gaps that are true: repair a flow until it is dual feasible, then evaluate the gap.

The gap printed in [GTV] (34) evaluates L_i^* at s_i = -(D^T u)_i, where it is infinite at every
unlabelled or rank-deficient node of every iterate. Here the flow is first

1. projected on flow conservation, ``T_i (D^T u)_i = 0`` with T_i the projector on the directions
   in which L_i^* has no room, by conjugate gradients on ``T D^T D T``;
2. moved into the capacities by over-relaxed alternating projections between 1 and the
   capacities, which keeps the bound as tight as the iterate is good;
3. scaled by the largest theta <= 1 that makes every capacity hold: 1 is homogeneous, so it stays.

What rounding leaves over is bounded to first order and subtracted from the bound; the exact
proof is the business of the package ``verify``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse.linalg as sla
from numpy.typing import NDArray

from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.penalties import Penalty

FloatArray = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
# The alternating projections aim this far inside the capacities, so that they get there in
# finitely many sweeps; it costs the same share of the total variation in the bound.
SHRINK = 1e-10
RELAXATION = 1.9
SWEEPS = 12


@dataclass(frozen=True)
class Gap:
    """Duality gap of a pair (w, u), u feasible, split over nodes and edges (spec: section 2)."""

    node: FloatArray  # (n,), each >= 0
    edge: FloatArray  # (m,), each >= 0
    rounding: float  # first-order bound on what rounding may have hidden

    @property
    def total(self) -> float:
        """Sum of the parts and of the rounding allowance."""
        return float(np.sum(self.node) + np.sum(self.edge) + self.rounding)


class NullDirections:
    """Per node, the orthogonal projector T_i on the directions in which flow is conserved."""

    def __init__(self, losses: StackedLoss, n_nodes: int) -> None:
        self.full = np.zeros(n_nodes)
        nodes, projectors = [], []
        for at, batch in losses.parts:
            projector = batch.null_projector()
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
        out = x * self.full[:, None]
        if len(self.partial):
            out[self.partial] = np.einsum("kij,kj->ki", self.projectors, x[self.partial])
        return out


class DualBounds:
    """Repair of flows and evaluation of gaps for one problem.

    Parameters
    ----------
    graph, losses, penalty
        Of the problem.
    capacities : ndarray, shape (m,)
        lambda A_e.
    """

    def __init__(
        self,
        graph: EmpiricalGraph,
        losses: StackedLoss,
        penalty: Penalty,
        capacities: FloatArray,
    ) -> None:
        self._graph, self._losses, self._penalty = graph, losses, penalty
        self._capacities = capacities
        self._null = NullDirections(losses, graph.n_nodes)
        self._incidence, self._divergence = graph.incidence, graph.divergence
        self._laplacian = (self._divergence @ self._incidence).tocsr()
        self._degrees = np.maximum(graph.degrees, 1).astype(np.float64)

    def project(self, u: FloatArray, rtol: float = 1e-3) -> FloatArray:
        """Remove from u (m, d) what violates flow conservation, to relative accuracy rtol."""
        u = self._admissible(u)
        if not self._null.any:
            return u
        excess = self._null.apply(self._divergence @ u)
        through = np.linalg.norm(u) * np.sqrt(self._degrees.max())
        if np.linalg.norm(excess) <= EPS * through:
            return u
        shape = excess.shape

        def normal(x: FloatArray) -> FloatArray:
            y = self._null.apply(x.reshape(shape))
            return self._null.apply(self._admissible(self._laplacian @ y)).ravel()

        def jacobi(x: FloatArray) -> FloatArray:
            return (x.reshape(shape) / self._degrees[:, None]).ravel()

        size = excess.size
        potential, _ = sla.cg(
            sla.LinearOperator((size, size), matvec=normal, dtype=np.float64),
            excess.ravel(),
            rtol=rtol,
            atol=0.1 * EPS * through,
            maxiter=10 * shape[0] + 100,
            M=sla.LinearOperator((size, size), matvec=jacobi, dtype=np.float64),
        )
        correction = self._incidence @ self._null.apply(potential.reshape(shape))
        return u - self._admissible(correction)

    def _admissible(self, rows: FloatArray) -> FloatArray:
        """Project on the subspace of flows that the penalty allows: range(Q) of a quadratic."""
        if self._penalty.is_norm:
            return rows
        return self._penalty.project_domain(rows, np.ones(len(rows)))

    def repair(self, u: FloatArray, sweeps: int = SWEEPS) -> FloatArray:
        """Return a dual feasible flow near u: on flow conservation and inside the capacities."""
        target = (1.0 - SHRINK) * self._capacities
        for _ in range(sweeps if self._null.any else 1):
            on = self.project(u)
            if self._penalty.scale_to_feasible(on, self._capacities) >= 1.0:
                break
            inside = self._penalty.project_domain(on, target)
            u = inside + (RELAXATION - 1.0) * (inside - on) if self._null.any else inside
        for _ in range(2):
            u = self.project(u, rtol=1e-14)
        return u * self._penalty.scale_to_feasible(u, self._capacities)

    def lower_bound(self, u: FloatArray) -> tuple[float, FloatArray]:
        """Repair u (m, d); return a lower bound on the optimum and the flow that attains it."""
        feasible = self.repair(u)
        theta = _best_scale(lambda t: self._dual(t * feasible))
        flow = theta * feasible
        base = self._losses.minimizer(self._graph.n_nodes)
        return self._dual(flow) - self._rounding(base, flow), flow

    def gap(self, w: FloatArray, u: FloatArray) -> tuple[Gap, FloatArray]:
        """Repair u (m, d); return the gap of w (n, d) against it, and the flow that gives it."""
        feasible = self.repair(u)
        theta = _best_scale(lambda t: -self.gap_of(w, t * feasible).total)
        flow = theta * feasible
        return self.gap_of(w, flow), flow

    def gap_of(self, w: FloatArray, u: FloatArray) -> Gap:
        """Return the gap of w (n, d) against a flow u (m, d) that is feasible already."""
        ends = self._graph.edges
        node = self._losses.fenchel_gap(w, -(self._divergence @ u))
        edge = self._penalty.fenchel_gap(w[ends[:, 0]] - w[ends[:, 1]], u, self._capacities)
        return Gap(node, edge, self._rounding(w, u))

    def slack(self, u: FloatArray) -> FloatArray:
        """Capacity left on each edge, (m,); zero for penalties that have no capacities."""
        if not self._penalty.is_norm:
            return np.zeros(len(u))
        return np.maximum(self._capacities - self._penalty.dual_norm(u), 0.0)

    def _dual(self, u: FloatArray) -> float:
        injection = -(self._divergence @ u)
        unlimited = np.full(len(injection), np.inf)
        cost = np.sum(self._losses.conjugate(injection, unlimited))
        capacities = self._capacities
        # Within the few ulps that scaling leaves, the flow counts as inside its capacity.
        edge = capacities * self._penalty.conjugate(u / capacities[:, None], 1e-12)
        return float(-cost - np.sum(edge))

    def _rounding(self, w: FloatArray, u: FloatArray) -> float:
        """First-order effect of rounding on the gap at (w, u).

        Flow that is not conserved to the last bit pairs with the spread of w, and every node's
        and edge's own terms carry a few units in the last place.
        """
        spread = np.linalg.norm(w - w.mean(axis=0), axis=1).max()
        leak = np.sum(np.linalg.norm(self._null.apply(self._divergence @ u), axis=1))
        ends = self._graph.edges
        jumps = np.linalg.norm(w[ends[:, 0]] - w[ends[:, 1]], axis=1)
        work = np.sum(jumps * np.linalg.norm(u, axis=1))
        size = float(np.sum(self._losses.value(w)))
        return float(2.0 * leak * spread + 4.0 * EPS * (work + abs(size)))


def _best_scale(concave: Callable[[float], float]) -> float:
    """Maximize a concave function of theta over [0, 1] by its parabola; exact for quadratics."""
    low, middle, high = concave(0.0), concave(0.5), concave(1.0)
    curvature = 2.0 * (low - 2.0 * middle + high)
    slope = high - low - curvature
    best, value = (1.0, high) if high >= low else (0.0, low)
    if np.isfinite(curvature) and curvature < 0:
        theta = min(max(-slope / (2.0 * curvature), 0.0), 1.0)
        if concave(theta) > value:
            best = theta
    return best
