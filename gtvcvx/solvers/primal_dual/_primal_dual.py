"""The default solver: Algorithm 1 over-relaxed, with restarts and an adaptive primal weight.

Every pair tau_i = gamma / deg_i, sigma_e = 1 / (2 gamma) converges [2]_; the paper takes gamma = 1.
Here the iteration restarts as in PDLP [3]_, at the current point or at the average since the last
restart, whichever moves less in one step; gamma, the primal weight, then follows what primal and
dual have moved since. The iteration is over-relaxed [4]_, fused and compiled. Where columns of
the data are in different units, every coordinate has its own weight (`_coordinates`).

References
----------
.. [1] [GTV] Algorithm 1.
.. [2] T. Pock, A. Chambolle, "Diagonal preconditioning for first order primal-dual algorithms in
   convex optimization", ICCV 2011.
.. [3] D. Applegate et al., "Practical large-scale linear programming using primal-dual hybrid
   gradient", NeurIPS 2021.
.. [4] L. Condat, "A primal-dual splitting method for convex optimization involving Lipschitzian,
   proximable and linear composite terms", JOTA 2013.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._logging import room_logger
from gtvcvx.compiled import dims_of
from gtvcvx.compiled._given_prox import complete_iteration
from gtvcvx.compiled._primal_dual import (
    EdgeStep,
    NodeStep,
    Point,
    edge_room,
    iterate,
    iterate_parallel,
)
from gtvcvx.compiled._thin import ThinStep
from gtvcvx.compiled._weighted_primal_dual import (
    WeightedEdgeStep,
    iterate_weighted,
    iterate_weighted_parallel,
)
from gtvcvx.losses import AffineProx
from gtvcvx.penalties import CompiledForm
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver._method import Iteration
from gtvcvx.solvers.driver._schedule import checked_ratio
from gtvcvx.solvers.primal_dual._coordinates import Coordinates, Weight, first_weight, one_weight
from gtvcvx.solvers.primal_dual._proximal_maps import (
    ThinProx,
    proximal_map,
    rest,
    thin_pass,
)
from gtvcvx.solvers.primal_dual._settings import DEFAULTS, PrimalDualSettings
from gtvcvx.solvers.primal_dual._threads import Pace, equal_blocks, most_threads

_LOG = room_logger("solvers.primal_dual")


class PrimalDual(Iteration):
    """Over-relaxed primal-dual iteration with restarts and an adaptive primal weight.

    Parameters
    ----------
    problem : GTVProblem
    warm_start : Solution, optional
        Start from its w, u and primal weight.
    settings : PrimalDualSettings
    """

    def __init__(
        self,
        problem: GTVProblem,
        warm_start: Solution | None = None,
        settings: PrimalDualSettings = DEFAULTS,
    ) -> None:
        graph = problem.graph
        n, d = graph.n_nodes, problem.dim
        self._problem, self._settings = problem, settings
        self.warm = warm_start is not None
        self._degrees = graph.degrees.astype(np.float64)
        self._isolated = np.flatnonzero(graph.degrees == 0)
        self._code = problem.penalty.compiled_form
        self.n_iter = 0
        self._coordinates = Coordinates.of(problem)
        # The point, and the flow, in the coordinates of the iteration.
        self._x, self._y = np.zeros((n, d)), np.zeros((graph.n_edges, d))
        averaged = self._y.size <= settings.averaged_size
        self._sum = (np.zeros_like(self._x), np.zeros_like(self._y)) if averaged else None
        self._every = settings.strides(self._x.size, self._y.size)
        # Minimizers may take longer than many iterations.
        some = len(self._isolated) > 0
        self._minimizer = (problem.losses.minimizer(n) if some else self._x)[self._isolated]
        self._dims = dims_of(d)
        self._arcs = graph.by_head
        threads = most_threads(graph.n_edges * d)
        self._blocks = equal_blocks(self._arcs.starts, threads)
        self._nodes = np.zeros((threads, n, 2 * d))
        self._room = edge_room(self._dims, threads)
        self._pace = Pace(threads)
        self._threads = 1  # of the last call: where the divergence is
        self._detours = problem.losses.detours  # of others, before
        first = first_weight(problem) if self._coordinates is None else 1.0
        known = {} if warm_start is None else warm_start.info
        self._set_weight(known.get("primal_weight", first))
        if warm_start is not None:
            self.w = problem.checked_w(warm_start.w, "warm_start.w")
            self.u = problem.checked_u(warm_start.u, "warm_start.u")
            self.gap_ratio = checked_ratio(warm_start.info.get("gap_ratio"))
        self._begin_here()

    def _begin_here(self) -> None:
        """Begin an epoch at the current point."""
        self._x[self._isolated] = self._resting
        self._reset_divergence()
        self._moved = np.inf
        self._start_epoch()

    @property
    def w(self) -> FloatArray:
        """The point (n, d)."""
        return self._x if self._coordinates is None else self._coordinates.w_of(self._x)

    @w.setter
    def w(self, w: FloatArray) -> None:
        self._x[:] = w if self._coordinates is None else self._coordinates.x_of(w)

    @property
    def u(self) -> FloatArray:
        """The flow (m, d)."""
        return self._y if self._coordinates is None else self._coordinates.u_of(self._y)

    @u.setter
    def u(self, u: FloatArray) -> None:
        self._y[:] = u if self._coordinates is None else self._coordinates.y_of(u)

    def _set_weight(self, weight: Weight) -> None:
        """Set gamma, and what depends on it: step sizes and the proximal maps."""
        degrees, coordinates = np.maximum(self._degrees, 1.0), self._coordinates
        prox: AffineProx | ThinProx | None
        if coordinates is None:
            self._weight = one_weight(weight)
            self._tau = self._weight / degrees
            self._sigma = 0.5 / self._weight
            self._resting = self._minimizer
            prox = proximal_map(self._problem, self._tau)
        else:
            coordinates.weights = coordinates.checked(weight)
            self._tau, self._sigma = 1.0 / degrees, 0.5
            self._resting = coordinates.x_of(self._minimizer)
            prox = coordinates.affine_prox(self._tau)
        if prox is not None:
            # A node without neighbours has no step size; it stays at a minimizer of its loss.
            rest(prox, self._isolated, self._resting)
        self._prox = prox

    def _start_epoch(self) -> None:
        self._epoch_start = self.n_iter
        self._epoch_residual = self._previous = self._moved
        nodes, edges = self._every
        self._origin = self._x[::nodes].copy(), self._y[::edges].copy()
        for total in self._sum or ():
            total.fill(0.0)
        self._samples = 0
        self._next_sample = self.n_iter + self._settings.sample
        self._due = False

    def _reset_divergence(self) -> None:
        """Set the divergence D^T u that goes with u, in the first thread's copy."""
        self._threads = 1
        d = len(self._dims)
        self._nodes[:, :, d:] = 0.0
        self._nodes[0, :, d:] = self._problem.graph.divergence @ self._y

    @property
    def weight(self) -> Weight:
        """Primal weight gamma, or that of each coordinate."""
        coordinates = self._coordinates
        return self._weight if coordinates is None else coordinates.weights.tolist()

    def move_to(self, w: FloatArray, u: FloatArray, weight: Weight | None = None) -> None:
        """Go on from another point, with the primal weight as it is unless it is given."""
        if weight is not None:
            self._set_weight(weight)
        self.w, self.u = w, u
        self._begin_here()

    @property
    def work(self) -> float:
        """Iterations so far, and those that would have taken as long as detours to the points."""
        if self._prox is not None:
            return float(self.n_iter)
        return self.n_iter + self._problem.losses.detours - self._detours

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations."""
        end = self.n_iter + n_iter
        while self.n_iter < end:
            if self._due:
                self._restart()
                continue
            self._advance(min(self._next_sample, end) - self.n_iter)
            if self.n_iter == self._next_sample:
                self._sample()

    def _sample(self) -> None:
        """Add the current point to the average, and decide whether to restart."""
        if self._sum is not None:
            self._sum[0][:] += self._x
            self._sum[1][:] += self._y
        self._samples += 1
        self._next_sample += self._settings.sample
        self._due = self._restart_due()
        self._previous = self._moved

    def _advance(self, n_iter: int) -> None:
        primal, dual = self._iterate(n_iter)
        self._moved = float(np.sqrt(primal + dual))
        self.n_iter += n_iter

    def _restart_due(self) -> bool:
        settings, length = self._settings, self.n_iter - self._epoch_start
        if length < settings.shortest_epoch:
            return False
        if not np.isfinite(self._epoch_residual):
            return True
        ratio = self._moved / max(self._epoch_residual, np.finfo(float).tiny)
        rising = self._moved > self._previous
        long = length >= max(settings.longest * self.n_iter, 5 * settings.shortest_epoch)
        return ratio <= settings.sufficient or (ratio <= settings.necessary and rising) or long

    def _restart(self) -> None:
        """Go on from the average if it is the better point, and adapt the primal weight."""
        _LOG.debug("restart after %d iterations", self.n_iter)
        if self._sum is not None:
            self._try_average(self._sum)
        self._adapt_weight()
        self._start_epoch()

    def _try_average(self, average: tuple[FloatArray, FloatArray]) -> None:
        """Move to the average of the epoch if a step from there is shorter."""
        current, moved = (self._x, self._y), self._moved
        for total in average:
            total /= self._samples
        self._x, self._y = average
        self._reset_divergence()
        self._advance(1)
        if self._moved >= moved:
            (self._x, self._y), self._moved = current, moved
            self._reset_divergence()
        else:
            self._sum = current

    def _adapt_weight(self) -> None:
        """Move gamma half way, on a logarithmic scale, to the ratio of what w and u moved."""
        if self._coordinates is not None:
            self._adapt_weights(self._coordinates)
            return
        (x, y), (nodes, edges) = self._origin, self._every
        squares = self._degrees[::nodes, None] * (self._x[::nodes] - x) ** 2
        primal = float(np.sqrt(nodes * np.sum(squares)))
        dual = float(np.sqrt(2.0 * edges * np.sum((self._y[::edges] - y) ** 2)))
        if primal > 0.0 and dual > 0.0:
            weight = float(np.sqrt(self._weight * primal / dual))
            if np.isfinite(weight) and weight > 0.0:
                change = self._settings.largest_change
                self._set_weight(min(max(weight, self._weight / change), self._weight * change))

    def _adapt_weights(self, coordinates: Coordinates) -> None:
        """Do the same for each coordinate; in x and y its weight so far is one."""
        (x, y), (nodes, edges) = self._origin, self._every
        primal = np.sqrt(nodes * (self._degrees[::nodes] @ (self._x[::nodes] - x) ** 2))
        dual = np.sqrt(2.0 * edges * np.sum((self._y[::edges] - y) ** 2, axis=0))
        factor = np.ones_like(primal)
        both = (primal > 0.0) & (dual > 0.0)
        np.sqrt(np.divide(primal, dual, out=factor, where=both), out=factor)
        change = self._settings.largest_change
        before = coordinates.scales
        self._set_weight((coordinates.weights * np.clip(factor, 1.0 / change, change)).tolist())
        self._x *= before / coordinates.scales
        self._y *= coordinates.scales / before
        self._reset_divergence()

    def _iterate(self, n_iter: int) -> tuple[float, float]:
        if self._code == CompiledForm.OTHER:
            moves = [(self._node_step(), self._edge_step()) for _ in range(n_iter)]
            return moves[-1]
        if self._prox is None:
            moves = [self._given_prox(step == n_iter - 1) for step in range(n_iter)]
            return moves[-1]
        threads, steps = self._pace.choose(n_iter)
        if threads < self._threads:
            self._gather_divergence()
        self._threads = threads
        before = time.perf_counter()
        moved = self._pass(threads, steps)
        self._pace.record(threads, time.perf_counter() - before, steps)
        return moved if steps == n_iter else self._iterate(n_iter - steps)

    def _pass(self, threads: int, steps: int) -> tuple[float, float]:
        """Run compiled iterations; return what the last one moved."""
        assert self._prox is not None, "compiled passes are for affine proximal maps"
        point, arcs = Point(self._x, self._y, self._nodes[:threads]), self._arcs
        relaxation, capacities = self._settings.relaxation, self._problem.capacities
        moved: tuple[float, float]
        weighted = None
        if self._coordinates is not None:
            scales = self._coordinates.scales
            weighted = WeightedEdgeStep(capacities, scales, self._sigma, relaxation, self._code)
        if isinstance(self._prox, ThinProx):
            thin_step = ThinStep(*self._prox, self._tau, relaxation)
            edges = self._edges() if weighted is None else weighted
            return thin_pass(
                steps, self._dims, self._blocks, point, self._room, arcs, thin_step, edges
            )
        node_step = NodeStep(self._prox.matrix, self._prox.offset, self._tau, relaxation)
        if weighted is not None:
            if threads == 1:
                moved = iterate_weighted(steps, self._dims, point, arcs, node_step, weighted)
            else:
                moved = iterate_weighted_parallel(
                    steps, self._dims, self._blocks, point, arcs, node_step, weighted
                )
            return moved
        edge_step = self._edges()
        if threads == 1:
            moved = iterate(steps, self._dims, point, self._room, arcs, node_step, edge_step)
        else:
            moved = iterate_parallel(
                steps, self._dims, self._blocks, point, self._room, arcs, node_step, edge_step
            )
        return moved

    def _edges(self) -> EdgeStep:
        """Return the update of the edges, as compiled passes take it."""
        capacities, relaxation = self._problem.capacities, self._settings.relaxation
        return EdgeStep(capacities, self._sigma, relaxation, self._code)

    def _given_prox(self, measure: bool) -> tuple[float, float]:
        """Run an iteration whose proximal points the losses know; return what it moved."""
        point, prox = Point(self._x, self._y, self._nodes), self._proximal()
        moved: tuple[float, float] = complete_iteration(
            self._dims, prox, self._tau, point, self._room, self._arcs, self._edges(), measure
        )
        return moved

    def _proximal(self) -> FloatArray:
        """Proximal points (n, d) of the node pass."""
        d = len(self._dims)
        v = self._x - self._tau[:, None] * self._nodes[0, :, d:]
        prox = self._problem.losses.prox(v, self._tau)
        prox[self._isolated] = self._resting
        return prox

    def _gather_divergence(self) -> None:
        """Add up all threads' shares of the divergence in the first copy."""
        d = len(self._dims)
        self._nodes[0, :, d:] = self._nodes[:, :, d:].sum(axis=0)
        self._nodes[1:, :, d:] = 0.0

    def _node_step(self) -> float:
        """Node pass for losses whose prox need not be affine."""
        step = self._proximal() - self._x
        self._nodes[0, :, : len(self._dims)] = self._x + 2.0 * step
        self._x += self._settings.relaxation * step
        return float(np.sum(step**2 / self._tau[:, None]))

    def _edge_step(self) -> float:
        """Edge pass for penalties that the compiled passes need not know."""
        problem, d = self._problem, len(self._dims)
        z = self._y + self._sigma * problem.differences(self._nodes[0, :, :d])
        step = problem.penalty.prox_conjugate(z, self._sigma, problem.capacities) - self._y
        self._y += self._settings.relaxation * step
        self._nodes[0, :, d:] += self._settings.relaxation * (problem.graph.divergence @ step)
        return float(np.sum(step**2)) / self._sigma

    def residual(self) -> float:
        """Length of the last step in the method's own metric."""
        return self._moved

    def info(self) -> dict[str, Any]:
        """Return the last primal weight gamma, or those of all coordinates, and the gap's ratio.

        Relative gap over residual is there if a check, or the start, has told it.
        """
        ratio = checked_ratio(self.gap_ratio)
        return {"primal_weight": self.weight} | ({} if np.isnan(ratio) else {"gap_ratio": ratio})
