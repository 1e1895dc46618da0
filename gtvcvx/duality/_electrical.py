"""Electrical flows: a flow that meets given demands, spread over the edges by their capacity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import EPS, norm
from gtvcvx.compiled._conjugate_gradients import System, solve
from gtvcvx.duality._refinement import refine
from gtvcvx.graph import EmpiricalGraph


class ElectricalFlow(NamedTuple):
    """A flow that follows from potentials."""

    flow: FloatArray  # (m, d)
    potentials: FloatArray  # (n, d)


class ElectricalRouting:
    """Flows u with D^T u = need that minimize sum_e ||u_e||^2 / A_e^2, for any demands.

    They are u = C D y with potentials y, conductances C = diag(A^2) and the Laplacian system
    D^T C D y = need.
    """

    def __init__(self, graph: EmpiricalGraph) -> None:
        self._incidence, self._divergence = graph.incidence, graph.divergence
        self._conductance = (graph.weights / graph.weights.max()) ** 2
        degrees = np.bincount(graph.edges.ravel(), np.repeat(self._conductance, 2), graph.n_nodes)
        positive = np.where(degrees > 0.0, degrees, 1.0)
        self._system = System(graph.by_head, self._conductance, positive)
        self._rounding = 4.0 * EPS * float(np.sqrt(max(int(graph.degrees.max()), 1)))

    def __call__(self, need: FloatArray, rtol: float, size: float = 0.0) -> ElectricalFlow:
        """Route the demands (n, d), which add up to zero over each component.

        At most the share ``rtol`` of them is left, or what rounding leaves; ``size`` is the norm
        of the flow that they are to be added to, which has rounding errors of its own.
        """
        n, d = need.shape

        def corrected(at: ElectricalFlow, residual: FloatArray, goal: float) -> ElectricalFlow:
            step = solve(self._system, residual, goal, 10 * n + 100)
            flow = at.flow + self._conductance[:, None] * (self._incidence @ step)
            return ElectricalFlow(flow, at.potentials + step)

        return refine(
            ElectricalFlow(np.zeros((len(self._conductance), d)), np.zeros_like(need)),
            lambda at: need - self._divergence @ at.flow,
            corrected,
            rtol,
            lambda at: self._rounding * (size + norm(at.flow)),
            norm,
        )
