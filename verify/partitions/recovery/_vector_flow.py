"""Vector flows for a solution that is constant on clusters: between the clusters and inside them.

Between clusters a and b the flow lies in lambda A_e dphi(w~_a - w~_b), which determines it unless
coordinates agree; inside the clusters the least congestion is found by maximum flows (l1, d = 1) or
as a cone problem, and on large clusters bracketed by electrical flows.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from verify._arrays import FloatArray, IntArray
from verify.partitions._data import Partition, ProblemData
from verify.partitions.constants._enclosures import dual_norm
from verify.partitions.recovery._cluster_graph import (
    ClusterGraphSolution,
    merge_threshold,
    run_clarabel,
)
from verify.partitions.recovery._scalar_congestion import ZERO_SUM, least_congestion
from verify.partitions.recovery._vector_congestion import electrical_congestion

#: Vector flows with more entries than this are too large for the cone solver.
LARGE = 20_000
#: Supplies of a connected part that add up to more than this (relative) cannot be routed inside it.
ROUTABLE = 1e-6


class BetweenClusters:
    """What w~ says about the flows on edges between clusters.

    Attributes
    ----------
    merged : ndarray of bool, shape (p,)
        Pairs of clusters with equal parameters.
    determined : ndarray of bool, shape (m,)
        Edges between clusters whose flow is determined.
    undetermined : ndarray of bool, shape (m,)
        The other edges between clusters.
    flow : ndarray, shape (m, d)
        Flow of the determined edges; for the others the proportional split (51).
    direction : ndarray, shape (m, d)
        Sign pattern of w~_head - w~_tail, zero where the coordinates agree (l1) or are not of
        maximal size (linf).
    """

    def __init__(self, data: ProblemData, parts: Partition, cluster: ClusterGraphSolution) -> None:
        between = cluster.pair_of >= 0
        heads, tails = parts.cluster_of[data.edges[:, 0]], parts.cluster_of[data.edges[:, 1]]
        jump = cluster.w[heads] - cluster.w[tails]
        threshold = merge_threshold(cluster.w)
        pair_jump = cluster.w[cluster.pairs[:, 0]] - cluster.w[cluster.pairs[:, 1]]
        self.merged = np.abs(pair_jump).max(axis=1, initial=0.0) <= threshold
        same = np.abs(jump).max(axis=1) <= threshold
        size = np.abs(jump)
        if data.norm == "linf":
            known = size >= size.max(axis=1, keepdims=True) - threshold
        else:
            known = size > threshold
        self.direction = np.where(known & ~same[:, None], np.sign(jump), 0.0)
        count = np.count_nonzero(self.direction, axis=1)
        full = {"l2": ~same, "l1": count == data.dim, "linf": count == 1}[str(data.norm)]
        self.determined = between & full
        self.undetermined = between & ~full
        capacity = data.lam * data.weights
        self.flow = np.zeros((len(data.edges), data.dim))
        if data.norm == "l2":
            length = np.linalg.norm(jump, axis=1)
            unit = jump / np.where(length > 0.0, length, 1.0)[:, None]
        else:
            unit = self.direction
        self.flow[self.determined] = (capacity[:, None] * unit)[self.determined]
        e = np.flatnonzero(self.undetermined)
        pair = cluster.pair_of[e]
        forward = np.where(heads[e] == cluster.pairs[pair, 0], 1.0, -1.0)
        share = forward * data.weights[e] / cluster.weights[pair]
        self.flow[e] = share[:, None] * cluster.flow[pair]


def divergence(edges: IntArray, flow: FloatArray, n: int) -> FloatArray:
    """Compute D^T u, what leaves each node along the flow, (n, d)."""
    out = np.zeros((n, flow.shape[1]))
    np.add.at(out, edges[:, 0], flow)
    np.subtract.at(out, edges[:, 1], flow)
    return out


def flows_inside(
    data: ProblemData, parts: Partition, flows: BetweenClusters, gradients: FloatArray
) -> tuple[list[float], list[float], FloatArray]:
    """Least congestion of every group of clusters joined by undetermined edges.

    Returns
    -------
    tuple
        Lower and upper bounds of each cluster's slack, which agree up to the accuracy of a solver
        unless the cluster is large, and a flow (m, d) whose slack is the lower bound.
    """
    k = parts.n_clusters
    ends = parts.cluster_of[data.edges[flows.undetermined]]
    joined = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(k, k))
    _, group_of = connected_components(joined.tocsr(), directed=False)
    fixed = np.where(flows.determined[:, None], flows.flow, 0.0)
    supply = -gradients - divergence(data.edges, fixed, data.n_nodes)
    edge_group = np.where(flows.determined, -1, group_of[parts.cluster_of[data.edges[:, 0]]])
    u = fixed.copy()
    slacks, above = np.empty(k), np.empty(k)
    node_order = np.argsort(group_of[parts.cluster_of], kind="stable")
    node_first = np.searchsorted(group_of[parts.cluster_of][node_order], np.arange(k + 1))
    edge_order = np.argsort(edge_group, kind="stable")
    edge_first = np.searchsorted(edge_group[edge_order], np.arange(k + 1))
    for g in np.unique(group_of):
        nodes = np.sort(node_order[node_first[g] : node_first[g + 1]])
        edges = np.sort(edge_order[edge_first[g] : edge_first[g + 1]])
        least, congestion, flow = _least_congestion(data, flows, nodes, edges, supply[nodes])
        slacks[group_of == g] = 1.0 - congestion
        above[group_of == g] = 1.0 - least
        u[edges] = flow
    return slacks.tolist(), above.tolist(), u


def _least_congestion(
    data: ProblemData,
    flows: BetweenClusters,
    nodes: IntArray,
    edges: IntArray,
    supply: FloatArray,
) -> tuple[float, float, FloatArray]:
    """Find min t for one group of clusters, as bounds, and a flow on its edges."""
    nothing = np.zeros((len(edges), data.dim))
    ends = np.searchsorted(nodes, data.edges[edges])
    adjacency = sp.coo_array(
        (np.ones(len(edges)), (ends[:, 0], ends[:, 1])), shape=(len(nodes), len(nodes))
    )
    count, component = connected_components(adjacency.tocsr(), directed=False)
    totals = np.zeros((count, data.dim))
    np.add.at(totals, component, supply)
    scale = max(float(np.abs(supply).sum()), data.lam * float(data.weights[edges].sum()))
    if count > 1 and np.abs(totals).max() > ROUTABLE * scale:
        return inf, inf, nothing
    if not len(edges):
        return 0.0, 0.0, nothing
    # rounding in w~ leaves a total that is not quite zero
    centered = supply - (totals / np.bincount(component, minlength=count)[:, None])[component]
    scalar = data.norm == "l1" or data.dim == 1
    partial = flows.direction[edges][flows.undetermined[edges]].any()
    if not scalar and not partial and len(edges) * data.dim > LARGE:
        return _electrical_congestion(data, flows, ends, edges, centered)
    solve = _scalar_congestion if scalar else _cone_congestion
    congestion, flow = solve(data, flows, ends, edges, centered)
    return congestion, congestion, flow


def _electrical_congestion(
    data: ProblemData,
    flows: BetweenClusters,
    ends: IntArray,
    edges: IntArray,
    supply: FloatArray,
) -> tuple[float, float, FloatArray]:
    """Bracket min t on a large group.

    Undetermined edges have the capacity lambda A_e for every t, but are scaled with the others
    here. That is no difference at t = 1, where the verdict is made, nor for lower bounds above 1.
    """
    capacity = data.lam * data.weights[edges]
    found = electrical_congestion(ends, capacity, supply, str(data.norm))
    free = flows.undetermined[edges]
    if not free.any():
        return found.lower, found.upper, found.flow
    load = dual_norm(found.flow, str(data.norm)) / capacity
    upper = float(load[~free].max(initial=0.0)) if load[free].max() <= 1.0 else inf
    return (found.lower if found.lower > 1.0 else 0.0), upper, found.flow


def _scalar_congestion(
    data: ProblemData,
    flows: BetweenClusters,
    ends: IntArray,
    edges: IntArray,
    supply: FloatArray,
) -> tuple[float, FloatArray]:
    """Solve each coordinate by maximum flows: for the l1 penalty they are independent."""
    n, d = supply.shape
    weights = data.weights[edges]
    free = flows.undetermined[edges]
    # what is left of a supply that saturated edges take is rounding
    negligible = ZERO_SUM * (float(np.abs(supply).sum()) + data.lam * float(weights.sum()))
    congestion = 0.0
    u = np.zeros((len(edges), d))
    for j in range(d):
        sign = np.where(free, flows.direction[edges, j], 0.0)
        known = data.lam * weights * sign
        rest = supply[:, j] - divergence(ends, known[:, None], n)[:, 0]
        fixed = np.where(free, np.where(sign == 0.0, data.lam * weights, 0.0), np.nan)
        found = least_congestion(ends, data.lam * weights, fixed, rest, negligible)
        if found.t == inf:
            return inf, np.zeros((len(edges), d))
        congestion = max(congestion, found.t)
        u[:, j] = found.flow + known
    return congestion, u


def _cone_congestion(
    data: ProblemData,
    flows: BetweenClusters,
    ends: IntArray,
    edges: IntArray,
    supply: FloatArray,
) -> tuple[float, FloatArray]:
    """Solve min t subject to conservation and capacities, in units of lambda."""
    import cvxpy as cp  # takes a second

    m, n = len(edges), len(supply)
    rows = np.arange(m)
    incidence = sp.csr_array(
        (
            np.repeat([1.0, -1.0], m),
            (np.concatenate([rows, rows]), np.concatenate([ends[:, 0], ends[:, 1]])),
        ),
        shape=(m, n),
    )
    flow = cp.Variable((m, data.dim))
    t = cp.Variable(nonneg=True)
    weights = data.weights[edges]
    inside = np.flatnonzero(~flows.undetermined[edges])
    free = np.flatnonzero(flows.undetermined[edges])
    order: Any = {"l1": "inf", "l2": 2, "linf": 1}[str(data.norm)]
    constraints = [incidence.T @ flow == supply / data.lam]
    if len(inside):
        constraints.append(cp.norm(flow[inside], order, axis=1) <= t * weights[inside])
    if len(free):
        signs = flows.direction[edges[free]]
        constraints += _faces(data, flow[free], weights[free], signs, order)
    status = run_clarabel(problem := cp.Problem(cp.Minimize(t), constraints))
    if status == cp.INFEASIBLE:
        return inf, np.zeros((m, data.dim))
    return max(float(problem.value), 0.0), data.lam * np.asarray(flow.value)


def _faces(
    data: ProblemData, flow: Any, weights: FloatArray, signs: FloatArray, order: Any
) -> list[Any]:
    """Constrain u_e to A_e dphi(jump) on edges between clusters that leave it undetermined."""
    import cvxpy as cp  # takes a second

    constraints = [cp.norm(flow, order, axis=1) <= weights]
    if not signs.any():
        return constraints
    if data.norm == "l1":
        known = signs != 0.0
        target = weights[:, None] * signs
        constraints.append(cp.multiply(known, flow) == known * target)
    else:
        partial = np.flatnonzero(signs.any(axis=1))
        own = signs[partial]
        constraints.append(cp.multiply(own, flow[partial]) >= 0)
        constraints.append(cp.multiply(own == 0.0, flow[partial]) == 0)
        constraints.append(cp.sum(cp.multiply(own, flow[partial]), axis=1) == weights[partial])
    return constraints
