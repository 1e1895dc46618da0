"""What all pictures share: the extra that they need, axes to draw on, colours, files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
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
#: Text on a colour. Not quite black and white: the report turns those on dark pages, these not.
ON_LIGHT, ON_DARK = "#010101", "#fefefe"
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


def luminance(colour: Any) -> float:
    """Return the relative luminance of a colour, 0 of black and 1 of white (WCAG 2)."""
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def text_on(colour: Any) -> str:
    """Return the colour of text on another one, of black and white the one that contrasts more.

    On the grey of what is no cluster it is ink, which turns with that grey.
    """
    from matplotlib.colors import to_hex

    if to_hex(colour) == OTHER:
        return INK
    # sqrt(1.05 * 0.05) - 0.05, where both contrasts are 4.58.
    return ON_LIGHT if luminance(colour) > 0.179 else ON_DARK


def outlined(text: str, colour: str) -> list[Any] | None:
    """Return path effects: an outline in the colour that contrasts with that of the text.

    None where the font lacks a letter: outlined text is drawn as curves, and would be boxes; plain
    text in a file of vectors is shown by the viewer's own fonts.
    """
    from matplotlib.font_manager import FontProperties, findfont, get_font
    from matplotlib.patheffects import withStroke

    font = get_font(findfont(FontProperties()))
    if not all(font.get_char_index(ord(letter)) for letter in text):
        return None
    around = {ON_LIGHT: ON_DARK, ON_DARK: ON_LIGHT, INK: "#ffffff"}[colour]
    return [withStroke(linewidth=1.0, foreground=around)]


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

    There are 30 that can be told apart, in six colours. The smaller clusters beyond them are all
    grey and, where there are more than six clusters, so are those of one node.
    """
    styles = [(OTHER, "o")] * len(sizes)
    order = np.argsort(-sizes, kind="stable")[: len(_COLOURS) * len(_MARKERS)]
    if len(sizes) > len(_COLOURS):
        order = order[sizes[order] > 1]
    for place, c in enumerate(order.tolist()):
        styles[c] = (_COLOURS[place % len(_COLOURS)], _MARKERS[place // len(_COLOURS)])
    return styles


def cluster_colours(sizes: IntArray) -> list[str]:
    """Return the colour of each cluster where there is no marker: those of the six largest.

    All others are grey; `in_colours` says so in words.
    """
    styles = cluster_styles(sizes)
    return [colour if marker == _MARKERS[0] else OTHER for colour, marker in styles]


def in_colours(colours: Sequence[str]) -> str:
    """Return the end of a title: how many clusters have colours, unless all have."""
    grey = sum(colour == OTHER for colour in colours)
    if not grey:
        return ""
    k = len(colours)
    return f"; {k - grey} of {k} clusters in colours" if grey < k else "; all clusters in grey"


def shared_colours(sizes: IntArray) -> str:
    """Return how many clusters of `cluster_styles` share colours, in words; "" if none do."""
    drawn = [colour for colour, _ in cluster_styles(sizes) if colour != OTHER]
    shared = sum(drawn.count(colour) > 1 for colour in drawn)
    return f"{shared} of {len(sizes)} share colours" if shared else ""


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
