"""How objects show themselves: one screen of text on a terminal, a small table in a notebook.

The text fits in `LINES` lines of `COLUMNS` columns, whatever the object holds. HTML is one element
without scripts, styles from elsewhere or other resources, and valid as XML. Its pictures are curves
of a few dozen points, drawn here as SVG: matplotlib would take half a second to be loaded, and is
an extra. The standard library is enough for all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import fields, is_dataclass
from fractions import Fraction
from html import escape
from typing import Any

# A screen of a terminal as it opens, less the prompt; and the widest that prints without wrapping.
LINES, COLUMNS = 24, 100
# Rows of a table, so that a heading and what is beside the table fit on the screen, too.
ROWS = 12
# Of a value inside a line, and of an array or a list that is written out.
_WIDTH, _ITEMS = 60, 6
# Of the box of a curve, in pixels: less than a column of a notebook.
_PICTURE = (320, 120)


def fitted(lines: Iterable[str], most: int = LINES) -> str:
    """Join lines, cut to the width and the number that fit; what is left out is counted."""
    found = [line for text in lines for line in text.split("\n")]
    if len(found) > most:
        rest = len(found) - most + 1
        found = [*found[: most - 1], f"... {rest} more lines"]
    return "\n".join(clipped(line, COLUMNS) for line in found)


def clipped(text: str, width: int = _WIDTH) -> str:
    """Return printable text of at most so many characters."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: width + 1])
    return plain if len(plain) <= width else plain[: width - 3] + "..."


def short(value: Any) -> str:
    """Describe any value within a line."""
    if isinstance(value, Fraction):
        return clipped(str(value)) if _digits(value) < _WIDTH else _about(value)
    if isinstance(value, (str, bytes)):
        return clipped(repr(value[:_WIDTH]))
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        if math.prod(shape) <= _ITEMS:
            return clipped(" ".join(str(value).split()))
        name = type(value).__name__.removeprefix("nd")
        return f"<{name} of shape {shape}>"
    if isinstance(value, (list, tuple, set, frozenset, Mapping)) and not _is_short(value):
        return f"<{type(value).__name__} of {len(value)}>"
    return clipped(repr(value).partition("\n")[0])


def fields_text(value: Any) -> str:
    """Describe a dataclass or a named tuple by its fields, as its ``__repr__``.

    On one line, as Python does it, where that fits; else one line for each field.
    """
    if is_dataclass(value):
        names = [each.name for each in fields(value) if each.repr]
    else:
        names = list(value._fields)
    parts = [f"{name}={short(getattr(value, name))}" for name in names]
    line = f"{type(value).__name__}({', '.join(parts)})"
    if len(line) <= COLUMNS:
        return line
    return fitted([f"{type(value).__name__}(", *(f"    {part}," for part in parts), ")"])


def few(count: int, most: int = ROWS) -> list[int | None]:
    """Return the positions of the first and last of so many rows; None stands for what is between.

    All of them are returned where they are no more than `most`.
    """
    if count <= most:
        return list(range(count))
    head = most // 2
    return [*range(head), None, *range(count - (most - 1 - head), count)]


def aligned(header: Sequence[str], rows: Iterable[Sequence[str] | None]) -> list[str]:
    """Align the columns of a table to the right, the last one to the left; None is an ellipsis."""
    shown = [["..."] * len(header) if row is None else list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *shown, strict=True)]
    last = len(widths) - 1
    return [
        "  "
        + "  ".join(
            cell if k == last else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *shown)
    ]


def html_block(title: str, *parts: str) -> str:
    """Return one element: a heading, and parts that are HTML already."""
    heading = f"<strong>{html_text(title)}</strong>"
    return f'<div class="gtvcvx">{heading}{"".join(parts)}</div>'


def html_report(text: str) -> str:
    """Return a report of several lines: the first is the heading."""
    title, *lines = text.split("\n")
    body = "\n".join(map(html_text, lines))
    return html_block(title, f'<pre style="text-align:left">{body}</pre>')


def html_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and what there is to say about them."""
    rows = (
        f'<tr><th style="text-align:left">{html_text(name)}</th>'
        f'<td style="text-align:left">{html_text(text)}</td></tr>'
        for name, text in facts
    )
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def html_table(header: Sequence[str], rows: Iterable[Sequence[str] | None]) -> str:
    """Return a table with a header; None is a row of ellipses."""
    head = "".join(f"<th>{html_text(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>"
        for row in (["..."] * len(header) if row is None else row for row in rows)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """Escape text; what XML does not allow, control characters, is written out."""
    return escape("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))


def html_curve(caption: str, x: Sequence[float], y: Sequence[float], mark: int = -1) -> str:
    """Return a curve through points in a frame, as SVG; "" where fewer than two are finite.

    Parameters
    ----------
    caption : str
    x, y : sequence of float
        Points; those that are not finite are left out.
    mark : int
        Position of a point that gets a dot; -1: none.
    """
    kept = [k for k in range(len(x)) if math.isfinite(x[k]) and math.isfinite(y[k])]
    if len(kept) < 2:
        return ""
    width, height = _PICTURE
    left = _places([x[k] for k in kept], width)
    up = _places([y[k] for k in kept], height)
    points = [(a, height - b) for a, b in zip(left, up, strict=True)]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dot = ""
    if mark in kept:
        a, b = points[kept.index(mark)]
        dot = f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="currentColor"/>'
    return (
        f'<figure style="margin:0.5em 0"><svg xmlns="http://www.w3.org/2000/svg" '
        f'width="{width}" height="{height}" role="img"><title>{html_text(caption)}</title>'
        f'<rect width="{width}" height="{height}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.3"/><polyline points="{line}" fill="none" stroke="currentColor" '
        f'stroke-width="1.5"/>{dot}</svg><figcaption>{html_text(caption)}</figcaption></figure>'
    )


def _places(values: Sequence[float], size: int) -> list[float]:
    """Bring values into a frame of this size, with a margin."""
    low, high, margin = min(values), max(values), 8
    spread = high - low if high > low else 1.0
    return [margin + (size - 2 * margin) * ((value - low) / spread) for value in values]


def _is_short(value: Sized) -> bool:
    """Say whether a container has few entries, which are no containers."""
    flat = value.values() if isinstance(value, Mapping) else value
    plain = (str, int, float, bool, type(None))
    return len(value) <= _ITEMS and all(isinstance(each, plain) for each in flat)  # type: ignore[attr-defined]


def _digits(value: Fraction) -> float:
    """Return about how many digits a fraction has; writing out a long one may be refused."""
    return (value.numerator.bit_length() + value.denominator.bit_length()) * math.log10(2.0)


def _about(value: Fraction) -> str:
    try:
        return f"<fraction, about {float(value):.12g}>"
    except OverflowError:
        return "<fraction beyond the range of floats>"
