"""verify.recovers against solved problems, and the three rungs."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from verify.partitions.recovery._critical_lambda import critical_lambda
from verify.partitions.recovery._recovers import recovers
from verify.partitions.well_connected._check import well_connected

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
PENALTIES = {"l1": 1, "l2": 2, "linf": "inf"}


def solve(data: dict[str, Any]) -> np.ndarray:
    """Reference solution through CVXPY, for squared and point losses."""
    w = cp.Variable((data["n_nodes"], data["dim"]))
    edges = data["edges"]
    order: Any = PENALTIES[data["penalty"]["kind"]]
    tv = data["weights"] @ cp.norm(w[edges[:, 0]] - w[edges[:, 1]], order, axis=1)
    objective = data["lam"] * tv
    for term in data["terms"]:
        if term["kind"] == "point":
            objective += cp.sum_squares(w[term["node"]] - term["a"])
        else:
            count = np.bincount(term["node"])[term["node"]]
            residual = cp.sum(cp.multiply(term["X"], w[term["node"]]), axis=1) - term["y"]
            objective += cp.sum_squares(cp.multiply(1 / np.sqrt(count), residual))
    problem = cp.Problem(cp.Minimize(objective))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # accurate to 1e-9 where it says inaccurate
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return np.asarray(w.value)


def spread_inside(w: np.ndarray, labels: np.ndarray) -> float:
    """Largest distance of a node to the mean of its cluster."""
    return max(
        float(np.abs(w[labels == c] - w[labels == c].mean(axis=0)).max()) for c in set(labels)
    )


def instance(rng: np.random.Generator, kind: str, norm: str) -> tuple[dict[str, Any], np.ndarray]:
    """Two to four blocks; point losses, or regression with a third of the nodes unlabelled."""
    sizes = rng.integers(1, 7, int(rng.integers(2, 5)))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n = len(labels)
    i, j = np.triu_indices(n, 1)
    keep = rng.random(len(i)) < np.where(labels[i] == labels[j], 0.95, 0.12)
    edges = np.stack([i[keep], j[keep]], axis=1)
    centers = 2.0 * rng.standard_normal((len(sizes), 2))
    if kind == "point":
        a = centers[labels] + 0.4 * rng.standard_normal((n, 2))
        terms = [{"kind": "point", "node": np.arange(n), "a": a}]
    else:
        labelled = np.flatnonzero((rng.random(n) < 0.7) | (np.diff(labels, prepend=-1) > 0))
        node = np.repeat(labelled, 3)
        x = rng.standard_normal((len(node), 2))
        y = (x * centers[labels[node]]).sum(axis=1) + 0.3 * rng.standard_normal(len(node))
        terms = [{"kind": "squared", "node": node, "X": x, "y": y}]
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": 2,
        "edges": edges,
        "weights": rng.uniform(0.5, 1.5, len(edges)),
        "lam": float(np.exp(rng.uniform(-2, 1.5))),
        "penalty": {"kind": norm},
        "terms": terms,
    }
    return data, labels


@pytest.mark.parametrize("kind", ["point", "squared"])
@pytest.mark.parametrize("norm", PENALTIES)
def test_verdict_is_that_of_the_solution_and_rungs_imply_each_other(kind: str, norm: str) -> None:
    rng = np.random.default_rng(12)
    verdicts, merged, rungs = {True: 0, False: 0}, 0, np.zeros(3, dtype=int)
    for _ in range(20 * MULTIPLIER):
        data, labels = instance(rng, kind, norm)
        report = recovers(data, labels)
        if np.isfinite(report.slack) and abs(report.slack) < 1e-3:
            continue  # a tie: the spread of the solution is no clear oracle
        assert report.decided
        spread = spread_inside(w := solve(data), labels)
        assert report.holds == (spread < 3e-5), (spread, report.slack)
        verdicts[report.holds] += 1
        merged += bool(report.merged)
        if report.holds:
            assert w == pytest.approx(report.w, abs=1e-4)
        definition = well_connected(data, labels).holds
        assert report.lemma3 or not definition
        assert report.holds or not report.lemma3
        rungs += [definition, report.lemma3, report.holds]
    assert min(verdicts.values()) >= 2 * MULTIPLIER
    assert merged > 0
    assert rungs[0] <= rungs[1] <= rungs[2]


@pytest.mark.parametrize("norm", PENALTIES)
def test_flow_and_parameters_are_an_optimal_pair(norm: str) -> None:
    """Conservation, capacities and alignment: the conditions (28), completed, at w and u."""
    rng = np.random.default_rng(3)
    checked = 0
    dual = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    for _ in range(12):
        data, labels = instance(rng, "point", norm)
        report = recovers(data, labels)
        if not report.holds:
            continue
        checked += 1
        edges, capacity = data["edges"], data["lam"] * data["weights"]
        balance = 2 * (report.w - data["terms"][0]["a"])
        np.add.at(balance, edges[:, 0], report.u)
        np.subtract.at(balance, edges[:, 1], report.u)
        assert np.abs(balance).max() < 1e-6
        assert (np.linalg.norm(report.u, dual, axis=1) <= capacity * (1 + 1e-6)).all()
        jump = report.w[edges[:, 0]] - report.w[edges[:, 1]]
        work = (report.u * jump).sum(axis=1)
        order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
        assert work == pytest.approx(capacity * np.linalg.norm(jump, order, axis=1), abs=1e-5)
        inner = labels[edges[:, 0]] == labels[edges[:, 1]]
        congestion = (np.linalg.norm(report.u, dual, axis=1) / capacity)[inner].max(initial=0.0)
        assert 1 - congestion == pytest.approx(report.slack, abs=1e-6)
    assert checked >= 3


def star(lam: float) -> dict[str, Any]:
    return {
        "schema": "gtv-problem/1",
        "n_nodes": 4,
        "dim": 1,
        "edges": np.array([[0, 1], [0, 2], [0, 3]]),
        "weights": np.ones(3),
        "lam": lam,
        "penalty": {"kind": "l2"},
        "terms": [
            {"kind": "point", "node": np.arange(4), "a": np.array([[0.0], [1.0], [2.0], [-3.0]])}
        ],
    }


def test_slack_of_a_star_is_known() -> None:
    for lam in (3.0, 6.0, 8.0):
        report = recovers(star(lam), [0] * 4)
        assert report.slack == pytest.approx(1 - 6 / lam, abs=1e-8)
        assert report.lemma3_margin == pytest.approx(lam / 6, abs=1e-8)
        assert report.holds == (lam > 6)
        assert report.decided == (lam != 6)


@pytest.mark.parametrize("norm", PENALTIES)
def test_predicted_and_observed_critical_lambda_of_a_star_agree(norm: str) -> None:
    """Theorem 2 is exact on a star; the observed value comes from solutions alone."""
    rng = np.random.default_rng(4)
    n = 7
    data = star(1.0) | {
        "n_nodes": n,
        "dim": 2,
        "edges": np.array([[0, i] for i in range(1, n)]),
        "weights": np.ones(n - 1),
        "penalty": {"kind": norm},
        "terms": [{"kind": "point", "node": np.arange(n), "a": rng.standard_normal((n, 2))}],
    }
    labels = np.zeros(n, dtype=int)
    predicted = well_connected(data, labels).lam_min
    proved = critical_lambda(data)
    assert proved.lower <= predicted * (1 + 1e-12)
    assert proved.upper == pytest.approx(predicted, rel=1e-6)
    # below it one leaf is apart from the rest, by a distance that is linear in lambda
    lams = [0.96 * predicted, 0.98 * predicted]
    apart = [spread_inside(solve(data | {"lam": lam}), labels) for lam in lams]
    observed = lams[1] + apart[1] * (lams[1] - lams[0]) / (apart[0] - apart[1])
    assert observed == pytest.approx(predicted, rel=1e-6)
    beyond = spread_inside(solve(data | {"lam": 1.0001 * observed}), labels)
    assert beyond < 1e-5 * apart[1]


def test_merged_clusters_share_the_free_flow() -> None:
    """At a large lambda two clusters merge; the flow between them is optimized over."""
    report = recovers(star(8.0), [0, 0, 1, 0])
    assert report.holds
    assert report.merged == [(0, 1)]
    apart = recovers(star(1.0), [0, 0, 1, 0])
    assert apart.merged == []


@pytest.mark.parametrize("norm", PENALTIES)
def test_single_nodes_are_always_recovered(norm: str) -> None:
    """Also where w~ agrees in some coordinates, so that a flow is saturated in the others only."""
    rng = np.random.default_rng(8)
    kinds = set()
    for _ in range(15):
        n = int(rng.integers(2, 5))
        data = star(float(rng.uniform(0.2, 2.0))) | {
            "n_nodes": n,
            "dim": 2,
            "edges": np.array([[0, i] for i in range(1, n)]),
            "weights": rng.uniform(0.5, 2.0, n - 1),
            "penalty": {"kind": norm},
            "terms": [
                {
                    "kind": "point",
                    "node": np.arange(n),
                    "a": rng.standard_normal((n, 2)) * [0.5, 5.0],
                }
            ],
        }
        report = recovers(data, np.arange(n))
        assert report.holds, report.reason
        assert report.slack == pytest.approx(1.0)
        assert report.prove(1e-6).certificate.status == "CERTIFIED"
        jump = np.abs(report.w[1:] - report.w[0]) > 1e-6
        kinds |= {tuple(row) for row in jump.tolist()}
    assert norm != "l1" or (False, True) in kinds


def test_disconnected_cluster_that_does_not_balance() -> None:
    report = recovers(star(1.0), [0, 1, 1, 0])
    assert report.slack == -np.inf
    assert not report.holds
    assert "disconnected" in report.reason
    assert json.loads(json.dumps(report.to_dict()))["slack"] == "-inf"
    assert "not recovered" in str(report)


def test_logistic_losses() -> None:
    rng = np.random.default_rng(0)
    n, rows = 6, 5
    node = np.repeat(np.arange(n), rows)
    x = rng.standard_normal((n * rows, 2))
    y = (rng.random(n * rows) < 0.5).astype(float)
    data = star(1.0) | {
        "n_nodes": n,
        "dim": 2,
        "edges": np.array([[i, j] for i in range(n) for j in range(i + 1, n)]),
        "weights": np.ones(n * (n - 1) // 2),
        "terms": [
            {"kind": "logistic", "node": node, "X": x, "y": y},
            {"kind": "ridge", "node": np.arange(n), "mu": np.full(n, 0.1)},
        ],
    }
    labels = np.repeat([0, 1], 3)
    for lam in (0.01, 0.5):
        data["lam"] = lam
        w = cp.Variable((n, 2))
        z = cp.sum(cp.multiply(x, w[node]), axis=1)
        loss = cp.sum(cp.logistic(z) - cp.multiply(y, z)) / rows + 0.05 * cp.sum_squares(w)
        jumps = w[data["edges"][:, 0]] - w[data["edges"][:, 1]]
        cp.Problem(cp.Minimize(loss + lam * cp.sum(cp.norm(jumps, 2, axis=1)))).solve(
            solver="CLARABEL"
        )
        report = recovers(data, labels)
        assert report.holds == (spread_inside(w.value, labels) < 1e-4)
        assert report.holds == (lam > 0.1)


def test_what_the_test_does_not_cover_is_said() -> None:
    squared = recovers(star(1.0) | {"penalty": {"kind": "squared"}}, [0] * 4)
    assert not squared.holds
    assert not squared.decided
    assert "not a norm" in squared.reason
    data = star(1.0)
    data["terms"].append({"kind": "l1", "node": np.array([1]), "kappa": np.array([0.5])})
    assert "node 1 is not smooth" in recovers(data, [0] * 4).reason
    with pytest.raises(ValueError, match="node 3 is in no cluster"):
        recovers(star(1.0), [[0, 1, 2]])
