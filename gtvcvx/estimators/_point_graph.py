"""The graph of nearest neighbours that points are clustered over, in units of their own."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, is_integer
from gtvcvx.estimators._solving import ROUNDING
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.graph_construction import knn_graph

# Squares of smaller distances are lost.
LEAST_EXTENT = 1e-150


def spread_of(points: FloatArray) -> float:
    """Median distance of points (n, d) to their median, those at the median left out.

    However far a few points are, it hardly changes. 0 if all points are equal up to rounding.
    """
    distances = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    apart = distances[distances > 0]
    extent = np.ptp(points, axis=0).max()
    if extent <= ROUNDING * np.abs(points).max():
        return 0.0
    if extent < LEAST_EXTENT:
        raise ValueError(
            f"X: points are less than {LEAST_EXTENT:g} apart, too close for distances in double "
            "precision"
        )
    return float(np.median(apart))


def point_graph(points: FloatArray, n_neighbors: int, **weighting: object) -> EmpiricalGraph:
    """Join distinct points to their neighbours, and equal ones to the first of them.

    Weights are such that lambda has no unit: with lambda = 1, an edge weight's mean sum at a point
    moves it by as much as `spread_of` says, for 2 (w_i - x_i) is at most lambda times that sum.
    Equal points have one centre for every lambda: each but the first has a single edge, which
    could pass on all that pulls at the first.

    Parameters
    ----------
    points : ndarray, shape (n, d)
    n_neighbors : int
        Fewer if there are not as many distinct points.
    **weighting
        ``weights``, ``bandwidth`` and ``floor`` of `knn_graph`.
    """
    if not is_integer(n_neighbors):
        raise TypeError(f"n_neighbors: an integer is expected, got {n_neighbors!r}")
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors: an integer of at least 1 is expected, got {n_neighbors}")
    first, of = distinct(points)
    edges, weights = np.empty((0, 2), dtype=np.int64), np.empty(0)
    if len(first) > 1:
        among = knn_graph(
            points[first],
            min(n_neighbors, len(first) - 1),
            connect=True,
            **weighting,  # type: ignore[arg-type]
        )
        edges = first[among.edges]
        weights = among.weights * ((spread_of(points) or 1.0) * len(first) / among.weights.sum())
    pull = np.bincount(edges.ravel(), np.repeat(weights, 2), len(points))
    copies = np.setdiff1d(np.arange(len(points)), first)
    origin = first[of[copies]]
    return EmpiricalGraph(
        len(points),
        np.concatenate([edges, np.column_stack([origin, copies])]),
        np.concatenate([weights, np.where(pull[origin] > 0, pull[origin], 1.0)]),
    )


def distinct(points: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows that no earlier one equals, increasing, and for each row which of them equals it."""
    # Adding 0 makes -0 the same as 0.
    _, first, of = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(first), dtype=np.int64)
    place[order] = np.arange(len(first))
    return first[order].astype(np.int64), place[of.ravel()]
