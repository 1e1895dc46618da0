"""For which lambda are the solutions constant on clusters: proved lower and upper bounds.

Let g_i = grad L_i(w_bar_c), b_i, |dC|, beta_i and alpha be as in Theorem 2. If some solution for
lambda is constant on C, with the value v, then ||v - w_bar|| <= lambda |dC| / alpha, and the
optimal flow u gives for any y in R^{C x d}

    -sum_i <g_i, y_i>  <=  lambda [ sum over inner e of A_e phi((D y)_e) + sum_i c_i phi(y_i) ],

with c_i = b_i + beta_i |dC| / alpha. Hence the lower bound: the largest ratio over y. Its dual is a
flow problem, min lambda such that (D^T v)_i + z_i = -g_i, ||v_e||_* <= lambda A_e and ||z_i||_* <=
lambda c_i. Without a boundary c = 0, and the two agree: a flow v proves that the solution is
constant on C for every lambda above max_e ||v_e||_* / A_e. With a boundary the upper bound is the
lam_min of Definition 1.

Both bounds are recomputed from y and v with outward rounding; the solver is not trusted. What v
leaves of -g is routed along a spanning tree, where it is bounded by the sum of its norms.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf, isinf
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from verify._arrays import FloatArray, IntArray
from verify._display import fitted, html_report
from verify.partitions._data import Partition, ProblemData, read_partition, read_problem
from verify.partitions._local_losses import LocalLosses
from verify.partitions._rounding import TINY, Enclosure, gamma
from verify.partitions.constants._enclosures import dual_norm
from verify.partitions.constants._theorem import TheoremConstants, theorem_constants
from verify.partitions.recovery._cluster_graph import run_clarabel
from verify.partitions.recovery._scalar_congestion import least_congestion
from verify.partitions.well_connected._best_sink import ClusterGraph, cluster_graphs
from verify.partitions.well_connected._decide import least_lambda
from verify.partitions.well_connected._demands import boundary_weights, demands_of


@dataclass(frozen=True)
class CriticalLambda:
    """Result of :func:`critical_lambda`.

    Attributes
    ----------
    lower : float
        For no lambda below it is any solution constant on all clusters.
    upper : float
        For every lambda above it every solution is constant on each cluster; inf if not proved.
    clusters : dict of hashable to (float, float)
        (lower, upper) by cluster label.
    reason : str
        Why nothing is proved about some cluster; empty if bounds were computed for all.
    """

    lower: float
    upper: float
    clusters: dict[Hashable, tuple[float, float]]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; infinite numbers become the string "inf"."""

        def plain(x: float) -> float | str:
            return "inf" if x == inf else x

        return {
            "schema": "gtv-critical-lambda/1",
            "lower": plain(self.lower),
            "upper": plain(self.upper),
            "clusters": [[key, plain(a), plain(b)] for key, (a, b) in self.clusters.items()],
            "reason": self.reason,
        }

    def __str__(self) -> str:
        lines = [
            f"critical lambda: between {self.lower:.9g} and {self.upper:.9g}",
            f"  below {self.lower:.9g} no solution is constant on all clusters",
            f"  above {self.upper:.9g} every solution is constant on each cluster",
        ]
        if isinf(self.upper):
            lines[2] = "  no lambda is known above which every solution is constant on each cluster"
        return fitted([*lines, *([f"  {self.reason}"] if self.reason else [])])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show the report."""
        return html_report(str(self))


def critical_lambda(problem: object, partition: object = None) -> CriticalLambda:
    """Bound the smallest lambda from which on all solutions are constant on clusters.

    Parameters
    ----------
    problem : object or mapping
        A GTV problem with a method ``to_data()``, or its plain data; its lambda is not used. Smooth
        losses and the l1, l2 or linf penalty.
    partition : array_like or list of lists, optional
        (n,) labels or a list of lists of nodes. Default: the connected components, for which the
        bounds agree up to the accuracy of the solver. For clusters with a boundary they are those
        of the module's text, and may be far apart.

    Returns
    -------
    CriticalLambda
        Bounds 0 and inf, and a ``reason``, where the theory does not apply.

    Raises
    ------
    TypeError, ValueError
        If the data are malformed, or the partition misses or repeats a node.
    cvxpy.SolverError
        If the solver fails.
    """
    data = read_problem(problem)
    parts = _components(data) if partition is None else read_partition(partition, data.names)
    if data.norm is None:
        return CriticalLambda(0.0, inf, dict.fromkeys(parts.keys, (0.0, inf)), data.norm_reason)
    losses = LocalLosses(data.n_nodes, data.dim, data.terms)
    constants = theorem_constants(data, parts, losses)
    boundary = boundary_weights(data, parts)
    bounds, reasons = {}, []
    for c, graph in enumerate(cluster_graphs(data, parts)):
        reason = constants.reasons[c]
        if graph.n_nodes == 1 or _is_trivial(graph, losses, boundary):
            bounds[parts.keys[c]] = (0.0, 0.0)
        elif reason:
            bounds[parts.keys[c]] = (0.0, inf)
            reasons.append(f"cluster {parts.keys[c]!r}: {reason}")
        else:
            bounds[parts.keys[c]] = _cluster_bounds(data, graph, constants, boundary, c)
    return CriticalLambda(
        max(low for low, _ in bounds.values()),
        max(high for _, high in bounds.values()),
        bounds,
        "; ".join(reasons),
    )


def _components(data: ProblemData) -> Partition:
    ones = np.ones(len(data.edges), dtype=np.int8)
    shape = (data.n_nodes, data.n_nodes)
    adjacency = sp.coo_array((ones, (data.edges[:, 0], data.edges[:, 1])), shape=shape)
    _, label = connected_components(adjacency.tocsr(), directed=False)
    return read_partition(label, data.names)


def _is_trivial(graph: ClusterGraph, losses: LocalLosses, boundary: Enclosure) -> bool:
    """Whether the cluster is connected, without boundary, and all its losses are zero."""
    own = graph.nodes
    zero = not losses.upper[own].any() and not losses.error[own].any()
    smooth = not (losses.nonsmooth[own] != "").any()
    return zero and smooth and not boundary.hi[own].any() and graph.components[0] == 1


def _cluster_bounds(
    data: ProblemData,
    graph: ClusterGraph,
    constants: TheoremConstants,
    boundary: Enclosure,
    c: int,
) -> tuple[float, float]:
    own = graph.nodes
    demands = demands_of(data, graph, constants, boundary, c)
    norm = str(data.norm)
    gradients, gradient_error = constants.gradients[own], constants.gradient_error[own]
    isolated = not boundary.hi[own].any()
    extra = np.zeros(len(own)) if isolated else demands.base_hi
    if graph.components[0] > 1:
        return _lower_of_components(graph, gradients, gradient_error, extra, norm), inf
    solve = _solve_scalar if norm == "l1" or data.dim == 1 else _solve_cone
    flow, y = solve(graph, gradients, extra, norm)
    lower = lower_bound(graph, gradients, gradient_error, extra, y, norm)
    if isolated:
        upper = upper_bound(graph, gradients, gradient_error, flow, norm)
    else:
        upper = least_lambda(graph, demands.base_hi, demands.delta.hi)
    return lower, upper


def _solve_scalar(
    graph: ClusterGraph, gradients: FloatArray, extra: FloatArray, norm: str
) -> tuple[FloatArray, FloatArray]:
    """Solve each coordinate of the flow problem by maximum flows; y from the worst of them.

    The flows z_i go to one more node, the ground, along edges of weight c_i.
    """
    n, d = gradients.shape
    ground = np.flatnonzero(extra)
    to_ground = np.stack([ground, np.full(len(ground), n)], axis=1)
    edges = np.concatenate([graph.edges, to_ground])
    weights = np.concatenate([graph.weights, extra[ground]])
    flow, y = np.zeros((len(graph.edges), d)), np.zeros((n, d))
    worst = -1.0
    for j in range(d):
        supply = np.append(-gradients[:, j], gradients[:, j].sum())
        if not len(ground):
            supply = supply[:-1] - supply[:-1].mean()
        found = least_congestion(edges, weights, np.full(len(edges), np.nan), supply)
        flow[:, j] = found.flow[: len(flow)]
        if found.t > worst:
            worst = found.t
            y[:] = 0.0
            tight = found.tight.astype(np.float64)
            y[:, j] = tight[:n] - (tight[n] if len(ground) else 0.0)
    return flow, y


def _solve_cone(
    graph: ClusterGraph, gradients: FloatArray, extra: FloatArray, norm: str
) -> tuple[FloatArray, FloatArray]:
    """Solve the flow problem with CVXPY and Clarabel for v and multipliers y; approximate."""
    import cvxpy as cp  # takes a second

    n, d = gradients.shape
    m = len(graph.edges)
    order: Any = {"l1": "inf", "l2": 2, "linf": 1}[norm]
    scale = float(np.abs(gradients).max()) or 1.0
    flow, lam = cp.Variable((m, d)), cp.Variable(nonneg=True)
    net_flow: Any = _incidence(graph).T @ flow
    constraints = [cp.norm(flow, order, axis=1) <= lam * graph.weights]
    if extra.any():
        slack = cp.Variable((n, d))
        net_flow = net_flow + slack
        constraints.append(cp.norm(slack, order, axis=1) <= lam * extra)
    conservation = net_flow == -gradients / scale
    run_clarabel(cp.Problem(cp.Minimize(lam), [conservation, *constraints]))
    y = -np.asarray(conservation.dual_value).reshape(n, d)
    return scale * np.asarray(flow.value).reshape(m, d), y


def _incidence(graph: ClusterGraph) -> Any:
    m = len(graph.edges)
    rows = np.arange(m)
    columns = np.concatenate([graph.edges[:, 0], graph.edges[:, 1]])
    signs = np.repeat([1.0, -1.0], m)
    shape = (m, graph.n_nodes)
    return sp.csr_array((signs, (np.concatenate([rows, rows]), columns)), shape=shape)


def _norm(vectors: FloatArray, norm: str) -> FloatArray:
    """Penalty norm of each row."""
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    return np.asarray(np.linalg.norm(vectors, order, axis=1))


def lower_bound(
    graph: ClusterGraph,
    gradients: FloatArray,
    gradient_error: FloatArray,
    extra: FloatArray,
    y: FloatArray,
    norm: str,
) -> float:
    """Compute the ratio of the module's text at y or -y, rounded down; a bound for every finite y.

    Parameters
    ----------
    graph : ClusterGraph
        A cluster, with inner weights.
    gradients, gradient_error : ndarray
        (n_c, d) gradients g, each known up to ``gradient_error`` (n_c,) in the dual norm.
    extra : ndarray, shape (n_c,)
        Upper bounds of the c_i.
    y : ndarray, shape (n_c, d)
        Test vectors.
    norm : str
        Norm of the penalty.
    """
    n, d = gradients.shape
    # a common shift changes nothing exactly (the gradients add up to zero), but it does in floats
    if not extra.any():
        y = y - np.median(y, axis=0)
    size = _norm(y, norm)
    work = abs(float((gradients * y).sum()))
    rounding = float(gamma(n * d + 4) * np.abs(gradients * y).sum() + (gradient_error * size).sum())
    jump = y[graph.edges[:, 0]] - y[graph.edges[:, 1]]
    below = float((graph.weights * _norm(jump, norm)).sum() + (extra * size).sum())
    below *= 1.0 + float(gamma(len(jump) + n + d + 12))
    above = work - rounding * (1.0 + float(gamma(n + d + 8))) - TINY
    if not (np.isfinite(above) and np.isfinite(below)) or above <= 0.0 or below <= 0.0:
        return 0.0
    return above / below * (1.0 - float(gamma(4)))


def upper_bound(
    graph: ClusterGraph,
    gradients: FloatArray,
    gradient_error: FloatArray,
    flow: FloatArray,
    norm: str,
) -> float:
    """Bound max_e ||v_e||_* / A_e from above for a true flow v within rounding of ``flow``.

    The cluster is connected and has no boundary, so that the true gradients add up to zero and the
    rest -g - D^T v can be routed along a spanning tree.
    """
    n, d = gradients.shape
    order, parent, tree_edge = _spanning_tree(graph)
    incidence = _incidence(graph)
    rest = -gradients - incidence.T @ flow
    flow = flow.copy()
    for v in order[:0:-1]:  # leaves first; route what is left towards the root
        e = tree_edge[v]
        flow[e] += rest[v] if graph.edges[e, 0] == v else -rest[v]
        rest[parent[v]] += rest[v]
    rest = -gradients - incidence.T @ flow
    ends = np.bincount(graph.edges.ravel(), minlength=n)
    absolute = np.abs(gradients) + abs(incidence).T @ np.abs(flow)
    unsure = dual_norm(np.abs(rest) + gamma(ends + 4)[:, None] * absolute, norm)
    unsure = (unsure * (1.0 + gamma(d + 8)) + gradient_error) * (1.0 + gamma(n + 8)) + TINY
    more = np.zeros(len(flow))
    for v in order[:0:-1]:
        more[tree_edge[v]] = unsure[v]
        unsure[parent[v]] += unsure[v]
    size = dual_norm(flow, norm) * (1.0 + gamma(d + 4)) + more
    return float((size / graph.weights).max() * (1.0 + gamma(6)))


def _spanning_tree(
    graph: ClusterGraph,
) -> tuple[IntArray, IntArray, IntArray]:
    """Breadth-first order, parents and edges to the parents in a tree of large weights."""
    n, m = graph.n_nodes, len(graph.edges)
    rank = np.empty(m)
    rank[np.argsort(-graph.weights, kind="stable")] = np.arange(1, m + 1)
    shape = (n, n)
    ranks = sp.coo_array((rank, (graph.edges[:, 0], graph.edges[:, 1])), shape=shape).tocsr()
    tree = minimum_spanning_tree(ranks).tocoo()
    by_rank = np.argsort(rank)
    order, parent = breadth_first_order(tree.tocsr(), 0, directed=False)
    edge = np.full(n, -1, dtype=np.int64)
    for a, b, r in zip(tree.row, tree.col, tree.data, strict=True):
        child = a if parent[a] == b else b
        edge[child] = by_rank[int(r) - 1]
    return order.astype(np.int64), parent.astype(np.int64), edge


def _lower_of_components(
    graph: ClusterGraph,
    gradients: FloatArray,
    gradient_error: FloatArray,
    extra: FloatArray,
    norm: str,
) -> float:
    """Lower bound from test vectors that are constant on the components of a cluster."""
    count, label = graph.components
    best = 0.0
    for component in range(count):
        inside = label == component
        total = gradients[inside].sum(axis=0)
        unsure = float(gradient_error[inside].sum())
        size = float(gamma(inside.sum() + 8) * np.abs(gradients[inside]).sum())
        above = float(dual_norm(total[None], norm)[0]) - 2.0 * (unsure + size) - TINY
        below = float(extra[inside].sum()) * (1.0 + float(gamma(inside.sum() + 4)))
        if above > 0.0:
            best = max(best, inf if below == 0.0 else above / below * (1.0 - float(gamma(4))))
    return best
