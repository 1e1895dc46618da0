"""What a release needs: one version, a citation, a workflow that checks what it publishes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gtvcvx as gtv
import verify
from verify import zipapp

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def yaml_of(path):
    return pytest.importorskip("yaml").safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_there_is_one_version():
    cited = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    assert [PROJECT["version"]] == cited == [gtv.__version__] == [verify.__version__]


def test_programs_say_their_version(tmp_path):
    zipapp.build(tmp_path / "gtv-check.pyz")
    for program, name in (
        (["-m", "verify"], "verify"),
        (["-m", "gtvcvx"], "gtvcvx"),
        (["-I", "-S", "gtv-check.pyz"], "gtv-check"),
    ):
        done = subprocess.run(
            [sys.executable, *program, "--version"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{name} {PROJECT['version']}\n"


def test_citation_has_what_the_format_demands():
    cited = yaml_of("CITATION.cff")
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "version", "license", "references"} < set(cited)
    assert cited["license"] == PROJECT["license"]
    assert [author["name"] for author in cited["authors"]] == [
        author["name"] for author in PROJECT["authors"]
    ]
    paper = cited["references"][0]
    assert paper["title"] in " ".join((ROOT / "docs" / "papers.md").read_text("utf-8").split())
    assert all(set(author) == {"family-names", "given-names"} for author in paper["authors"])


def test_only_a_tag_publishes_and_only_what_was_checked():
    jobs = yaml_of(".github/workflows/release.yml")["jobs"]
    package, publish = jobs["package"], jobs["publish"]
    assert ".ci/package" in [step.get("run") for step in package["steps"]]
    assert os.access(ROOT / ".ci" / "package", os.X_OK)
    assert publish["needs"] == "package"
    assert publish["permissions"] == {"id-token": "write"}
    assert "github.ref_type == 'tag'" in publish["if"]
    assert not any("checkout" in step.get("uses", "") for step in publish["steps"])


def test_the_package_script_refuses_another_tag():
    script = (ROOT / ".ci" / "package").read_text(encoding="utf-8")
    assert '"$TAG" != "v$version"' in script
    assert "twine check --strict" in script
