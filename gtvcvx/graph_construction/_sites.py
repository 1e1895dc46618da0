"""Sites of nodes: where they are, what they are called, and the distances between them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._geometry import Geometries, flattened, has_geometry, read_geometries
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.graph_construction._spaces import METRICS, MINKOWSKI, Space, space_of


class Sites(NamedTuple):
    """What graphs of near nodes are made from.

    Attributes
    ----------
    space : Space
    nodes : sequence of hashable, or None
    positions : ndarray, shape (n, 2), or None
        Where pictures draw them.
    """

    space: Space
    nodes: Sequence[Hashable] | None
    positions: FloatArray | None


def sites_of(X: Any, metric: str | None, nodes: str | Sequence[Hashable] | None) -> Sites:
    """Read features, coordinates, distances or geometries, as `knn_graph` takes them."""
    if not has_geometry(X):
        space = space_of(X, metric or "euclidean")
        return Sites(space, nodes, _positions(X, metric or "euclidean"))
    shapes = read_geometries(X, "X", nodes)
    return Sites(_between(shapes, metric), shapes.labels, shapes.positions())


def space_of_nodes(X: Any, metric: str | None, graph: EmpiricalGraph) -> Space:
    """Distances between the nodes of a graph; rows of a frame are matched by their labels."""
    if not has_geometry(X):
        return space_of(X, metric or "euclidean")
    return _between(read_geometries(X, "X", None).of_nodes(graph.nodes, "X"), metric)


def _positions(X: Any, metric: str) -> FloatArray | None:
    """Places of points that are checked already, if they are in a plane or on a sphere."""
    points = np.asarray(X, dtype=np.float64)
    if metric == "haversine":
        return flattened(points[:, ::-1], float(points[:, 0].min() + points[:, 0].max()) / 2.0)
    return points if metric in MINKOWSKI and points.shape[1] == 2 else None


def _between(shapes: Geometries, metric: str | None) -> Space:
    """Distances between centroids: on the sphere where the CRS, or the metric, says degrees."""
    if metric not in (None, *METRICS) or metric == "precomputed":
        raise ValueError(
            f"metric: one of {METRICS[:-1]} is expected for geometries, got {metric!r}"
        )
    if shapes.degrees and metric not in (None, "haversine"):
        raise ValueError(
            f"metric: {metric!r} distances of degrees mean nothing; leave the metric out for great "
            "circles, or project the geometries (to_crs)"
        )
    if shapes.degrees is False and metric == "haversine":
        raise ValueError("metric: 'haversine' takes degrees, but the CRS is projected")
    if shapes.degrees is None and metric is None:
        _warn_of_degrees(shapes.bounds)
    if shapes.degrees or metric == "haversine":
        on_sphere = Geometries(shapes.shapes, shapes.labels, True)
        return space_of(on_sphere.centroids()[:, ::-1], "haversine")
    return space_of(shapes.centroids(), metric or "euclidean")


def _warn_of_degrees(bounds: FloatArray) -> None:
    west, south, east, north = bounds.tolist()
    if min(west, -east) >= -180.0 and min(south, -north) >= -90.0:
        warnings.warn(
            "X: there is no CRS, and all coordinates could be degrees; they are taken as lengths. "
            "For longitude and latitude, set_crs(4326) or metric='haversine'; metric='euclidean' "
            "says that they are lengths",
            UserWarning,
            stacklevel=5,
        )
