"""verify.critical_lambda: known values, bracketing of the exact test, soundness of each bound."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from verify.partitions.recovery._critical_lambda import critical_lambda, lower_bound, upper_bound
from verify.partitions.recovery._recovers import recovers
from verify.partitions.well_connected._best_sink import ClusterGraph
from verify.partitions.well_connected._check import well_connected

NORMS = ("l1", "l2", "linf")


def problem(edges: Any, weights: Any, a: Any, norm: str, lam: float = 1.0) -> dict[str, Any]:
    a = np.asarray(a, dtype=float)
    return {
        "schema": "gtv-problem/1",
        "n_nodes": len(a),
        "dim": a.shape[1],
        "edges": np.asarray(edges, dtype=np.int64).reshape(-1, 2),
        "weights": np.asarray(weights, dtype=float),
        "lam": lam,
        "penalty": {"kind": norm},
        "terms": [{"kind": "point", "node": np.arange(len(a)), "a": a}],
    }


def random_problem(rng: np.random.Generator, norm: str, n: int = 12) -> dict[str, Any]:
    i, j = np.triu_indices(n, 1)
    keep = (rng.random(len(i)) < 0.4) | (j == i + 1)
    edges = np.stack([i[keep], j[keep]], axis=1)
    weights = rng.uniform(0.5, 1.5, len(edges))
    return problem(edges, weights, rng.standard_normal((n, 2)), norm)


@pytest.mark.parametrize("norm", NORMS)
def test_star(norm: str) -> None:
    a = [[0.0], [1.0], [2.0], [3.0], [-4.0], [-2.0]]
    bounds = critical_lambda(problem([(0, i) for i in range(1, 6)], np.ones(5), a, norm))
    assert bounds.lower <= 8.0 <= bounds.upper
    assert bounds.upper - bounds.lower < 1e-8


@pytest.mark.parametrize("norm", NORMS)
def test_path_is_the_largest_partial_sum(norm: str) -> None:
    """On a path the flow is unique: edge k carries the gradients summed up to node k."""
    rng = np.random.default_rng(1)
    n = 9
    a = rng.standard_normal((n, 2))
    weights = rng.uniform(0.5, 2.0, n - 1)
    edges = [(i, i + 1) for i in range(n - 1)]
    sums = np.cumsum(2 * (a.mean(axis=0) - a), axis=0)[:-1]
    dual = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    exact = (np.linalg.norm(sums, dual, axis=1) / weights).max()
    bounds = critical_lambda(problem(edges, weights, a, norm))
    assert bounds.lower <= exact * (1 + 1e-13)
    assert bounds.upper >= exact * (1 - 1e-13)
    assert bounds.upper <= bounds.lower * (1 + 1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_exact_recovery_turns_at_the_critical_lambda(norm: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(4):
        data = random_problem(rng, norm)
        bounds = critical_lambda(data)
        assert 0 < bounds.lower <= bounds.upper <= bounds.lower * (1 + 1e-7)
        together = [0] * 12
        assert recovers(data | {"lam": bounds.upper * (1 + 1e-4)}, together).holds
        assert not recovers(data | {"lam": bounds.lower * (1 - 1e-4)}, together).holds
        assert well_connected(data, together).clusters[0].lam_min >= bounds.lower


@pytest.mark.parametrize("norm", NORMS)
def test_bounds_with_boundaries_bracket_the_exact_test(norm: str) -> None:
    rng = np.random.default_rng(3)
    finite = 0
    for _ in range(5):
        i, j = np.triu_indices(12, 1)
        inner = (i < 6) == (j < 6)
        keep = inner | (rng.random(len(i)) < 0.03)
        weights = np.where(inner, 3.0, 0.1)[keep]
        a = rng.standard_normal((12, 2)) + 3.0 * (np.arange(12) < 6)[:, None]
        data = problem(np.stack([i[keep], j[keep]], axis=1), weights, a, norm)
        labels = (np.arange(12) < 6).astype(int)
        bounds = critical_lambda(data, labels)
        assert 0 < bounds.lower <= bounds.upper
        assert not recovers(data | {"lam": bounds.lower * (1 - 1e-4)}, labels).holds
        if bounds.upper < np.inf:
            finite += 1
            for factor in (1.0001, 2.0, 10.0):
                assert recovers(data | {"lam": bounds.upper * factor}, labels).holds
    assert finite >= 3


@pytest.mark.parametrize("norm", NORMS)
def test_lower_bound_holds_for_any_test_vectors(norm: str) -> None:
    """Random y never exceed the critical value, random flows never fall below it."""
    rng = np.random.default_rng(4)
    data = random_problem(rng, norm)
    bounds = critical_lambda(data)
    a = data["terms"][0]["a"]
    gradients = 2 * (a.mean(axis=0) - a)
    n, edges = len(a), data["edges"]
    graph = ClusterGraph(np.arange(n), edges, data["weights"])
    spread = np.full(n, 1e-14)
    best = 0.0
    for _ in range(300):
        y = gradients + rng.uniform(0, 2) * rng.standard_normal((n, 2))
        value = lower_bound(graph, gradients, spread, np.zeros(n), y, norm)
        assert value <= bounds.upper
        best = max(best, value)
        flow = 0.3 * rng.standard_normal((len(edges), 2))
        assert upper_bound(graph, gradients, spread, flow, norm) >= bounds.lower
    assert best > 0.3 * bounds.upper


def test_several_components_take_the_largest() -> None:
    data = problem([(0, 1), (2, 3)], [1.0, 1.0], [[0.0], [1.0], [0.0], [5.0], [9.0]], "l2")
    bounds = critical_lambda(data)
    assert bounds.clusters[0][1] == pytest.approx(1.0)
    assert bounds.clusters[1][1] == pytest.approx(5.0)
    assert bounds.clusters[2] == (0.0, 0.0)
    assert bounds.upper == bounds.clusters[1][1]


def test_disconnected_cluster_is_never_constant() -> None:
    data = problem([(0, 1)], [1.0], [[0.0], [1.0], [4.0]], "l2")
    bounds = critical_lambda(data, [0, 0, 0])
    assert bounds.lower == bounds.upper == np.inf
    assert json.loads(json.dumps(bounds.to_dict()))["upper"] == "inf"
    linked = problem([(0, 1), (1, 2)], [1.0, 1.0], [[0.0], [1.0], [4.0]], "l2")
    bounds = critical_lambda(linked, [0, 1, 0])
    # node 0 pulls by 4: at most lam (1 + beta |dC| / alpha) = 2 lam can hold it
    assert bounds.clusters[0] == (pytest.approx(2.0), np.inf)


def test_zero_losses_and_losses_without_theory() -> None:
    data = problem([(0, 1)], [1.0], [[0.0], [1.0]], "l2")
    assert critical_lambda(data | {"terms": []}).upper == 0.0
    one = critical_lambda(
        data | {"terms": [{"kind": "l1", "node": np.array([0]), "kappa": np.array([1.0])}]}
    )
    assert (one.lower, one.upper) == (0.0, np.inf)
    assert "not smooth" in one.reason
    assert "not a norm" in critical_lambda(data | {"penalty": {"kind": "squared"}}).reason
    assert "not smooth" in str(one)


def test_equal_data_merge_at_once() -> None:
    bounds = critical_lambda(problem([(0, 1)], [1.0], [[0.3], [0.3]], "l2"))
    assert bounds.lower == 0.0
    assert bounds.upper < 1e-12
