"""docs/distributed.md: every block runs, in order, in one folder; quotations are compared."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from _documents import ROOT, run_page

TEXT = (ROOT / "docs" / "distributed.md").read_text(encoding="utf-8")
MPI = importlib.util.find_spec("mpi4py") is not None and shutil.which("mpiexec") is not None
RAY = importlib.util.find_spec("ray") is not None
# What `sbatch` and `srun` do on the cluster, in a few words.
STANDS_IN = {
    "sbatch": 'bash -n "$1" && bash "$1"',
    "srun": 'exec "$STAND_IN" "$@"',
}


def page(folder: Path, kinds: set[str]) -> Path:
    """Write the page with the blocks of these kinds, and without those of others."""

    def kept(block: re.Match[str]) -> str:
        language, kind, text = block.groups()
        return f"```{language}\n{text}```" if kind in kinds else ""

    text = re.sub(r"^```(\w+) (\w+)\n(.*?)^```$", kept, TEXT, flags=re.M | re.S)
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, kinds: set[str]) -> int:
    # Blocks are parts of scripts: what is below `__main__` runs.
    path = page(folder, kinds)
    text = path.read_text(encoding="utf-8").replace('if __name__ == "__main__":', "if True:")
    path.write_text(text, encoding="utf-8")
    return run_page(path, folder)


def test_page_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    assert run(tmp_path, monkeypatch, set()) >= 4
    assert (tmp_path / "proof.gtvc").is_file()
    assert (tmp_path / "solution.npz").is_file()


@pytest.mark.skipif(not MPI, reason="there is no MPI")
def test_mpi_and_slurm(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in STANDS_IN.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    starter = tools / "starter"
    starter.write_text('#!/bin/bash\nexec mpiexec -n 2 "$@"\n')
    starter.chmod(0o755)
    monkeypatch.setenv("STAND_IN", str(starter))
    monkeypatch.setenv("PATH", os.pathsep.join([str(tools), os.environ["PATH"]]))
    assert run(tmp_path, monkeypatch, {"mpi", "slurm"}) >= 4


@pytest.mark.skipif(not RAY, reason="Ray is not there")
def test_ray(tmp_path, monkeypatch):
    assert run(tmp_path, monkeypatch, {"ray"}) >= 5


def test_the_job_is_a_script_of_bash(tmp_path):
    (block,) = re.findall(r"^```bash slurm\n(.*?)^```$", TEXT, re.M | re.S)
    script = re.search(r"<<'END'\n(.*)^END$", block, re.M | re.S)
    assert script is not None
    done = subprocess.run(["bash", "-n"], input=script[1], text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    arguments = re.search(
        r"srun python -m gtvcvx\.distributed (.*?)$\n", script[1].replace("\\\n", ""), re.M
    )
    assert arguments is not None
    parse(arguments[1].split())


def parse(arguments: list[str]) -> None:
    """Let the command line read arguments of ``python -m gtvcvx.distributed``."""
    from gtvcvx.cli import _parser

    parsed = _parser().parse_args(["solve-shards", "--engine", "mpi", *arguments])
    assert parsed.resume
    assert parsed.checkpoint == "kept"


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)", TEXT))
def test_links_lead_to_files(target):
    assert (ROOT / "docs" / target).is_file()


def test_the_machine_of_the_model_is_that_of_the_code():
    from gtvcvx.distributed._efficiency import Machine

    (said,) = re.findall(r"^<!-- machine -->\n(.*)$", TEXT, re.M)
    for name, value in Machine().__dict__.items():
        if name != "memory":
            assert f"`{name}={value:g}`" in said
