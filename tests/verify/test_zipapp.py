"""gtv-check.pyz: built by one command, run away from every installation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from _plain_instances import document

from verify import zipapp

HOSTILE = "open('loaded.txt', 'a').write(__name__)\nraise SystemExit(0)\n"
MODULES = ("fractions", "json", "numpy", "verify", "argparse", "sitecustomize")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the built file, certificates, and modules that say CERTIFIED at once."""
    found = tmp_path_factory.mktemp("received")
    assert zipapp.main([str(found / zipapp.NAME)]) == 0
    doc = document(7, "every_kind", "l2")
    (found / "good.json").write_text(json.dumps(doc))
    doc["w"].reverse()
    (found / "bad.json").write_text(json.dumps(doc))
    (found / "broken.json").write_text("{")
    for name in MODULES:
        (found / f"{name}.py").write_text(HOSTILE)
    return found


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},  # what -I has to ignore, too
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["good.json"], 0, "CERTIFIED"),
        (["good.json", "--rtol", "0"], 3, "UNPROVED"),
        (["good.json", "--json"], 0, '"plain_gap"'),
        (["bad.json"], 4, "REFUTED"),
        (["broken.json"], 5, "malformed"),
        (["missing.json"], 2, "cannot read"),
        (["--help"], 0, "exit status"),
    ],
)
def test_isolated_it_takes_nothing_from_the_folder(
    folder: Path, arguments: list[str], code: int, word: str
) -> None:
    done = run(folder, "-I", "-S", zipapp.NAME, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert word in done.stdout + done.stderr
    assert not (folder / "loaded.txt").exists()


def test_the_modules_of_the_folder_are_hostile(folder: Path) -> None:
    """Not isolated, they take part: this is why the pages say -I."""
    run(folder, "-m", "verify", "check", "bad.json")
    (folder / "loaded.txt").unlink()


def test_the_program_beside_hostile_modules_names_the_isolated_launch(folder: Path) -> None:
    assert "python -I" in run(folder, "-I", "-S", zipapp.NAME, "--help").stdout


def test_it_holds_the_kernel_and_is_the_same_every_time(folder: Path, tmp_path: Path) -> None:
    kernel = Path(zipapp.__file__).parent / "kernel"
    with zipfile.ZipFile(folder / zipapp.NAME) as archive:
        names = set(archive.namelist())
    own = {f"verify/{p.relative_to(kernel.parent).as_posix()}" for p in kernel.rglob("*.py")}
    assert names == own | {"__main__.py", "verify/__init__.py"}
    first, second = (zipapp.build(tmp_path / name) for name in ("a.pyz", "b.pyz"))
    assert first == second
    assert (tmp_path / "a.pyz").read_bytes() == (folder / zipapp.NAME).read_bytes()


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert zipapp.main([str(tmp_path / "none" / "a.pyz")]) == 2
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_reader_that_goes_away_changes_no_status(folder: Path, form: tuple[str, ...]) -> None:
    """As `gtv-check.pyz FILE | head -0` does: no traceback, and not the status of a defect."""
    command = [sys.executable, "-I", "-S", zipapp.NAME, "good.json", *form]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode == 0
    assert error == b""
