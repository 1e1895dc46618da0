"""Definition 1 against the enumeration of all subsets, ties included."""

from __future__ import annotations

import itertools
import os
from fractions import Fraction
from math import isqrt, lcm
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from verify.kernel.partitions import check_cluster
from verify.partitions._rounding import Enclosure
from verify.partitions.recovery._recovers import recovers
from verify.partitions.well_connected._best_sink import ClusterGraph, best_sink
from verify.partitions.well_connected._check import well_connected
from verify.partitions.well_connected._decide import Decision, decide

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))


def subset_sums(n: int, edges: Any, weights: Any, demands: Any) -> tuple[list[int], list[int]]:
    """cut(A) and d(A) for all 2^n subsets, as integers on a common denominator."""
    numbers = [Fraction(x) for x in (*weights, *demands)]
    scale = lcm(*(x.denominator for x in numbers))
    w = [int(Fraction(x) * scale) for x in weights]
    d = [int(Fraction(x) * scale) for x in demands]
    cut, need = [0] * (1 << n), [0] * (1 << n)
    for mask in range(1 << n):
        need[mask] = sum(d[i] for i in range(n) if mask >> i & 1)
        cut[mask] = sum(
            x for (a, b), x in zip(edges, w, strict=True) if (mask >> a ^ mask >> b) & 1
        )
    return cut, need


def enumerate_sinks(n: int, edges: Any, weights: Any, demands: Any) -> tuple[list[int], Fraction]:
    """All valid i0, and the margin max over i0 of min over A of cut(A) / d(A) (-1: infinite)."""
    cut, need = subset_sums(n, edges, weights, demands)
    valid, margins = [], []
    for sink in range(n):
        sets = [mask for mask in range(1, 1 << n) if not mask >> sink & 1]
        if all(cut[mask] > need[mask] for mask in sets):
            valid.append(sink)
        margins.append(
            min((Fraction(cut[m], need[m]) for m in sets if need[m]), default=Fraction(-1))
        )
    return valid, Fraction(-1) if Fraction(-1) in margins else max(margins)


def random_cluster(
    rng: np.random.Generator, n: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    keep = rng.random(len(pairs)) < rng.uniform(0.3, 1.0)
    edges = pairs[keep].astype(np.int64).reshape(-1, 2)
    weights = rng.integers(1, 5, len(edges)) / rng.choice([1.0, 2.0, 10.0])
    return edges, weights


def settle(graph: ClusterGraph, demands: list[Fraction]) -> Decision:
    """Decide with enclosures as wide as rounding makes them."""
    near = np.array([float(x) for x in demands])
    around = Enclosure(near * (1 - 1e-15), near * (1 + 1e-15))
    return decide(graph, around, lambda: (demands, demands))


def drawn_demands(rng: np.random.Generator, n: int) -> list[float]:
    unit = float(rng.choice([0.25, 0.5, 1.0, 0.1]))
    return (rng.integers(0, 3, n) * unit).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_given_demands_are_decided_as_enumeration_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    verdicts = {True: 0, False: 0}
    for _ in range(100 * MULTIPLIER):
        n = int(rng.integers(2, 8 if MULTIPLIER == 1 else 11))
        edges, weights = random_cluster(rng, n)
        demands = [Fraction(x) for x in drawn_demands(rng, n)]
        valid, margin = enumerate_sinks(n, edges.tolist(), weights.tolist(), demands)
        graph = ClusterGraph(np.arange(n), edges, weights)
        decision = settle(graph, demands)
        assert decision.decided
        assert decision.holds == bool(valid)
        assert decision.sink in valid or not valid
        verdicts[decision.holds] += 1
        if graph.components[0] == 1:
            best = best_sink(graph, np.zeros(n), np.array([float(x) for x in demands]))
            assert best.value == (np.inf if margin < 0 else pytest.approx(float(margin), rel=1e-12))
    assert min(verdicts.values()) > 15 * MULTIPLIER


@pytest.mark.parametrize("seed", range(4))
def test_ties_far_below_rounding_are_decided(seed: int) -> None:
    """Demands scaled to the exact margin, and off it by a part in 2^90."""
    rng = np.random.default_rng(100 + seed)
    ties = 0
    for _ in range(40 * MULTIPLIER):
        n = int(rng.integers(2, 8 if MULTIPLIER == 1 else 11))
        edges, weights = random_cluster(rng, n)
        graph = ClusterGraph(np.arange(n), edges, weights)
        drawn = [Fraction(x) for x in drawn_demands(rng, n)]
        _, margin = enumerate_sinks(n, edges.tolist(), weights.tolist(), drawn)
        if margin <= 0 or graph.components[0] > 1:
            continue
        ties += 1
        for shift, expected in ((0, False), (1, False), (-1, True)):
            demands = [x * margin * (1 + Fraction(shift, 1 << 90)) for x in drawn]
            decision = settle(graph, demands)
            assert decision.decided
            assert decision.rational
            assert decision.holds == expected
            valid, _ = enumerate_sinks(n, edges.tolist(), weights.tolist(), demands)
            assert bool(valid) == expected
            assert decision.sink in valid or not expected
    assert ties > 20 * MULTIPLIER


def dual_norm(g: list[Fraction], norm: str) -> Fraction:
    if norm == "l1":
        return max(abs(x) for x in g)
    if norm == "linf":
        return sum((abs(x) for x in g), Fraction(0))
    square = sum((x * x for x in g), Fraction(0))
    root = Fraction(isqrt(square.numerator), isqrt(square.denominator))
    if root * root == square:
        return root
    return Fraction(isqrt((square.numerator << 400) // square.denominator), 1 << 200)


def point_demands(data: dict[str, Any], cluster: list[int], norm: str) -> list[Fraction]:
    """d_i for point losses: beta = 2 (2 d for linf), alpha = 2 |C| (2 |C| / d for l1)."""
    a = [[Fraction(x) for x in row] for row in data["terms"][0]["a"].tolist()]
    d, size = len(a[0]), len(cluster)
    mean = [sum((a[i][j] for i in cluster), Fraction(0)) / size for j in range(d)]
    alpha = Fraction(2 * size, d if norm == "l1" else 1)
    beta = 2 * d if norm == "linf" else 2
    cross = dict.fromkeys(cluster, Fraction(0))
    for (i, j), w in zip(data["edges"].tolist(), data["weights"].tolist(), strict=True):
        if (i in cross) != (j in cross):
            cross[i if i in cross else j] += Fraction(w)
    boundary = sum(cross.values(), Fraction(0))
    delta = [
        dual_norm([2 * (m - x) for m, x in zip(mean, a[i], strict=True)], norm) for i in cluster
    ]
    lam = Fraction(data["lam"])
    return [
        cross[i] + beta * boundary / alpha + g / lam for i, g in zip(cluster, delta, strict=True)
    ]


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("dim", [1, 2])
def test_point_losses_are_decided_as_enumeration_does(norm: str, dim: int) -> None:
    rng = np.random.default_rng(7 + dim)
    verdicts = {True: 0, False: 0}
    ties = proofs = 0
    for k in range(60 * MULTIPLIER):
        n = int(rng.integers(2, 10 if MULTIPLIER == 1 else 13))
        edges, weights = random_cluster(rng, n)
        labels = np.zeros(n, dtype=int)
        if rng.random() < 0.5:
            labels[rng.integers(0, n, int(rng.integers(1, 3)))] = 1
            crossing = labels[edges[:, 0]] != labels[edges[:, 1]]
            keep = ~crossing | (rng.random(len(edges)) < 0.2)
            edges, weights = edges[keep], weights[keep]
        data = {
            "schema": "gtv-problem/1",
            "n_nodes": n,
            "dim": dim,
            "edges": edges,
            "weights": weights,
            "lam": float(rng.choice([1.0, 2.0, 4.0, 6.0, 8.0])),
            "penalty": {"kind": norm},
            "terms": [
                {
                    "kind": "point",
                    "node": np.arange(n),
                    "a": rng.integers(-3, 4, (n, dim)).astype(float),
                }
            ],
        }
        report = well_connected(data, labels)
        for label, cluster in report.clusters.items():
            nodes = np.flatnonzero(labels == label).tolist()
            place = {node: p for p, node in enumerate(nodes)}
            inner = [(place[i], place[j]) for i, j in edges.tolist() if i in place and j in place]
            inner_weights = [
                w
                for (i, j), w in zip(edges.tolist(), weights.tolist(), strict=True)
                if i in place and j in place
            ]
            demands = point_demands(data, nodes, norm)
            valid, margin = enumerate_sinks(len(nodes), inner, inner_weights, demands)
            assert cluster.decided
            assert cluster.holds == bool(valid)
            if valid:
                assert place[cluster.i0] in valid
            elif len(inner) and margin > 0 and cluster.reason.startswith("the cluster is not con"):
                assert cluster.margin == 0.0
            answer = check_cluster(data, cluster.witness())
            assert answer.status == "CERTIFIED", answer.reason
            assert not valid or not cluster.violating_sets
            if not valid:
                common = set(nodes)
                for nodes_of_set in cluster.violating_sets:
                    common &= set(nodes_of_set)
                assert not common
            proofs += 1
            verdicts[cluster.holds] += len(nodes) > 1
            ties += margin == 1 and not valid
        assert report.holds == all(c.holds for c in report.clusters.values())
        if MULTIPLIER > 1 or k % 4 == 0:  # each rung implies the next, up to rounding at ties
            recovery = recovers(data, labels)
            assert recovery.lemma3_margin > 1.0 - 1e-6 or not report.holds
            assert recovery.slack > -1e-6 or not recovery.lemma3
    assert min(verdicts.values()) > 5 * MULTIPLIER
    assert ties >= (1 if dim == 1 else 0)
    assert proofs >= 60 * MULTIPLIER
