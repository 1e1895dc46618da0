"""Every code block of docs/theorem2.md runs, in order, in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from verify.kernel import partitions

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "theorem2.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.M | re.S)


def test_blocks_run_and_print_what_the_text_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    assert {kind for kind, _ in BLOCKS} == {"python", "bash", "text"}
    monkeypatch.chdir(tmp_path)
    code = "\n".join(text for kind, text in BLOCKS if kind == "python")
    exec(compile(code, "theorem2.md", "exec"), {"__name__": "theorem2"})
    printed = capsys.readouterr().out
    assert "every cluster is well-connected" in printed
    karate = next(text for kind, text in BLOCKS if kind == "text").splitlines()
    gap = re.compile(r"gap \S+\)|up to \S+ ")  # depends on rounding
    lines = {gap.sub("", line) for line in printed.splitlines()}
    assert {gap.sub("", line) for line in karate if line != "..."} <= lines
    assert "exact recovery: recovered" in printed
    assert "every solution is constant on them up to" in printed
    assert "CERTIFIED every cluster of the partition is well-connected" in printed

    shell = "\n".join(text for kind, text in BLOCKS if kind == "bash")
    shell = shell.replace("gtvcvx ", f"{sys.executable} -m gtvcvx ")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", shell],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "CERTIFIED" in done.stdout
    assert (tmp_path / "clusters.png").read_bytes().startswith(b"\x89PNG")


def test_every_key_of_a_witness_is_documented():
    named = set(re.findall(r"`(\w+)`", TEXT))
    assert named >= partitions._COMMON
    for claim in partitions.CLAIMS:
        assert partitions._PROOF[claim] | partitions._OPTIONAL[claim] <= named
    assert partitions.SCHEMA in TEXT
