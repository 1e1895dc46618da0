"""docs/reference.md is what make_reference.py makes of the docstrings, which are complete."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
make_reference = importlib.util.module_from_spec(_spec)
sys.modules["make_reference"] = make_reference
_spec.loader.exec_module(make_reference)

PAGE = (DOCS / "reference.md").read_text(encoding="utf-8")
AVAILABLE = tuple(
    name
    for name in make_reference.MODULES
    if importlib.util.find_spec(make_reference.OPTIONAL.get(name, "gtvcvx"))
)
REFERENCE = make_reference.Reference(AVAILABLE)
NAMES = [
    (module, name)
    for module, names in REFERENCE.names.items()
    for name, value in names.items()
    if not make_reference.is_module(value)
]


def test_the_page_is_up_to_date():
    """If this fails: python docs/make_reference.py."""
    if AVAILABLE == make_reference.MODULES:
        assert REFERENCE.page() == PAGE
    for module in AVAILABLE:
        assert REFERENCE.contents(module) in PAGE


def test_every_public_module_has_a_section():
    assert set(make_reference.OPTIONAL) < set(make_reference.MODULES)
    for module in make_reference.MODULES:
        assert f'<a id="{module}"></a>\n## {module}\n' in PAGE


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_docstrings_name_every_parameter(module, name):
    value = REFERENCE.names[module][name]
    doc = inspect.getdoc(value)
    heads = re.findall(r"^(\S.*?)(?: : .*)?$", _sections(doc), re.MULTILINE)
    documented = {word.strip().lstrip("*") for head in heads for word in head.split(",")}
    parameters = make_reference.parameters(value)
    assert {p.name for p in parameters if p.kind is not p.VAR_KEYWORD} <= documented
    assert doc.splitlines()[0].endswith((".", "``.", "``", ":"))


def _sections(doc):
    """Text below the headings Parameters and Attributes."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", doc, flags=re.MULTILINE)
    wanted = ("Parameters", "Attributes")
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return "\n".join(body for title, body in pairs if title in wanted)


def test_links_lead_somewhere():
    anchors = re.findall(r'<a id="([^"]+)"></a>', PAGE)
    assert len(anchors) == len(set(anchors))
    links = re.findall(r"\]\(#([^)]+)\)", PAGE)
    assert len(links) > 100
    assert set(links) <= set(anchors)
    for target in re.findall(r"\]\(([^#)]+)[^)]*\)", PAGE):
        assert (DOCS / target).is_file()


def test_nothing_of_restructured_text_or_of_this_machine_is_left():
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert "``" not in prose
    assert not re.search(r":\w+:`", prose)
    assert not re.search(r"^\s*\.\. \w+::", prose, re.MULTILINE)
    assert not re.search(r"^-{3,}$", prose, re.MULTILINE)
    assert not re.search(r"^ *>", prose, re.MULTILINE)
    assert not re.search(r"[^\n]\n\*\*\w+\*\*\n", prose)
    assert not re.search(r" at 0x[0-9a-f]+", PAGE)
    assert PAGE.count("$$") % 2 == 0
