"""Geometries of nodes: rows of a GeoDataFrame, with their ids, centroids and places in the plane.

shapely is the extra ``geo`` and is imported when it is used. Nothing of geopandas is imported:
frames are told by what they have, ``geometry``, ``index`` and ``crs``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx._extras import extra_module

_POLYGONS = ("Polygon", "MultiPolygon")


@dataclass(frozen=True)
class Geometries:
    """Geometries of n nodes, neither missing nor empty nor invalid.

    Attributes
    ----------
    shapes : ndarray of object, shape (n,)
        shapely geometries.
    labels : list of hashable, length n
        Node labels: the index of a frame, or a column of it; 0, ..., n-1 if there is none.
    degrees : bool or None
        Whether coordinates are longitude and latitude. None: there is no CRS.
    """

    shapes: NDArray[Any]
    labels: list[Any]
    degrees: bool | None

    @cached_property
    def bounds(self) -> FloatArray:
        """Least x and y, greatest x and y of all, (4,)."""
        return np.asarray(_shapely().total_bounds(self.shapes))

    def centroids(self) -> FloatArray:
        """Centroids (n, 2), x and y; longitude and latitude, on the sphere, for degrees."""
        if self.degrees:
            return _centroids_on_sphere(self.shapes, self.labels)
        centres = _shapely().centroid(self.shapes)
        return np.asarray(_shapely().get_coordinates(centres))

    def in_plane(self, points: FloatArray) -> FloatArray:
        """Points (k, 2) in the plane of the picture; degrees are as long there as on the map."""
        if not self.degrees:
            return points
        return flattened(points, (self.bounds[1] + self.bounds[3]) / 2.0)

    def positions(self) -> FloatArray:
        """Centroids in the plane of the picture, (n, 2)."""
        return self.in_plane(self.centroids())

    def of_nodes(self, nodes: Sequence[Any], argument: str) -> Geometries:
        """Return them in the order of nodes: matched by label, or by position if a side has none.

        Raises
        ------
        ValueError
            There are more or fewer rows than nodes, or both have labels, which differ.
        """
        n = len(nodes)
        if len(self.labels) != n:
            raise ValueError(
                f"{argument}: one row for each of the {n} nodes is expected, got {len(self.labels)}"
            )
        row = {label: k for k, label in enumerate(self.labels)}
        order = list(range(n))
        if row.keys() == set(nodes):
            order = [row[label] for label in nodes]
        elif self.labels != order and list(nodes) != order:
            other = next(label for label in nodes if label not in row)
            raise ValueError(
                f"{argument}: its labels are not those of the nodes; there is no row {other!r}. "
                "Set the index of the frame to the node labels"
            )
        return Geometries(self.shapes[order], list(nodes), self.degrees)


def flattened(degrees: FloatArray, latitude: float) -> FloatArray:
    """Longitudes and latitudes (k, 2) in a plane whose scale is right at one latitude."""
    return degrees * [np.cos(np.radians(latitude)), 1.0]


def has_geometry(given: Any) -> bool:
    """Whether this is a frame or a series with geometry, or a sequence of shapely geometries."""
    if hasattr(type(given), "geometry"):
        return True
    is_list = isinstance(given, (list, tuple)) or (
        isinstance(given, np.ndarray) and given.dtype == object
    )
    return is_list and len(given) > 0 and any(hasattr(shape, "geom_type") for shape in given)


def read_geometries(
    given: Any, argument: str, nodes: str | Sequence[Hashable] | None, *, polygons: bool = False
) -> Geometries:
    """Read a GeoDataFrame, GeoSeries or sequence of shapely geometries.

    Parameters
    ----------
    given : GeoDataFrame, GeoSeries or sequence of shapely geometries
    argument : str
        Its name, for messages.
    nodes : str or sequence of hashable, optional
        Node labels: the name of a column, or labels. Default: the index of a frame.
    polygons : bool
        Refuse what is not an area.

    Raises
    ------
    ImportError
        There is no shapely.
    TypeError, ValueError
        Naming the row: a geometry that is missing, empty, invalid or, with ``polygons``, no area;
        a label that is missing.
    """
    _shapely()
    if not has_geometry(given):
        raise TypeError(
            f"{argument}: a GeoDataFrame, a GeoSeries or a sequence of shapely geometries is "
            f"expected, got {type(given).__name__}"
        )
    is_frame = hasattr(type(given), "geometry")
    rows = list(given.geometry) if is_frame else list(given)
    shapes = np.empty(len(rows), dtype=object)
    shapes[:] = rows
    index = list(given.index) if is_frame else list(range(len(rows)))
    degrees = None if not is_frame or given.crs is None else bool(given.crs.is_geographic)
    _check(shapes, index, argument, polygons)
    return Geometries(shapes, _labels(given, index, nodes), degrees)


def _shapely() -> Any:
    return extra_module("shapely", "geo", "geometries")


def _labels(given: Any, index: list[Any], nodes: str | Sequence[Hashable] | None) -> list[Any]:
    if isinstance(nodes, str):
        columns = list(getattr(given, "columns", []))
        if nodes not in columns:
            there = ", ".join(map(repr, columns)) or "none at all"
            raise ValueError(f"nodes: there is no column {nodes!r}; the columns are {there}")
        labels = list(given[nodes])
    else:
        labels = index if nodes is None else list(nodes)
    for place, label in zip(index, labels, strict=False):
        if _is_missing(label):
            raise ValueError(f"nodes: row {_plain(place)!r} has no label")
    return [_plain(label) for label in labels]


def _is_missing(label: Any) -> bool:
    """Whether this is None, NaN, or NA or NaT of pandas."""
    is_nan = isinstance(label, float) and label != label
    return label is None or is_nan or type(label).__name__ in ("NAType", "NaTType")


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _check(shapes: NDArray[Any], index: Sequence[Any], argument: str, polygons: bool) -> None:
    """Refuse the first row that cannot be a place, by its label."""
    shapely = _shapely()

    def refuse(wrong: BoolArray, problem: str) -> None:
        if wrong.any():
            k = int(np.argmax(wrong))
            text = problem.format(kind=getattr(shapes[k], "geom_type", type(shapes[k]).__name__))
            raise ValueError(f"{argument}: row {_plain(index[k])!r} {text}")

    if not len(shapes):
        raise ValueError(f"{argument}: there is no row")
    refuse(shapely.is_missing(shapes), "has no geometry")
    refuse(~shapely.is_geometry(shapes), "has no geometry of shapely but {kind}")
    refuse(shapely.is_empty(shapes), "has an empty geometry")
    if polygons:
        areas = np.array([shape.geom_type in _POLYGONS for shape in shapes])
        refuse(~areas, "is no Polygon or MultiPolygon but {kind}")
    valid = shapely.is_valid(shapes)
    if not valid.all():
        reason = shapely.is_valid_reason(shapes[int(np.argmin(valid))])
        refuse(~valid, f"has an invalid geometry ({reason}); shapely's make_valid repairs it")


def _check_degrees(shapes: NDArray[Any], labels: Sequence[Any]) -> None:
    west, south, east, north = _shapely().bounds(shapes).T
    wrong = (np.maximum(-south, north) > 90.0) | (np.maximum(-west, east) > 360.0)
    if wrong.any():
        label = labels[int(np.argmax(wrong))]
        raise ValueError(f"row {label!r} is no place in degrees of longitude and latitude")


def _centroids_on_sphere(shapes: NDArray[Any], labels: Sequence[Any]) -> FloatArray:
    """Longitudes and latitudes (n, 2) of the centroids of shapes in degrees.

    Each is taken in an equal-area plane around the mean of its own vertices (the azimuthal
    projection of Lambert), so that neither high latitudes nor the date line matter.
    """
    shapely = _shapely()
    _check_degrees(shapes, labels)
    degrees, owner = shapely.get_coordinates(shapes, return_index=True)
    points = on_sphere(degrees)
    sums = [np.bincount(owner, x, len(shapes)) for x in points.T]
    centre: FloatArray = np.stack(sums, axis=1).astype(np.float64)
    length = np.linalg.norm(centre, axis=1)
    if not length.min() > 0.0:
        raise ValueError(f"row {labels[int(np.argmin(length))]!r} goes around the whole globe")
    centre /= length[:, None]
    east = np.stack([-centre[:, 1], centre[:, 0], np.zeros(len(shapes))], axis=1)
    east /= np.maximum(np.linalg.norm(east, axis=1, keepdims=True), np.finfo(float).tiny)
    north = np.cross(centre, east)
    towards = np.einsum("kc,kc->k", points, centre[owner])
    scale = np.sqrt(2.0 / np.maximum(1.0 + towards, 1e-12))
    plane = [scale * np.einsum("kc,kc->k", points, axis[owner]) for axis in (east, north)]
    flat = shapely.set_coordinates(shapes.copy(), np.stack(plane, axis=1))
    x, y = shapely.get_coordinates(shapely.centroid(flat)).T[:, :, None]
    square = x**2 + y**2
    found = (1.0 - square / 2.0) * centre + np.sqrt(1.0 - square / 4.0) * (x * east + y * north)
    longitude = np.arctan2(found[:, 1], found[:, 0])
    latitude = np.arctan2(found[:, 2], np.hypot(found[:, 0], found[:, 1]))
    return np.degrees(np.stack([longitude, latitude], axis=1))


def on_sphere(degrees: FloatArray) -> FloatArray:
    """Return unit vectors (k, 3) of longitudes and latitudes (k, 2)."""
    longitude, latitude = np.radians(degrees).T
    across = np.cos(latitude)
    return np.stack(
        [across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1
    )
