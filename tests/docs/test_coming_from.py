"""docs/coming-from.md: our side of every comparison runs and prints what the page quotes."""

from __future__ import annotations

import ast
import re

import pytest
from _documents import ROOT, run_page

TEXT = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
# Code of other packages: shown, not run.
SHOWN = re.findall(r"^```(\w+) no-run\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def anchor(heading):
    """What GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_page_runs_and_prints_what_it_says(tmp_path):
    pytest.importorskip("sklearn")
    assert run_page("coming-from.md", tmp_path) >= 10
    assert (tmp_path / "solution.graphml").is_file()


def test_code_of_other_packages_is_python_at_least():
    packages = set()
    for language, text in SHOWN:
        if language == "python":
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Import):
                    packages |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    packages.add(node.module)
    assert packages == {"cvxpy", "snapvx", "strat_models", "skglm"}


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)]+)\)", TEXT))
def test_links_lead_somewhere(target):
    path, _, name = target.partition("#")
    page = ROOT / "docs" / path if path else ROOT / "docs" / "coming-from.md"
    text = page.read_text(encoding="utf-8")
    assert not name or name in map(anchor, re.findall(r"^#+ (.*)$", text, re.MULTILINE))
