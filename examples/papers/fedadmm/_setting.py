"""The simulated setting of [FedADMM], section 5, and closed forms of errors in it.

V devices in K0 = 5 equal cliques; device u has n rows ``y = X theta_u + e`` with standard normal
features and errors, and theta is the same within a clique. Penalty l1. The given graph G is the
cliques' G0 after each pair's status was flipped with probability varrho.

Not given in the paper, ours: the seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import gtvcvx as gtv

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

P, CLIQUES = 20, 5


@dataclass(frozen=True)
class Draw:
    """Rows (V, n, p), labels (V, n), true parameters (V, p) and cliques (V,)."""

    X: FloatArray
    y: FloatArray
    truth: FloatArray
    clique: IntArray

    @property
    def rows(self) -> tuple[FloatArray, FloatArray]:
        """Rows X (V, p + 1, p) and y with the same mean squared error for every theta, by QR."""
        rows = np.concatenate([self.X, self.y[:, :, None]], axis=2)
        _, n, width = rows.shape
        if n <= width:
            return self.X, self.y
        triangle = np.linalg.qr(rows, mode="r") * np.sqrt(width / n)
        return triangle[:, :, :-1], triangle[:, :, -1]

    def problem(self, graph: gtv.EmpiricalGraph, lam: float) -> gtv.GTVProblem:
        """Return (5): losses there have the factor 1/2, so that values are half of these."""
        return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(*self.rows), "l1", 2.0 * lam)

    def error(self, theta: FloatArray) -> float:
        """Squared Frobenius distance to the truth, over V."""
        return float(np.sum((theta - self.truth) ** 2)) / len(self.truth)

    def pooled(self, group: IntArray) -> FloatArray:
        """Least squares of all rows of each group of devices, (V, p)."""
        gram = np.einsum("vni,vnj->vij", self.X, self.X)
        target = np.einsum("vni,vn->vi", self.X, self.y)
        member = (group[:, None] == np.arange(group.max() + 1)).astype(float)
        sums = np.einsum("vg,vij->gij", member, gram), member.T @ target
        return np.linalg.solve(sums[0], sums[1][:, :, None])[group, :, 0]

    def local(self) -> FloatArray:
        """Least squares of each device by itself."""
        return self.pooled(np.arange(len(self.y)))

    def without(self, out: NDArray[np.bool_]) -> Draw:
        """Return the draw without some rows (V, n), as many of each device."""
        V, _, p = self.X.shape
        return replace(self, X=self.X[~out].reshape(V, -1, p), y=self.y[~out].reshape(V, -1))


def draw(V: int, n: int, seed: int) -> Draw:
    """Devices of one replication; theta ~ N(0, p^(-1/2) I), of mean squared norm sqrt(p)."""
    rng = np.random.default_rng([seed, V, n])
    clique = np.repeat(np.arange(CLIQUES), V // CLIQUES)
    truth = (P**-0.25 * rng.standard_normal((CLIQUES, P)))[clique]
    X = rng.standard_normal((V, n, P))
    y = np.einsum("vnp,vp->vn", X, truth) + rng.standard_normal((V, n))
    return Draw(X, y, truth, clique)


def graphs(data: Draw, varrho: float, seed: int) -> tuple[gtv.EmpiricalGraph, IntArray]:
    """Return the corrupted graph, and which of its edges are right; varrho = 0: G0 itself.

    The same seed flips more and more pairs as varrho grows.
    """
    V = len(data.clique)
    first, second = np.triu_indices(V, 1)
    right = data.clique[first] == data.clique[second]
    flipped = np.random.default_rng([seed, V, 1]).random(len(first)) < varrho
    there = right ^ flipped
    edges = np.stack([first[there], second[there]], axis=1)
    return gtv.EmpiricalGraph(V, edges), right[there]


def local_closed_form(n: int) -> float:
    """Return the expected error of Local: the trace of an inverse Wishart's mean."""
    return P / (n - P - 1)


def oracle_closed_form(V: int, n: int) -> float:
    """Return the expected error of least squares on each clique's rows."""
    return P / (n * V / CLIQUES - P - 1)


def global_closed_form(V: int, n: int) -> float:
    """Return the expected error of one model for all, to first order in 1 / (n V).

    Bias ``(4/5) sqrt(p)``: each theta from the mean of five. Variance p / (n V) of an error whose
    variance is 1 + the bias, since what a device differs by acts as noise.
    """
    bias = (1.0 - 1.0 / CLIQUES) * P**0.5
    return bias + P * (1.0 + bias) / (n * V)
