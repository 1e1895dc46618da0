"""The tree of fusions along lambda."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.plotting._canvas import (
    INK,
    as_text,
    axes_to_draw_on,
    cluster_colours,
    drawn_on_axes,
    in_colours,
)
from gtvcvx.plotting._path_data import path_data

# More names of nodes than this would cover each other.
_NAMED = 60


# Share of the tree's height that is left below it and above it.
_ROOM = 0.08


@dataclass(frozen=True)
class _Scale:
    """A way to draw heights, and back; what the axis says of it."""

    stretched: Callable[[Any], Any]
    back: Callable[[Any], Any]
    said: str


_LOG = _Scale(np.log, np.exp, "")
_SCALES = (
    _Scale(np.positive, np.positive, ""),
    _Scale(np.sqrt, np.square, ", on a square-root scale"),
    _LOG,
)


@dataclass(frozen=True)
class Fusion:
    """Some clusters become one at a lambda: node i is cluster i, fusion number f is n + f."""

    lam: float
    parts: list[int]


@drawn_on_axes
def plot_dendrogram(
    path: Any, *, nodes: Sequence[Any] | None = None, at: float | None = None, ax: Any = None
) -> Any:
    """Draw the tree of fusions: which nodes come together, at which lambda.

    A fusion is drawn at the first lambda of the path at which its clusters are one. A path can
    also split a cluster again; the tree ignores that: what was once fused stays so. Heights are on
    the scale, of a linear, a square-root and a logarithmic one, that spreads them best, and the
    axis reaches from the first of them to the last.

    Parameters
    ----------
    path : object or mapping
        With ``lams`` (k,) and ``labels`` (k, n), as attributes or keys.
    nodes : sequence, length n, optional
        Names of the nodes, written below the tree if there are up to 60. Default: those in
        ``path.nodes``, if there, or 0, ..., n-1.
    at : float, optional
        Cut the tree at the lambda of the path that is nearest to it, and give its parts colours.
    {ax}
    """
    data = path_data(path, "labels")
    assert data.labels is not None
    n = data.labels.shape[1]
    names = data.names(nodes, n)
    place = data.nearest(at)
    cut = None if place is None else float(data.lams[place])
    events = fusions(data.lams, data.labels)
    ax = axes_to_draw_on(ax, (float(np.clip(0.16 * n, 6.5, 14.0)), 4.8))
    order, centre = _leaves(n, events)
    heights = np.array([event.lam for event in events] or data.lams)
    scale = _best_scale(heights)
    low, high = _ends(heights if cut is None else np.append(heights, cut), scale)
    colours, noted = _colours(n, events, cut)
    _draw_tree(ax, events, centre, low, high, colours)
    if scale is _LOG:
        ax.set_yscale("log")
    else:
        ax.set_yscale("function", functions=(scale.stretched, scale.back))
    ax.set_ylim(low, high)
    ax.set_xlim(-1.0, float(n))
    ax.set_ylabel(f"$\\lambda${scale.said}")
    if n <= _NAMED:
        texts = [as_text(names[i]) for i in order]
        upright = n > 25 or max(map(len, texts)) > 2
        ax.set_xticks(range(n), texts, rotation=90 if upright else 0, fontsize=8)
    else:
        ax.set_xticks([])
        ax.set_xlabel(f"{n} nodes")
    roots = n - sum(len(event.parts) - 1 for event in events)
    ax.set_title(
        f"fusions of {n} nodes; {roots} cluster{'' if roots == 1 else 's'} at the largest "
        f"$\\lambda${noted}",
        fontsize=11,
    )
    if cut is not None:
        ax.axhline(cut, color=INK, linewidth=1.0, linestyle="dotted")
        ax.annotate(
            f"$\\lambda$ = {cut:.3g}", (1.0, cut), xycoords=("axes fraction", "data"),
            xytext=(0, 2), textcoords="offset points", ha="right", fontsize=9,
        )  # fmt: skip
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.tick_params(axis="x", length=0)
    return ax


def fusions(lams: FloatArray, labels: IntArray) -> list[Fusion]:
    """Return what fuses along lams (k,), from the smallest on, by labels (k, n)."""
    n = labels.shape[1]
    top = np.arange(n)  # the cluster that each node is in now
    found: list[Fusion] = []
    for lam, row in zip(lams.tolist(), labels, strict=True):
        tops, at = np.unique(top, return_inverse=True)
        groups: dict[int, list[int]] = {}
        for cluster, group in enumerate(_joined(at, row).tolist()):
            groups.setdefault(group, []).append(cluster)
        now = tops.copy()
        for members in groups.values():
            if len(members) > 1:
                now[members] = n + len(found)
                found.append(Fusion(lam, tops[members].tolist()))
        top = now[at]
    return found


def _joined(at: IntArray, row: IntArray) -> IntArray:
    """Group the clusters of the nodes, at (n,), that share a node's label in row (n,)."""
    _, label = np.unique(row, return_inverse=True)
    count = int(at.max()) + 1
    size = count + int(label.max()) + 1
    links = sp.coo_array((np.ones(len(at)), (at, count + label)), shape=(size, size))
    _, group = sp.csgraph.connected_components(links, directed=False)
    return np.asarray(group[:count])


def _best_scale(heights: FloatArray) -> _Scale:
    """Return the scale that has half of the heights in each half of the picture, or nearly so."""
    different = np.unique(heights)

    def unevenness(scale: _Scale) -> float:
        places = scale.stretched(different)
        middle = (np.median(places) - places.min()) / (np.ptp(places) or 1.0)
        return abs(float(middle) - 0.5)

    return min(_SCALES, key=unevenness)


def _ends(heights: FloatArray, scale: _Scale) -> tuple[float, float]:
    """Return the ends of the axis: a little room below the first height and above the last."""
    places = scale.stretched(heights)
    room = _ROOM * float(np.ptp(places)) or 0.5 * abs(float(places[0])) or 1.0
    low, high = float(places.min()) - room, float(places.max()) + room
    # The square of a negative root would be no end below.
    low = low if scale is _LOG else max(low, 0.0)
    return float(scale.back(low)), float(scale.back(high))


def _leaves(n: int, events: list[Fusion]) -> tuple[list[int], FloatArray]:
    """Return the nodes from left to right, and the place (n + len(events),) of every cluster."""
    inner = {part for event in events for part in event.parts}
    roots = [c for c in range(n + len(events)) if c not in inner]
    order: list[int] = []
    # Fused last, drawn first: what stays alone ends up on the right.
    stack = sorted(roots)
    while stack:
        cluster = stack.pop()
        if cluster < n:
            order.append(cluster)
        else:
            stack.extend(reversed(events[cluster - n].parts))
    centre = np.empty(n + len(events))
    centre[order] = np.arange(n)
    for f, event in enumerate(events):
        ends = centre[event.parts]
        centre[n + f] = (ends.min() + ends.max()) / 2.0
    return order, centre


def _colours(n: int, events: list[Fusion], at: float | None) -> tuple[list[str], str]:
    """Colour of every cluster's line: by the parts of the tree below the cut, else the ink.

    And the end of a title that says which parts have none of their own.
    """
    if at is None:
        return [INK] * (n + len(events)), ""
    part = list(range(n + len(events)))
    # From the last fusion on: a cluster belongs to the largest one below the cut that holds it.
    for f in reversed(range(len(events))):
        if events[f].lam <= at:
            for child in events[f].parts:
                part[child] = part[n + f]
    below = [c for c in range(n + len(events)) if c < n or events[c - n].lam <= at]
    names, number = np.unique([part[c] for c in below], return_inverse=True)
    leaves = number[:n]
    of_parts = cluster_colours(np.bincount(leaves, minlength=len(names)))
    colours = [INK] * (n + len(events))
    for c, p in zip(below, number.tolist(), strict=True):
        colours[c] = of_parts[p]
    return colours, in_colours(of_parts)


def _draw_tree(
    ax: Any, events: list[Fusion], centre: FloatArray, low: float, high: float, colours: list[str]
) -> None:
    from matplotlib.collections import LineCollection

    n = len(centre) - len(events)
    height = np.concatenate([np.full(n, low), [event.lam for event in events]])
    until = np.full(len(centre), high)
    lines, shades = [], []
    for f, event in enumerate(events):
        until[event.parts] = event.lam
        ends = centre[event.parts]
        lines.append([(ends.min(), event.lam), (ends.max(), event.lam)])
        shades.append(colours[n + f])
    for c in range(len(centre)):
        lines.append([(centre[c], height[c]), (centre[c], until[c])])
        shades.append(colours[c])
    ax.add_collection(
        LineCollection(
            lines, colors=shades, linewidths=1.2 if n <= 200 else 0.5, capstyle="projecting",
            rasterized=len(lines) > 5000,
        )
    )  # fmt: skip
