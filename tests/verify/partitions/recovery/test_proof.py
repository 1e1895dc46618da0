"""What is proved about recovery: a certificate, and a bound on the spread of every solution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import verify
from verify.partitions.recovery._recovers import recovers


def instance(seed: int, norm: str, lam: float) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(seed)
    n = 12
    labels = np.repeat([0, 1], n // 2)
    i, j = np.triu_indices(n, 1)
    same = labels[i] == labels[j]
    keep = (rng.random(len(i)) < np.where(same, 0.6, 0.1)) | (same & (j == i + 1))
    edges = np.stack([i[keep], j[keep]], axis=1)
    node = np.repeat(np.arange(n), 4)
    x = rng.standard_normal((len(node), 2))
    truth = np.array([[1.0, 2.0], [-1.0, 0.5]])[labels[node]]
    y = (x * truth).sum(axis=1) + 0.1 * rng.standard_normal(len(node))
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": 2,
        "edges": edges,
        "weights": rng.uniform(0.5, 1.5, len(edges)),
        "lam": lam,
        "penalty": {"kind": norm},
        "terms": [{"kind": "squared", "node": node, "X": x, "y": y}],
    }
    return data, labels


def solve(data: dict[str, Any]) -> Any:
    term, edges = data["terms"][0], data["edges"]
    w = cp.Variable((data["n_nodes"], 2))
    residual = cp.sum(cp.multiply(term["X"], w[term["node"]]), axis=1) - term["y"]
    order = {"l1": 1, "l2": 2, "linf": "inf"}[data["penalty"]["kind"]]
    variation = data["weights"] @ cp.norm(w[edges[:, 0]] - w[edges[:, 1]], order, axis=1)
    cp.Problem(cp.Minimize(cp.sum_squares(residual) / 4 + data["lam"] * variation)).solve(
        solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    return w.value


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_recovered_partition_is_proved(norm: str, tmp_path: Path) -> None:
    data, labels = instance(0, norm, 0.5)
    report = recovers(data, labels)
    assert report.holds
    proof = report.prove(1e-8)
    assert proof.holds
    assert proof.certificate.status == "CERTIFIED"
    assert (proof.certificate.w == report.w).all()
    assert proof.slack == pytest.approx(report.slack, abs=1e-6)
    assert 0.0 <= proof.spread < 1e-6
    w = solve(data)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    spread = max(
        np.linalg.norm(w[i] - w[j], order)
        for c in (0, 1)
        for i in np.flatnonzero(labels == c)
        for j in np.flatnonzero(labels == c)
    )
    assert spread <= proof.spread + 1e-4  # the reference solver's own accuracy
    proof.certificate.save(tmp_path / "c.json")
    assert verify.check(tmp_path / "c.json").status == "CERTIFIED"
    assert json.loads(json.dumps(proof.to_dict()))["holds"] is True
    assert "every solution is constant" in str(proof)


def test_unrecovered_partition_is_not_proved() -> None:
    data, labels = instance(0, "l2", 0.01)
    report = recovers(data, labels)
    assert report.decided
    assert not report.holds
    proof = report.prove(1e-8)
    assert not proof.holds
    assert proof.certificate.status != "CERTIFIED"
    assert proof.spread == np.inf
    assert json.loads(json.dumps(proof.to_dict()))["spread"] == "inf"
    assert "nothing is proved" in str(proof)


def test_disconnected_cluster_has_no_bound_on_the_spread() -> None:
    """Both components balance, so that the pair is optimal, but other solutions differ."""
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": 4,
        "dim": 1,
        "edges": np.array([[0, 1], [2, 3]]),
        "weights": np.ones(2),
        "lam": 3.0,
        "penalty": {"kind": "l2"},
        "terms": [
            {
                "kind": "point",
                "node": np.arange(4),
                "a": np.array([[0.0], [1.0], [0.0], [1.0]]),
            }
        ],
    }
    report = recovers(data, [0, 0, 0, 0])
    assert report.slack > 0
    proof = report.prove()
    assert proof.certificate.status == "CERTIFIED"
    assert proof.spread == np.inf
    assert not proof.holds


def test_nothing_to_prove_where_the_test_does_not_apply() -> None:
    data, labels = instance(0, "l2", 0.5)
    report = recovers(data | {"penalty": {"kind": "squared"}}, labels)
    with pytest.raises(ValueError, match="not a norm"):
        report.prove()
