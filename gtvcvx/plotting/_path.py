"""Solutions along lambda: coefficients, objective, number of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.plotting._canvas import (
    INK,
    OTHER,
    axes_to_draw_on,
    bare,
    cluster_colours,
    drawn_on_axes,
    in_colours,
)
from gtvcvx.plotting._path_data import PathData, path_data

_LINE = "#4477aa"


@drawn_on_axes
def plot_path(
    path: Any,
    show: str = "coefficients",
    *,
    coefficient: int = 0,
    at: float | None = None,
    ax: Any = None,
) -> Any:
    """Draw what becomes of the solution as lambda grows.

    Parameters
    ----------
    path : object or mapping
        With ``lams`` (k,) and, as attributes or keys, what the picture needs of ``w`` (k, n, d),
        ``labels`` (k, n) and ``values`` (k,).
    show : "coefficients", "clusters" or "values"
        One coefficient of every node (needs w), the number of clusters (needs labels), or the
        objective (needs values).
    coefficient : int
        Which one, 0, ..., d-1.
    at : float, optional
        Mark the lambda of the path that is nearest to it; coefficients get the colours of the
        clusters there (needs labels).
    {ax}
    """
    needed = {"coefficients": "w", "clusters": "labels", "values": "values"}
    if show not in needed:
        expected = ", ".join(map(repr, needed))
        raise ValueError(f"show: one of {expected} is expected, got {show!r}")
    data = path_data(path, needed[show])
    place = data.nearest(at)
    ax = axes_to_draw_on(ax, (6.5, 4.2))
    if show == "coefficients":
        _draw_coefficients(ax, data, coefficient, place)
    elif data.labels is not None and show == "clusters":
        _draw_count(ax, data.lams, data.labels)
    else:
        ax.plot(data.lams, data.values, color=_LINE, marker="o", markersize=3)
        ax.set_ylabel("objective P(w)")
    mark_lambda(ax, data, place)
    lambda_axis(ax, data.lams)
    return ax


def lambda_axis(ax: Any, lams: FloatArray) -> None:
    """Let the horizontal axis show lambda; on a logarithmic scale if it covers a factor of 5."""
    if lams[-1] > 5.0 * lams[0]:
        ax.set_xscale("log")
    ax.set_xlabel("$\\lambda$")
    bare(ax)


def mark_lambda(ax: Any, data: PathData, place: int | None) -> None:
    """Draw a dotted line at one lambda of the path."""
    if place is None:
        return
    ax.axvline(data.lams[place], color=INK, linewidth=1.0, linestyle="dotted")
    ax.annotate(
        f"$\\lambda$ = {data.lams[place]:.3g}", (data.lams[place], 1.0),
        xycoords=("data", "axes fraction"), xytext=(4, -4), textcoords="offset points",
        va="top", fontsize=9,
    )  # fmt: skip


def node_colours(data: PathData, place: int | None, n: int) -> tuple[list[str], str]:
    """Colour of each node, and the end of a title that says which clusters have none.

    The colour is that of its cluster at one lambda of the path, or the same for all.
    """
    if place is None or data.labels is None:
        return [_LINE] * n, ""
    _, cluster_of = np.unique(data.labels[place], return_inverse=True)
    colours = cluster_colours(np.bincount(cluster_of))
    return [colours[c] for c in cluster_of.tolist()], in_colours(colours)


def _draw_coefficients(ax: Any, data: PathData, coefficient: int, place: int | None) -> None:
    from matplotlib.collections import LineCollection

    assert data.w is not None
    _, n, d = data.w.shape
    if isinstance(coefficient, bool) or coefficient not in range(d):
        raise ValueError(f"coefficient: a number in 0..{d - 1} is expected, got {coefficient!r}")
    lines = np.empty((n, len(data.lams), 2))
    lines[:, :, 0] = data.lams
    lines[:, :, 1] = data.w[:, :, coefficient].T
    colours, noted = node_colours(data, place, n)
    # Grey lines must not hide the clusters in colours.
    order = np.argsort([colour != OTHER for colour in colours], kind="stable")
    ax.add_collection(
        LineCollection(
            list(lines[order]), colors=[colours[i] for i in order.tolist()],
            linewidths=1.0 if n <= 200 else 0.5, alpha=0.8 if n <= 200 else 0.4,
            rasterized=lines.size > 50_000,
        )
    )  # fmt: skip
    ax.autoscale_view()
    ax.set_ylabel(f"coefficient {coefficient} of each node")
    ax.set_title(f"{n} nodes, {len(data.lams)} values of $\\lambda${noted}", fontsize=11)


def _draw_count(ax: Any, lams: FloatArray, labels: IntArray) -> None:
    counts = [len(np.unique(row)) for row in labels]
    ax.plot(lams, counts, color=_LINE, drawstyle="steps-post", marker="o", markersize=3)
    if counts[0] > 20 * max(counts[-1], 1):
        ax.set_yscale("log")
    ax.set_ylabel("number of clusters")
    title = f"{counts[0]} clusters at the smallest, {counts[-1]} at the largest $\\lambda$"
    ax.set_title(title, fontsize=11)
