"""docs/command-line.md: every block runs in one folder, and prints what the page quotes."""

from __future__ import annotations

import re

import pytest
from _documents import ROOT, run_page

from gtvcvx.cli import _completion, _parser

TEXT = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


def test_page_runs_and_prints_what_it_says(tmp_path):
    for extra in ("matplotlib", "sklearn"):
        pytest.importorskip(extra)
    assert run_page("command-line.md", tmp_path) >= 7
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")
    assert "complete" in (tmp_path / "completion.bash").read_text()


def test_every_command_is_in_the_table():
    for command in _completion._commands(_parser())[1:]:
        assert re.search(rf"^\|.*`{command.name}`.*\|$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)", TEXT))
def test_links_lead_to_files(target):
    assert (ROOT / "docs" / target).is_file()


def test_it_is_linked():
    assert "docs/command-line.md" in (ROOT / "README.md").read_text(encoding="utf-8")
