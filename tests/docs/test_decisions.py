"""The records of decisions: all in the index, and true about where things are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "decisions"
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
PARTS = ("**Decision.**", "**What would change our mind.**")


def test_there_are_records():
    assert len(RECORDS) >= 9


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_records_are_short_and_say_what_a_record_says(path):
    text = path.read_text(encoding="utf-8")
    assert f"]({path.name})" in INDEX
    assert text.startswith("# ")
    assert all(part in text for part in PARTS)
    assert len(text.splitlines()) <= 50


@pytest.mark.parametrize("path", [*RECORDS, FOLDER / "README.md"], ids=lambda path: path.stem)
def test_paths_and_links_exist(path):
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:gtvcvx|verify|tests|docs|examples)/[\w./]*)`", text)
    linked = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert [name for name in linked if not (path.parent / name).exists()] == []
