"""The page: templates filled in, with nothing but itself needed to show it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

# Nothing may be fetched, and no script may run but those of the page, whatever else it holds.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Table:
    """A table of a page: everything in it is shown as text.

    Attributes
    ----------
    caption : str
    header : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Floats and integers stand on the right.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @property
    def numeric(self) -> list[bool]:
        """Whether a column holds numbers alone."""
        if not self.rows:
            return [False] * len(self.header)
        return [all(map(_is_number, column)) for column in zip(*self.rows, strict=True)]


def render(title: str, sections: Mapping[str, Any], scripts: Sequence[str] = ()) -> str:
    """Return a whole document.

    Parameters
    ----------
    title : str
    sections : mapping
        What the templates of the sections need, by the names they use.
    scripts : sequence of str
        Sources that are part of the package; they come last.
    """
    template = _environment().get_template("page.html")
    return template.render(
        title=title,
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        **sections,
    )


def source(name: str) -> str:
    """Return the text of a script that lies beside the modules."""
    return files("gtvcvx.cli.report").joinpath(name).read_text(encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gtvcvx.cli.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    return environment


def _policy(scripts: Sequence[str]) -> str:
    """Return what the page may do: of scripts, these alone, letter by letter."""
    if not scripts:
        return _POLICY
    digests = [hashlib.sha256(script.encode("utf-8")).digest() for script in scripts]
    sources = [f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests]
    return f"{_POLICY}; script-src {' '.join(sources)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
