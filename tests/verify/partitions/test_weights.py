"""Theorem 2 with weights: what is proved of weighted rows is what is proved of repeated ones."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verify
from verify.kernel.data import canonical, digest
from verify.partitions._data import read_problem
from verify.partitions.constants._rational import rational_constants

Data = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]
LABELS = [0, 0, 0, 1, 1, 1]
TIMES = np.array([1, 3, 2, 2, 3, 1, 1, 3, 2, 2, 3, 1])  # four a node: quarters are doubles


def problem(rows: Data, penalty: str, lam: float) -> Data:
    edges = [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 5], [4, 5]]
    rng = np.random.default_rng(4)
    point = {"kind": "point", "node": np.arange(6), "a": rng.integers(-3, 4, (6, 2)) / 8}
    twice = {**point, "weight": np.array([0.5, 1.0, 2.0, 0.25, 3.0, 1.5])}
    return {
        "schema": "gtv-problem/1", "n_nodes": 6, "dim": 2, "edges": edges,
        "weights": [2.0, 1.5, 1.0, 0.125, 1.0, 1.0, 1.25], "lam": lam,
        "penalty": {"kind": penalty}, "terms": [rows, twice],
    }  # fmt: skip


def both(kind: str, penalty: str = "l1", lam: float = 4.0) -> tuple[Data, Data]:
    """The same losses by weights, and by as many rows each."""
    rng = np.random.default_rng(3)
    node, X = np.repeat(np.arange(6), 2), rng.integers(-4, 5, (12, 2)) / 4
    y = np.where(node < 3, 1.0, -1.0) + rng.integers(-2, 3, 12) / 8
    y = (y > 0).astype(float) if kind == "logistic" else y
    again = np.repeat(np.arange(12), TIMES)
    weighted = {"kind": kind, "node": node, "X": X, "y": y, "weight": TIMES / 4}
    repeated = {"kind": kind, "node": node[again], "X": X[again], "y": y[again]}
    return problem(weighted, penalty, lam), problem(repeated, penalty, lam)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_constants_and_verdicts_agree(kind: str, penalty: str) -> None:
    first, second = (verify.well_connected(data, LABELS) for data in both(kind, penalty))
    assert first.holds == second.holds
    for a, b in zip(first.clusters.values(), second.clusters.values(), strict=True):
        assert a.alpha == pytest.approx(b.alpha, rel=1e-9)
        assert a.beta == pytest.approx(b.beta, rel=1e-9)
        assert a.delta == pytest.approx(b.delta, rel=1e-9)


def test_rational_constants_are_equal() -> None:
    first, second = (read_problem(data) for data in both("squared"))
    members = np.arange(3)
    found = rational_constants(first, members, "l1")
    assert found is not None
    assert found == rational_constants(second, members, "l1")


def answers(path: Path) -> list[str]:
    """Of both checkers; of one where there is no Node."""
    found, node = [verify.check(path).status], shutil.which("node")
    if node is not None:
        script = ROOT / "verify" / "web" / "checker.js"
        done = subprocess.run([node, script, path], capture_output=True, text=True, check=False)
        found.append(done.stdout.split(":")[0].strip())
    return found


@pytest.mark.parametrize("lam", [9.0, 0.05])
def test_documents_are_proved_by_both_checkers(lam: float, tmp_path: Path) -> None:
    report = verify.well_connected(both("squared", "l2", lam)[0], LABELS)
    for name in ("w.json", "w.gtvc"):
        report.save(tmp_path / name)
        assert set(answers(tmp_path / name)) == {"CERTIFIED"}, (lam, name)
    # Other weights have other constants.
    document = report.document()
    for term, factor in ((0, 8.0), (1, 8.0), (0, 1 / 64), (1, 1 / 64)):
        changed = json.loads(json.dumps(document))
        weight = changed["data"]["terms"][term]["weight"]
        weight[:] = [(float.fromhex(c) * factor).hex() for c in weight]
        changed["sha256"] = digest(canonical(changed["data"]))
        (tmp_path / "x.json").write_text(json.dumps(changed))
        found = answers(tmp_path / "x.json")
        assert len(set(found)) == 1
        assert found[0] != "CERTIFIED", (lam, term, factor)


def test_recovery_and_the_critical_lambda() -> None:
    first, second = both("squared", "l1", 6.0)
    assert verify.recovers(first, LABELS).holds == verify.recovers(second, LABELS).holds
    a, b = verify.critical_lambda(first), verify.critical_lambda(second)
    assert a.upper == pytest.approx(b.upper, rel=1e-6)
