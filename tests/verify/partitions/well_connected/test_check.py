"""verify.well_connected as users meet it: known instances, conclusions, reports, bad input."""

from __future__ import annotations

import json
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from verify.kernel.partitions import check_cluster
from verify.partitions.well_connected._check import well_connected

NORMS = {"l1": 1, "l2": 2, "linf": np.inf}


def points(
    edges: Any, weights: Any, a: Any, lam: float, norm: str = "l2", **more: Any
) -> dict[str, Any]:
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
    } | more


def block_model(rng: np.random.Generator, sizes: list[int], p_in: float, p_out: float) -> Any:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    i, j = np.triu_indices(len(labels), 1)
    chance = np.where(labels[i] == labels[j], p_in, p_out)
    keep = rng.random(len(i)) < chance
    return labels, np.stack([i[keep], j[keep]], axis=1)


def solve(data: dict[str, Any]) -> np.ndarray:
    """Reference solution of a problem with point losses."""
    a, edges = data["terms"][0]["a"], data["edges"]
    w = cp.Variable(a.shape)
    jumps = w[edges[:, 0]] - w[edges[:, 1]]
    order = {"l1": 1, "l2": 2, "linf": "inf"}[data["penalty"]["kind"]]
    tv = data["weights"] @ cp.norm(jumps, order, axis=1)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w - a) + data["lam"] * tv))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return np.asarray(w.value)


@pytest.mark.parametrize("norm", NORMS)
def test_star_is_exact(norm: str) -> None:
    """lam_min = the largest dual norm of a leaf's gradient, and the tie itself does not hold."""
    a = np.array([[0.0], [1], [2], [3], [-4], [-2]])  # mean 0, gradients 2 a
    edges = [(0, i) for i in range(1, 6)]
    for lam, holds in ((7.9, False), (8.0, False), (8.0 + 1e-12, True), (9.0, True)):
        report = well_connected(points(edges, np.ones(5), a, lam, norm), [0] * 6)
        cluster = report.clusters[0]
        assert report.holds == cluster.holds == holds
        assert cluster.lam_min == pytest.approx(8.0, abs=1e-12)
        assert cluster.margin == pytest.approx(lam / 8.0, rel=1e-12)
        assert ("a tie" in cluster.reason) == (lam == 8.0)
        assert cluster.margin == 1.0 or lam != 8.0
        assert cluster.tightest_set == [4]
        assert cluster.i0 == (0 if holds else None)
        data = points(edges, np.ones(5), a, lam, norm)
        assert check_cluster(data, cluster.witness()).status == "CERTIFIED"


def test_paper_block_model_is_far_from_well_connected() -> None:
    """100 + 100 nodes, noiseless: the binding set is all of C but one node, ratio about 0.21."""
    rng = np.random.default_rng(0)
    labels, edges = block_model(rng, [100, 100], 0.5, 0.01)
    x = rng.standard_normal((1000, 2))
    truth = np.array([[2.0, 2.0], [-2.0, 2.0]])[labels]
    node = np.repeat(np.arange(200), 5)
    y = (x * truth[node]).sum(axis=1)
    terms = [{"kind": "squared", "node": node, "X": x, "y": y}]
    data = points(edges, np.ones(len(edges)), truth, 1e-2, terms=terms)
    report = well_connected(data, labels)
    assert not report.holds
    for cluster in report.clusters.values():
        assert 0.15 < cluster.margin < 0.3
        assert len(cluster.tightest_set) == 99
        assert cluster.delta.max() < 1e-12


@pytest.mark.parametrize("norm", NORMS)
def test_solution_is_constant_and_close_where_it_holds(norm: str) -> None:
    """The conclusion of Theorem 2, with the sharpened bound, on solved instances."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(6):
        labels, edges = block_model(rng, [7, 8], 1.0, 0.02)
        weights = rng.uniform(1.0, 2.0, len(edges))
        a = np.array([[3.0, 0.0], [0.0, 3.0]])[labels] + 0.3 * rng.standard_normal((15, 2))
        data = points(edges, weights, a, 0.5, norm)
        report = well_connected(data, labels)
        data["lam"] = 1.02 * report.lam_min if np.isfinite(report.lam_min) else 0.5
        report = well_connected(data, labels)
        assert report.holds == np.isfinite(report.lam_min)
        if not report.holds:
            continue
        held += 1
        w = solve(data)
        for label, cluster in report.clusters.items():
            block = w[labels == label]
            assert np.abs(block - block.mean(axis=0)).max() < 1e-4
            center = a[labels == label].mean(axis=0)
            distance = np.linalg.norm(block.mean(axis=0) - center, NORMS[norm])
            assert distance <= cluster.error_bound * (1 + 1e-6) + 1e-6
            assert cluster.error_bound_printed == 2 * cluster.error_bound
    assert held >= 3


def test_least_lambda_separates() -> None:
    rng = np.random.default_rng(9)
    separated = 0
    for _ in range(20):
        labels, edges = block_model(rng, [5, 6], 0.9, 0.05)
        a = rng.standard_normal((11, 2))
        data = points(edges, rng.uniform(0.5, 2.0, len(edges)), a, 1.0)
        for label, cluster in well_connected(data, labels).clusters.items():
            if np.isinf(cluster.lam_min):
                assert not well_connected(data | {"lam": 1e9}, labels).clusters[label].holds
                continue
            separated += 1
            above = well_connected(data | {"lam": cluster.lam_min * (1 + 1e-12)}, labels)
            below = well_connected(data | {"lam": cluster.lam_min * (1 - 1e-9)}, labels)
            assert above.clusters[label].holds
            assert not below.clusters[label].holds
    assert separated > 5


def test_one_node_and_disconnected_clusters() -> None:
    data = points([(0, 1), (1, 2)], [1.0, 1.0], [[0.0], [0.0], [0.0]], 1.0)
    report = well_connected(data, [[0, 2], [1]])
    assert not report.holds
    assert report.clusters[1].holds
    assert report.clusters[1].i0 == 1
    assert report.clusters[1].margin == np.inf
    assert "not connected (2 components)" in report.clusters[0].reason
    assert [set(s) for s in report.clusters[0].violating_sets] == [{0}, {2}]
    for cluster in report.clusters.values():
        assert check_cluster(data, cluster.witness()).status == "CERTIFIED"


def test_cluster_without_demands_holds() -> None:
    data = points([(0, 1), (1, 2)], [1.0, 1.0], [[1.0], [1.0], [1.0]], 1.0)
    report = well_connected(data, [0, 0, 0])
    assert report.holds
    assert report.clusters[0].lam_min < 1e-12
    assert check_cluster(data, report.clusters[0].witness()).status == "CERTIFIED"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"penalty": {"kind": "squared"}}, "'squared' is not a norm"),
        ({"penalty": {"kind": "quadratic", "Q": [[1.0]]}}, "'quadratic' is not a norm"),
        ({"penalty": {"kind": "pnorm", "p": 3.0}}, "not for p = 3"),
        ({"terms": []}, "alpha = 0"),
        (
            {
                "terms": [
                    {"kind": "point", "node": np.arange(3), "a": np.zeros((3, 1))},
                    {"kind": "l1", "node": np.array([1]), "kappa": np.array([1.0])},
                ]
            },
            "node 1 is not smooth: l1",
        ),
        ({"terms": [{"kind": "opaque", "node": [0, 2], "name": "my loss"}]}, "smooth: my loss"),
        (
            {"terms": [{"kind": "hinge", "node": [0, 1], "X": [[1.0], [2.0]], "y": [-1.0, 1.0]}]},
            "node 0 is not smooth: hinge",
        ),
        (
            {"terms": [{"kind": "poisson", "node": [2], "X": [[1.0]], "y": [3.0]}]},
            "node 2 has no known bound of its curvature: poisson",
        ),
        (
            {"terms": [{"kind": "box", "node": [1], "lower": [[-np.inf]], "upper": [[1.0]]}]},
            "node 1 is not smooth: box",
        ),
        ({"terms": [{"kind": "simplex", "node": [1], "total": [1.0]}]}, "not smooth: simplex"),
        (
            {"terms": [{"kind": "logistic", "node": [0, 1], "X": [[1.0], [2.0]], "y": [0.0, 1.0]}]},
            "alpha = 0",
        ),
    ],
)
def test_theorem_that_does_not_apply_says_why(change: dict[str, Any], reason: str) -> None:
    data = points([(0, 1), (1, 2)], [1.0, 1.0], [[0.0], [1.0], [0.0]], 1.0) | change
    report = well_connected(data, [0, 0, 0])
    assert not report.holds
    assert reason in report.reason
    assert not report.clusters[0].applies
    assert reason in report.clusters[0].reason
    assert report.clusters[0].error_bound == np.inf
    with pytest.raises(ValueError, match="no proof"):
        report.clusters[0].witness()
    assert "does not apply" in str(report)


def test_pnorms_that_are_named_norms() -> None:
    data = points([(0, 1)], [1.0], [[0.0, 1.0], [0.5, 0.0]], 1.0)
    for p, norm in ((1.0, "l1"), (2.0, "l2"), (np.inf, "linf")):
        same = well_connected(data | {"penalty": {"kind": "pnorm", "p": p}}, [0, 0])
        named = well_connected(data | {"penalty": {"kind": norm}}, [0, 0])
        assert same.norm == norm
        assert same.clusters[0].margin == named.clusters[0].margin


def test_report_speaks_in_node_labels_and_json() -> None:
    class Problem:
        def to_data(self) -> dict[str, Any]:
            nodes = ["Ain", "Aude", "Gers", "Jura"]
            a = [[0.0], [0.1], [5.0], [5.1]]
            return points([(0, 1), (1, 2), (2, 3)], [9.0, 0.1, 9.0], a, 0.2, nodes=nodes)

    report = well_connected(Problem(), [["Ain", "Aude"], ["Gers", "Jura"]])
    assert report.holds
    assert list(report.clusters) == [0, 1]
    assert report.clusters[1].i0 in ("Gers", "Jura")
    labelled = well_connected(Problem(), np.array(["a", "a", "b", "b"]))
    assert list(labelled.clusters) == ["a", "b"]
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["holds"] is True
    assert plain["clusters"][0]["nodes"] == ["Ain", "Aude"]
    witness = plain["clusters"][1]["witness"]
    assert check_cluster(Problem().to_data(), witness).status == "CERTIFIED"
    text = str(report)
    assert "every cluster is well-connected" in text
    assert "margin" in text
    mixed = well_connected(Problem(), [["Ain", "Gers"], ["Aude", "Jura"]])
    assert json.loads(json.dumps(mixed.to_dict()))["clusters"][0]["lam_min"] == "inf"
    assert "NOT well-connected" in str(mixed)


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ([0, 0], "2 labels for 3 nodes"),
        ([0.0, 0.0, float("nan")], "node 2 has no label"),
        ([[0, 1]], "node 2 is in no cluster"),
        ([[0, 1], [1, 2]], "node 1 is in cluster 1 and in cluster 0"),
        ([[0, 0, 1], [2]], "node 0 is in cluster 0 twice"),
        ([[0, 1, 2], []], "cluster 1 is empty"),
        ([[0, 1, 2, 7]], "node 7, which does not exist"),
        (np.zeros((3, 1), dtype=int), "one dimension"),
    ],
)
def test_bad_partitions_are_refused_by_name(partition: Any, message: str) -> None:
    data = points([(0, 1), (1, 2)], [1.0, 1.0], [[0.0], [1.0], [0.0]], 1.0)
    with pytest.raises(ValueError, match=message):
        well_connected(data, partition)


@pytest.mark.parametrize("partition", ["abc", 3, None, [0, [1], 2]])
def test_what_is_no_partition_is_a_type_error(partition: Any) -> None:
    data = points([(0, 1), (1, 2)], [1.0, 1.0], [[0.0], [1.0], [0.0]], 1.0)
    with pytest.raises(TypeError, match="partition"):
        well_connected(data, partition)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1.0, -1.0]}, "weights: edge 1"),
        ({"weights": [1.0, np.nan]}, "weights: entry 1 is NaN"),
        ({"weights": [1.0]}, "weights: expected shape"),
        ({"lam": 0.0}, "lam: must be positive"),
        ({"lam": np.inf}, "lam"),
        ({"edges": [[1, 0], [1, 2]]}, "edge 0"),
        ({"edges": [[0, 1], [1, 3]]}, "edge 1"),
        ({"edges": [[0, 1], [0, 1]]}, "duplicates"),
        ({"penalty": {"kind": "l3"}}, "unknown kind 'l3'"),
        ({"schema": "gtv-problem/9"}, "schema"),
        ({"nodes": ["a", "a", "b"]}, "distinct labels"),
        ({"terms": [{"kind": "unheard", "node": [0]}]}, "unknown kind 'unheard'"),
        ({"terms": [{"kind": "hinge", "node": [0]}]}, "missing X, y"),
        ({"terms": [{"kind": "point", "node": [5], "a": [[0.0]]}]}, "outside"),
        ({"terms": [{"kind": "point", "node": [1, 0], "a": [[0.0], [0.0]]}]}, "sorted"),
        ({"terms": [{"kind": "point", "node": [1], "a": [[0.0, 1.0]]}]}, "expected shape"),
        ({"terms": [{"kind": "ridge", "node": [1], "mu": [0.0]}]}, "entry 0 must be positive"),
        ({"terms": [{"kind": "ridge", "node": [1], "mu": [[-1.0]]}]}, "entry 0 must not be neg"),
        ({"terms": [{"kind": "box", "node": [1], "lower": [[np.nan]], "upper": [[1.0]]}]}, "NaN"),
        ({"terms": [{"kind": "simplex", "node": [1], "total": [-1.0]}]}, "must be positive"),
    ],
)
def test_bad_data_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    data = points([(0, 1), (1, 2)], [1.0, 1.0], [[0.0], [1.0], [0.0]], 1.0) | change
    with pytest.raises(ValueError, match=message):
        well_connected(data, [0, 0, 0])


def test_ridge_per_coordinate_is_the_same_loss() -> None:
    """And what is proved about it is checked by the kernel in either form."""
    data = points([(0, 1), (1, 2)], [1.0, 1.0], [[0.0], [1.0], [0.0]], 1.0)
    witnesses = []
    for mu in ([0.5, 1.0], [[0.5], [1.0]]):
        ridge = {"kind": "ridge", "node": [0, 2], "mu": mu}
        both = {**data, "terms": [*data["terms"], ridge]}
        report = well_connected(both, [0, 0, 0])
        witnesses.append(report.clusters[0].witness())
        assert check_cluster(both, witnesses[-1]).status == "CERTIFIED"
    assert witnesses[0] == witnesses[1]
    plain = well_connected(data, [0, 0, 0]).clusters[0].witness()
    assert witnesses[0] != plain


def test_names_are_exported() -> None:
    import verify

    assert verify.well_connected is well_connected
    assert {"well_connected", "recovers", "critical_lambda"} <= set(dir(verify))
    for name, home in verify._LAZY.items():  # from where it is written
        assert getattr(verify, name).__module__ == home


def test_what_is_no_problem_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="problem"):
        well_connected(3.0, [0])


@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e30, 1e150])
def test_scales_far_from_one(scale: float) -> None:
    """Weights and 1/lambda scaled together change nothing but lambda."""
    a = [[0.0], [1.0], [2.0], [-3.0]]
    edges = [(0, 1), (0, 2), (0, 3), (1, 2)]
    weights = np.array([1.0, 2.0, 1.5, 0.5])
    for lam in (2.0, 5.0):
        plain = well_connected(points(edges, weights, a, lam), [0] * 4).clusters[0]
        data = points(edges, weights * scale, a, lam / scale)
        scaled = well_connected(data, [0] * 4).clusters[0]
        assert scaled.holds == plain.holds
        assert scaled.margin == pytest.approx(plain.margin, rel=1e-9)
        assert check_cluster(data, scaled.witness()).status == "CERTIFIED"


@pytest.mark.parametrize("weights", [[1e-300, 1e300], [1e300, 1e-300], [5e-324, 1.0], [1e308] * 2])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_extreme_weights_and_data_are_answered_without_warnings(
    weights: list[float], scale: float
) -> None:
    a = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]]) * scale
    data = points([(0, 1), (1, 2)], weights, a, 1.0)
    for labels in ([0, 0, 0], [0, 0, 1]):
        for cluster in well_connected(data, labels).clusters.values():
            assert not np.isnan(cluster.margin)
            if not cluster.applies:
                assert "too large" in cluster.reason
            elif cluster.decided:
                assert check_cluster(data, cluster.witness()).status == "CERTIFIED"
