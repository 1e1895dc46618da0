"""The start page of the site: its blocks run, and its picture is made by a script of ours."""

from __future__ import annotations

import importlib.util
import re

import pytest
from _documents import ROOT, run_page

DOCS = ROOT / "docs"
TEXT = (DOCS / "index.md").read_text(encoding="utf-8")


def test_page_runs_and_prints_what_it_says(tmp_path):
    # The demo is run with README.md.
    without_installation = TEXT.replace("python -m pip install . && gtvcvx demo", ":")
    assert without_installation != TEXT
    (tmp_path / "index.md").write_text(without_installation, encoding="utf-8")
    assert run_page(tmp_path / "index.md", tmp_path) == 1


def test_cards_and_pictures_lead_to_files():
    targets = re.findall(r"^:link: (\S+)$", TEXT, re.MULTILINE)
    assert len(targets) >= 8
    made = {"gallery/index", "reference/index"}
    assert made < set(targets)
    assert [n for n in targets if n not in made and not (DOCS / f"{n}.md").exists()] == []
    for picture in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXT):
        assert (DOCS / picture).read_bytes().startswith(b"\x89PNG")


def test_every_picture_is_shown_and_made():
    pages = [ROOT / "README.md", *DOCS.glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    shown = set(re.findall(r"!\[[^\]]+\]\((?:docs/)?pictures/([\w-]+\.png)\)", text))
    # Those of reproduction.md are in a folder of their own: papers/test_reproduction_page.py.
    assert {path.name for path in (DOCS / "pictures").iterdir() if path.is_file()} == shown
    assert "overview.png" in shown
    tutorial = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    for name in shown - {"overview.png"}:
        assert f'"{name.removeprefix("tutorial-")}")' in tutorial  # drawn by a block of the page


def test_the_picture_shows_what_is_said_about_it(tmp_path):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("make_pictures", DOCS / "make_pictures.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.overview().savefig(tmp_path / "overview.png")
    few = script.Few()
    errors = [
        few.error(w)
        for w in (
            few.problem.solve(rtol=1e-8).w,
            few.problem.losses.minimizer(few.problem.graph.n_nodes),
            few.pooled(),
        )
    ]
    assert errors[0] < 0.9 * errors[1] < 0.9 * errors[2]
