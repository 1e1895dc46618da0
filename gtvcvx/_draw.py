"""Pictures with matplotlib, which is an extra: it is imported when something is drawn.

So far one picture: a partition of a graph with the verdict of Theorem 2 ([GTV] SarcheshmehPour,
Tian, Zhang, Jung, "Clustered Federated Learning via Generalized Total Variation Minimization").
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from gtvcvx._files import atomic_write

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Endings of file names that can be written.
FORMATS = (".png", ".pdf", ".svg")
#: Node labels and curves beyond these numbers would only hide each other.
LABELLED_NODES, CURVES = 40, 10

_BOUNDARY, _MARK, _SATURATED = "#c0392b", "#111111", 0.999


@dataclass(frozen=True)
class PartitionPicture:
    """What the picture of a partition shows.

    Attributes
    ----------
    edges
        (m, 2) edges.
    cluster_of
        (n,) cluster of each node, 0..k-1.
    names
        k names of clusters.
    labels
        n labels of nodes.
    positions
        (n, 2) places of the nodes.
    load
        (m,) share of its capacity that each edge's flow takes, ||u_e||_* / (lambda A_e).
    tight
        (n,) the tightest set of the cluster of least margin.
    sinks
        Nodes i0, to which the demands of their clusters can be routed.
    lam
        The problem's lambda.
    lams, margins
        (q,) and (k, q): the margin of each cluster at these lambdas; infinite or NaN is not drawn.
    title, note
        Headings of the two panels.
    """

    edges: IntArray
    cluster_of: IntArray
    names: Sequence[str]
    labels: Sequence[str]
    positions: FloatArray
    load: FloatArray
    tight: NDArray[np.bool_]
    sinks: Sequence[int]
    lam: float
    lams: FloatArray
    margins: FloatArray
    title: str
    note: str


def require_matplotlib() -> None:
    """Raise ImportError, which names the extra, if matplotlib is not there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ImportError(
            "pictures need matplotlib: install it, or gtvcvx with the extra 'plot' "
            "(pip install 'gtvcvx[plot]')"
        ) from None


def layout(n_nodes: int, edges: IntArray, cluster_of: IntArray, seed: int = 0) -> FloatArray:
    """Place the nodes, (n, 2), by springs along the edges; clusters start next to each other.

    Sparse graphs with few nodes start from distances along the graph instead: springs alone leave
    long chains tangled.
    """
    graph = nx.Graph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_edges_from(edges.tolist())
    if n_nodes <= 150 and len(edges) <= 2 * n_nodes and nx.is_connected(graph):
        found = nx.kamada_kawai_layout(graph)
    else:
        rng = np.random.default_rng(seed)
        angle = 2.0 * np.pi * cluster_of / (cluster_of.max() + 1)
        start = np.column_stack([np.cos(angle), np.sin(angle)])
        start += 0.3 * rng.standard_normal(start.shape)
        found = nx.spring_layout(graph, pos=dict(enumerate(start)), iterations=100, seed=seed)
    places = np.array([found[i] for i in range(n_nodes)], dtype=np.float64)
    places -= places.mean(axis=0)
    _, _, axes = np.linalg.svd(places, full_matrices=False)
    return places @ axes.T if len(axes) == 2 else places  # the longest side lies flat


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a matplotlib figure, whole or not at all.

    Raises
    ------
    ValueError
        If the name does not end in .png, .pdf or .svg.
    """
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in FORMATS:
        raise ValueError(
            f"{os.fspath(path)}: a file name that ends in {', '.join(FORMATS)} is expected"
        )
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format=ending[1:], dpi=150)


def draw_partition(picture: PartitionPicture) -> Any:
    """Draw the graph with its clusters, and the margins against lambda.

    Returns
    -------
    matplotlib.figure.Figure
        To be shown or saved by the caller.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 6.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.55, 1.0])
    colours = _colours(len(picture.names))
    _draw_edges(figure, left, picture)
    _draw_nodes(left, picture, colours)
    left.set_title(picture.title, fontsize=11)
    left.set_axis_off()
    left.set_aspect("equal", adjustable="datalim")
    left.margins(0.08)
    _draw_margins(right, picture, colours)
    right.set_title(picture.note, fontsize=11)
    return figure


def _colours(count: int) -> FloatArray:
    """One colour a cluster, (k, 4): distinct for up to 20, then along a circle."""
    from matplotlib import colormaps

    if count <= 20:
        return np.asarray(colormaps["tab10" if count <= 10 else "tab20"](np.arange(count)))
    return np.asarray(colormaps["hsv"](np.arange(count) / count))


def _draw_edges(figure: Any, axes: Any, picture: PartitionPicture) -> None:
    """Draw edges darker and wider the more of their capacity is taken; the boundary is dashed."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    shades = LinearSegmentedColormap.from_list("load", ["#d5d8dc", "#85929e", "#17202a"])
    ends = picture.cluster_of[picture.edges]
    crossing = ends[:, 0] != ends[:, 1]
    load = np.clip(picture.load, 0.0, 1.0)
    thin = 1.0 if len(load) <= 300 else 0.5
    width = thin * (0.5 + 2.5 * load)
    lines = picture.positions[picture.edges]
    inner = LineCollection(
        list(lines[~crossing]), colors=shades(load[~crossing]), linewidths=width[~crossing]
    )
    axes.add_collection(inner)
    boundary = LineCollection(
        list(lines[crossing]), colors=_BOUNDARY, linewidths=width[crossing], linestyles="dashed"
    )
    boundary.set_alpha(0.8)
    axes.add_collection(boundary)
    scale = ScalarMappable(Normalize(0.0, 1.0), shades)
    bar = figure.colorbar(scale, ax=axes, orientation="horizontal", shrink=0.5, pad=0.01, aspect=35)
    bar.set_label("flow of the solution over capacity (also the width of an edge)", fontsize=9)


def _draw_nodes(axes: Any, picture: PartitionPicture, colours: FloatArray) -> None:
    from matplotlib.lines import Line2D

    n = len(picture.cluster_of)
    size = _node_size(picture.positions)
    x, y = picture.positions.T
    face = colours[picture.cluster_of]
    axes.scatter(x, y, s=size, c=face, edgecolors="white", linewidths=0.6, zorder=3)
    tight = np.flatnonzero(picture.tight)
    axes.scatter(
        x[tight], y[tight], s=1.5 * size, facecolors="none", edgecolors=_MARK, linewidths=1.5,
        zorder=4,
    )  # fmt: skip
    sinks = list(picture.sinks)
    axes.scatter(
        x[sinks], y[sinks], s=2.6 * size, c=face[sinks], marker="*", edgecolors=_MARK, zorder=5
    )
    if n <= LABELLED_NODES:
        for label, place in zip(picture.labels, picture.positions, strict=True):
            axes.annotate(
                label, place, ha="center", va="center", fontsize=7, color="white", zorder=6
            )
    empty: tuple[list[float], list[float]] = ([], [])
    crossing = picture.cluster_of[picture.edges[:, 0]] != picture.cluster_of[picture.edges[:, 1]]
    saturated = int((picture.load >= _SATURATED).sum())
    legend = [
        Line2D(*empty, color=_BOUNDARY, linestyle="dashed", label=f"boundary ({crossing.sum()})"),
        Line2D(*empty, color="#17202a", linewidth=3, label=f"saturated edges ({saturated})"),
    ]
    if len(tight):
        legend.append(
            Line2D(
                *empty, color="none", marker="o", markersize=9, markerfacecolor="none",
                markeredgecolor=_MARK, markeredgewidth=1.5,
                label=f"tightest set ({len(tight)} of the cluster of least margin)",
            )
        )  # fmt: skip
    if sinks:
        legend.append(
            Line2D(
                *empty, color="none", marker="*", markersize=12, markerfacecolor="#bbbbbb",
                markeredgecolor=_MARK, label="i0, where a cluster's demands are routed to",
            )
        )  # fmt: skip
    axes.legend(handles=legend, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, fontsize=9)


def _node_size(positions: FloatArray) -> float:
    """Area of a node in square points: neighbours in the picture should not cover each other."""
    n = len(positions)
    size = float(np.clip(9000.0 / n, 14.0, 230.0))
    if n > 1:
        apart = np.linalg.norm(positions[:, None] - positions[None, :], axis=2)
        np.fill_diagonal(apart, np.inf)
        extent = float(np.ptp(positions, axis=0).max()) or 1.0
        # the panel is about 480 points wide
        size = min(size, float((0.6 * 480.0 * np.median(apart.min(axis=1)) / extent) ** 2))
    return max(size, 14.0)


def _draw_margins(axes: Any, picture: PartitionPicture, colours: FloatArray) -> None:
    """Draw the margins against lambda, the least ones if there are many clusters."""
    here = np.where(np.isfinite(picture.margins) & (picture.margins > 0.0), picture.margins, np.nan)
    shown = np.flatnonzero(np.isfinite(here).any(axis=1))
    if not len(shown):
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no cluster has a finite positive margin", ha="center", va="center")
        return
    least = np.nanmin(here[shown], axis=1)
    shown = np.sort(shown[np.argsort(least, kind="stable")[:CURVES]])
    for c in shown.tolist():
        axes.plot(picture.lams, here[c], color=colours[c], label=f"cluster {picture.names[c]}")
    axes.axhline(1.0, color=_MARK, linewidth=1.0)
    axes.axvline(picture.lam, color="#777777", linewidth=1.0, linestyle="dotted")
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.5), max(high, 2.0))
    axes.axhspan(1.0, axes.get_ylim()[1], color="#2ecc71", alpha=0.08)
    axes.annotate(
        f"$\\lambda$ = {picture.lam:g}", (picture.lam, 0.02), xycoords=("data", "axes fraction"),
        xytext=(4, 0), textcoords="offset points", fontsize=9, color="#555555",
    )  # fmt: skip
    axes.annotate(
        "well-connected: margin > 1", (0.02, 0.98), xycoords="axes fraction", va="top",
        fontsize=9, color="#1e8449",
    )  # fmt: skip
    axes.set_xlabel("$\\lambda$")
    axes.set_ylabel("margin: least cut(A) / demand(A)")
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(loc="best", fontsize=9)
