"""Pictures of the results: suboptimality against time, and time against size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import Row

from gtvcvx.files._atomic import atomic_write

COLUMNS, LARGEST = 3, 12  # panels a row, panels a figure


def write_plots(rows: list[Row], folder: Path) -> None:
    """Write gap-FAMILY.png and, where there are several sizes, scaling-FAMILY.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    for family in dict.fromkeys(row.family for row in rows):
        mine = [row for row in rows if row.family == family]
        _figure(mine, lambda row: row.case, _gap, folder / f"gap-{family}.png")
        sizes: dict[str, set[int]] = {}
        for row in mine:
            sizes.setdefault(row.series, set()).add(row.n_nodes)
        several = [row for row in mine if len(sizes[row.series]) > 1]
        if several:
            path = folder / f"scaling-{family}.png"
            _figure(several, lambda row: f"{row.series} to {row.target:g}", _scaling, path)


def _figure(
    rows: list[Row], name: Callable[[Row], str], draw: Callable[..., None], path: Path
) -> None:
    from matplotlib import pyplot as plt

    panels = list(dict.fromkeys(map(name, rows)))[-LARGEST:]
    colours = {peer: f"C{k}" for k, peer in enumerate(sorted({row.peer for row in rows}))}
    lines = -(-len(panels) // COLUMNS)
    figure, axes = plt.subplots(
        lines, COLUMNS, figsize=(5 * COLUMNS, 3.6 * lines), squeeze=False, layout="constrained"
    )
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax, panel in zip(axes.flat, panels, strict=False):
        for peer, colour in colours.items():
            draw(ax, [row for row in rows if name(row) == panel and row.peer == peer], colour)
        ax.set_title(panel, fontsize="medium")
        if ax.lines:  # an empty axis cannot be logarithmic
            ax.set(xscale="log", yscale="log")
            ax.grid(alpha=0.3)
            ax.legend(fontsize="x-small")
    with atomic_write(path, "wb") as file:
        figure.savefig(file, dpi=110)
    plt.close(figure)


def _gap(ax: Any, rows: list[Row], colour: str) -> None:
    for k, row in enumerate(rows):
        points = [(t, gap) for t, gap in row.trace if gap > 0]
        if points:
            label = row.peer if k == 0 else None
            ax.plot(*zip(*points, strict=True), ".-", color=colour, label=label)
    ax.set(xlabel="seconds", ylabel="true relative gap")


def _scaling(ax: Any, rows: list[Row], colour: str) -> None:
    points = sorted((row.n_nodes, row.seconds) for row in rows if row.reached)
    if points:
        ax.plot(*zip(*points, strict=True), "o-", color=colour, label=rows[0].peer)
    ax.set(xlabel="nodes", ylabel="seconds")
