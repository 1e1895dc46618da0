"""Check the links of the built site: ``python docs/check_links.py docs/_build/html``.

Every link and picture that stays on the site must lead to a file there and, behind ``#``, to an
element of it. Of links to elsewhere only the form is checked, since no network is needed here.
Nothing that a page needs, such as scripts and styles, may come from elsewhere. Exit status: 0 all
is well, 1 broken links, which are printed; 2 no site.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes by which pages name other files, of any element.
_NAMING = ("href", "src")
# Elements whose target the browser loads by itself; a link to a page waits for a click.
_CLICKED = ("a", "area")
#: `link` elements that are only said, not loaded.
_SAID = {"canonical", "index", "search", "next", "prev", "author", "license"}


class Page(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, bool]] = []  # target, and whether it is loaded by itself
        self.anchors = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the targets and the anchor of an element."""
        named = {key: value or "" for key, value in attrs}
        self.anchors |= {named[key] for key in ("id", "name") if key in named}
        said = set(named.get("rel", "").split()) & _SAID
        loaded = tag not in _CLICKED and not said
        self.links += [(named[key], loaded) for key in _NAMING if key in named]


@cache
def read(path: Path) -> Page:
    """Return a page of the site."""
    return Page(path.read_text("utf-8"))


def broken(site: Path) -> Iterator[str]:
    """Yield a line for each link that is wrong."""
    for path in sorted(site.rglob("*.html")):
        if "_static" in path.relative_to(site).parts:
            continue
        for target, loaded in read(path).links:
            fault = fault_of(target, loaded, path, site)
            if fault:
                yield f"{path.relative_to(site)}: {target}: {fault}"


def fault_of(target: str, loaded: bool, page: Path, site: Path) -> str | None:
    """Say what is wrong with a link of a page, if anything is."""
    try:
        parts = urlsplit(target)
    except ValueError as error:
        return str(error)
    if parts.scheme in ("data", "mailto"):
        return None
    if parts.scheme or parts.netloc:
        return _fault_elsewhere(target, loaded)
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if path.is_dir():
        path = path / "index.html"
    if not path.is_relative_to(site) or not path.is_file():
        return "there is no such file"
    # What stands behind # for a script of the page, as in search.html, is no anchor.
    if path.suffix == ".html" and unquote(parts.fragment) not in read(path).anchors:
        return "there is no such place in the page"
    return None


def _fault_elsewhere(target: str, loaded: bool) -> str | None:
    parts = urlsplit(target)
    if loaded:
        return "the page loads it from elsewhere"
    if parts.scheme not in ("http", "https"):
        return "a link to elsewhere begins with https://"
    if "." not in (parts.hostname or "") or any(sign.isspace() for sign in target):
        return "no address"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the site in the folder given; return the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    site = Path(given[0] if given else "docs/_build/html").resolve()
    pages = len(list(site.rglob("*.html")))
    if not pages:
        print(f"{site}: no site", file=sys.stderr)
        return 2
    faults = list(broken(site))
    print("\n".join([*faults, f"{pages} pages, {len(faults)} broken links"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
