"""Where the duality gap is: the nodes and edges with the largest shares of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, is_integer
from gtvcvx.plotting._canvas import as_text, axes_to_draw_on, bare, drawn_on_axes
from gtvcvx.plotting._graph import gap_shares
from gtvcvx.solution import Solution

_COLOURS = {"node": "#4477aa", "edge": "#ee6677"}


@drawn_on_axes
def plot_gaps(
    solution: Solution, *, certificate: Any = None, count: int = 8, ax: Any = None
) -> Any:
    """Draw the largest shares of nodes and edges in the duality gap, as bars.

    The gap is the sum of one share for each node and one for each edge, each zero exactly where
    that node or edge satisfies its optimality condition. `plot_graph` with ``by="gap"`` shows
    where in the graph they are.

    Parameters
    ----------
    solution : Solution
    certificate : object with node_gaps (n,) and edge_gaps (m,), such as verify.Certificate
        Show its shares instead of the solver's.
    count : int
        Number of nodes and of edges named, at least 1; the others are added up.
    {ax}
    """
    if not is_integer(count) or count < 1:
        raise ValueError(f"count: a positive integer is expected, got {count!r}")
    node, edge = gap_shares(solution, certificate)
    bars = [
        *_bars("node", node, lambda i: as_text(solution.nodes[i]), int(count)),
        *_bars("edge", edge, lambda e: _edge_name(solution, e), int(count)),
    ]
    ax = axes_to_draw_on(ax, (7.0, 1.4 + 0.26 * max(len(bars), 2)))
    ax.set_title(
        f"shares of the duality gap: all nodes {node.sum():.3g}, all edges {edge.sum():.3g}",
        fontsize=11,
    )
    if not bars:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "every share is zero", ha="center", transform=ax.transAxes)
        return ax
    _draw(ax, bars)
    return ax


def _edge_name(solution: Solution, edge: int) -> str:
    return " - ".join(as_text(solution.nodes[i], 16) for i in solution.edges[edge].tolist())


def _bars(
    kind: str, shares: FloatArray, name: Callable[[int], str], count: int
) -> list[tuple[str, float, str]]:
    """Return (text, share, kind) of the largest shares, and of the sum of the others."""
    order = np.argsort(-shares, kind="stable")
    order = order[: int(np.count_nonzero(shares))]
    bars = [(f"{kind} {name(i)}", float(shares[i]), kind) for i in order[:count].tolist()]
    rest = order[count:]
    if len(rest):
        text = f"{len(rest)} other {kind}{'' if len(rest) == 1 else 's'}"
        bars.append((text, float(shares[rest].sum()), kind))
    return bars


def _draw(ax: Any, bars: list[tuple[str, float, str]]) -> None:
    rows = np.arange(len(bars))
    values = np.array([share for _, share, _ in bars])
    colours = [_COLOURS[kind] for _, _, kind in bars]
    left = float(10.0 ** np.floor(np.log10(values.min()) - 0.5))
    ax.set_xscale("log")
    ax.barh(rows, values - left, left=left, color=colours, height=0.7)
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        ax.annotate(
            f"{value:.2g}", (value, row), xytext=(3, 0), textcoords="offset points", va="center",
            fontsize=8,
        )  # fmt: skip
    ax.set_xlim(left, float(values.max()) * (values.max() / left) ** 0.15)
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.set_yticks(rows, [text for text, _, _ in bars], fontsize=8)
    ax.set_xlabel("share (unit of the objective)")
    bare(ax, grid=False)
