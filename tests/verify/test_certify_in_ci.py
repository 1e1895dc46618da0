"""The pytest plugin as it is installed, and every block of docs/certify-in-ci.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import verify

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "certify-in-ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, re.M | re.S)


# The plugin as installed: through its entry point, in a process of its own.


@pytest.fixture
def environment(tmp_path):
    """Environment in which pytest finds the entry point of pyproject.toml, and no other plugin."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    points = settings["project"]["entry-points"]["pytest11"]
    info = tmp_path / "installed" / "stand_in-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stand-in\nVersion: 1\n")
    lines = [f"{name} = {module}\n" for name, module in points.items()]
    (info / "entry_points.txt").write_text("".join(["[pytest11]\n", *lines]))
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    changed = {
        "PATH": os.pathsep.join(paths),
        "PYTHONPATH": os.pathsep.join([str(info.parent), str(ROOT)]),
        "PYTHONWARNINGS": "error",
    }
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    return kept | changed


def start(folder, environment, *arguments):
    """Start pytest; other plugins may import what they like and are left out."""
    options = ["-W", "error", "--strict-markers", "-p", "no:hypothesispytest"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_start_up_imports_neither_numpy_nor_the_builder(tmp_path, environment):
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it(pytestconfig):\n"
        "    assert pytestconfig.pluginmanager.has_plugin('gtv-verify')\n"
        "    heavy = {'numpy', 'scipy', 'cvxpy', 'verify.certificates._certify'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    done = start(tmp_path, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert "warning" not in done.stdout.lower() + done.stderr.lower()


def test_it_can_be_switched_off(tmp_path, environment):
    (tmp_path / "test_it.py").write_text("def test_it(certified):\n    pass\n")
    done = start(tmp_path, environment, "-p", "no:gtv-verify")
    assert done.returncode == 1
    assert "fixture 'certified' not found" in done.stdout
    done = start(tmp_path, environment)
    assert done.returncode == 0, done.stdout + done.stderr


# The guide.


def without_numbers(text):
    """Return text whose numbers may differ in their last digits from one machine to another."""
    return re.sub(r"[ \d.]+(e[+-]?\d+)?", "#", text)


def test_every_block_of_the_guide_is_of_a_kind_that_runs():
    assert [kind for kind, _ in BLOCKS].count("python") == 5
    assert {kind for kind, _ in BLOCKS} == {"python", "bash", "yaml", "text"}


def test_the_workflow_installs_and_runs_the_commands_of_the_guide():
    blocks = dict(reversed(BLOCKS))  # the first of each kind
    install, *run = re.findall(r"- run: (.*)", blocks["yaml"])
    assert install == 'python -m pip install ".[test]"'
    assert run == blocks["bash"].splitlines()


def execute(kind, text, folder, environment):
    """Run a block and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-"] if kind == "python" else ["bash", "-euo", "pipefail"],
        input=text,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_guide_runs_from_top_to_bottom(tmp_path, environment):
    project = tmp_path / "project"
    project.mkdir()
    printed = ""
    for kind, text in BLOCKS:
        if file := re.match(r"# file: (\S+)\n", text):
            (project / file[1]).write_text(text, encoding="utf-8")
        elif kind == "text":
            # What pytest folds away depends on the width, so lines are looked for one by one.
            for line in text.splitlines():
                assert without_numbers(line) in without_numbers(printed), printed
        elif kind != "yaml":
            printed = execute(kind, text, project, environment)
    saved = list((project / "certificates").glob("*.json"))
    assert len(saved) == 1
    assert verify.check(saved[0]).status == "CERTIFIED"


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", GUIDE))
def test_links_of_the_guide_lead_to_files(target):
    assert (ROOT / "docs" / target).is_file()
