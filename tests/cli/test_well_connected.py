"""``gtvcvx well-connected``: the verdict on a partition."""

from __future__ import annotations

import numpy as np
import pytest

import gtvcvx as gtv
import verify


@pytest.fixture
def problem(tmp_path):
    """Two complete graphs of five nodes joined by a weak edge, all nodes with the same data."""
    ends = [[i + s, j + s] for s in (0, 5) for i in range(5) for j in range(i)]
    weights = [1.0] * len(ends) + [0.05]
    graph = gtv.EmpiricalGraph(10, [*ends, [4, 5]], weights, [f"n{i}" for i in range(10)])
    target = np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0)
    losses = gtv.SquaredLoss.stack(np.broadcast_to(np.eye(2), (10, 2, 2)), target)
    problem = gtv.GTVProblem(graph, losses, "l2", 1.0)
    problem.save(tmp_path / "p.npz")
    return problem


def partition(folder, labels, prefix="n"):
    rows = [f"{prefix}{i},{label}\n" for i, label in enumerate(labels)]
    (folder / "labels.csv").write_text("node,cluster\n" + "".join(rows))
    return folder / "labels.csv"


def test_planted_partition_holds(tmp_path, run, problem):
    labels = partition(tmp_path, ["left"] * 5 + ["right"] * 5)
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels)
    assert outcome.status == 0
    assert "every cluster is well-connected" in outcome.out
    report = verify.well_connected(problem, ["left"] * 5 + ["right"] * 5)
    assert f"{report.clusters['left'].margin:.6g}" in outcome.out
    assert f"lambda > {report.lam_min:.6g}" in outcome.out


def test_wrong_partition_does_not_hold(tmp_path, run, problem):
    labels = partition(tmp_path, [0, 0, 1, 1, 1, 1, 1, 0, 0, 0])
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels)
    assert outcome.status == 1
    assert "NOT well-connected" in outcome.out
    assert "no lambda is known" in outcome.out


def test_json_has_verdicts_and_witnesses(tmp_path, run, problem):
    labels = partition(tmp_path, [0] * 5 + [1] * 5)
    data = run("well-connected", tmp_path / "p.npz", "--partition", labels, "--json").json
    assert data["command"] == "well-connected"
    assert data["holds"] is True
    report = verify.well_connected(problem, [0] * 5 + [1] * 5)
    assert data["clusters"][1]["margin"] == report.clusters[1].margin
    assert data["clusters"][1]["nodes"] == [f"n{i}" for i in range(5, 10)]
    assert data["clusters"][0]["witness"] is not None
    single = partition(tmp_path, range(10))
    data = run("well-connected", tmp_path / "p.npz", "--partition", single, "--json").json
    assert data["clusters"][0]["margin"] == "inf"


def test_many_clusters_are_summed_up(tmp_path, run):
    n = 60
    graph = gtv.EmpiricalGraph(n, [[i, i + 1] for i in range(n - 1)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.eye(n)[:, :1]))
    problem.save(tmp_path / "p.npz")
    labels = partition(tmp_path, [i // 2 for i in range(n)], prefix="")
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels)
    assert outcome.status == 1
    assert outcome.out.count("NOT well-connected") == 20
    report = verify.well_connected(problem, np.arange(n) // 2)
    proved = sum(cluster.holds for cluster in report.clusters.values())
    assert proved < 10
    assert f"... 10 clusters more, {proved} of them well-connected" in outcome.out


def test_clusters_of_a_fit_can_be_checked(fitted, run):
    arguments = ("well-connected", fitted.folder / "s.problem.npz")
    outcome = run(*arguments, "--partition", fitted.folder / "labels.csv", "--json")
    assert [cluster["nodes"] for cluster in outcome.json["clusters"]] == [list("abc"), list("def")]
    assert outcome.status == (0 if outcome.json["holds"] else 1)
    quiet = run(*arguments, "--partition", fitted.folder / "labels.csv", "--quiet")
    assert (quiet.status, quiet.out, quiet.err) == (outcome.status, "", "")


@pytest.mark.parametrize("penalty", ["squared", "l1", "linf"])
def test_penalties(tmp_path, run, problem, penalty):
    gtv.GTVProblem(problem.graph, problem.losses, penalty, 1.0).save(tmp_path / "p.npz")
    labels = partition(tmp_path, [0] * 5 + [1] * 5)
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels)
    assert outcome.status == (1 if penalty == "squared" else 0)
    assert ("does not apply" in outcome.out) == (penalty == "squared")
