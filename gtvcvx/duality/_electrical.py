"""Electrical flows: a flow that meets given demands, spread over the edges by their capacity."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import _conjugate_gradients as conjugate_gradients
from gtvcvx.graph import EmpiricalGraph

EPS = float(np.finfo(np.float64).eps)
# One run of conjugate gradients is not asked for more than this; what is left is routed anew.
REFINEMENT = 1e-6
MAX_REFINEMENTS = 6


class Routing:
    """Flows u with D^T u = need that minimize sum_e ||u_e||^2 / A_e^2, for any demands.

    They are u = C D y with potentials y, conductances C = diag(A^2) and the Laplacian system
    D^T C D y = need.
    """

    def __init__(self, graph: EmpiricalGraph) -> None:
        self._incidence, self._divergence = graph.incidence, graph.divergence
        self._starts, self._tails = graph.by_head
        self._conductance = (graph.weights / graph.weights.max()) ** 2
        ends = np.repeat(self._conductance, 2)
        degrees = np.bincount(graph.edges.ravel(), ends, graph.n_nodes)
        self._degrees = np.where(degrees > 0.0, degrees, 1.0)
        self._rounding = 4.0 * EPS * float(np.sqrt(max(int(graph.degrees.max()), 1)))

    def __call__(
        self, need: FloatArray, rtol: float, size: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Route the demands (n, d), which add up to zero over each component.

        At most the share ``rtol`` of them is left, or what rounding leaves; ``size`` is the norm
        of the flow that they are to be added to, which has rounding errors of its own.

        Returns
        -------
        flow (m, d), potentials (n, d)
        """
        flow = np.zeros((len(self._conductance), need.shape[1]))
        potentials = np.zeros_like(need)
        rest, left = need, _norm(need)
        for _ in range(MAX_REFINEMENTS):
            goal = max(rtol * _norm(need), self._rounding * (size + _norm(flow)))
            if left <= goal:
                break
            step = self._potentials(rest, max(REFINEMENT * left, 0.9 * goal))
            candidate = flow + self._conductance[:, None] * (self._incidence @ step)
            rest = need - self._divergence @ candidate
            if not _norm(rest) < left:
                break
            flow, potentials, left = candidate, potentials + step, _norm(rest)
        return flow, potentials

    def _potentials(self, need: FloatArray, goal: float) -> FloatArray:
        n, d = need.shape
        return conjugate_gradients.solve(
            (0,) * d,
            need,
            goal,
            10 * n + 100,
            self._starts,
            self._tails,
            self._conductance,
            self._degrees,
            np.ones(n),
            np.empty(0, np.int64),
            np.empty((0, d, d)),
            np.empty((0, 0)),
        )


def _norm(x: FloatArray) -> float:
    """Frobenius norm without BLAS, whose threads stall on a busy machine."""
    return float(np.sqrt(np.sum(x * x)))
