"""The picture of a run: its panels, or its rows where it has none."""

from __future__ import annotations

import hashlib
import json
import os
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.experiments._outcome import Curve, Level, Panel, Row
from gtvcvx.experiments._record import Record
from gtvcvx.experiments._table import headings
from gtvcvx.files._atomic import atomic_write
from gtvcvx.plotting._canvas import (
    FAINT,
    INK,
    STRONG,
    as_text,
    bare,
    line_style,
    require_matplotlib,
)

_PANEL = (5.2, 3.9)  # inches
_ALONE = 7.2  # width of a picture of one pair of axes
_COLUMNS = 2  # more are too small to be read on a page
# Rows over more than this ratio are drawn on a logarithmic axis.
_WIDE = 30.0
# How lines are drawn that are no runs: colour and weight by kind, dashes in turn, so that several
# of a kind are told apart.
_KINDS: dict[str, dict[str, Any]] = {
    "optimum": {"color": INK, "linewidth": 1.5, "zorder": 1.8},
    "limit": {"color": FAINT, "linewidth": 1.5},
    "printed": {"color": STRONG, "linewidth": 1.5},
    "other": {"color": FAINT, "linewidth": 1.1},
}
_DASHES: dict[str, tuple[Any, ...]] = {
    "optimum": ("solid", (0, (7, 2)), (0, (7, 2, 1, 2)), (0, (1, 1))),
    "limit": ((0, (4, 2)), (0, (4, 2, 1, 2)), (0, (2, 2)), (0, (1, 3))),
    "printed": ((0, (1, 2)), (0, (5, 1, 1, 1)), (0, (5, 3)), (0, (1, 5))),
    "other": ((0, (1, 2)), (0, (5, 1, 1, 1)), (0, (5, 3)), (0, (1, 5))),
}
_LONGEST = 48  # characters of a label
_LONGEST_OF_TWO = 34  # characters of a label, of which two fit below the axes side by side
_IN_AXES = 4  # entries of a legend that has room beside the curves


def digest_of(record: Record) -> str:
    """Give a digest of what the picture of a run shows, which its file carries.

    Parameters
    ----------
    record : Record
    """
    shown = {k: v for k, v in record.to_data().items() if k != "cpu_seconds"}
    text = json.dumps(shown, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def draw(record: Record) -> Any:
    """Draw a run.

    Parameters
    ----------
    record : Record

    Returns
    -------
    matplotlib Figure
        A pair of axes for each panel; without panels one with the rows: printed value, each seed,
        mean, and certified optimum.

    Raises
    ------
    ImportError
        There is no matplotlib.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    panels = record.outcome.panels
    columns = min(max(len(panels), 1), _COLUMNS)
    lines = -(-max(len(panels), 1) // columns)
    width = _PANEL[0] * columns if len(panels) > 1 else _ALONE
    height = _PANEL[1] * lines if panels else 1.9 + 0.42 * len(record.outcome.rows)
    figure = Figure(figsize=(width, height + 0.5), layout="constrained")
    columns_of_text = int(13 * width)
    lines_of_text = [_wrapped(text, columns_of_text) for text in headings(record)]
    figure.suptitle("\n".join(lines_of_text), fontsize=9)
    if not panels:
        _draw_rows(figure.add_subplot(), record)
    # A method has one colour in all panels.
    labels = [curve.label for panel in panels for curve in panel.curves if curve.kind == "run"]
    methods = list(dict.fromkeys(labels))
    for k, panel in enumerate(panels):
        _draw_panel(figure.add_subplot(lines, columns, k + 1), panel, methods)
    return figure


def save_picture(record: Record, path: str | os.PathLike[str]) -> None:
    """Write the picture of a run as an SVG file: the same file for the same run.

    Parameters
    ----------
    record : Record
    path : path-like
    """
    require_matplotlib()
    from matplotlib import rc_context

    fixed = {"svg.hashsalt": record.name, "svg.fonttype": "none"}
    metadata = {"Date": None, "Description": f"{record.name} sha256:{digest_of(record)}"}
    with rc_context(fixed), atomic_write(path, "wb") as file:
        draw(record).savefig(file, format="svg", metadata=metadata)


def _wrapped(text: str, columns: int) -> str:
    """Return a text in lines of a picture, in which matplotlib finds no mathematics."""
    return textwrap.fill(as_text(text, 400), columns)


def _draw_panel(ax: Any, panel: Panel, methods: Sequence[str]) -> None:
    ax.set_title(_wrapped(panel.title, 60), fontsize=10)
    ax.set_xlabel(_wrapped(panel.xlabel, 60))
    ax.set_ylabel(_wrapped(panel.ylabel, 40))
    ax.set_xscale("log" if panel.xlog else "linear")
    ax.set_yscale("log" if panel.ylog else "linear")
    drawn: Counter[str] = Counter()
    for curve in panel.curves:
        place = methods.index(curve.label) if curve.kind == "run" else drawn[curve.kind]
        _draw_curve(ax, curve, _style(curve.kind, place), panel.ylog)
        drawn[curve.kind] += 1
    for level in panel.levels:
        _draw_level(ax, level, _style(level.kind, drawn[level.kind]))
        drawn[level.kind] += 1
    if panel.ylim is not None:
        ax.set_ylim(*panel.ylim)
    if panel.xticks:
        ax.set_xticks(list(panel.xticks), [as_text(t) for t in panel.xticks.values()], fontsize=8)
    _explain(ax, len(panel.curves) + len(panel.levels))
    bare(ax)


def _style(kind: str, k: int) -> dict[str, Any]:
    """Return how the k-th line of a kind is drawn."""
    if kind == "run":
        return dict(line_style(k))
    return {**_KINDS[kind], "linestyle": _DASHES[kind][k % len(_DASHES[kind])]}


def _explain(ax: Any, entries: int) -> None:
    """Draw the legend, below the axes where it would cover the curves."""
    if entries <= _IN_AXES:
        ax.legend(fontsize=7, handlelength=3)
        return
    longest = max(len(label) for label in ax.get_legend_handles_labels()[1])
    columns = 2 if longest <= _LONGEST_OF_TWO or ax.figure.get_figwidth() == _ALONE else 1
    ax.legend(
        fontsize=7, handlelength=3, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns
    )  # fmt: skip


def _draw_curve(ax: Any, curve: Curve, style: dict[str, Any], ylog: bool) -> None:
    x, values = np.asarray(curve.x), np.asarray(curve.values)
    mean = values.mean(axis=0)
    few = len(x) <= 12
    marker = {"marker": "o", "markersize": 4} if few and curve.kind == "run" else {}
    ax.plot(x, mean, label=as_text(curve.label, _LONGEST), **{"linewidth": 1.5, **marker, **style})
    if len(values) > 1 and curve.kind == "run":
        lower, upper = band(values, ylog)
        ax.fill_between(x, lower, upper, color=style["color"], alpha=0.18, linewidth=0)


def band(values: FloatArray, ylog: bool) -> tuple[FloatArray, FloatArray]:
    """Return mean less and plus a deviation; on a logarithmic axis not below the least seed."""
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    lower = mean - deviation
    return np.maximum(lower, values.min(axis=0)) if ylog else lower, mean + deviation


def _draw_level(ax: Any, level: Level, style: dict[str, Any]) -> None:
    label = as_text(f"{level.label}: {level.value:.3g}", _LONGEST)
    ax.axhline(level.value, label=label, **style)


def _draw_rows(ax: Any, record: Record) -> None:
    """Draw a line for each row; statements in words are written out."""
    rows = record.outcome.rows
    numbers = [x for row in rows for x in _numbers_of(row)]
    wide = numbers and min(numbers) > 0 and max(numbers) / min(numbers) > _WIDE
    if wide:
        ax.set_xscale("log")
    for k, row in enumerate(rows):
        _draw_row(ax, row, len(rows) - 1 - k)
    ax.set_yticks(range(len(rows)), [as_text(row.name, 40) for row in reversed(rows)], fontsize=8)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.set_xlabel(_wrapped(record.outcome.measure, 80))
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        ax.legend(
            once.values(), once.keys(), fontsize=7, loc="upper center",
            bbox_to_anchor=(0.5, -0.25 if len(rows) < 6 else -0.12), ncols=4, markerscale=0.6,
        )  # fmt: skip
    bare(ax)


def _numbers_of(row: Row) -> list[float]:
    found = [row.printed] if not isinstance(row.printed, str) else []
    for values in (row.ours, row.optimum):
        if values is not None and not isinstance(values, str):
            found += np.asarray(values, dtype=np.float64).tolist()
    return [float(x) for x in found]


def _draw_row(ax: Any, row: Row, height: int) -> None:
    if row.mean is None:
        ax.text(0.02, height, as_text(str(row.ours), 70), fontsize=7, va="center",
                transform=ax.get_yaxis_transform())  # fmt: skip
    else:
        ours = np.asarray(row.ours)
        colour = line_style(0)["color"]
        ax.plot(ours, np.full(len(ours), height), "o", color=colour, alpha=0.35, markersize=5,
                label="ours, each seed")  # fmt: skip
        ax.plot([row.mean], [height], "o", color=colour, markersize=8, label="ours, mean")
    if not isinstance(row.printed, str):
        ax.plot([row.printed], [height], "x", color=STRONG, markersize=9, mew=2, label="printed")
    if row.optimum_mean is not None:
        ax.plot([row.optimum_mean], [height], "|", color=INK, markersize=18, mew=2,
                label="certified optimum")  # fmt: skip
