"""Every command and code block of README.md runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
# What installs, or runs this very suite, is run by .ci/run: in a fresh environment.
INSTALL = "python -m pip install "


def script(language):
    return "\n".join(text for kind, text in BLOCKS if kind == language)


def environment():
    """Scripts of this interpreter first on the path, and the checkout importable anywhere."""
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    return os.environ | {"PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT)}


def test_every_block_names_a_language_that_is_run():
    assert {kind for kind, _ in BLOCKS} == {"bash", "python"}
    assert len(BLOCKS) >= 5


def test_the_first_two_blocks_are_the_two_commands():
    (_, job), (_, tests) = BLOCKS[:2]
    assert job == "python -m pip install . && gtvcvx demo\n"
    assert tests.startswith(INSTALL)
    assert tests.rstrip().endswith("python -m pytest -q -n auto --dist loadfile")


def test_python_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(script("python"), "README.md", "exec"), {"__name__": "readme"})
    printed = capsys.readouterr().out
    assert "optimal CERTIFIED" in printed
    assert "clusters: [50 50] well-connected: True" in printed
    assert "finished gap" in printed


def test_shell_blocks_run(tmp_path):
    lines = [
        line.split("&&")[-1] if line.startswith(INSTALL) else line
        for line in script("bash").splitlines()
        if "pytest" not in line
    ]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("CERTIFIED") >= 3
    assert (tmp_path / "certificate.json").is_file()


@pytest.mark.parametrize(
    "target", re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "README.md").read_text())
)
def test_links_lead_to_files(target):
    assert (ROOT / target).is_file()


@pytest.mark.parametrize(
    "path", re.findall(r"`((?:examples|tests)/[\w/]+\.py)`", (ROOT / "README.md").read_text())
)
def test_files_that_are_named_exist(path):
    assert (ROOT / path).is_file()
