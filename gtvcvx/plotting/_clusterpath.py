"""The clusterpath: how the parameter vectors move and meet as lambda grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.plotting._canvas import (
    INK,
    VALUES,
    axes_to_draw_on,
    bare,
    cluster_colours,
    drawn_on_axes,
)
from gtvcvx.plotting._path import lambda_axis, mark_lambda, node_colours
from gtvcvx.plotting._path_data import PathData, path_data


@drawn_on_axes
def plot_clusterpath(path: Any, *, at: float | None = None, ax: Any = None) -> Any:
    """Draw the ways of the parameter vectors, from the smallest lambda (dots) to the largest (x).

    With two coefficients they are the axes; with more, the first two principal components of the
    vectors at the smallest lambda are. With one, the horizontal axis is lambda.

    Parameters
    ----------
    path : object or mapping
        With ``lams`` (k,), ``w`` (k, n, d) and perhaps ``labels`` (k, n), as attributes or keys.
    at : float, optional
        Give the nodes the colours of the clusters at the lambda of the path that is nearest to it
        (needs labels). Default: the ways are coloured by lambda.
    {ax}
    """
    data = path_data(path, "w")
    place = data.nearest(at)
    assert data.w is not None
    ax = axes_to_draw_on(ax, (6.5, 5.5))
    flat = data.w.shape[2] == 1
    ways, names = _over_lambda(data) if flat else _in_the_plane(data.w)
    title = f"clusterpath of {len(ways)} nodes, {len(data.lams)} values of $\\lambda$"
    ax.set_title(title, fontsize=11)
    _draw_ways(ax, data, ways, place)
    _draw_starts(ax, data, ways[:, 0], place)
    many = len(ways) > 5000
    ax.scatter(
        *ways[:, -1].T, s=30.0, color=INK, marker="x", linewidths=1.2, zorder=4, rasterized=many
    )
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.autoscale_view()
    bare(ax, grid=False)
    if flat:
        mark_lambda(ax, data, place)
        lambda_axis(ax, data.lams)
    return ax


def _over_lambda(data: PathData) -> tuple[FloatArray, tuple[str, str]]:
    assert data.w is not None
    k, n, _ = data.w.shape
    ways = np.empty((n, k, 2))
    ways[:, :, 0], ways[:, :, 1] = data.lams, data.w[:, :, 0].T
    return ways, ("$\\lambda$", "coefficient 0")


def _in_the_plane(w: FloatArray) -> tuple[FloatArray, tuple[str, str]]:
    """Ways (n, k, 2) of the parameter vectors w (k, n, d), and names of the two axes."""
    if w.shape[2] == 2:
        return w.transpose(1, 0, 2), ("coefficient 0", "coefficient 1")
    middle = w[0].mean(axis=0)
    _, sizes, axes = np.linalg.svd(w[0] - middle, full_matrices=False)
    # Fewer than two directions: any two, so that there is a picture.
    axes = axes if len(axes) >= 2 else np.eye(w.shape[2])
    total = float(np.sum(sizes**2))
    shares = [float(s**2) / total if total > 0 else 0.0 for s in np.append(sizes, 0.0)[:2]]
    ways = ((w - middle) @ axes[:2].T).transpose(1, 0, 2)
    first, second = (f"{100 * share:.3g} % of the variance" for share in shares)
    return ways, (f"first principal component ({first})", f"second principal component ({second})")


def _draw_ways(ax: Any, data: PathData, ways: FloatArray, place: int | None) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm

    n, k, _ = ways.shape
    style = {"linewidths": 1.0 if n <= 200 else 0.5, "rasterized": n * k > 5000, "zorder": 1}
    if place is not None or k == 1 or data.lams[0] == data.lams[-1]:
        colours, noted = node_colours(data, place, n)
        ax.set_title(f"{ax.get_title()}{noted}", fontsize=11)
        ax.add_collection(LineCollection(list(ways), colors=colours, alpha=0.7, **style))
        return
    # One short line for each step, in the colour of the lambda that it leads to.
    steps = np.stack([ways[:, :-1], ways[:, 1:]], axis=2).reshape(-1, 2, 2)
    moved = (steps[:, 0] != steps[:, 1]).any(axis=1)
    lines = LineCollection(
        list(steps[moved]), cmap=VALUES, norm=LogNorm(data.lams[0], data.lams[-1]), **style
    )
    lines.set_array(np.tile(data.lams[1:], n)[moved])
    ax.add_collection(lines)
    ax.figure.colorbar(lines, ax=ax, shrink=0.8, pad=0.02).set_label("$\\lambda$")


def _draw_starts(ax: Any, data: PathData, starts: FloatArray, place: int | None) -> None:
    area = float(np.clip(6000.0 / len(starts), 3.0, 30.0))
    if place is None or data.labels is None:
        ax.scatter(*starts.T, s=area, color=INK, zorder=3, rasterized=len(starts) > 5000)
        return
    _, cluster_of = np.unique(data.labels[place], return_inverse=True)
    colours = np.array(cluster_colours(np.bincount(cluster_of)))[cluster_of]
    for colour in sorted(set(colours.tolist())):
        ax.scatter(
            *starts[colours == colour].T, s=1.5 * area, c=colour, edgecolors="white",
            linewidths=0.4, zorder=3, rasterized=len(starts) > 5000,
        )  # fmt: skip
