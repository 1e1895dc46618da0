"""The picture of a partition with the verdict of Theorem 2 on it.

[GTV] SarcheshmehPour, Tian, Zhang, Jung, "Clustered Federated Learning via Generalized Total
Variation Minimization".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._diagnostics import SATURATED
from gtvcvx.plotting import _network as network
from gtvcvx.plotting._canvas import INK, STRONG, as_text, cluster_styles, require_matplotlib

#: Curves beyond this number would only hide each other.
CURVES = 10


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
    tight: BoolArray
    sinks: Sequence[int]
    lam: float
    lams: FloatArray
    margins: FloatArray
    title: str
    note: str


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
    _draw_graph(left, picture)
    network.load_bar(left, "flow of the solution over capacity (also the width of an edge)")
    network.finish(left, picture.title)
    _draw_margins(right, picture)
    right.set_title(picture.note, fontsize=11)
    return figure


def _draw_graph(ax: Any, picture: PartitionPicture) -> None:
    from matplotlib.colors import to_rgba

    places, ends = picture.positions, picture.cluster_of[picture.edges]
    crossing = ends[:, 0] != ends[:, 1]
    colours = network.load_colours(picture.load)
    colours[crossing] = to_rgba(STRONG)
    network.draw_edges(ax, places, picture.edges, picture.load, colours, crossing)
    handles = network.draw_clusters(ax, places, picture.cluster_of, picture.names)
    handles.append(network.boundary_handle(crossing))
    full = int((picture.load >= SATURATED).sum())
    handles.append(network.edge_handle(f"saturated edges ({full})"))
    handles += _mark_nodes(ax, picture)
    if len(places) <= network.NAMED_NODES:
        network.name_nodes(ax, places, picture.labels, network.node_colours(picture.cluster_of))
    ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, fontsize=9,
        frameon=False,
    )  # fmt: skip


def _mark_nodes(ax: Any, picture: PartitionPicture) -> list[Any]:
    """Ring the tightest set, star the nodes i0; return handles for the legend."""
    from matplotlib.lines import Line2D

    tight, sinks = np.flatnonzero(picture.tight), list(picture.sinks)
    network.ring_nodes(ax, picture.positions, tight)
    styles = cluster_styles(np.bincount(picture.cluster_of, minlength=len(picture.names)))
    ax.scatter(
        *picture.positions[sinks].T, s=2.6 * network.node_area(ax, picture.positions),
        c=[styles[c][0] for c in picture.cluster_of[sinks]], marker="*", edgecolors=INK, zorder=5,
    )  # fmt: skip
    handles = []
    if len(tight):
        handles.append(
            Line2D(
                [], [], color="none", marker="o", markersize=9, markerfacecolor="none",
                markeredgecolor=INK, markeredgewidth=1.5,
                label=f"tightest set ({len(tight)} of the cluster of least margin)",
            )
        )  # fmt: skip
    if sinks:
        handles.append(
            Line2D(
                [], [], color="none", marker="*", markersize=12, markerfacecolor="#bbbbbb",
                markeredgecolor=INK, label="i0, where a cluster's demands are routed to",
            )
        )  # fmt: skip
    return handles


def _draw_margins(ax: Any, picture: PartitionPicture) -> None:
    """Draw the margins against lambda, the least ones if there are many clusters."""
    here = np.where(np.isfinite(picture.margins) & (picture.margins > 0.0), picture.margins, np.nan)
    shown = np.flatnonzero(np.isfinite(here).any(axis=1))
    if not len(shown):
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no cluster has a finite positive margin", ha="center", va="center")
        return
    styles = cluster_styles(np.bincount(picture.cluster_of, minlength=len(picture.names)))
    least = np.nanmin(here[shown], axis=1)
    shown = np.sort(shown[np.argsort(least, kind="stable")[:CURVES]])
    for c in shown.tolist():
        name = f"cluster {as_text(picture.names[c])}"
        ax.plot(
            picture.lams, here[c], color=styles[c][0], marker=styles[c][1], markevery=10,
            markersize=5, label=name,
        )  # fmt: skip
    ax.axhline(1.0, color=INK, linewidth=1.0)
    ax.axvline(picture.lam, color="#777777", linewidth=1.0, linestyle="dotted")
    ax.set_xscale("log")
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 0.5), max(high, 2.0))
    ax.axhspan(1.0, ax.get_ylim()[1], color="#228833", alpha=0.08)
    ax.annotate(
        f"$\\lambda$ = {picture.lam:g}", (picture.lam, 0.02), xycoords=("data", "axes fraction"),
        xytext=(4, 0), textcoords="offset points", fontsize=9, color="#555555",
    )  # fmt: skip
    ax.annotate(
        "well-connected: margin > 1", (0.02, 0.98), xycoords="axes fraction", va="top",
        fontsize=9, color="#1e6b2c",
    )  # fmt: skip
    ax.set_xlabel("$\\lambda$")
    ax.set_ylabel("margin: least cut(A) / demand(A)")
    ax.grid(True, which="major", linewidth=0.4, alpha=0.6)
    ax.legend(loc="best", fontsize=9)
