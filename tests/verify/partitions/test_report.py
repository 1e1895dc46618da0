"""Documents about a partition: written by the report, proved by the kernel, refused when false."""

from __future__ import annotations

import ast
import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import verify
from verify.kernel.data import canonical, digest
from verify.kernel.partitions import check_document
from verify.partitions.well_connected._check import well_connected

FOLDER = Path(verify.__file__).parent
Document = dict[str, Any]


def problem(lam: float) -> Document:
    """Two triangles joined by a weak edge, and a node of its own."""
    edges = [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 5], [4, 5], [5, 6]]
    a = [[0.0, 1.0], [0.5, 1.0], [0.0, 1.25], [3.0, -1.0], [3.5, -1.0], [3.0, -1.5], [9.0, 9.0]]
    return {
        "schema": "gtv-problem/1",
        "n_nodes": 7,
        "dim": 2,
        "edges": edges,
        "weights": [2.0, 1.5, 1.0, 0.125, 1.0, 1.0, 1.25, 0.25],
        "lam": lam,
        "penalty": {"kind": "l2"},
        "terms": [{"kind": "point", "node": list(range(7)), "a": a}],
    }


LABELS = ["a", "a", "a", "b", "b", "b", "c"]


def document(lam: float) -> Document:
    return well_connected(problem(lam), LABELS).document()


def test_both_claims_are_certified_from_a_file(tmp_path: Path) -> None:
    for lam, claim in ((4.0, "well-connected"), (0.1, "not well-connected")):
        report = well_connected(problem(lam), LABELS)
        report.save(tmp_path / "w.json")
        result = verify.check(tmp_path / "w.json")
        assert result.status == "CERTIFIED"
        assert claim in result.reason
        assert json.loads((tmp_path / "w.json").read_text())["claim"] == claim
        report.save(tmp_path / "bare.json", embed=False)
        assert verify.check(tmp_path / "bare.json").status == "UNPROVED"
        assert verify.check(tmp_path / "bare.json", data=problem(lam)).status == "CERTIFIED"
        assert verify.check(tmp_path / "bare.json", data=problem(9.0)).status == "REFUTED"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.json", "w.json"]


def test_file_is_checked_without_site_packages(tmp_path: Path) -> None:
    well_connected(problem(4.0), LABELS).save(tmp_path / "w.json")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-S", "-m", "verify", "check", str(tmp_path / "w.json")],
        cwd=FOLDER.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("CERTIFIED: every cluster")


def swap(doc: Document, i: int, j: int) -> None:
    first, second = doc["clusters"][i], doc["clusters"][j]
    first["cluster"], second["cluster"] = second["cluster"], first["cluster"]


MUTATIONS: dict[str, Callable[[Document], object]] = {
    "schema": lambda doc: doc.update(schema="gtv-connectivity/2"),
    "no schema": lambda doc: doc.pop("schema"),
    "hash": lambda doc: doc.update(sha256="0" * 64),
    "no hash": lambda doc: doc.pop("sha256"),
    "unknown claim": lambda doc: doc.update(claim="perhaps"),
    "opposite claim": lambda doc: doc.update(claim="not well-connected"),
    "unknown key": lambda doc: doc.update(lower=1.0),
    "clusters no list": lambda doc: doc.update(clusters={}),
    "cluster no object": lambda doc: doc["clusters"].append(7),
    "cluster dropped": lambda doc: doc["clusters"].pop(),
    "cluster twice": lambda doc: doc["clusters"].append(copy.deepcopy(doc["clusters"][0])),
    "clusters swapped": lambda doc: swap(doc, 0, 1),
    "node in two": lambda doc: doc["clusters"][2].update(cluster=[0]),
    "lambda": lambda doc: doc["data"].update(lam="0x1.0000000000000p-4"),
    "weight": lambda doc: doc["data"]["weights"].__setitem__(3, "0x1.0000000000000p+0"),
    "penalty": lambda doc: doc["data"]["penalty"].update(kind="linf"),
    "edge": lambda doc: (doc["data"]["edges"].pop(0), doc["data"]["weights"].pop(0)),
    "node": lambda doc: doc["data"].update(n_nodes=8),
    "point": lambda doc: doc["data"]["terms"][0]["a"].reverse(),
    "data no object": lambda doc: doc.update(data=[]),
    "flow": lambda doc: doc["clusters"][1]["flow"].reverse(),
    "sink": lambda doc: doc["clusters"][0].update(sink=3),
    "delta": lambda doc: doc["clusters"][0]["delta"].__setitem__(0, 0),
}


CASES = [(name, False) for name in MUTATIONS]
CASES += [(name, True) for name in MUTATIONS if name not in ("hash", "no hash")]


@pytest.mark.parametrize(("name", "rehash"), CASES)
def test_mutated_documents_are_refused(name: str, rehash: bool) -> None:
    """With the stated hash, and with the right one for the mutated data."""
    doc = copy.deepcopy(document(4.0))
    MUTATIONS[name](doc)
    if rehash and isinstance(doc.get("data"), dict):
        doc["sha256"] = digest(canonical(doc["data"]))
    assert check_document(doc).status == "REFUTED"
    assert verify.check(doc).status == "REFUTED"


def test_negative_claim_needs_a_negative_witness() -> None:
    doc = document(0.1)
    negative = [w for w in doc["clusters"] if w["claim"] != "well-connected"]
    assert negative
    assert len(negative) < len(doc["clusters"])
    one = {**doc, "clusters": negative[:1]}
    assert check_document(one).status == "CERTIFIED"
    without = {**doc, "clusters": [w for w in doc["clusters"] if w not in negative]}
    assert check_document(without).status == "REFUTED"
    assert check_document({**doc, "claim": "well-connected"}).status == "REFUTED"


def test_report_without_a_proof_writes_nothing(tmp_path: Path) -> None:
    squared = well_connected(problem(1.0) | {"penalty": {"kind": "squared"}}, LABELS)
    with pytest.raises(ValueError, match="no proof to write down"):
        squared.save(tmp_path / "w.json")
    with pytest.raises(OSError, match="nowhere"):
        well_connected(problem(4.0), LABELS).save(tmp_path / "nowhere" / "w.json")
    assert not list(tmp_path.iterdir())


def test_rough_losses_are_unproved_not_certified() -> None:
    data = problem(4.0)
    data["terms"].append({"kind": "logistic", "node": [0], "X": [[1.0, 0.0]], "y": [1.0]})
    report = well_connected(data, LABELS)
    assert report.holds  # proved in floats, outward rounded
    assert check_document(report.document()).status == "UNPROVED"


def test_kernel_imports_the_standard_library_alone() -> None:
    for path in (FOLDER / "kernel" / "partitions.py", FOLDER / "kernel" / "constants.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                own = name.startswith("verify.kernel")
                assert own or name.split(".")[0] in sys.stdlib_module_names
