"""The synthetic network of [nLasso], section 5, and how errors are counted there.

Two clusters of 150 nodes, a stochastic block model with p_in = 1/2. Every node has five points
with two standard normal features, and labels y = x^T w without noise, w = (2, 2) in the first
cluster and (-2, 2) in the second. The labels of 30 nodes are known. Total variation is that of the
1-norm.

(20) has the mean of the squares of a node, (21) their sum: "paper" takes the mean, "notebook" the
sum, as the authors' code does, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import gtvcvx as gtv
from gtvcvx.generators import RegressionData, regression_data, sbm

Array = NDArray[np.float64]

CLUSTER_WEIGHTS = np.array([[2.0, 2.0], [-2.0, 2.0]])
ROWS = 5
P_IN = 0.5
P_OUT = 1e-3
LAM = 1e-3
ITERATIONS = 500
READINGS = ("paper", "notebook")

GIVEN = {
    "graph": "given: two clusters of 150 nodes, p_in 1/2",
    "data": "given: 5 points a node, 2 features, no noise, w (2, 2) and (-2, 2)",
    "known labels": "given: 30 nodes; not given which: ours are drawn from all nodes alike",
    "penalty": "given: total variation of the 1-norm",
    "loss of a node": "given twice: (20) a mean, (21) a sum; a mean, but in reading 'notebook'",
}


@dataclass(frozen=True)
class Network:
    """A draw of graph and data."""

    graph: gtv.EmpiricalGraph
    data: RegressionData
    true_w: Array  # (n, 2)
    summed: bool  # whether the loss of a node is a sum over its points

    def problem(self, lam: float) -> gtv.GTVProblem:
        """Return the network Lasso for this lambda."""
        # A sum of squares is the mean of squares that are as many times as large.
        scale = np.sqrt(ROWS) if self.summed else 1.0
        data = self.data
        losses = gtv.SquaredLoss.stack(scale * data.X, scale * data.y, data.labelled)
        return gtv.GTVProblem(self.graph, losses, "l1", lam)

    def label_errors(self, w: Array) -> tuple[float, float]:
        """Return mean squared errors of labels at nodes with known labels, and at all others."""
        return self.means((self.data.y - np.einsum("nmd,nd->nm", self.data.X, w)) ** 2)

    def means(self, errors: Array) -> tuple[float, float]:
        """Return means of an array (n, ...) over nodes with known labels, and over all others."""
        known = self.data.labelled
        return float(errors[known].mean()), float(errors[~known].mean())

    def error(self, w: Array) -> float:
        """Return (24): squares summed over nodes without labels, divided by the number of all."""
        unknown = ~self.data.labelled
        return float(np.sum((w - self.true_w)[unknown] ** 2) / len(w))


def draw(seed: int, p_out: float = P_OUT, *, nodes: int = 300, summed: bool = False) -> Network:
    """Draw a network; one node in ten has known labels."""
    rng = np.random.default_rng([seed, nodes])
    half = nodes // 2
    true_w = np.repeat(CLUSTER_WEIGHTS, half, axis=0)
    graph = sbm([half, half], P_IN, p_out, rng)
    return Network(graph, regression_data(true_w, ROWS, 0.0, 0.1, rng), true_w, summed)


class _Kept(gtv.LocalUpdate):
    """The exact update (32), which keeps the points that Algorithm 1 is at."""

    def __init__(self, iterations: Iterable[int]) -> None:
        self._iterations = set(iterations)
        self.points: dict[int, Array] = {}

    def __call__(
        self, losses: gtv.StackedLoss, v: Array, tau: Array, previous: Array, iteration: int
    ) -> Array:
        if iteration - 1 in self._iterations:
            self.points[iteration - 1] = previous.copy()
        return losses.prox(v, tau)


def algorithm1(problem: gtv.GTVProblem, iterations: Iterable[int]) -> dict[int, Array]:
    """Run Algorithm 1 as printed, from zero; return w after these numbers of iterations."""
    wanted = sorted(set(iterations))
    kept = _Kept(wanted)
    last = problem.solve("PDHG", max_iter=wanted[-1], local_update=kept, verbose=False)
    return kept.points | {wanted[-1]: last.w}


def optimum(problem: gtv.GTVProblem) -> gtv.Solution:
    """Solve to a gap of 1e-9 of the value, which is far below 1 for small lambda."""
    return problem.solve(rtol=1e-9, atol=0.0, verbose=False)
