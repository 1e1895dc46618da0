"""Run by external.py in an environment that has CCMMPy: points in, one w out.

Its objective, unscaled, is 1/2 sum ||x_i - w_i||^2 + lam sum A_ij ||w_i - w_j|| over pairs.
"""

import sys
import time

import numpy as np
from ccmmpy import CCMM, SparseWeights
from external_answer import write


class GivenWeights(SparseWeights):
    """The weights of given edges instead of those of nearest neighbours."""

    def __init__(self, edges: np.ndarray, weights: np.ndarray) -> None:
        # Each pair in both directions, column by column, as it wants them.
        pairs = np.concatenate([edges, edges[:, ::-1]])
        order = np.lexsort((pairs[:, 0], pairs[:, 1]))
        self._pairs = pairs[order]
        self._weights = np.concatenate([weights, weights])[order]

    def indices(self) -> np.ndarray:
        return self._pairs.copy()

    def values(self) -> np.ndarray:
        return self._weights.copy()


given, answer = sys.argv[1:]
data = dict(np.load(given))
curvature, tolerance = data["curvature"][0], float(data["tolerance"])
points = np.ascontiguousarray(data["centre"] / curvature)
largest = data["capacities"].max()
weights = GivenWeights(data["edges"], data["capacities"] / largest)
start = time.perf_counter()
# Clusters are fused for good where they are nearer than tau: its default, 1e-3, is too rough for
# small tolerances.
solver = CCMM(
    points,
    weights,
    tau=min(1e-3, tolerance),
    center=False,
    scale=False,
    eps_conv=tolerance,
    max_iter_conv=100_000,
)
solver.convex_clusterpath(np.array([largest / curvature]), save_clusterpath=True)
seconds = time.perf_counter() - start
write(answer, np.asarray(solver.coordinates)[-len(points) :], seconds)
