"""Pictures inside the page: SVG without a background, which turns with light and dark pages."""

from __future__ import annotations

import base64
import io
import re
import warnings
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from gtvcvx.plotting._canvas import luminance

#: Background of dark pages, as in templates/style.css.
DARK_PAPER = "#14191e"
#: Inches, of which a small screen has the most: letters are as large as those of the page.
WIDTH = 4.6
# What is not mathematics in the titles of pictures.
_SIGNS = {"$\\lambda$": "\N{GREEK SMALL LETTER LAMDA}", "$\\pm$": "\u00b1", "\\$": "$"}
# Channels this close to each other make a grey, or what reads as one.
_GREY = 45
# The least and the largest term of a contrast ratio (WCAG 2): relative luminance plus this.
_FLARE = 0.05
_NAMESPACE = "http://www.w3.org/2000/svg"
_COLOUR = re.compile(r"(?<=: )#[0-9a-f]{6}(?=;|$)")


@dataclass(frozen=True)
class Picture:
    """An image of the page.

    Attributes
    ----------
    source : str
        Address with the image in it.
    title : str
        What is to be seen, as text that wraps and is read aloud.
    caption : str
        How to read it.
    paper : bool
        Whether it keeps its white background on dark pages.
    """

    source: str
    title: str
    caption: str
    paper: bool


def new_axes(height: float) -> Any:
    """Return axes of a new figure of the report's width and some height in inches."""
    # Loaded when something is drawn: matplotlib is an extra.
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained").add_subplot()


def picture(ax: Any, caption: str) -> Picture:
    """Return the figure of some axes as an image; their title becomes text of the page."""
    title = ax.get_title()
    for written, meant in _SIGNS.items():
        title = title.replace(written, meant)
    ax.set_title("")
    paper = _has_pixels(ax.figure)
    svg = _svg(ax.figure, transparent=not paper)
    content = svg if paper else turning(svg)
    source = "data:image/svg+xml;base64," + base64.b64encode(content).decode("ascii")
    return Picture(source, title[:1].upper() + title[1:], caption, paper)


def _has_pixels(figure: Any) -> bool:
    """Whether parts of the drawing, colour bars aside, are no lines but pixels."""
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    return any(part.get_rasterized() for axes in panels for part in axes.collections)


def _svg(figure: Any, transparent: bool) -> bytes:
    # Loaded when something is drawn: matplotlib is an extra.
    from matplotlib import rc_context

    buffer = io.BytesIO()
    # The salt makes the names inside the picture, and so the page, the same in every run; text
    # stays text, which the browser can show in any script.
    with rc_context({"svg.hashsalt": "gtvcvx", "svg.fonttype": "none"}), warnings.catch_warnings():
        # matplotlib measures the text with its own font, which may lack a letter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(
            buffer, format="svg", dpi=150, metadata={"Date": None}, transparent=transparent
        )
    return buffer.getvalue()


def turning(svg: bytes) -> bytes:
    """Return a picture whose greys are turned where the reader prefers dark pages.

    Each grey has a name there, and two values; colours that mean something stay as they are. What
    has no colour of its own is black.
    """
    ElementTree.register_namespace("", _NAMESPACE)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    found = {"#000000"}

    def named(match: re.Match[str]) -> str:
        colour = match[0]
        if not is_grey(colour):
            return colour
        found.add(colour)
        return f"var(--c{colour[1:]})"

    for element in root.iter():
        if "style" in element.attrib:
            element.set("style", _COLOUR.sub(named, element.attrib["style"]))
    style = ElementTree.Element(f"{{{_NAMESPACE}}}style")
    style.text = _rules(sorted(found))
    root.insert(0, style)
    return ElementTree.tostring(root, encoding="utf-8")


def _rules(greys: list[str]) -> str:
    light = "".join(f"--c{grey[1:]}:{grey};" for grey in greys)
    dark = "".join(f"--c{grey[1:]}:{turned(grey)};" for grey in greys)
    return (
        f":root{{{light}fill:var(--c000000)}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )


def is_grey(colour: str) -> bool:
    """Whether a colour is ink or paper, and none that is told apart by its hue."""
    channels = _channels(colour)
    # Labels on colours are nearly black and nearly white: they stay, as the colours do.
    return max(channels) - min(channels) <= _GREY and colour not in ("#010101", "#fefefe")


def turned(grey: str) -> str:
    """Return the grey whose contrast with dark paper is that of the given one with white paper."""
    contrast = (1.0 + _FLARE) / (luminance(grey) + _FLARE)
    value = min(contrast * (luminance(DARK_PAPER) + _FLARE) - _FLARE, 1.0)
    if value <= luminance(DARK_PAPER):
        return DARK_PAPER
    # sRGB: the inverse of its linear light (IEC 61966-2-1).
    level = 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1.0 / 2.4) - 0.055
    return "#" + 3 * f"{round(255 * level):02x}"


def _channels(colour: str) -> list[int]:
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
