"""Point and flow of a primal-dual iteration, and what moves them: step sizes, passes, averages."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._pieces import rows_at_once
from gtvcvx.compiled import dims_of
from gtvcvx.compiled._edges import EdgeStep, edge_room
from gtvcvx.compiled._one_pass import (
    complete_nodes,
    pass_edges,
    pass_nodes,
    pass_thin_nodes,
    pass_weighted_edges,
)
from gtvcvx.compiled._primal_dual import NodeStep, Point, iterate
from gtvcvx.compiled._team import run_together
from gtvcvx.compiled._thin import ThinStep, iterate_thin, iterate_thin_weighted
from gtvcvx.compiled._weighted_primal_dual import WeightedEdgeStep, iterate_weighted
from gtvcvx.losses import AffineProx
from gtvcvx.penalties import CompiledForm
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.primal_dual._coordinates import Coordinates, Weight, one_weight
from gtvcvx.solvers.primal_dual._proximal_maps import (
    ThinProx,
    proximal_map,
    rest,
)
from gtvcvx.solvers.primal_dual._settings import PrimalDualSettings
from gtvcvx.solvers.primal_dual._threads import Pace, equal_blocks, most_threads

_NONE = np.empty(0, dtype=np.int64)
# By whether the nodes' maps are made of rows, and whether each coordinate has its weight.
_KERNELS = {
    (False, False): iterate,
    (False, True): iterate_weighted,
    (True, False): iterate_thin,
    (True, True): iterate_thin_weighted,
}


class Travelled(NamedTuple):
    """Squares of how far point and flow have moved in an epoch, of each coordinate or of all."""

    primal: FloatArray
    dual: FloatArray


class State:
    """Point x and flow y, in the coordinates of the iteration, of a problem or of a part of one.

    Parameters
    ----------
    problem : GTVProblem
    coordinates : Coordinates, optional
        None where one weight serves all.
    settings : PrimalDualSettings
    averaged : bool
        Whether averages are kept.
    ghosts : ndarray of int64, optional
        Nodes that stay at zero: somebody else moves them.
    threads : int, optional
        At most so many.
    """

    def __init__(
        self,
        problem: GTVProblem,
        coordinates: Coordinates | None,
        settings: PrimalDualSettings,
        averaged: bool,
        ghosts: IntArray = _NONE,
        threads: int | None = None,
    ) -> None:
        graph = problem.graph
        n, d = graph.n_nodes, problem.dim
        self._problem, self._settings, self.coordinates = problem, settings, coordinates
        self._degrees = graph.degrees.astype(np.float64)
        isolated = np.flatnonzero(graph.degrees == 0)
        self._still = np.concatenate([isolated, ghosts])
        self._code = problem.penalty.compiled_form
        self.x, self.y = np.zeros((n, d)), np.zeros((graph.n_edges, d))
        self.sum = (np.zeros_like(self.x), np.zeros_like(self.y)) if averaged else None
        self._samples = 0
        self._every = settings.strides(self.x.size, self.y.size)
        nodes, edges = self._every
        self._origin = np.zeros_like(self.x[::nodes]), np.zeros_like(self.y[::edges])
        # Minimizers may take longer than many iterations.
        minimizer = problem.losses.minimizer(n) if len(isolated) else self.x
        self._minimizer = np.concatenate([minimizer[isolated], np.zeros((len(ghosts), d))])
        self._dims = dims_of(d)
        self._arcs = graph.by_head
        threads = most_threads(graph.n_edges * d) if threads is None else threads
        self._blocks = equal_blocks(self._arcs.starts, threads)
        self._nodes = np.zeros((threads, n, 2 * d))
        self._room = edge_room(self._dims, threads)
        self._pace = Pace(threads)
        # Edges that others count as well: those whose head is a ghost.
        self._shared = np.flatnonzero(np.isin(graph.edges[:, 0], ghosts)) if len(ghosts) else _NONE

    @property
    def averages(self) -> bool:
        """Whether averages are kept."""
        return self.sum is not None

    @property
    def affine(self) -> bool:
        """Whether proximal points cost no more than a product with a matrix."""
        return self._prox is not None

    @property
    def extrapolated(self) -> FloatArray:
        """The extrapolated points (n, d) of the last node pass."""
        return self._nodes[0, :, : len(self._dims)]

    @property
    def w(self) -> FloatArray:
        """The point (n, d)."""
        return self.x if self.coordinates is None else self.coordinates.w_of(self.x)

    @w.setter
    def w(self, w: FloatArray) -> None:
        self.x[:] = w if self.coordinates is None else self.coordinates.x_of(w)

    @property
    def u(self) -> FloatArray:
        """The flow (m, d)."""
        return self.y if self.coordinates is None else self.coordinates.u_of(self.y)

    @u.setter
    def u(self, u: FloatArray) -> None:
        self.y[:] = u if self.coordinates is None else self.coordinates.y_of(u)

    @property
    def weight(self) -> Weight:
        """Primal weight gamma, or that of each coordinate."""
        coordinates = self.coordinates
        return self._weight if coordinates is None else coordinates.weights.tolist()

    @weight.setter
    def weight(self, weight: Weight) -> None:
        """Set gamma, and what depends on it: step sizes and the proximal maps."""
        degrees, coordinates = np.maximum(self._degrees, 1.0), self.coordinates
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
            rest(prox, self._still, self._resting)
        self._prox = prox

    def change_weights(self, weights: list[float]) -> None:
        """Set the weights of the coordinates, and stay where w and u are."""
        assert self.coordinates is not None, "there is one weight"
        before = self.coordinates.scales
        self.weight = weights
        self.x *= before / self.coordinates.scales
        self.y *= self.coordinates.scales / before
        self.reset_divergence()

    def begin_here(self) -> None:
        """Get ready to iterate from x and y."""
        self.x[self._still] = self._resting
        self.reset_divergence()

    def reset_divergence(self) -> None:
        """Set the divergence D^T y that goes with y, in the first block's copy."""
        d = len(self._dims)
        self._nodes[:, :, d:] = 0.0
        self._nodes[0, :, d:] = self._problem.graph.divergence @ self.y

    def begin_epoch(self) -> None:
        """Remember where it begins, and take averages from here on."""
        nodes, edges = self._every
        for kept, current in zip(self._origin, (self.x[::nodes], self.y[::edges]), strict=True):
            kept[:] = current
        for total in self.sum or ():
            total.fill(0.0)
        self._samples = 0

    def add_sample(self) -> None:
        """Add the current point to the average."""
        if self.sum is not None:
            self.sum[0][:] += self.x
            self.sum[1][:] += self.y
        self._samples += 1

    def to_average(self) -> tuple[FloatArray, FloatArray]:
        """Move to the average of the epoch; return what was there."""
        assert self.sum is not None, "no averages are kept"
        current, average = (self.x, self.y), self.sum
        for total in average:
            total /= self._samples
        self.x, self.y = average
        self.reset_divergence()
        return current

    def stay(self, current: tuple[FloatArray, FloatArray]) -> None:
        """Let the room of what was there before `to_average` be that of the next average."""
        self.sum = current

    def go_back(self, current: tuple[FloatArray, FloatArray]) -> None:
        """Undo `to_average`."""
        self.x, self.y = current
        self.reset_divergence()

    def travelled(self) -> Travelled:
        """Return how far point and flow have moved in this epoch, in the metric of weight one."""
        (x, y), (nodes, edges) = self._origin, self._every
        counted = np.full(len(y), 2.0 * edges)
        counted[(self._shared // edges)[self._shared % edges == 0]] = 0.0
        primal = _squares(self.x[::nodes], x, nodes * self._degrees[::nodes])
        dual = _squares(self.y[::edges], y, counted)
        if self.coordinates is None:
            return Travelled(np.asarray(np.sum(primal)), np.asarray(np.sum(dual)))
        return Travelled(primal, dual)

    def advance(self, n_iter: int) -> tuple[float, float]:
        """Do n_iter iterations; return squares of what the last one moved of x and of y."""
        if self._code == CompiledForm.OTHER or self._prox is None:
            last = n_iter - 1
            moves = [(self.pass_nodes(True), self.pass_edges(k == last)) for k in range(n_iter)]
            return moves[-1]
        threads, steps = self._pace.choose(n_iter)
        before = time.perf_counter()
        moved = self._iterate(threads, steps)
        self._pace.record(threads, time.perf_counter() - before, steps)
        return moved if steps == n_iter else self.advance(n_iter - steps)

    def _iterate(self, threads: int, steps: int) -> tuple[float, float]:
        """Run compiled iterations; return what the last one moved."""
        point, blocks = Point(self.x, self.y, self._nodes), len(self._nodes)
        node_step, edge_step = self._node_step(), self._edge_step()
        weighted = isinstance(edge_step, WeightedEdgeStep)
        kernel = _KERNELS[isinstance(node_step, ThinStep), weighted]
        moved = np.empty((2, blocks))
        arguments = (self._dims, self._blocks, point, self._room, self._arcs)
        run_together(kernel, blocks, threads, steps, *arguments, node_step, edge_step, moved)
        primal, dual = moved.tolist()
        return sum(primal), sum(dual)

    def _node_step(self) -> NodeStep | ThinStep:
        """Return the update of the nodes, as compiled passes take it."""
        assert self._prox is not None, "compiled passes are for affine proximal maps"
        relaxation = self._settings.relaxation
        if isinstance(self._prox, ThinProx):
            return ThinStep(*self._prox, self._tau, relaxation)
        matrix, offset = (np.ascontiguousarray(part) for part in self._prox)
        return NodeStep(matrix, offset, self._tau, relaxation)

    def _edge_step(self) -> EdgeStep | WeightedEdgeStep:
        """Return the update of the edges, as compiled passes take it."""
        capacities, relaxation = self._problem.capacities, self._settings.relaxation
        if self.coordinates is None:
            return EdgeStep.of(capacities, self._sigma, relaxation, self._code)
        scales = self.coordinates.scales
        return WeightedEdgeStep(capacities, scales, self._sigma, relaxation, self._code)

    def pass_nodes(self, measure: bool) -> float:
        """Update the nodes alone, on one thread; return the square of what x moved, if measured."""
        dims, nodes = self._dims, self._nodes[:1]
        if self._prox is None:
            relaxation = self._settings.relaxation
            prox = self._proximal()
            return float(complete_nodes(dims, prox, self._tau, self.x, nodes, relaxation))
        step = self._node_step()
        if isinstance(step, ThinStep):
            return float(pass_thin_nodes(dims, self.x, nodes, step))
        return float(pass_nodes(dims, self.x, nodes, step, measure, self._room[0]))

    def pass_edges(self, measure: bool) -> float:
        """Update the edges alone, on one thread; return the square of what y moved, if measured.

        Edges that others count as well are left out of that.
        """
        shared = self.y[self._shared] if measure and len(self._shared) else None
        moved = self._move_edges(measure)
        if shared is not None:
            step = (self.y[self._shared] - shared) / self._settings.relaxation
            moved = max(moved - float(np.sum(step**2)) / self._sigma, 0.0)
        return moved

    def _move_edges(self, measure: bool) -> float:
        if self._code == CompiledForm.OTHER:
            return self._move_other_edges()
        dims, nodes, step = self._dims, self._nodes[0], self._edge_step()
        if isinstance(step, WeightedEdgeStep):
            moved = pass_weighted_edges(dims, self.y, nodes, self._arcs, step, measure)
        else:
            moved = pass_edges(dims, self.y, nodes, self._room[0], self._arcs, step, measure)
        return float(moved)

    def _move_other_edges(self) -> float:
        """Update the edges for penalties that the compiled passes do not know."""
        problem, d = self._problem, len(self._dims)
        z = self.y + self._sigma * problem.differences(self._nodes[0, :, :d])
        step = problem.penalty.prox_conjugate(z, self._sigma, problem.capacities) - self.y
        self.y += self._settings.relaxation * step
        self._nodes[0, :, d:] += self._settings.relaxation * (problem.graph.divergence @ step)
        return float(np.sum(step**2)) / self._sigma

    def _proximal(self) -> FloatArray:
        """Proximal points (n, d) of the node pass."""
        d = len(self._dims)
        v = self._tau[:, None] * self._nodes[0, :, d:]
        np.subtract(self.x, v, out=v)
        prox = self._problem.losses.prox(v, self._tau)
        prox[self._still] = self._resting
        return prox


def _squares(rows: FloatArray, before: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the sums (d,) of the squares of what rows (k, d) have moved, times weights (k,)."""
    total = np.zeros(rows.shape[1])
    for at in rows_at_once(*rows.shape):
        moved = rows[at] - before[at]
        moved *= moved
        total += np.einsum("k,kj->j", weights[at], moved)
    return total
