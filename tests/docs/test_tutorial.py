"""docs/tutorial.md: every block runs, in order, in one folder, and prints what the page quotes."""

from __future__ import annotations

import re

import pytest
from _documents import ROOT, compare, run_page

TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def test_tutorial_runs_and_prints_what_it_says(tmp_path):
    for extra in ("matplotlib", "pandas", "sklearn"):
        pytest.importorskip(extra)
    assert run_page("tutorial.md", tmp_path) >= 8
    page = (tmp_path / "states.html").read_text(encoding="utf-8")
    assert "CERTIFIED" in page
    assert "data:image/" in page
    pictures = sorted(tmp_path.glob("*.png"))
    assert len(pictures) >= 4
    assert all(path.read_bytes().startswith(PNG_SIGNATURE) for path in pictures)
    assert {path.stem for path in pictures} == set(re.findall(r"save_figure\(.*\"(\w+)\.png", TEXT))


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)", TEXT))
def test_links_lead_to_files(target):
    assert (ROOT / "docs" / target).is_file()


def test_a_quotation_that_was_not_printed_fails():
    printed = "lambda 0.10731\n   13 clusters, gap 2.1e-08\nend\n"
    compare("lambda 0.10730\n13 clusters,  gap 7.3e-09\nend\n", printed)
    compare("lambda 0.108\n...\nend\n", printed)
    for wrong in (
        "lambda 0.11731\n...\n",  # another number
        "...\n14 clusters, gap 2.1e-08\nend\n",  # another count
        "...\n13 groups, gap 2.1e-08\nend\n",  # another word
        "lambda 0.10731\nend\n",  # a line left out in silence
        "end\n...\nlambda 0.10731\n",  # another order
        "lambda 0.10731\n",  # the end left out
    ):
        with pytest.raises(AssertionError):
            compare(wrong, printed)
