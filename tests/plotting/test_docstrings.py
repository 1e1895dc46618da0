"""What all pictures share is said in each docstring, and missed by none where there are none."""

import subprocess
import sys
from pathlib import Path

import pytest

from gtvcvx import plotting

ROOT = Path(__file__).resolve().parents[2]
PICTURES = [name for name in plotting.__all__ if name.startswith("plot_")]


@pytest.mark.parametrize("name", PICTURES)
def test_docstrings_are_complete(name):
    doc = getattr(plotting, name).__doc__
    for words in ("ax : matplotlib Axes, optional", "Returns\n-------", "ImportError\n"):
        assert words in doc
    assert "{" not in doc


def test_python_without_docstrings_can_import():
    code = "from gtvcvx import plotting; assert not plotting.plot_path.__doc__"
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
