"""Sphinx extension: pages that live elsewhere in the repository, and links between files.

Files are read on their own, in a checkout, as well as on the site. So links name files, relative to
the file where they stand; here they come to lead to the pages that are made of those.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

#: Files outside docs/ that are pages, and the stubs in docs/ that stand for them.
PAGES = {
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "README.md": "index",
    "verify/SCHEMA.md": "schema",
}
# [text](file#place); on the site a text that is the file's name gives way to the title of the page.
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)((?:#[^)\s]*)?)\)")


def on_site(target: str, file: Path, root: Path) -> str:
    """Return what a link of a file has to say on the site."""
    if target.startswith("/"):
        return target
    path = (file.parent / target).resolve()
    if not path.exists() or not path.is_relative_to(root):
        return target
    name = path.relative_to(root).as_posix()
    if name in PAGES:
        return f"/{PAGES[name]}.md"
    if path.parent == root / "examples" and name.endswith(".py"):
        return f"/gallery/{path.stem}.md"
    return f"/{path.relative_to(root / 'docs').as_posix()}" if name.startswith("docs/") else target


def rewritten(link: re.Match[str], file: Path, root: Path) -> str:
    """Return a link as it has to be on the site."""
    text, target, place = link.groups()
    there = on_site(target, file, root)
    if text.endswith(".md") and there.endswith(".md"):
        text = ""
    return f"[{text}]({there}{place})"


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the file in the place of its stub, and rewrite the links of a page."""
    docs = Path(app.srcdir)
    file = Path(app.env.doc2path(docname))
    if file.suffix != ".md":
        return
    stands_for = {stub: name for name, stub in PAGES.items() if stub != "index"}
    if docname in stands_for:
        file = docs.parent / stands_for[docname]
        source[0] = file.read_text("utf-8")
        app.env.note_dependency(str(file))
    text = source[0]
    source[0] = _LINK.sub(lambda link: rewritten(link, file, docs.parent), text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register."""
    app.connect("source-read", read_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
