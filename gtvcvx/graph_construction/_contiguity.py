"""Graphs of adjoining areas."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gtvcvx._arrays import BoolArray, IntArray
from gtvcvx._extras import extra_module
from gtvcvx._geometry import read_geometries
from gtvcvx.graph import EmpiricalGraph

# Where corners were rounded, areas that meet in one may share a border as short as this, as a
# share of their perimeters.
_ROUNDING = 1e-9


def contiguity_graph(
    areas: Any, rule: str = "queen", *, nodes: str | Sequence[Hashable] | None = None
) -> EmpiricalGraph:
    """Join areas that adjoin.

    Parameters
    ----------
    areas : GeoDataFrame, GeoSeries or sequence of shapely geometries
        Polygons and multipolygons, one a node (extra ``geo``).
    rule : {"queen", "rook"}
        "queen": areas that share a border or a point adjoin. "rook": a border is needed. Areas
        that overlap adjoin either way.
    nodes : str or sequence of hashable, optional
        Node labels: the name of a column of the frame, or labels. Default: the frame's index;
        ``0 .. n-1`` for a sequence.

    Returns
    -------
    EmpiricalGraph
        Node i is row i; all edges weigh 1. Islands are isolated nodes: `connect_components`
        joins them. Positions are the centroids of the areas.

    Raises
    ------
    ImportError
        There is no shapely.
    TypeError, ValueError
        Naming the row: a geometry that is missing, empty, invalid or no area; a label that is
        missing.

    Notes
    -----
    By a tree of bounding boxes, then by geometry, so that borders need not have the same
    vertices on both sides. Areas with a gap between them, as after each was simplified by
    itself, do not adjoin: simplify a coverage as a whole (``shapely.coverage_simplify``). Nor do
    areas in degrees that meet at the date line.
    """
    if rule not in ("queen", "rook"):
        raise ValueError(f"rule: 'queen' or 'rook' is expected, got {rule!r}")
    found = read_geometries(areas, "areas", nodes, polygons=True)
    pairs = _touching(found.shapes)
    if rule == "rook":
        pairs = pairs[_share_a_border(found.shapes, pairs)]
    return EmpiricalGraph(len(found.shapes), pairs, nodes=found.labels, positions=found.positions())


def _touching(shapes: NDArray[Any]) -> IntArray:
    """Pairs i < j of shapes that have a point in common, (m, 2)."""
    tree = extra_module("shapely", "geo", "geometries").STRtree(shapes)
    pairs = tree.query(shapes, predicate="intersects").T
    return np.asarray(pairs[pairs[:, 0] < pairs[:, 1]], dtype=np.int64)


def _share_a_border(shapes: NDArray[Any], pairs: IntArray) -> BoolArray:
    """Which of the pairs have more than points in common, (m,)."""
    shapely = extra_module("shapely", "geo", "geometries")
    common = shapely.length(shapely.intersection(shapes[pairs[:, 0]], shapes[pairs[:, 1]]))
    around = shapely.length(shapes)[pairs].min(axis=1)
    return np.asarray(common > _ROUNDING * around)
