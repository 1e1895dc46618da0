"""What runs before a commit is what CI runs."""

import gzip
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
SCRIPT = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_hooks_run_the_checks_of_ci():
    # Read as text: no test needs YAML otherwise.
    hooks = re.findall(r"^ +entry: (.+)$", HOOKS, re.M)
    checks = re.findall(r"^((?:ruff|mypy)\b.*)$", SCRIPT, re.M)
    assert hooks == checks == ["ruff check .", "ruff format --check .", "mypy"]


def test_hooks_use_the_tools_that_are_installed():
    count = HOOKS.count("- id: ")
    assert re.findall(r"repo: (.+)", HOOKS) == ["local"]
    assert HOOKS.count("language: system") == HOOKS.count("pass_filenames: false") == count == 3


def test_the_site_is_built_strictly_and_its_links_are_checked():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"<!-- docs-command -->\n```\n(.*)\n```", text)
    assert "marked_command CONTRIBUTING.md docs-command" in SCRIPT
    build, check = command.split(" && ")
    assert " -nWq " in build
    folder = build.split()[-1]
    assert check == f"python docs/check_links.py {folder}"


@pytest.mark.parametrize("content", [gzip.compress(b"made this very second")])
def test_every_core_calls_a_test_by_the_same_name(content, request):
    # README's command lets each core collect the suite: named after their content, compressed
    # bytes would be two tests for two cores.
    assert content.startswith(b"\x1f\x8b")
    assert request.node.name == "test_every_core_calls_a_test_by_the_same_name[content]"
