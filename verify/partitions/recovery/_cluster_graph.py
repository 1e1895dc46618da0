"""The GTV problem on the cluster graph, (41)-(42) of [GTV]: one node for each cluster.

Restricting w to be constant on the clusters adds up the losses of each cluster and the weights of
the edges between each two clusters. Clusters may get equal solutions (they merge), and then the
flow between them is not determined by their difference.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from verify._arrays import FloatArray, IntArray
from verify.partitions._data import Partition, ProblemData
from verify.partitions._local_losses import LocalLosses, row_groups
from verify.partitions.constants._theorem import cluster_sum, minimizers
from verify.partitions.recovery._newton import newton_on_face

#: Cluster parameters closer than this (relative) count as equal.
MERGE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class ClusterGraphSolution:
    """Solution of the problem on the cluster graph.

    Attributes
    ----------
    w : ndarray, shape (k, d)
        Cluster parameters w~.
    pairs, weights : ndarray of int and ndarray
        (p, 2) neighbouring clusters a < b, and (p,) the summed weights A~.
    flow : ndarray, shape (p, d)
        Flow from a to b, in the sense of the dual problem.
    pair_of : ndarray of int, shape (m,)
        Pair of each edge of the graph, -1 for the edges inside clusters.
    """

    w: FloatArray
    pairs: IntArray
    weights: FloatArray
    flow: FloatArray
    pair_of: IntArray


def solve_cluster_graph(
    data: ProblemData, parts: Partition, losses: LocalLosses
) -> ClusterGraphSolution:
    """Solve the problem on the cluster graph with CVXPY and Clarabel.

    Raises
    ------
    cvxpy.SolverError
        If the solver fails.
    """
    pairs, weights, pair_of = _cluster_pairs(data, parts)
    start = _centers(losses, parts)
    if not len(pairs):
        return ClusterGraphSolution(start, pairs, weights, np.zeros((0, data.dim)), pair_of)
    w, flow = _solve(data, parts, losses, start, pairs, weights)
    w = newton_on_face(
        w, pairs, data.lam * weights, losses, parts, str(data.norm), merge_threshold(w)
    )
    return ClusterGraphSolution(w, pairs, weights, flow, pair_of)


def merge_threshold(w: FloatArray) -> float:
    """Return the size up to which differences count as zero."""
    return MERGE_TOLERANCE * max(1.0, float(np.abs(w).max(initial=0.0)))


def _cluster_pairs(data: ProblemData, parts: Partition) -> tuple[IntArray, FloatArray, IntArray]:
    """Neighbouring clusters, their summed weights, and the pair of each edge."""
    ends = np.sort(parts.cluster_of[data.edges], axis=1)
    crossing = np.flatnonzero(ends[:, 0] != ends[:, 1])
    codes = ends[crossing, 0] * parts.n_clusters + ends[crossing, 1]
    distinct, which = np.unique(codes, return_inverse=True)
    pair_of = np.full(len(data.edges), -1, dtype=np.int64)
    pair_of[crossing] = which
    pairs = np.stack([distinct // parts.n_clusters, distinct % parts.n_clusters], axis=1)
    weights = np.bincount(which, data.weights[crossing], len(pairs)).astype(np.float64)
    return pairs, weights, pair_of


def _centers(losses: LocalLosses, parts: Partition) -> FloatArray:
    """Cluster minimizers where the summed Hessian is regular, else a least-squares solution."""
    curvature = cluster_sum(losses.upper, parts)
    eigenvalues = np.linalg.eigvalsh(curvature)
    regular = eigenvalues[:, 0] > 1e-12 * np.maximum(eigenvalues[:, -1], 1e-300)
    centers = minimizers(losses, parts, regular)
    slope = cluster_sum(losses.gradients(centers[parts.cluster_of]).value, parts)
    for c in np.flatnonzero(~regular):
        centers[c] -= np.linalg.pinv(curvature[c], hermitian=True) @ slope[c]
    return centers


def _solve(
    data: ProblemData,
    parts: Partition,
    losses: LocalLosses,
    start: FloatArray,
    pairs: IntArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return w~ and the flow between neighbouring clusters; the unknown is the step from start."""
    import cvxpy as cp  # takes a second

    k, d = start.shape
    step = cp.Variable((k, d))
    jump = cp.Variable((len(pairs), d))
    objective: Any = _loss_expression(data, parts, losses, start, step)
    order: Any = {"l1": 1, "l2": 2, "linf": "inf"}[str(data.norm)]
    objective += cp.sum(cp.multiply(data.lam * weights, cp.norm(jump, order, axis=1)))
    rows = np.arange(len(pairs))
    incidence = sp.csr_array(
        (
            np.repeat([1.0, -1.0], len(pairs)),
            (np.concatenate([rows, rows]), np.concatenate([pairs[:, 0], pairs[:, 1]])),
        ),
        shape=(len(pairs), k),
    )
    coupling = incidence @ step + incidence @ start - jump == 0
    problem = cp.Problem(cp.Minimize(objective), [coupling])
    run_clarabel(problem)
    return start + np.asarray(step.value), np.asarray(coupling.dual_value).reshape(-1, d)


def run_clarabel(problem: Any) -> str:
    """Solve a CVXPY problem as accurately as Clarabel can; the status, CVXPY's word for it."""
    import cvxpy as cp  # takes a second

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the status says it
        problem.solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-11, max_iter=500
        )
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE, cp.INFEASIBLE):
        raise cp.SolverError(f"Clarabel ended with status {problem.status!r}")
    return str(problem.status)


def _loss_expression(
    data: ProblemData, parts: Partition, losses: LocalLosses, start: FloatArray, step: Any
) -> Any:
    """Sum of the cluster losses at start + step, up to a constant."""
    import cvxpy as cp  # takes a second

    k, d = start.shape
    smooth = [term for term in data.terms if term["kind"] != "logistic"]
    quadratic = LocalLosses(data.n_nodes, d, smooth) if losses.has_logistic else losses
    slope = cluster_sum(quadratic.gradients(start[parts.cluster_of]).value, parts)
    values, vectors = np.linalg.eigh(cluster_sum(quadratic.lower, parts))
    roots = np.sqrt(np.maximum(values, 0.0) / 2.0)[:, :, None] * vectors.transpose(0, 2, 1)
    factor = sp.block_diag(list(roots), format="csr")
    expression = cp.sum(cp.multiply(slope, step))
    expression += cp.sum_squares(factor @ cp.reshape(step, (k * d,), order="C"))
    for term in data.terms:
        if term["kind"] == "logistic":
            _, _, count = row_groups(term["node"])
            cluster = parts.cluster_of[term["node"]]
            z = cp.sum(cp.multiply(term["X"], step[cluster] + start[cluster]), axis=1)
            loss = cp.logistic(z) - cp.multiply(term["y"], z)
            expression += cp.sum(cp.multiply(1.0 / np.repeat(count, count), loss))
    return expression
