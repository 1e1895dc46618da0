"""What all pictures share: the extra that they need, axes to draw on, colours, files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx._extras import extra_module
from gtvcvx.files._atomic import atomic_write

#: Endings of file names that can be written.
FORMATS = (".png", ".pdf", ".svg")

# Paul Tol's scheme "bright" is told apart with any kind of colour vision; so are its markers.
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
_MARKERS = ("o", "s", "^", "D", "v")
_LINES = ("solid", "dashed", "dotted", "dashdot")
#: Areas have no marker: what is drawn on them instead.
HATCHES = dict(zip(_MARKERS, ("", "////", "....", "xxxx", "----"), strict=True))
#: Colours of what is not a cluster.
OTHER, INK, FAINT, STRONG = "#bbbbbb", "#17202a", "#85929e", "#d55e00"
#: Colour maps for values: even in lightness, and read with any kind of colour vision.
VALUES = "viridis"

_ON_AXES = """\
ax : matplotlib Axes, optional
    Where to draw. Default: the axes of a new figure.

Returns
-------
matplotlib Axes
    ``ax.figure.savefig(...)`` or `save_figure` writes it to a file.

Raises
------
ImportError
    There is no matplotlib.
ValueError, TypeError
    Naming the argument that does not fit, or what it lacks."""

Picture = TypeVar("Picture", bound=Callable[..., Any])


def drawn_on_axes(picture: Picture) -> Picture:
    """Say, in place of ``{ax}`` in the docstring, what holds for all functions that draw."""
    # There is no docstring under python -OO.
    if picture.__doc__ is not None:
        picture.__doc__ = inspect.cleandoc(picture.__doc__).replace("{ax}", _ON_AXES)
    return picture


def require_matplotlib() -> None:
    """Raise ImportError, which names the extra, if matplotlib is not there."""
    extra_module("matplotlib.figure", "plot", "pictures")


def axes_to_draw_on(ax: Any, figsize: tuple[float, float] = (7.0, 5.0)) -> Any:
    """Return the axes given, or those of a new figure that pyplot knows nothing of."""
    require_matplotlib()
    if ax is None:
        from matplotlib.figure import Figure

        return Figure(figsize=figsize, layout="constrained").add_subplot()
    if not hasattr(ax, "add_collection"):
        raise TypeError(f"ax: matplotlib axes are expected, got {type(ax).__name__}")
    return ax


def bare(ax: Any, *, grid: bool = True) -> None:
    """Leave out the frame above and on the right, and draw a faint grid."""
    if grid:
        ax.grid(True, linewidth=0.4, alpha=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure, or the figure of some axes, whole or not at all.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
    path : str or path-like
        File name that ends in .png, .pdf or .svg.

    Raises
    ------
    ValueError
        Another ending, or a folder that is not there.
    """
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in FORMATS:
        raise ValueError(
            f"{os.fspath(path)}: a file name that ends in {', '.join(FORMATS)} is expected"
        )
    with atomic_write(path, "wb") as file:
        getattr(figure, "figure", figure).savefig(file, format=ending[1:], dpi=150)


def cluster_styles(sizes: IntArray) -> list[tuple[str, str]]:
    """Return (colour, marker) of each cluster, from the numbers of nodes (k,), the largest first.

    There are 30 that can be told apart. The smaller clusters beyond them are all grey and, where
    there are more than six clusters, so are those of one node.
    """
    styles = [(OTHER, "o")] * len(sizes)
    order = np.argsort(-sizes, kind="stable")[: len(_COLOURS) * len(_MARKERS)]
    if len(sizes) > len(_COLOURS):
        order = order[sizes[order] > 1]
    for place, c in enumerate(order.tolist()):
        styles[c] = (_COLOURS[place % len(_COLOURS)], _MARKERS[place // len(_COLOURS)])
    return styles


def line_style(k: int) -> dict[str, str]:
    """Return colour and dashes of the k-th curve of a picture; 24 can be told apart."""
    n = len(_COLOURS)
    return {"color": _COLOURS[k % n], "linestyle": _LINES[k // n % len(_LINES)]}


def as_text(label: Any, longest: int = 24) -> str:
    """Return a label as one short line in which matplotlib finds no mathematics."""
    text = " ".join(str(label).split())
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return text.replace("$", r"\$")
