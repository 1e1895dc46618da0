"""Every command of docs/trust.md runs, and its figures are those of the code."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import verify
from verify.kernel import work

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```", TEXT, re.M | re.S)


def test_commands_run(tmp_path: Path) -> None:
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": 2,
        "dim": 1,
        "edges": [[0, 1]],
        "weights": [1.0],
        "lam": 0.5,
        "penalty": {"kind": "l1"},
        "terms": [{"kind": "point", "node": [0, 1], "a": [[0.0], [1.0]]}],
    }
    document = verify.certify(data, [[0.25], [0.75]], [[-0.5]]).document
    (tmp_path / "certificate.json").write_text(json.dumps(document))
    shell = "\n".join(BLOCKS).replace("python ", f"{sys.executable} ")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", shell],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "CERTIFIED: relative gap" in done.stdout


def test_figures_are_those_of_the_code() -> None:
    assert f"{work.STEPS // 10**6} million steps" in TEXT
    lines = sum(
        len(path.read_text("utf-8").splitlines())
        for path in (ROOT / "verify" / "kernel").glob("*.py")
    )
    (said,) = re.findall(r"about ([\d,]+) lines", TEXT)
    assert lines == pytest.approx(int(said.replace(",", "")), rel=0.15)


def test_it_is_linked() -> None:
    assert shutil.which("bash")
    assert "docs/trust.md" in (ROOT / "README.md").read_text(encoding="utf-8")
