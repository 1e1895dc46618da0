"""Edges between groups of nodes, parallel ones joined, and the coordinates that group together."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.duality._loose_clusters import quotient
from gtvcvx.penalties import CompiledForm
from gtvcvx.problem import GTVProblem


def blocks(problem: GTVProblem) -> list[list[int]]:
    """Coordinates in which clusters form together: all for l2, each alone for l1."""
    alone = problem.penalty.compiled_form == CompiledForm.L1
    return [[j] for j in range(problem.dim)] if alone else [list(range(problem.dim))]


class QuotientEdges:
    """Edges between the clusters of one block of coordinates, parallel ones joined."""

    def __init__(self, problem: GTVProblem, labels: IntArray, offset: int, width: int) -> None:
        edges = problem.graph.edges
        self.between, joints, self.reduced = quotient(labels, edges)
        capacities = problem.capacities[self.between]
        total = np.bincount(self.reduced, capacities, minlength=len(joints))
        self.capacities: FloatArray = total.astype(np.float64)
        heads = labels[edges[self.between, 0]]
        sign = np.where(heads == joints[self.reduced, 0], 1.0, -1.0)
        # A joined edge's flow is split in proportion to capacity, which is right where w jumps.
        self.share = sign * capacities / self.capacities[self.reduced]
        coordinates = np.arange(width)
        self.heads = offset + joints[:, :1] * width + coordinates
        self.tails = offset + joints[:, 1:] * width + coordinates

    def joined(self, u: FloatArray) -> FloatArray:
        """Add up flows u (m, q) over parallel edges, (r, q)."""
        sign = np.sign(self.share)
        sums = [
            np.bincount(self.reduced, sign * u[self.between, k], len(self.heads))
            for k in range(u.shape[1])
        ]
        return np.stack(sums, axis=1)

    def split(self, flows: FloatArray) -> FloatArray:
        """Split flows (r, q) over parallel edges in proportion to their capacities."""
        return self.share[:, None] * flows[self.reduced]
