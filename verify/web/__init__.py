"""The second checker, in JavaScript: for Node, and for pages such as those of `gtvcvx report`."""

from __future__ import annotations

from importlib.resources import files


def checker_source() -> str:
    """Return the text of checker.js, which defines `gtvChecker` wherever it is run."""
    return files(__name__).joinpath("checker.js").read_text(encoding="utf-8")
