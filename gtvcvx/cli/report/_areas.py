"""Maps of the nodes: areas from a GeoJSON file (RFC 7946), and pictures of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from gtvcvx._extras import extra_module
from gtvcvx._geometry import read_geometries
from gtvcvx.cli.report._content import PICTURED, Content
from gtvcvx.cli.report._pictures import legend_below, width_and_rows
from gtvcvx.cli.report._svg import Picture, new_axes, picture
from gtvcvx.plotting import plot_map
from gtvcvx.plotting._canvas import as_text

# Of the longer side: less than a pixel of a screen, and it halves the size of coastlines.
_DETAIL = 1.0 / 2000.0

_START = 4.0  # inches of height, before the legend is counted


@dataclass(frozen=True)
class Areas:
    """Areas of the nodes, as pictures read frames.

    Attributes
    ----------
    shapes : list
        shapely geometries, in the order of the nodes.
    index : list
        Node labels.
    crs : object
        Says whether coordinates are longitude and latitude.
    """

    shapes: list[Any]
    index: list[Any]
    crs: Any

    @property
    def geometry(self) -> Iterator[Any]:
        """The shapes."""
        return iter(self.shapes)


def read_areas(path: str, nodes: Sequence[Any]) -> Areas:
    """Read the areas of nodes: features whose id, or one of whose properties, is the node label.

    Raises
    ------
    ValueError
        There is no shapely, the file is no GeoJSON, or names no area for a node.
    """
    try:
        shapely = extra_module("shapely", "geo", "geometries")
    except ImportError as error:
        raise ValueError(f"--areas: {error}") from None
    features = _features(path)
    chosen = _of_nodes(path, features, [str(label) for label in nodes])
    try:
        shapes = shapely.from_geojson([json.dumps(feature["geometry"]) for feature in chosen])
        read_geometries(list(shapes), path, None, polygons=True)
    except (TypeError, shapely.errors.ShapelyError) as error:
        raise ValueError(f"{path}: its geometries cannot be read ({error})") from None
    west, south, east, north = shapely.total_bounds(shapes).tolist()
    degrees = -180.0 <= west <= east <= 180.0 and -90.0 <= south <= north <= 90.0
    simple = shapely.simplify(shapes, _DETAIL * max(east - west, north - south))
    return Areas(list(simple), list(nodes), SimpleNamespace(is_geographic=degrees))


def _features(path: str) -> list[dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            features = json.load(file)["features"]
        if all(isinstance(f.get("geometry"), dict) for f in features) and features:
            return list(features)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    raise ValueError(f"{path}: a GeoJSON file with features is expected, each with a geometry")


def _of_nodes(path: str, features: list[dict[str, Any]], labels: list[str]) -> list[dict[str, Any]]:
    """Return the feature of each label, by the first of id and properties that has them all."""
    columns = [{str(f["id"]): f for f in features if "id" in f}]
    names = dict.fromkeys(name for f in features for name in f.get("properties") or {})
    for name in names:
        found = [f for f in features if name in (f.get("properties") or {})]
        columns.append({str(f["properties"][name]): f for f in found})
    for column in columns:
        if column.keys() >= set(labels):
            return [column[label] for label in labels]
    best = max(columns, key=lambda column: len(column.keys() & set(labels)))
    missing = next(label for label in labels if label not in best)
    raise ValueError(
        f"{path}: neither the ids of its features nor one of their properties "
        f"({', '.join(names) or 'there are none'}) names all nodes; there is no {missing!r}"
    )


def maps(content: Content, areas: Areas | None) -> tuple[list[Picture], list[Picture]]:
    """Return pictures of the clusters and of the first coefficients; none without areas."""
    if areas is None:
        return [], []
    outlined = "Clusters are outlined; hatches tell those of one colour apart."
    shown = [
        _map(
            content,
            areas,
            k,
            f", coefficient {as_text(name)}",
            "Each area in the colour of its value.",
        )
        for k, name in enumerate(content.names[:PICTURED])
    ]
    return [_map(content, areas, "cluster", "", outlined)], shown


def _map(content: Content, areas: Areas, by: str | int, what: str, caption: str) -> Picture:
    ax = plot_map(areas, content.solution, by, ax=new_axes(_START))
    ax.set_title(f"{ax.get_title()}{what}")
    rows = legend_below(ax)
    extent = np.array([ax.dataLim.width, ax.dataLim.height])
    ax.figure.set_size_inches(*width_and_rows(extent, rows))
    return picture(ax, caption)
