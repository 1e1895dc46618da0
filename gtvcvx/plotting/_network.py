"""The one way in which graphs are drawn: lines for edges, markers for nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.plotting._canvas import (
    FAINT,
    INK,
    OTHER,
    STRONG,
    as_text,
    cluster_styles,
    outlined,
    shared_colours,
    text_on,
)

#: Names of nodes, arrows and dashes beyond these numbers would only hide each other.
NAMED_NODES, ARROWS, DASHES = 40, 250, 2000
# Vector files of more lines or markers than this are slow to show: these parts become pixels.
_VECTOR = 3000
# Inches below which a scale beside the graph would take too much of its width.
_NARROW = 6.0
_LETTERS = 7.0  # points, of the names of nodes
#: Clusters in a legend.
LEGEND = 10


def draw_edges(
    ax: Any,
    places: FloatArray,
    edges: IntArray,
    width: FloatArray,
    colours: Any,
    dashed: BoolArray | None = None,
) -> None:
    """Draw every edge, in colours (m, 4), the wider the larger its width (m,) in [0, 1]."""
    from matplotlib.collections import LineCollection

    m = len(edges)
    thin = float(np.clip(np.sqrt(300.0 / max(m, 1)), 0.2, 1.0))
    widths = thin * (0.5 + 3.0 * np.clip(width, 0.0, 1.0))
    dashes = np.zeros(m, dtype=bool) if dashed is None or m > DASHES else dashed
    lines = places[edges]
    for which, style in ((~dashes, "solid"), (dashes, (0, (3.0, 1.5)))):
        # What carries most is drawn last.
        order = np.flatnonzero(which)[np.argsort(width[which], kind="stable")]
        ax.add_collection(
            LineCollection(
                list(lines[order]), colors=colours[order], linewidths=widths[order],
                linestyles=style, capstyle="butt", zorder=1, rasterized=m > _VECTOR,
            )
        )  # fmt: skip


def load_colours(load: FloatArray) -> FloatArray:
    """Greys (m, 4), the darker the larger the share of its capacity that an edge's flow takes."""
    return np.asarray(_load_map()(np.clip(load, 0.0, 1.0)))


def _load_map() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("load", ["#d5d8dc", FAINT, INK])


def load_bar(ax: Any, label: str) -> None:
    """Add the scale of `load_colours` below the axes."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(0.0, 1.0), _load_map())
    bar = ax.figure.colorbar(
        scale, ax=ax, orientation="horizontal", shrink=0.5, pad=0.01, aspect=35
    )
    bar.set_label(label, fontsize=9)


def draw_arrows(ax: Any, places: FloatArray, edges: IntArray, flow: FloatArray) -> None:
    """Mark the direction of the flows (m,): from the tail to the head where they are positive."""
    most = float(np.abs(flow).max(initial=0.0))
    if len(edges) > ARROWS or most == 0.0:
        return
    shown = np.abs(flow) > 0.02 * most
    head, tail = places[edges[shown, 0]], places[edges[shown, 1]]
    along = np.sign(flow[shown])[:, None] * (head - tail)
    length = np.maximum(np.linalg.norm(along, axis=1, keepdims=True), np.finfo(float).tiny)
    middle = (head + tail) / 2.0
    width = 0.015 if len(edges) <= 80 else 0.01
    ax.quiver(
        *middle.T, *(along / length).T, angles="xy", pivot="mid", units="inches",
        scale_units="inches", scale=9.0, width=width, headwidth=8, headlength=8,
        headaxislength=8, color=INK, zorder=2,
    )  # fmt: skip


def draw_clusters(
    ax: Any, places: FloatArray, cluster_of: IntArray, names: Sequence[str]
) -> list[Any]:
    """Draw nodes with the colour and marker of their cluster; return handles for a legend."""
    from matplotlib.lines import Line2D

    sizes = np.bincount(cluster_of, minlength=len(names))
    styles = cluster_styles(sizes)
    area = node_area(ax, places)
    wanted = [styles[c] for c in cluster_of.tolist()]
    for style in sorted(set(wanted)):
        here = np.array([found == style for found in wanted])
        ax.scatter(
            *places[here].T, s=area, c=style[0], marker=style[1], edgecolors="white",
            linewidths=0.5 if area > 20 else 0.0, zorder=3, rasterized=len(places) > _VECTOR,
        )  # fmt: skip
    handles = [
        Line2D(
            [], [], color="none", marker=styles[c][1], markerfacecolor=styles[c][0],
            markeredgecolor="white", markersize=9, label=text,
        )
        for c, text in legend_entries(sizes, names, "node")
    ]  # fmt: skip
    if shared := shared_colours(sizes):
        handles.append(Line2D([], [], color="none", label=shared))
    return handles


def legend_entries(sizes: IntArray, names: Sequence[str], what: str) -> list[tuple[int, str]]:
    """Return clusters with what a legend says of each: the largest, then the rest as one or two."""
    styles = cluster_styles(sizes)
    largest = np.argsort(-sizes, kind="stable")
    coloured = largest[[styles[c][0] != OTHER for c in largest.tolist()]]
    entries = [
        (c, f"cluster {as_text(names[c])} ({counted(sizes[c], what)})") for c in coloured.tolist()
    ][:LEGEND]
    for rest, kind in (
        (coloured[LEGEND:], "more in colours"),
        (np.setdiff1d(largest, coloured), "more in grey" if len(coloured) else "clusters, grey"),
    ):
        if len(rest):
            text = f"{len(rest)} {kind} ({counted(sizes[rest].sum(), what)})"
            entries.append((int(rest[0]), text))
    return entries


def counted(count: int | np.integer[Any], what: str) -> str:
    """Return a number of things, in words for one or many."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def draw_values(ax: Any, places: FloatArray, values: FloatArray, colours: Any, norm: Any) -> Any:
    """Draw nodes coloured by a value (n,); return what a colour bar needs."""
    area = node_area(ax, places)
    return ax.scatter(
        *places.T, s=area, c=values, cmap=colours, norm=norm, plotnonfinite=True,
        edgecolors=INK, linewidths=0.5 if area > 20 else 0.0, zorder=3,
        rasterized=len(places) > _VECTOR,
    )  # fmt: skip


def ring_nodes(ax: Any, places: FloatArray, which: IntArray) -> None:
    """Draw a black ring around some nodes."""
    ax.scatter(
        *places[which].T, s=1.5 * node_area(ax, places), facecolors="none", edgecolors=INK,
        linewidths=1.5, zorder=4,
    )  # fmt: skip


def name_nodes(ax: Any, places: FloatArray, labels: Sequence[Any], colours: Sequence[Any]) -> None:
    """Write the label of each node: short ones into its marker, others beside it.

    Inside, text is black or white, as the colour of its node takes it, and outlined where it is
    wider than the marker.
    """
    texts = [as_text(label, 16) for label in labels]
    if max(map(len, texts)) <= 3 and node_area(ax, places) > 90.0:
        width = float(np.sqrt(node_area(ax, places)))
        for text, place, colour in zip(texts, places, colours, strict=True):
            ink = text_on(colour)
            ax.annotate(
                text, place, ha="center", va="center", fontsize=_LETTERS, color=ink, zorder=6,
                path_effects=None if _width(text) <= width else outlined(text, ink),
            )  # fmt: skip
        return
    backing = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.3}
    for text, place in zip(texts, places, strict=True):
        ax.annotate(
            text, place, xytext=(6.0, 4.0), textcoords="offset points", ha="left", va="bottom",
            fontsize=_LETTERS, color=INK, bbox=backing, zorder=6,
        )  # fmt: skip
    # Room for the names on the right.
    right, width = float(places[:, 0].max()), float(np.ptp(places[:, 0]))
    ax.update_datalim([(right + 0.2 * width, float(places[:, 1].mean()))])


def _width(text: str) -> float:
    """Width of the name of a node in points."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0.0, 0.0), text, size=_LETTERS).get_extents().width) if text else 0.0


def node_colours(cluster_of: IntArray) -> list[str]:
    """Return the colour that `draw_clusters` gives to each node."""
    styles = cluster_styles(np.bincount(cluster_of))
    return [styles[c][0] for c in cluster_of.tolist()]


def edge_handle(label: str, *, colour: str = INK, dashed: bool = False, width: float = 2.5) -> Any:
    """Return a line for a legend."""
    from matplotlib.lines import Line2D

    style = (0, (3.0, 1.5)) if dashed else "solid"
    return Line2D([], [], color=colour, linestyle=style, linewidth=width, label=label)


def boundary_handle(crossing: BoolArray) -> Any:
    """Return the legend's line for the edges between clusters."""
    text = f"between clusters ({int(crossing.sum())})"
    return edge_handle(text, colour=STRONG, dashed=len(crossing) <= DASHES)


def node_area(ax: Any, places: FloatArray) -> float:
    """Area of a node in square points: neighbours in the picture should not cover each other."""
    n = len(places)
    least = 14.0 if n <= 1000 else 5.0
    area = float(np.clip(9000.0 / n, least, 230.0))
    if n > 1:
        apart = KDTree(places).query(places, k=2)[0][:, 1]
        extent = float(np.ptp(places, axis=0).max()) or 1.0
        area = min(area, float((0.6 * _panel(ax) * np.median(apart) / extent) ** 2))
    return max(area, least)


def _panel(ax: Any) -> float:
    """Points that the graph has for its width: no more than 400, beside a legend."""
    figure = ax.figure
    # Layouts give axes about a fifth more than they have before.
    return min(400.0, 1.2 * 72.0 * float(ax.get_position().width * figure.get_size_inches()[0]))


def value_bar(ax: Any, shown: Any, label: str) -> None:
    """Add the scale of `draw_values`: on the left or, in narrow figures, above."""
    narrow = ax.figure.get_size_inches()[0] < _NARROW
    place = (
        {"location": "top", "shrink": 0.9, "aspect": 35}
        if narrow
        else {"location": "left", "shrink": 0.7}
    )
    ax.figure.colorbar(shown, ax=ax, pad=0.02, **place).set_label(label)


def finish(ax: Any, title: str) -> None:
    """Set the title, the same scale in both directions, and no frame: places have no units."""
    ax.set_title(title, fontsize=11)
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.autoscale_view()
