"""``python examples/papers``: as a reader would run it."""

from __future__ import annotations

import subprocess
import sys

from _papers import FOLDER, experiments


def papers(*arguments, cwd):
    """The finished process of the command, with warnings as errors."""
    command = [sys.executable, "-W", "error", str(FOLDER), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_list_has_every_experiment(tmp_path):
    done = papers("--list", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if line] == list(experiments())
    assert not list(tmp_path.iterdir())


def test_an_unknown_name_is_an_error(tmp_path):
    done = papers("no-such-name", cwd=tmp_path)
    assert done.returncode == 2
    assert "no-such-name" in done.stderr
