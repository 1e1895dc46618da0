"""docs/federated.md: every block runs, in order, in one folder, and prints what the page quotes."""

from __future__ import annotations

import inspect
import re

import pytest
from _documents import ROOT, run_page

from gtvcvx import federated as fed

TEXT = (ROOT / "docs" / "federated.md").read_text(encoding="utf-8")


def test_page_runs_and_prints_what_it_says(tmp_path):
    assert run_page("federated.md", tmp_path) >= 2
    assert (tmp_path / "run.npz").is_file()


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)", TEXT))
def test_links_lead_to_files(target):
    assert (ROOT / "docs" / target).is_file()


def test_table_says_what_the_algorithms_say_of_themselves():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", TEXT, re.M)
    kinds = {name: getattr(fed, name) for name in fed.__all__}
    algorithms = {
        name: kind
        for name, kind in kinds.items()
        if inspect.isclass(kind) and issubclass(kind, fed.Algorithm) and kind is not fed.Algorithm
    }
    said = {name: (kind.guarantee, kind.leaves) for name, kind in algorithms.items()}
    assert {name: tuple(rest) for name, *rest in rows} == said
