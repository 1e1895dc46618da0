"""Choropleth maps: areas coloured by what a solution, or a column, says of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, integer_array, real_array
from gtvcvx._extras import extra_module
from gtvcvx._geometry import Geometries, read_geometries
from gtvcvx.plotting import _network as network
from gtvcvx.plotting._canvas import (
    HATCHES,
    INK,
    OTHER,
    VALUES,
    as_text,
    axes_to_draw_on,
    cluster_styles,
    drawn_on_axes,
    outlined,
    shared_colours,
    text_on,
)
from gtvcvx.plotting._coefficients import coefficient_number, coefficient_title
from gtvcvx.solution import Solution

# Widths in points: faint borders leave room for small areas, outlines of clusters stand out.
_BORDER, _OUTLINE = 0.3, 1.2


@dataclass(frozen=True)
class _Shown:
    """Numbers of the areas (n,): clusters 0, ..., k-1, or values and what they are."""

    numbers: FloatArray | IntArray
    clusters: bool
    label: str | None = None


@drawn_on_axes
def plot_map(
    areas: Any,
    shown: Solution | ArrayLike,
    by: str | int | None = None,
    *,
    label: str | None = None,
    names: bool = False,
    ax: Any = None,
) -> Any:
    """Draw areas, coloured by cluster or by value.

    Clusters are outlined; beyond six of them, hatches tell those of one colour apart. Areas in
    degrees are drawn so that both directions have the same scale in the middle of the map. The
    positions of `contiguity_graph` fit the map: ``plot_graph(..., ax=ax)`` draws the graph on it.

    Parameters
    ----------
    areas : GeoDataFrame, GeoSeries or sequence of shapely geometries
        Polygons and multipolygons, one a node (extra ``geo``).
    shown : Solution or array_like, shape (n,)
        A solution, whose nodes are the rows: by label, whatever their order, if the frame's index
        has the node labels. Or numbers, one a row; where they are NaN the area is grey.
    by : "cluster", int or str, optional
        What colours the areas. Of a solution, the clusters of `Solution.clusters` (default) or one
        coefficient, by its number 0, ..., d-1 or by its name in ``solution.info["features"]``.
        Numbers are values or, with "cluster", numbers of clusters.
    label : str, optional
        What the values are, for the colour bar.
    names : bool
        Whether to write the labels of the rows, or of the solution's nodes, on the areas.
    {ax}
    """
    shapes = read_geometries(areas, "areas", None, polygons=True)
    if isinstance(shown, Solution):
        shapes = shapes.of_nodes(shown.nodes, "areas")
        what = _of_solution(shown, "cluster" if by is None else by)
    else:
        what = _of_array(shown, by, len(shapes.shapes))
    ax = axes_to_draw_on(ax, _figure_size(shapes))
    title = network.counted(len(shapes.shapes), "area")
    colours: Any
    if what.clusters:
        title = f"{title}, {network.counted(int(what.numbers.max()) + 1, 'cluster')}"
        colours = _draw_clusters(ax, shapes, what.numbers.astype(np.int64))
    else:
        colours = _draw_values(ax, shapes, what.numbers.astype(np.float64), label or what.label)
    if names:
        _name_areas(ax, shapes, colours)
    network.finish(ax, title)
    return ax


def _of_solution(solution: Solution, by: str | int) -> _Shown:
    if by == "cluster":
        return _Shown(solution.clusters(), clusters=True)
    k = coefficient_number(solution, by, "'cluster'")
    return _Shown(solution.w[:, k], clusters=False, label=coefficient_title(solution, k))


def _of_array(shown: ArrayLike, by: str | int | None, n: int) -> _Shown:
    if by not in (None, "cluster"):
        raise ValueError(f"by: None or 'cluster' is expected with an array, got {by!r}")
    read = real_array if by is None else integer_array
    numbers = read(shown, "shown")
    if numbers.shape != (n,):
        raise ValueError(
            f"shown: one number for each of the {n} areas is expected, got shape {numbers.shape}"
        )
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        k = int(infinite[0])
        raise ValueError(f"shown: entry {k} is {numbers[k]}, a finite number or NaN is expected")
    if by is None:
        return _Shown(numbers, clusters=False)
    return _Shown(np.unique(numbers, return_inverse=True)[1], clusters=True)


def _figure_size(shapes: Geometries) -> tuple[float, float]:
    """Width and height in inches, as the map needs them, with room for a legend."""
    width, height = np.ptp(shapes.in_plane(shapes.bounds.reshape(2, 2)), axis=0).tolist()
    return 8.5, float(np.clip(6.0 * height / width, 3.6, 7.5)) if width > 0 else 5.0


def _patches(shapes: Geometries, areas: Iterable[Any]) -> list[Any]:
    """Return a patch for each of some areas in the coordinates of the shapes."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    return [
        PathPatch(
            Path.make_compound_path(*(Path(shapes.in_plane(r), closed=True) for r in _rings(area)))
        )
        for area in areas
    ]


def _rings(shape: Any) -> list[FloatArray]:
    """Return the rings (r, 2) of an area: counterclockwise around it, clockwise around holes.

    What is inside one ring of each direction is not filled.
    """
    found = []
    for part in getattr(shape, "geoms", [shape]):
        for k, ring in enumerate((part.exterior, *part.interiors)):
            points = np.asarray(ring.coords)[:, :2]
            x, y = (points - points[0]).T
            is_left_turn = x[:-1] @ y[1:] > x[1:] @ y[:-1]
            found.append(points if is_left_turn == (k == 0) else points[::-1])
    return found


def _draw_clusters(ax: Any, shapes: Geometries, cluster_of: IntArray) -> list[str]:
    """Colour every cluster, hatch it where its colour is not the only one, and outline it.

    Returns the colour of each area.
    """
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Patch

    shapely = extra_module("shapely", "geo", "geometries")
    sizes = np.bincount(cluster_of)
    styles = cluster_styles(sizes)
    colours = [styles[c][0] for c in cluster_of.tolist()]
    areas = _patches(shapes, shapes.shapes)
    ax.add_collection(
        PatchCollection(
            areas, facecolors=colours, edgecolors="white", linewidths=_BORDER, zorder=0.5
        )
    )
    wholes = [shapely.union_all(shapes.shapes[cluster_of == c]) for c in range(len(sizes))]
    looks: list[dict[str, Any]] = [
        {"facecolor": colour, "hatch": HATCHES[marker], "edgecolor": "white"}
        for colour, marker in styles
    ]
    for patch, look in zip(_patches(shapes, wholes), looks, strict=True):
        if look["hatch"]:
            patch.set(**look | {"facecolor": "none"}, linewidth=0.0, zorder=0.6)
            ax.add_patch(patch)
    lines = [shapes.in_plane(ring) for whole in wholes for ring in _rings(whole)]
    ax.add_collection(LineCollection(lines, colors=INK, linewidths=_OUTLINE, zorder=0.7))
    entries = network.legend_entries(sizes, [str(c) for c in range(len(sizes))], "area")
    handles = [Patch(**looks[c], label=text) for c, text in entries]
    if shared := shared_colours(sizes):
        handles.append(Patch(facecolor="none", label=shared))
    ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False
    )
    return colours


def _draw_values(ax: Any, shapes: Geometries, values: FloatArray, label: str | None) -> Any:
    """Colour every area by its value, or grey if it has none; return the colours."""
    from matplotlib import colormaps
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch

    colours = colormaps[VALUES].with_extremes(bad=OTHER)
    patches = _patches(shapes, shapes.shapes)
    drawn = PatchCollection(
        patches, cmap=colours, edgecolors="white", linewidths=_BORDER, zorder=0.5
    )
    drawn.set_array(np.ma.masked_invalid(values))
    ax.add_collection(drawn)
    missing = int(np.isnan(values).sum())
    if missing < len(values):
        network.value_bar(ax, drawn, label or "")
    if missing:
        text = f"no value ({network.counted(missing, 'area')})"
        ax.legend(
            handles=[Patch(facecolor=OTHER, label=text)], loc="upper left",
            bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False,
        )  # fmt: skip
    return drawn.to_rgba(np.ma.masked_invalid(values))


def _name_areas(ax: Any, shapes: Geometries, colours: Sequence[Any]) -> None:
    """Write each label inside its area, legible on its colour and beyond its border."""
    shapely = extra_module("shapely", "geo", "geometries")
    inside = shapely.get_coordinates(shapely.point_on_surface(shapes.shapes))
    places = shapes.in_plane(inside)
    for place, name, colour in zip(places, shapes.labels, colours, strict=True):
        text = as_text(name, 16)
        ink = text_on(colour)
        ax.annotate(
            text, place, ha="center", va="center", fontsize=7, color=ink, zorder=6,
            path_effects=outlined(text, ink),
        )  # fmt: skip
