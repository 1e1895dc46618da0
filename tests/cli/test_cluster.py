"""``gtvcvx cluster``: the estimator's clusters, with names, units and a certificate."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.files._tables import read_labels

pytest.importorskip("sklearn")
NAMES = [f"p{k}" for k in range(12)]


@pytest.fixture
def points(files):
    """Three groups of four rows, in metres and in euros; the group is in the name's number."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [5.0, 2000.0], [10.0, 0.0]], 4, axis=0)
    X = X + rng.standard_normal(X.shape) * [0.3, 60.0]
    rows = [[name, *x] for name, x in zip(NAMES, X.tolist(), strict=True)]
    files.write("points.csv", ["name", "metres", "euros"], rows)
    return X


@pytest.fixture
def cluster(files, run, points):
    def call(*extra, node=True, data="points.csv"):
        name = ["--node", "name"] if node else []
        return run(
            *("cluster", files.folder / data, "-o", files.folder / "l.csv", *name),
            *map(str, extra),
        )

    return call


def test_clusters_are_the_groups_and_the_estimators(files, cluster, points):
    outcome = cluster("--standardize", "--n-clusters", 3, "--neighbours", 4, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    labels = read_labels(files.folder / "l.csv")
    assert list(labels) == NAMES
    Z = (points - points.mean(axis=0)) / points.std(axis=0)
    model = gtv.estimators.ConvexClustering(n_clusters=3, n_neighbors=4).fit(Z)
    assert list(labels.values()) == model.labels_.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert outcome.json["problem"]["lam"] == model.lam_
    assert outcome.json["certificate"]["status"] == "CERTIFIED"
    for part in outcome.json["clusters"]:
        rows = slice(4 * part["cluster"], 4 * part["cluster"] + 4)
        assert part["nodes"] == NAMES[rows]
        assert part["mean"] == pytest.approx(points[rows].mean(axis=0).tolist())
        centre = model.cluster_centers_[part["cluster"]] * points.std(axis=0) + points.mean(axis=0)
        assert part["centre"] == pytest.approx(centre.tolist(), rel=1e-4)


def test_defaults_and_report(cluster):
    outcome = cluster("--standardize")
    assert outcome.status == 0
    assert "12 points; features metres, euros" in outcome.out
    assert "scaled to mean 0 and variance 1" in outcome.out
    assert "10 nearest neighbours of each point, and a spanning tree" in outcome.out
    assert "for clusters that stand out" in outcome.out
    assert "Outliers" not in outcome.out
    assert "CERTIFIED" in outcome.out
    assert cluster("--quiet").out == ""


def test_rows_without_names_are_numbered(files, cluster, points):
    files.write("plain.csv", ["metres", "euros"], points.tolist())
    assert cluster("--lam", "0.01", node=False, data="plain.csv").status == 0
    with (files.folder / "l.csv").open(newline="") as handle:
        header, *rows = csv.reader(handle)
    assert header == ["row", "cluster"]
    assert [row[0] for row in rows] == [str(k + 1) for k in range(12)]


def test_solution_and_graph_for_the_other_commands(files, run, cluster):
    chain = [[NAMES[k], NAMES[k + 1]] for k in reversed(range(11))]
    edges = files.write("chain.csv", ["from", "to"], chain)
    path = files.folder / "c.npz"
    outcome = cluster("--edges", edges, "--lam", "1", "--solution", path, "--features", "metres")
    assert outcome.status == 0
    solution = gtv.Solution.load(path)
    assert list(solution.nodes) == NAMES
    assert solution.info["features"] == ["metres"]
    problem = files.folder / "c.problem.npz"
    graph = gtv.GTVProblem.load(problem).graph
    assert {tuple(graph.nodes[i] for i in edge) for edge in graph.edges} == set(map(tuple, chain))
    outcome = run("certify", problem, path, "-o", files.folder / "c.json")
    assert outcome.status == 0
    outcome = run("well-connected", problem, "--partition", files.folder / "l.csv")
    assert outcome.err == ""
    assert "predicts no targets" in run("predict", path, files.data, "-o", "p.csv").err


def test_a_number_of_clusters_that_is_not_there_is_told(files, cluster):
    files.write("points.csv", ["name", "x"], [["a", 0], ["b", 1], ["c", 2]])
    outcome = cluster("--n-clusters", 2)
    assert outcome.status == 0
    assert "found no lambda with n_clusters=2 clusters; took" in outcome.out
    assert outcome.err == ""


def test_outliers(files, cluster, points):
    far = [[NAMES[k], *x] for k, x in enumerate(points.tolist())] + [["far", -1e4, 1e7]]
    files.write("points.csv", ["name", "metres", "euros"], far)
    options = ("--n-clusters", 3, "--neighbours", 4, "--min-cluster-size", 3)
    outcome = cluster(*options, "--json")
    assert outcome.status == 0
    outliers = outcome.json["outliers"]
    assert "far" in outliers
    assert len(outliers) <= 3
    assert outcome.json["min_cluster_size"] == 3
    assert sum(part["size"] for part in outcome.json["clusters"]) == 13
    assert set(read_labels(files.folder / "l.csv").values()) == {0, 1, 2}
    outcome = cluster(*options, "--noise")
    assert f"{len(outliers)}, less than 3 together; labelled -1" in outcome.out
    labels = read_labels(files.folder / "l.csv")
    assert [name for name, label in labels.items() if label == -1] == outliers
    assert np.bincount([label for label in labels.values() if label >= 0]).min() >= 3


def test_limits_are_not_proved(cluster):
    outcome = cluster("--lam", "40", "--max-iter", "1", "--rtol", "1e-13", "--json")
    assert outcome.json["certificate"]["status"] == "UNPROVED"
    assert outcome.json["certificate"]["rel_gap"] > 1e-13
    assert outcome.status == 1


@pytest.mark.parametrize(
    ("text", "extra", "words"),
    [
        ("name,x\na,1\nb,2\na,3\n", [], ["points.csv, line 4", "'a'", "line 2"]),
        ("name,x\na,1\nb,\n", [], ["points.csv, line 3", "'x'", "empty"]),
        ("name,x,x\na,1,2\n", [], ["points.csv, line 1", "'x'", "twice"]),
        ("name\na\n", [], ["no feature column", "'name'"]),
        ("name,x\n", [], ["no row"]),
        ("id,x\na,1\n", [], ["'name'", "(node)"]),
        ("name,x\na,1\nb,2\n", ["--n-clusters", "3"], ["n_clusters", "3"]),
        ("name,x\na,1\nb,2\n", ["--n-clusters", "0"], ["--n-clusters", "'0'"]),
        ("name,x\na,1\nb,2\n", ["--lam", "1", "--n-clusters", "2"], ["--lam", "not allowed"]),
        ("name,x\na,1\nb,2\n", ["--edges", "{}/edges.csv"], ["edges.csv", "'c'", "no row"]),
        ("name,x\na,1\nb,2\n", ["--penalty", "squared"], ["penalty", "norm"]),
        ("name,x\na,1\nb,2\n", ["-o", "{}/points.csv"], ["--output", "DATA"]),
        ("name,x\na,1\nb,2\n", ["--solution", "{}/l.csv"], ["--solution", "--output"]),
    ],
)
def test_bad_input(files, cluster, text, extra, words):
    (files.folder / "points.csv").write_text(text)
    before = files.content()
    outcome = cluster(*(word.format(files.folder) for word in extra))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert all(word in outcome.err for word in words)
    assert files.content() == before


def test_without_scikit_learn(cluster, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    outcome = cluster()
    assert outcome.status == 2
    assert "gtvcvx[ml]" in outcome.err
