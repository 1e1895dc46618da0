"""docs/coming-from.md: our side of every comparison runs and prints what the page quotes."""

from __future__ import annotations

import ast
import contextlib
import io
import re

import pytest
from _documents import ROOT, compare, run_page

TEXT = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
# Code for packages that the tests do not bring: run where they are installed.
GEO = re.findall(r"^```(\w+) geo\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
# Code of other packages: shown, not run.
SHOWN = re.findall(r"^```(\w+) no-run\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def anchor(heading):
    """What GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_page_runs_and_prints_what_it_says(tmp_path):
    pytest.importorskip("sklearn")
    assert run_page("coming-from.md", tmp_path) >= 10
    assert (tmp_path / "solution.graphml").is_file()


def test_spatial_packages(tmp_path):
    for module in ("geopandas", "libpysal.graph"):
        pytest.importorskip(module, reason=f"{module} (extra bench)")
    namespace, printed = {}, ""
    with contextlib.chdir(tmp_path):
        for language, text in GEO:
            if language == "text":
                compare(text, printed)
                continue
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(text, "coming-from.md", "exec"), namespace)
            printed = output.getvalue()
    assert [language for language, _ in GEO] == ["python", "text"] * 3
    assert {path.stem for path in tmp_path.glob("*.png")} == {"regions", "rate"}


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
