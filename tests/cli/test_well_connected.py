"""``gtvcvx well-connected``: the verdict on a partition."""

from __future__ import annotations

import sys

import cvxpy
import numpy as np
import pytest
from matplotlib.figure import Figure

import gtvcvx as gtv
import verify
from gtvcvx.cli._partition_picture import write_picture
from gtvcvx.plotting import _partition


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


def test_clusters_keep_the_names_of_the_file(tmp_path, run, problem):
    labels = partition(tmp_path, ["left"] * 5 + ["right"] * 5)
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels, "--json")
    assert [cluster["label"] for cluster in outcome.json["clusters"]] == ["left", "right"]


def test_recovery_and_critical_lambda_are_reported(tmp_path, run, problem):
    split = ["left"] * 5 + ["right"] * 5
    arguments = ("well-connected", tmp_path / "p.npz", "--partition", partition(tmp_path, split))
    plain = run(*arguments, "--json").json
    assert "recovery" not in plain
    assert "critical_lambda" not in plain
    data = run(*arguments, "--recovery", "--critical-lambda", "--json").json
    recovery, critical = verify.recovers(problem, split), verify.critical_lambda(problem, split)
    assert data["recovery"]["slack"] == recovery.slack > 0
    assert data["recovery"]["lemma3"] is True
    assert data["recovery"]["proof"]["status"] == "CERTIFIED"
    assert data["recovery"]["proof"]["holds"] is True
    assert data["critical_lambda"]["upper"] == critical.upper
    assert data["critical_lambda"]["clusters"][0][0] == "left"
    text = run(*arguments, "--recovery", "--critical-lambda").out
    assert f"slack {recovery.slack:.6g}" in text
    assert "Lemma 3 holds" in text
    assert "every solution is constant on them up to" in text
    assert f"between {critical.lower:.9g} and {critical.upper:.9g}" in text


def test_recovered_although_the_theorem_fails(tmp_path, run, problem):
    """Exit status 1: the status is about Theorem 2; the report says that it is recovered."""
    rng = np.random.default_rng(0)
    target = np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0) + 0.02 * rng.standard_normal((10, 2))
    losses = gtv.SquaredLoss.stack(np.broadcast_to(np.eye(2), (10, 2, 2)), target)
    weak = gtv.GTVProblem(problem.graph, losses, "l2", 0.01)
    weak.save(tmp_path / "p.npz")
    labels = partition(tmp_path, [0] * 5 + [1] * 5)
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels, "--recovery")
    assert outcome.status == 1
    assert "NOT well-connected" in outcome.out
    assert "exact recovery: recovered" in outcome.out
    assert "good for every lambda > " in outcome.out


def test_recovery_comes_first(tmp_path, run, problem):
    """Solved by the command, with a solution that is given, and not at all."""
    base = ("well-connected", tmp_path / "p.npz", "--partition")
    half = partition(tmp_path, [0] * 5 + [1] * 5)
    lines = run(*base, half).out.splitlines()
    assert lines[0].startswith("the partition IS recovered: every solution at lambda = 1 ")
    assert lines[1].startswith("solved at lambda = 1 (certified, relative gap ")
    problem.solve().save(tmp_path / "s.npz")
    data = run(*base, half, "--solution", tmp_path / "s.npz", "--json").json
    assert data["recovered"] is data["solution"]["recovered"] is data["solution"]["proved"] is True
    assert [c["found"] for c in data["solution"]["clusters"]] == ["equal", "equal"]
    third = partition(tmp_path, [0] * 4 + [1] * 6)
    assert "IS NOT recovered" in run(*base, third).out.splitlines()[0]
    unsolved = run(*base, third, "--no-solve", "--json").json
    assert unsolved["recovered"] is None
    assert "solution" not in unsolved
    both = run(*base, third, "--no-solve", "--solution", tmp_path / "s.npz")
    assert both.status == 2
    other = gtv.GTVProblem(gtv.EmpiricalGraph(2, [[0, 1]]), gtv.PointLoss.stack(np.eye(2)))
    other.solve().save(tmp_path / "s.npz")
    assert run(*base, third, "--solution", tmp_path / "s.npz").status == 2


def test_what_cannot_be_solved_is_checked_all_the_same(tmp_path, run, problem, monkeypatch):
    def fail(*args, **options):
        raise cvxpy.error.SolverError("no solver")

    monkeypatch.setattr(gtv.GTVProblem, "solve", fail)
    half = partition(tmp_path, [0] * 5 + [1] * 5)
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", half)
    assert outcome.status == 0
    assert "warning: not solved: no solver" in outcome.err


def test_report_has_no_infinite_lambda_and_counts_well(tmp_path, run):
    graph = gtv.EmpiricalGraph(4, [[0, 1], [1, 2], [2, 3]])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.arange(4.0)[:, None]), "l2", 1.0)
    problem.save(tmp_path / "p.npz")
    labels = partition(tmp_path, [0, 1, 0, 0], prefix="")
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels)
    assert "inf\n" not in outcome.out
    assert "cluster 1, 1 node: well-connected" in outcome.out
    assert "good for every lambda\n" in outcome.out
    assert "good for no lambda that is known" in outcome.out


@pytest.mark.parametrize("ending", ["json", "gtvc"])
def test_proof_is_written_and_checked(tmp_path, run, problem, ending):
    for split, status in (([0] * 5 + [1] * 5, 0), ([0, 0, 1, 1, 1, 1, 1, 0, 0, 0], 1)):
        labels, proof = partition(tmp_path, split), tmp_path / f"proof.{ending}"
        outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels, "-o", proof)
        assert outcome.status == status
        assert f"Written     {proof}" in outcome.out
        checked = run("check", proof)
        assert checked.status == 0
        assert "CERTIFIED" in checked.out
        assert ("not well-connected" in checked.out) == bool(status)
    assert (proof.read_bytes()[:4] == b"PK\3\4") == (ending == "gtvc")
    proof.unlink()
    squared = gtv.GTVProblem(problem.graph, problem.losses, "squared", 1.0)
    squared.save(tmp_path / "p.npz")
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels, "-o", proof)
    assert outcome.status == 1
    assert "Not written" in outcome.out
    assert not proof.exists()


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_picture_is_written(tmp_path, run, problem, ending):
    labels = partition(tmp_path, ["left"] * 5 + ["right"] * 5)
    path = tmp_path / f"picture.{ending}"
    outcome = run("well-connected", tmp_path / "p.npz", "--partition", labels, "--picture", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert f"Written     {path}" in outcome.out
    if ending == "png":
        assert path.read_bytes().startswith(b"\x89PNG")
    else:
        assert path.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.csv", "p.npz", path.name]


def test_picture_shows_the_numbers_of_the_report(tmp_path, problem, monkeypatch):
    """The panels are drawn from the report: curves, tightest set, sinks, loads of the edges."""
    drawn = []
    monkeypatch.setattr(_partition, "draw_partition", lambda p: drawn.append(p) or Figure())
    labels = ["left"] * 5 + ["right"] * 5
    report = verify.well_connected(problem, labels)
    write_picture(str(tmp_path / "x.png"), problem, labels, report)
    (picture,) = drawn
    worst = min(report.clusters.values(), key=lambda c: c.margin)
    assert [f"n{i}" for i in np.flatnonzero(picture.tight)] == worst.tightest_set
    assert [picture.labels[i] for i in picture.sinks] == [c.i0 for c in report.clusters.values()]
    near = np.argmin(np.abs(np.log(picture.lams)))
    again = gtv.GTVProblem(problem.graph, problem.losses, "l2", float(picture.lams[near]))
    expected = [c.margin for c in verify.well_connected(again, labels).clusters.values()]
    assert picture.margins[:, near] == pytest.approx(expected)
    assert (np.diff(picture.margins, axis=1) >= 0).all()
    boundary = (problem.graph.edges == (4, 5)).all(axis=1)
    assert picture.load[boundary] == pytest.approx(1.0, abs=1e-4)
    assert picture.load[~boundary].max() < 0.2


def test_pictures_that_cannot_be_made_are_refused_first(tmp_path, run, problem, monkeypatch):
    labels = partition(tmp_path, [0] * 5 + [1] * 5)
    base = ("well-connected", tmp_path / "p.npz", "--partition", labels, "--picture")
    outcome = run(*base, tmp_path / "x.gif")
    assert outcome.status == 2
    assert ".png, .pdf, .svg" in outcome.err
    assert run(*base, tmp_path / "nowhere" / "x.png").status == 2
    assert "already given" in run(*base, labels).err
    with monkeypatch.context() as hidden:
        hidden.setitem(sys.modules, "matplotlib.figure", None)
        outcome = run(*base, tmp_path / "x.png")
        assert outcome.status == 2
        assert "gtvcvx[plot]" in outcome.err
    monkeypatch.setattr("gtvcvx.cli._partition_picture.MOST_NODES", 9)
    outcome = run(*base, tmp_path / "x.png")
    assert outcome.status == 2
    assert "up to 9 nodes" in outcome.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.csv", "p.npz"]
