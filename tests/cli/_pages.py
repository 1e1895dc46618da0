"""Pages of ``gtvcvx report``, read as a browser reads them."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from xml.etree import ElementTree


@dataclass
class Page(HTMLParser):
    """What a browser would make of a page: tags, attributes, text, tables."""

    text: str
    tags: list = field(default_factory=list)
    words: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    scripts: list = field(default_factory=list)
    verdicts: list = field(default_factory=list)

    def __post_init__(self):
        super().__init__()
        self.open: list = []
        self._last_class, self._in_verdict = "", False
        self.feed(self.text)
        self.close()
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "br", "input"):
            self.open.append(tag)
        self._in_verdict = tag == "strong" and "verdict" in self._last_class
        self._last_class = dict(attributes).get("class") or ""
        if tag == "script":
            self.scripts.append([dict(attributes), ""])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        if "script" in self.open:
            self.scripts[-1][1] += data
            return
        if self._in_verdict:
            self.verdicts.append(data)
            self._in_verdict = False
        self.words.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    @property
    def facts(self):
        """Rows of two cells."""
        return {row[0]: row[1] for row in self.rows if len(row) == 2}

    @property
    def verdict(self):
        (found,) = self.verdicts
        return found

    @property
    def pictures(self):
        """The pictures, decoded."""
        found = [attributes["src"] for tag, attributes in self.tags if tag == "img"]
        prefix = "data:image/svg+xml;base64,"
        assert all(source.startswith(prefix) for source in found)
        return [base64.b64decode(source.removeprefix(prefix)).decode() for source in found]


def read(path):
    return Page(path.read_text(encoding="utf-8"))


def assert_self_contained(page):
    """Nothing is fetched: no address in any attribute, no script, no style from elsewhere.

    The scripts are those of the package, by their hashes, and no attribute is one.
    """
    names = {tag for tag, _ in page.tags}
    assert not names & {"link", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "srcset", "action", "background", "poster", "style"):
                assert value.startswith("#" if tag == "a" else "data:")
    markup = re.sub(r"<script>.*?</script>", "", page.text, flags=re.DOTALL)
    assert "url(" not in re.sub(r"base64,[\w+/=]*", "", markup)
    assert "@import" not in page.text
    policies = [a["content"] for t, a in page.tags if a.get("http-equiv")]
    (policy,) = policies
    strict = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    scripts = [text for attributes, text in page.scripts if not attributes]  # others are data
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    allowed = "; script-src " + " ".join(f"'sha256-{digest}'" for digest in hashes)
    assert policy == strict + (allowed if scripts else "")
    assert {attributes.get("type") for attributes, _ in page.scripts} <= {None, "application/json"}
    for picture in page.pictures:
        for element in ElementTree.fromstring(picture).iter():
            assert not element.tag.endswith("}script")
            for name, value in element.attrib.items():
                if name.endswith("href"):
                    assert value.startswith(("#", "data:"))
