"""Clusters of a partition beside those of a solution that is given.

For any solution w_hat, any point w and any dual feasible flow u, an edge's share in the gap gives

    (lambda A_e - ||u_e||_*) phi((D w_hat)_e)  <=  P(w_hat) - Dual(u)  <=  P(w) - Dual(u)  =  gap,

and the shares of the edges of a path add up to no more than the gap. So nodes that are joined by
edges with room for the flow have models no further apart than gap / (least room on the way), in
every solution. The gap is that of an exact certificate; where it is zero, the models are equal.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.certificates._certificate import Certificate
from verify.certificates._entry import certify
from verify.partitions._data import Partition, ProblemData
from verify.partitions._rounding import gamma
from verify.partitions._solved import EQUAL, MERGED, SPLIT, SolvedCluster, SolvedPartition
from verify.partitions.constants._room import flow_room

#: Of the spread of all models: the same as in `Solution.clusters`, so that both find the same.
TOLERANCE = 1e-3


def compare(
    problem: object, data: ProblemData, parts: Partition, solution: object
) -> SolvedPartition:
    """Certify a solution, and compare its clusters with those of a partition.

    Parameters
    ----------
    problem : object or mapping
        The problem as given, which may offer `solve`.
    data, parts : ProblemData and Partition
    solution : object
        With arrays ``w`` and perhaps ``u``; the pair of them; or ``w`` alone.
    """
    certificate = certify(problem, *_point(solution))
    w = certificate.w
    tolerance = _tolerance(w)
    bounds = _edge_bounds(data, certificate)
    small = bounds <= tolerance
    jumps = np.linalg.norm(w[data.edges[:, 0]] - w[data.edges[:, 1]], axis=1)
    part_of = _components(data, small | (jumps <= tolerance))[1]
    meetings = np.unique(np.column_stack([part_of, parts.cluster_of]), axis=0)
    n_parts = np.bincount(meetings[:, 1], minlength=parts.n_clusters)
    merged = _merged(meetings)
    bound, spread = _cluster_bounds(data, parts, bounds, small), _spreads(w, parts)
    one = (bound <= tolerance) | (spread <= tolerance)
    shared = np.isin(np.arange(parts.n_clusters), [c for group in merged for c in group])
    found = np.where(~one, SPLIT, np.where(shared, MERGED, EQUAL))
    clusters = {
        key: SolvedCluster(key, *values)
        for key, *values in zip(
            *(parts.keys, found.tolist(), n_parts.tolist(), spread.tolist(), bound.tolist()),
            strict=True,
        )
    }
    groups = [[parts.keys[c] for c in group] for group in merged]
    return SolvedPartition(data.lam, clusters, groups, tolerance, certificate)


def _point(solution: Any) -> tuple[Any, Any]:
    if hasattr(solution, "w"):
        return solution.w, getattr(solution, "u", None)
    if isinstance(solution, np.ndarray):
        return solution, None
    if isinstance(solution, (tuple, list)) and len(solution) == 2:
        return solution[0], solution[1]
    raise TypeError(
        "solution: an object with w and u, the pair (w, u) or an array w is expected, got "
        f"{type(solution).__name__}"
    )


def _tolerance(w: FloatArray) -> float:
    """Distance up to which models count as one; 0 where all are zero: nothing gives a scale."""
    # In consensus the spread is rounding; the floor keeps nodes that agree together.
    spread = max(float(np.ptp(w, axis=0).max()), TOLERANCE * float(np.abs(w).max()))
    return TOLERANCE * spread


def _edge_bounds(data: ProblemData, certificate: Certificate) -> FloatArray:
    """How far the models at the ends of each edge can be apart in any solution, (m,)."""
    unknown = np.full(len(data.edges), inf)
    if data.norm is None or not certificate.exact:
        return unknown
    gap = max(certificate.gap, 0.0) * (1.0 + float(gamma(8)))
    if data.norm == "linf":  # the gap bounds the penalty's norm; Euclidean is at most sqrt(d) times
        gap *= float(np.sqrt(data.dim))
    room = flow_room(certificate.u, data.weights, data.lam, data.norm)[0]
    return np.divide(gap, room, out=unknown, where=room > 0.0)


def _components(data: ProblemData, edges: BoolArray) -> tuple[int, IntArray]:
    return connected_components(_adjacency(data, edges, np.ones(int(edges.sum()))), directed=False)


def _adjacency(data: ProblemData, edges: BoolArray, values: FloatArray) -> Any:
    heads, tails = data.edges[edges].T
    return sp.csr_array((values, (heads, tails)), shape=(data.n_nodes, data.n_nodes))


def _cluster_bounds(
    data: ProblemData, parts: Partition, bounds: FloatArray, small: BoolArray
) -> FloatArray:
    """How far the models of two nodes of each cluster can be apart in any solution, (k,).

    Of the edges with small bounds those of a minimum spanning forest, which has the least largest
    bound on the way between any two nodes; inf where it leaves a cluster in several trees.
    """
    # An entry of zero is no edge for SciPy, and a gap can be zero.
    given = bounds[small]
    forest = minimum_spanning_tree(_adjacency(data, small, np.maximum(given, 1e-300))).tocoo()
    count, tree_of = connected_components(forest, directed=False)
    largest = np.zeros(count)
    np.maximum.at(largest, tree_of[forest.row], forest.data)
    largest[largest <= 1e-300] = 0.0
    tree = tree_of[parts.order]
    first, last = np.minimum.reduceat(tree, parts.first), np.maximum.reduceat(tree, parts.first)
    return np.where(first == last, largest[first], inf)


def _spreads(w: FloatArray, parts: Partition) -> FloatArray:
    """Diagonal of the box around the models of each cluster, (k,)."""
    rows = w[parts.order]
    high, low = np.maximum.reduceat(rows, parts.first), np.minimum.reduceat(rows, parts.first)
    return np.asarray(np.linalg.norm(high - low, axis=1))


def _merged(meetings: IntArray) -> list[list[int]]:
    """Return the clusters of the partition that meet in a cluster of the solution, in groups.

    Parameters
    ----------
    meetings : ndarray, shape (k, 2)
        Clusters of the solution, sorted, and of the partition, each pair with common nodes once.
    """
    starts = np.flatnonzero(np.diff(meetings[:, 0])) + 1
    groups = [group.tolist() for group in np.split(meetings[:, 1], starts)]
    return [list(group) for group in dict.fromkeys(map(tuple, groups)) if len(group) > 1]
