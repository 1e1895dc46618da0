"""`verify` stands alone: no solver package, and a kernel on the standard library only."""

import ast
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from _plain_instances import document

import verify

FOLDER = Path(verify.__file__).parent
PARTS = sorted((FOLDER / "kernel").glob("*.py"))
KERNEL = [*PARTS, *(FOLDER / f"{name}.py" for name in ("__init__", "__main__", "zipapp"))]


def _imports(path: Path) -> set[str]:
    """Return the modules that a file imports anywhere, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            found.add(str(node.module))
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda p: p.name)
def test_no_file_imports_the_solver(path: Path) -> None:
    assert not {m for m in _imports(path) if m.split(".")[0] == "gtvcvx"}
    assert "gtvcvx" not in {
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    }


def test_there_is_a_kernel_to_check() -> None:
    names = {
        "checker.py",
        "documents.py",
        "losses.py",
        "matrices.py",
        "numbers.py",
        "partitions.py",
    }
    assert names <= {p.name for p in PARTS}


@pytest.mark.parametrize("path", KERNEL, ids=lambda p: p.name)
def test_kernel_imports_the_standard_library_only(path: Path) -> None:
    for module in _imports(path):
        top = module.split(".")[0]
        own = module == "verify" or module.startswith("verify.kernel")
        assert own or top in sys.stdlib_module_names, module


@pytest.mark.parametrize(("file", "other"), [("checker", "partitions"), ("partitions", "checker")])
def test_certificates_and_partitions_are_decided_apart(file: str, other: str) -> None:
    tree = ast.parse((FOLDER / "kernel" / f"{file}.py").read_text(encoding="utf-8"))
    names = [a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names]
    assert names
    assert other not in {
        *names,
        *(m.split(".")[-1] for m in _imports(FOLDER / f"kernel/{file}.py")),
    }


def test_checking_a_certificate_runs_no_code_about_partitions(copy: Path) -> None:
    code = (
        "import sys, verify\n"
        "print(verify.check('good.json').status)\n"
        "print([m for m in sys.modules if m.split('.')[-1] in "
        "('partitions', 'constants', 'quadratic_forms')])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=copy, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["CERTIFIED", "[]"]


def test_kernel_files_use_no_third_party_module_at_run_time() -> None:
    code = (
        "import sys, verify, verify.kernel, verify.__main__\n"
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('numpy', 'scipy', 'cvxpy', 'networkx', 'numba')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=FOLDER.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a bare copy of the package and certificates of each answer."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(FOLDER, folder / "verify", ignore=shutil.ignore_patterns("__pycache__"))
    doc = document(7, "everything", "l2")
    (folder / "good.json").write_text(json.dumps(doc))
    data = doc.pop("data")
    (folder / "outside.json").write_text(json.dumps(doc))
    (folder / "data.json").write_text(json.dumps(data))
    doc["w"].reverse()
    (folder / "bad.json").write_text(json.dumps({**doc, "data": data}))
    (folder / "broken.json").write_text("{")
    return folder


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, "-S", "-m", "verify", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["check", "good.json"], 0, "CERTIFIED"),
        (["check", "good.json", "--rtol", "0"], 3, "UNPROVED"),
        (["check", "good.json", "--budget", "100"], 3, "--budget"),
        (["check", "good.json", "--budget", "1e9"], 0, "CERTIFIED"),
        (["check", "good.json", "--budget", "0"], 2, "number of steps"),
        (["check", "bad.json"], 4, "REFUTED"),
        (["check", "broken.json"], 5, "REFUTED"),
        (["check", "outside.json"], 3, "UNPROVED"),
        (["check", "outside.json", "--data", "data.json"], 0, "CERTIFIED"),
        (["check", "outside.json", "--data", "broken.json"], 5, "data: not a JSON text"),
        (["check", "missing.json"], 2, "cannot read"),
        (["check", "good.json", "--rtol", "nan"], 2, "finite"),
        (["check", "--help"], 0, "exit status"),
        (["check"], 2, "usage"),
        ([], 2, "usage"),
    ],
)
def test_command_line_without_site_packages(
    copy: Path, arguments: list[str], code: int, word: str
) -> None:
    done = _run(copy, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert word in done.stdout + done.stderr


def test_json_output_has_outward_figures(copy: Path) -> None:
    figures = json.loads(_run(copy, "check", "good.json", "--json").stdout)
    assert figures["status"] == "CERTIFIED"
    assert figures["lower"] <= figures["upper"]
    ulp = math.ulp(figures["upper"])
    assert figures["gap"] == pytest.approx(figures["upper"] - figures["lower"], abs=2 * ulp)
    assert 0 < figures["rel_gap"] <= figures["rtol"]


def test_unknown_names_are_reported() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        verify.nothing  # noqa: B018
