"""The simulated setting of [FedADMM], section 5, and the estimators that its figures compare.

V devices in K0 = 5 equal cliques; device u has n rows ``y = X theta_u + e`` with standard normal
features and errors, and theta is the same within a clique. Penalty l1. The given graph G is the
cliques' G0 after each pair's status was flipped with probability varrho.

Not given in the paper, ours: the level of the tests (.05), the grid of lambda (a factor 2 apart,
and 0), how folds are cut (within devices), the seeds.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import gtvcvx as gtv
from gtvcvx.federated.selection import EdgeSelection, select_edges

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

P, CLIQUES = 20, 5
ALPHA = 0.05
FOLDS = 5
# lambda of (5), whose losses carry 1/2; 0, which is Local, comes on top. At the ends of our cases
# (V = 20, varrho .1 and V = 80, varrho .9) the smallest error is inside.
GRID = 0.00025 * 2.0 ** np.arange(12)
# Relative gaps. In the folds: predictions then change less than errors of neighbouring lambda
# differ. At the chosen lambda: a squared distance of about 1e-5, the deviation over seeds is 1e-3.
FOLD_RTOL, RTOL = 1e-4, 1e-6


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


@dataclass(frozen=True)
class Fit:
    """An estimate: parameters (V, p), lambda of (5), and the proved relative gap."""

    theta: FloatArray
    lam: float
    gap: float


def fit(data: Draw, graph: gtv.EmpiricalGraph, seed: int) -> Fit:
    """Certified solution of (5) at the lambda that 5-fold cross-validation chooses.

    lambda = 0, which is Local, is one of the choices; of equally good ones the largest is taken.
    """
    errors = {0.0: 0.0} if graph.n_edges == 0 else fold_errors(data, graph, seed)
    best = min(errors, key=lambda lam: (errors[lam], -lam))
    if best == 0.0:
        return Fit(data.local(), 0.0, 0.0)
    with warnings.catch_warnings():
        # One model for each component is what a perfect graph should give.
        warnings.simplefilter("ignore", gtv.ConsensusWarning)
        found = data.problem(graph, best).solve(rtol=RTOL, verbose=False)
    return Fit(found.w, best, found.rel_gap)


def fold_errors(data: Draw, graph: gtv.EmpiricalGraph, seed: int) -> dict[float, float]:
    """Mean squared error of held-out rows for each lambda of the grid, and 0.

    Folds are cut within devices. The five problems without a fold are solved as one, on five
    copies of the graph: fewer calls for problems of this size.
    """
    V, n = data.y.shape
    fold = np.argsort(np.random.default_rng([seed, V, n, 2]).random((V, n)), axis=1) % FOLDS
    copies = [data.without(fold == k) for k in range(FOLDS)]
    X, y = (np.concatenate(parts) for parts in zip(*(c.rows for c in copies), strict=True))
    edges = np.concatenate([graph.edges + V * k for k in range(FOLDS)])
    losses = gtv.SquaredLoss.stack(X, y)
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(FOLDS * V, edges), losses, "l1", 1.0)
    path = gtv.lambda_path(problem, 2.0 * GRID, rtol=FOLD_RTOL, verbose=False)
    errors = {lam / 2.0: _held_out(data, w, fold) for lam, w in zip(path.lams, path.w, strict=True)}
    errors[0.0] = _held_out(data, np.concatenate([c.local() for c in copies]), fold)
    return errors


def _held_out(data: Draw, thetas: FloatArray, fold: IntArray) -> float:
    """Mean squared error of each fold's rows by its own parameters, (FOLDS * V, p)."""
    of_fold = thetas.reshape(FOLDS, *data.truth.shape)
    predicted = np.einsum("vnp,kvp->kvn", data.X, of_fold)
    own = np.take_along_axis(predicted, fold[None], axis=0)[0]
    return float(np.mean((data.y - own) ** 2))


def tested(
    data: Draw, graph: gtv.EmpiricalGraph, covariance: str, candidates: str = "graph"
) -> EdgeSelection:
    """Edges that the tests (10), (11) keep."""
    losses = gtv.SquaredLoss.stack(data.X, data.y)
    return select_edges(graph, losses, alpha=ALPHA, covariance=covariance, candidates=candidates)


def on_clean_graph(V: int, n: int, seed: int) -> Mapping[str, FloatArray]:
    """Errors of the estimators that do not depend on the corruption, and of Local-ES."""
    data = draw(V, n, seed)
    clean, _ = graphs(data, 0.0, seed)
    found = {"Local": Fit(data.local(), 0.0, 0.0)}
    found["Global"] = Fit(data.pooled(np.zeros(V, int)), np.inf, 0.0)
    found["Oracle"] = fit(data, clean, seed)
    found["Oracle, pooled"] = Fit(data.pooled(data.clique), np.inf, 0.0)
    for covariance in ("HC0", "HC3"):
        kept = tested(data, clean, covariance, "complete").graph
        found[f"Local-ES {covariance}"] = fit(data, kept, seed)
    return _arrays(data, found)


def on_corrupted_graph(V: int, n: int, varrho: float, seed: int) -> Mapping[str, FloatArray]:
    """Errors of FedADMM on the given graph and after edge selection, and what the tests did."""
    data = draw(V, n, seed)
    graph, right = graphs(data, varrho, seed)
    found = {"FedADMM(G)": fit(data, graph, seed)}
    shares: dict[str, FloatArray] = {}
    for covariance in ("HC0", "HC3"):
        chosen = tested(data, graph, covariance)
        found[f"FedADMM-ES {covariance}"] = fit(data, chosen.graph, seed)
        shares[f"{covariance}: right edges dropped"] = _share(~chosen.kept, right)
        shares[f"{covariance}: wrong edges kept"] = _share(chosen.kept, ~right)
    return {**_arrays(data, found), **shares}


def _share(of: NDArray[np.bool_], among: NDArray[np.bool_]) -> FloatArray:
    """Share of the edges ``among`` that are in ``of``; 0 where there are none."""
    return np.asarray(np.sum(of & among) / max(1, np.sum(among)))


def _arrays(data: Draw, found: Mapping[str, Fit]) -> dict[str, FloatArray]:
    """Error, lambda and gap of each method, (3,)."""
    return {
        name: np.array([data.error(one.theta), one.lam, one.gap]) for name, one in found.items()
    }


def local_closed_form(n: int) -> float:
    """Expected error of Local, ``p / (n - p - 1)``: the trace of an inverse Wishart mean."""
    return P / (n - P - 1)


def oracle_closed_form(V: int, n: int) -> float:
    """Expected error of least squares on each clique's rows, ``p / (n V/5 - p - 1)``."""
    return P / (n * V / CLIQUES - P - 1)


def global_closed_form(V: int, n: int) -> float:
    """Expected error of one model for all, to first order in 1 / (n V).

    Bias ``(4/5) sqrt(p)``: each theta from the mean of five. Variance p / (n V) of an error whose
    variance is 1 + the bias, since what a device differs by acts as noise.
    """
    bias = (1.0 - 1.0 / CLIQUES) * P**0.5
    return bias + P * (1.0 + bias) / (n * V)
