"""Electrical flows bracket the least congestion, and decide recovery on large clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from verify.partitions._data import read_problem
from verify.partitions.constants._enclosures import dual_norm
from verify.partitions.recovery import _vector_flow as vector_flow
from verify.partitions.recovery._recovers import recovers
from verify.partitions.recovery._vector_congestion import electrical_congestion

NORMS = ("l2", "linf", "l1")


def graph(rng: np.random.Generator, n: int, p: float) -> Any:
    """A random graph that holds a path, so that it is connected."""
    i, j = np.triu_indices(n, 1)
    keep = (rng.random(len(i)) < p) | (j == i + 1)
    return np.stack([i[keep], j[keep]], axis=1)


def data_of(rng: np.random.Generator, n: int, norm: str, lam: float, p: float = 0.3) -> Any:
    labels = np.repeat([0, 1], [n // 2, n - n // 2])
    edges = graph(rng, n, p)
    crossing = labels[edges[:, 0]] != labels[edges[:, 1]]
    edges = edges[~crossing | (rng.random(len(edges)) < 0.1)]
    a = 3.0 * labels[:, None] * np.array([1.0, -1.0]) + 0.5 * rng.standard_normal((n, 2))
    return {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": 2,
        "edges": edges,
        "weights": rng.uniform(0.5, 1.5, len(edges)),
        "lam": lam,
        "penalty": {"kind": norm},
        "terms": [{"kind": "point", "node": np.arange(n), "a": a}],
    }, labels


@pytest.mark.parametrize("norm", NORMS)
def test_bracket_holds_the_cone_solvers_answer(norm: str) -> None:
    """Bounds on both sides of the exact congestion, and a flow that conserves and attains one."""
    rng = np.random.default_rng(1)
    for n in (5, 12, 30):
        data, labels = data_of(rng, n, norm, 1.0)
        data["edges"] = graph(rng, n, 0.3)
        data["weights"] = rng.uniform(0.5, 1.5, len(data["edges"]))
        labels = np.zeros_like(labels)
        t = 1.0 - recovers(data, labels).slack
        a, edges = data["terms"][0]["a"], data["edges"]
        capacity, t = 2.0 * t * data["weights"], 0.5  # above 1 it stops with the verdict
        supply = 2.0 * (a - a.mean(axis=0))
        found = electrical_congestion(edges, capacity, supply, norm)
        assert found.lower <= t * (1 + 1e-6)
        assert found.upper >= t * (1 - 1e-6)
        assert found.upper <= 1.1 * t
        assert found.lower > 0.5 * t
        out = -supply
        np.add.at(out, edges[:, 0], found.flow)
        np.subtract.at(out, edges[:, 1], found.flow)
        assert np.abs(out).max() < 1e-9 * np.abs(supply).max()
        assert (dual_norm(found.flow, norm) / capacity).max() == pytest.approx(found.upper)


def test_components_and_empty_supplies() -> None:
    edges = np.array([[0, 1], [2, 3]])
    supply = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0], [0.0, 0.0]])
    found = electrical_congestion(edges, np.array([1.0, 4.0]), supply, "l2")
    assert found.flow == pytest.approx(np.array([[1.0, 0.0], [0.0, 2.0]]))
    assert found.lower == pytest.approx(1.0, rel=0.02)
    assert found.upper == pytest.approx(1.0)
    nothing = electrical_congestion(edges, np.ones(2), 0.0 * supply, "l2")
    assert (nothing.lower, nothing.upper) == (0.0, 0.0)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_large_clusters_get_the_same_verdict(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    verdicts = []
    for lam in (0.05, 0.1, 0.2, 0.4, 0.8, 6.0, 20.0, 60.0):
        data, labels = data_of(rng, 24, norm, lam)
        small = recovers(data, labels)
        with monkeypatch.context() as patch:
            patch.setattr(vector_flow, "LARGE", 0)
            large = recovers(data, labels)
        assert large.slack <= small.slack + 1e-6, lam
        if small.holds and not small.merged:  # else it stops as soon as the answer is known
            assert large.slack >= small.slack - 0.05 * (1 - small.slack)
        assert large.slack_upper >= small.slack - 1e-6 or small.merged
        assert large.decided
        assert large.holds == small.holds
        assert large.merged == small.merged
        verdicts.append((large.holds, bool(large.merged)))
        proof = large.prove(1e-7)
        assert proof.holds == large.holds
        if large.holds:
            assert proof.slack == pytest.approx(large.slack, abs=1e-6)
    assert {holds for holds, _ in verdicts} == {True, False}
    assert (True, True) in verdicts


def test_hundred_thousand_edges_are_decided_in_seconds() -> None:
    """Ten thousand nodes: far beyond the cone solver."""
    rng = np.random.default_rng(0)
    n, m = 10_000, 100_000
    pairs = np.sort(rng.integers(0, n, (2 * m, 2)), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
    pairs = pairs[np.sort(rng.permutation(len(pairs))[:m])]
    ring = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    edges = np.unique(np.concatenate([pairs, ring]), axis=0)
    a = rng.standard_normal((n, 2))
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": 2,
        "edges": edges,
        "weights": np.ones(len(edges)),
        "lam": 2.0,
        "penalty": {"kind": "l2"},
        "terms": [{"kind": "point", "node": np.arange(n), "a": a}],
    }
    assert len(edges) * 2 > vector_flow.LARGE
    report = recovers(data, np.zeros(n, dtype=int))
    assert report.holds
    assert 0.1 < report.slack < report.slack_upper < 1.0
    problem = read_problem(data)
    load = np.linalg.norm(report.u, axis=1) / problem.lam
    assert 1.0 - load.max() == pytest.approx(report.slack)
    balance = 2.0 * (report.w - a)
    np.add.at(balance, edges[:, 0], report.u)
    np.subtract.at(balance, edges[:, 1], report.u)
    assert np.abs(balance).max() < 1e-8
    data["lam"] = 0.3
    less = recovers(data, np.zeros(n, dtype=int))
    assert less.decided
    assert not less.holds
    assert less.slack_upper < 0.0
