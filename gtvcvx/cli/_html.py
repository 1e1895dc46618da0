"""HTML that needs nothing but itself: escaped text, tables, pictures inside the page."""

from __future__ import annotations

import base64
import hashlib
import io
import warnings
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #17202a; background: #fff;
       max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin: 0 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #b8c0c8; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; white-space: nowrap; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid #e3e7ea; }
th.number, td.number { text-align: right; white-space: nowrap; }
td { overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: .6rem 0 1rem; }
.facts th { font-weight: 600; white-space: nowrap; }
.verdict { border: 2px solid; border-left-width: .6rem; padding: .6rem 1rem; margin: 1rem 0; }
.verdict strong { font-size: 1.25rem; }
.proved { border-color: #1e6b2c; }
.unproved { border-color: #8a5a00; }
.refuted { border-color: #a31515; }
.note { color: #4a5560; font-size: .9rem; }
figure { margin: 1rem 0 1.6rem; break-inside: avoid; }
figure img { max-width: 100%; height: auto; }
figcaption { color: #4a5560; font-size: .9rem; }
code { font-size: .92em; background: #f1f3f5; padding: 0 .2em; overflow-wrap: anywhere; }
button { font: inherit; font-weight: 600; color: #fff; background: #1f4e79;
         border: 1px solid #1f4e79; border-radius: .25rem; padding: .35rem 1rem;
         margin-right: 1rem; cursor: pointer; }
button:hover { background: #163a5b; }
button.quiet { color: #1f4e79; background: #fff; margin-left: 1rem; }
button:focus-visible, input:focus-visible { outline: 3px solid #e0a100; outline-offset: 1px; }
label { white-space: nowrap; }
input { font: inherit; padding: .3rem .5rem; border: 1px solid #8a949e; border-radius: .25rem; }
@media print { #proof-tools button, #proof-tools label { display: none; }
               body { font-size: 10pt; margin: 0; max-width: none; } .wide { overflow: visible; }
               h2 { break-after: avoid; } tr { break-inside: avoid; } }
"""

# Nothing may be fetched, and no script may run but those of the page, whatever else it holds.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(title: str, parts: Iterable[str], scripts: Sequence[str] = ()) -> str:
    """Return a whole document; the title is text, the parts are HTML, the scripts come last."""
    heading = escape(title)
    body = "\n".join([*parts, *(f"<script>{script}</script>" for script in scripts)])
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{heading}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{heading}</h1>\n{body}\n</body>\n</html>\n"
    )


def _policy(scripts: Sequence[str]) -> str:
    """Return what the page may do: of scripts, these alone, letter by letter."""
    if not scripts:
        return _POLICY
    digests = [hashlib.sha256(script.encode("utf-8")).digest() for script in scripts]
    sources = [f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests]
    return f"{_POLICY}; script-src {' '.join(sources)}"


def section(title: str, *parts: str) -> str:
    """Return a section with a heading; the title is text, the parts are HTML."""
    return "\n".join([f"<section>\n<h2>{escape(title)}</h2>", *parts, "</section>"])


def paragraph(text: str, kind: str | None = None) -> str:
    """Return a paragraph of text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def verdict(word: str, text: str, kind: str) -> str:
    """Return the box with one word and what it means."""
    return f"<p{_class(f'verdict {kind}')}><strong>{escape(word)}</strong><br>{escape(text)}</p>"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and what there is to say about them, all text."""
    lines = [
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
        for name, text in rows
    ]
    return "\n".join(['<div class="wide"><table class="facts">', *lines, "</table></div>"])


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; floats and integers stand on the right, everything is shown as text."""
    body = [[_cell(value) for value in row] for row in rows]
    numbers = [all(is_number for _, is_number in column) for column in zip(*body, strict=True)]
    numbers = numbers or [False] * len(header)
    head = "".join(
        f'<th scope="col"{_class("number" if number else None)}>{escape(name)}</th>'
        for name, number in zip(header, numbers, strict=True)
    )
    lines = [
        "<tr>"
        + "".join(
            f"<td{_class('number' if number else None)}>{text}</td>"
            for (text, _), number in zip(row, numbers, strict=True)
        )
        + "</tr>"
        for row in body
    ]
    return "\n".join(
        [
            f'<div class="wide"><table><caption>{escape(caption)}</caption>',
            f"<thead><tr>{head}</tr></thead><tbody>",
            *lines,
            "</tbody></table></div>",
        ]
    )


def picture(ax: Any, caption: str) -> str:
    """Return the figure of some axes as an image that is part of the page."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    # The salt makes the names inside the picture, and so the page, the same in every run; text
    # stays text, which the browser can show in any script.
    with rc_context({"svg.hashsalt": "gtvcvx", "svg.fonttype": "none"}), warnings.catch_warnings():
        # matplotlib measures the text with its own font, which may lack a letter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        ax.figure.savefig(buffer, format="svg", dpi=150, metadata={"Date": None})
    content = base64.b64encode(buffer.getvalue()).decode("ascii")
    text = escape(caption)
    return (
        f'<figure>\n<img alt="{text}" src="data:image/svg+xml;base64,{content}">\n'
        f"<figcaption>{text}</figcaption>\n</figure>"
    )


def _cell(value: Any) -> tuple[str, bool]:
    """Return the text of a cell, escaped, and whether it is a number."""
    if isinstance(value, float):
        return f"{value:.6g}", True
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value), True
    return escape(str(value)), False


def _class(kind: str | None) -> str:
    return f' class="{kind}"' if kind else ""
