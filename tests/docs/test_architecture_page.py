"""The pages for contributors are true about where things are."""

import re
from pathlib import Path

import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Method, Run

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["CONTRIBUTING.md", "docs/architecture.md"]


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_paths_and_links_exist(page):
    named = re.findall(r"`((?:gtvcvx|verify|tests|docs|examples)/[\w./]*)`", text_of(page))
    linked = re.findall(r"\]\((?!http)([^)#]+)\)", text_of(page))
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert [name for name in linked if not (ROOT / page).parent.joinpath(name).exists()] == []


def test_no_path_is_a_pattern():
    """Folders say where things are, not prefixes of names."""
    assert not re.search(r"`[\w/]*\*[\w.*]*`", text_of("CONTRIBUTING.md"))


def test_every_folder_of_the_packages_is_in_the_table():
    table = text_of("CONTRIBUTING.md")
    for package in ("gtvcvx", "verify"):
        for folder in (ROOT / package).iterdir():
            if (folder / "__init__.py").is_file():
                assert f"{folder.name}/`" in table, folder


def test_names_of_the_drawings_are_those_of_the_code():
    drawn = text_of("docs/architecture.md")
    for name in ("run", "due", "proposal", "learn"):
        assert f"method.{name}(" in drawn
        assert hasattr(Method, name)
    for name in ("drive", "solution"):
        assert f"Run.{name}(" in drawn
        assert hasattr(Run, name)
    assert "GTVProblem.solve" in drawn
    assert hasattr(gtv.GTVProblem, "solve")
