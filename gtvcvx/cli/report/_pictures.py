"""Pictures of the graph, of areas, of shares in the gap and of the solver's history."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.cli._report import counted
from gtvcvx.cli.report._content import PICTURED, Content
from gtvcvx.cli.report._svg import WIDTH, Picture, new_axes, picture
from gtvcvx.plotting import plot_convergence, plot_gaps, plot_graph
from gtvcvx.plotting._layout import place_nodes
from gtvcvx.solution import Solution

# Larger graphs give pictures that show nothing, slowly.
MOST_NODES, MOST_EDGES = 20_000, 150_000
# Inches for a row of a legend, and for a scale.
_LEGEND_ROW, _BAR = 0.18, 0.45
# Inches of height that a figure starts with.
_START = 4.0
# Inches for curves, and for bars of up to 18 nodes and edges.
_CURVES, _BARS = 3.2, 5.0

_CLUSTERS = (
    "The wider an edge, the larger its flow; the stronger, the larger the share of its capacity "
    "that the flow takes. Only saturated edges can join different clusters. "
)
_COEFFICIENT = (
    "Coefficient {} of each node; the width of an edge is the flow of this coordinate, arrows (in "
    "small graphs) show its direction, from smaller to larger values."
)


class GraphPictures:
    """Pictures of one graph, with every node at the same place in all of them."""

    def __init__(self, content: Content) -> None:
        graph = content.problem.graph
        self._content = content
        self._meaning = "" if graph.positions is not None else "Places of nodes have no meaning."
        self._places: FloatArray | None = None
        if graph.n_nodes <= MOST_NODES and graph.n_edges <= MOST_EDGES:
            self._places = place_nodes(graph, None, content.clusters.labels)

    @property
    def why_not(self) -> str:
        """Why there are no pictures of the graph; "" where there are."""
        if self._places is not None:
            return ""
        return (
            f"The graph is not drawn: it has more than {counted(MOST_NODES, 'node')} or "
            f"{counted(MOST_EDGES, 'edge')}."
        )

    def clusters(self) -> list[Picture]:
        """Return the picture of the clusters."""
        return self._graph("cluster", _CLUSTERS + self._meaning)

    def coefficients(self) -> list[Picture]:
        """Return pictures of the first coefficients."""
        names = self._content.names[:PICTURED]
        return [
            drawn
            for k, name in enumerate(names)
            for drawn in self._graph(k, _COEFFICIENT.format(name))
        ]

    def gaps(self) -> list[Picture]:
        """Return pictures of the shares in the gap."""
        content = self._content
        if content.node_gaps is None:
            return []
        bars = plot_gaps(content.solution, certificate=content, ax=new_axes(_BARS))
        drawn = picture(bars, "The largest shares in the duality gap.")
        return [drawn, *self._graph("gap", "Where these shares are.")]

    def _graph(self, by: str | int, caption: str) -> list[Picture]:
        content, places = self._content, self._places
        if places is None:
            return []
        ax = plot_graph(
            content.solution, content.problem, by, positions=places, certificate=content,
            ax=new_axes(_START),
        )  # fmt: skip
        rows = legend_below(ax)
        ax.figure.set_size_inches(*width_and_rows(np.ptp(places, axis=0), rows))
        return [picture(ax, caption)]


def width_and_rows(extent: FloatArray, rows: int) -> tuple[float, float]:
    """Inches of a figure: a drawing of some extent (2,), a scale, and rows of a legend."""
    width, height = extent.tolist()
    drawing = float(np.clip(WIDTH * height / width, 1.6, 4.6)) if width > 0 else 3.0
    return WIDTH, drawing + _LEGEND_ROW * rows + _BAR


def legend_below(ax: Any) -> int:
    """Move the legend from the right of the axes to below them; return the number of its rows."""
    legend = ax.get_legend()
    if legend is None:
        return 0
    handles, texts = legend.legend_handles, [text.get_text() for text in legend.get_texts()]
    ax.legend(
        handles=handles, labels=texts, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2,
        fontsize=9, frameon=False, handlelength=1.6, columnspacing=1.0,
    )  # fmt: skip
    return (len(handles) + 1) // 2


def history(solution: Solution) -> tuple[str, list[Picture]]:
    """Return what the history says, and pictures of it."""
    if not solution.history:
        return "The solver kept no history.", []
    last, checks = solution.history[-1], len(solution.history)
    times = "once" if checks == 1 else f"{checks} times, the last time"
    text = (
        f"The gap was checked {times} after {counted(last.n_iter, 'iteration')} and "
        f"{last.seconds:.3g} s: value {last.value:.12g}, dual value {last.dual_value:.12g}, "
        f"gap {last.gap:.3g}."
    )
    if checks == 1:
        return text, []
    gap = plot_convergence(solution, "gap", ax=new_axes(_CURVES))
    bounds = plot_convergence(solution, "bounds", over="seconds", ax=new_axes(_CURVES))
    return text, [
        picture(gap, "The gap at each check."),
        picture(bounds, "The bounds between which the optimum lies."),
    ]
