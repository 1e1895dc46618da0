"""``gtvcvx fit``: what it writes, what it says, and what its status means."""

from __future__ import annotations

import csv
import gzip
import signal

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual


def read(path):
    with path.open(newline="", encoding="utf-8") as handle:
        header, *rows = csv.reader(handle)
    return header, rows


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf", "squared", "pnorm:1", "pnorm:2"])
def test_solves_the_problem_of_the_files(files, run, penalty):
    outcome = run(*files.fit("--penalty", penalty, "--json"))
    assert outcome.status == 0
    solution = gtv.Solution.load(files.folder / "s.npz")
    reference = {"pnorm:1": "l1", "pnorm:2": "l2"}.get(penalty, penalty)
    exact = files.direct(penalty=reference).solve("CLARABEL", rtol=1e-9)
    assert solution.value == pytest.approx(exact.value, abs=1e-6)
    assert list(solution.nodes) == list("abcdef")
    certificate = outcome.json["certificate"]
    assert certificate["status"] == "CERTIFIED"
    assert certificate["lower"] <= exact.value * (1 + 1e-9)
    assert certificate["upper"] >= exact.value * (1 - 1e-9)
    assert certificate["upper"] == pytest.approx(solution.value, rel=1e-12)
    assert 0 <= certificate["rel_gap"] <= 1e-6


def test_report_is_made_of_the_numbers(files, run):
    outcome = run(*files.fit())
    assert outcome.status == 0
    assert outcome.err == ""
    solution = gtv.Solution.load(files.folder / "s.npz")
    assert "6 nodes, 7 edges, 1 component" in outcome.out
    assert "20 points at 5 nodes, 1 node unlabelled" in outcome.out
    assert "x1, x2" in outcome.out
    assert f"{solution.value:.9g}" in outcome.out
    assert "CERTIFIED" in outcome.out
    assert f"{solution.w[0, 0]:.3g}" in outcome.out
    assert "d, e, f" in outcome.out


def test_clusters_are_the_two_triangles(files, run):
    outcome = run(*files.fit("--json"))
    found = {tuple(cluster["nodes"]): cluster for cluster in outcome.json["clusters"]}
    assert set(found) == {("a", "b", "c"), ("d", "e", "f")}
    solution = gtv.Solution.load(files.folder / "s.npz")
    first = found["a", "b", "c"]
    assert first["coefficients"] == pytest.approx(solution.w[:3].mean(axis=0).tolist())
    assert first["spread"] == pytest.approx(np.ptp(solution.w[:3], axis=0).max(), abs=1e-15)
    assert first["size"] == 3


def test_json_tells_what_was_read_and_written(files, run):
    data = run(*files.fit("--json")).json
    assert data["command"] == "fit"
    assert data["graph"] == {"nodes": 6, "edges": 7, "components": 1, "isolated": 0}
    assert (data["data"]["points"], data["data"]["unlabelled"]) == (20, 1)
    assert data["data"]["features"] == ["x1", "x2"]
    assert data["problem"] == {"penalty": {"kind": "l2"}, "lam": 0.2}
    assert data["solver"]["name"] == "AUTO"
    _, X, y, node = files.arrays()
    w = gtv.Solution.load(files.folder / "s.npz").w
    error = np.mean((np.einsum("nd,nd->n", X, w[node]) - y) ** 2)
    assert data["mean_squared_error"] == pytest.approx(error, rel=1e-12)
    assert data["written"]["problem"] == str(files.folder / "s.problem.npz")


def test_problem_file_is_the_problem(files, run):
    run(*files.fit("--problem", files.folder / "p.npz"))
    loaded = gtv.GTVProblem.load(files.folder / "p.npz")
    w = np.random.default_rng(1).standard_normal((6, 2))
    assert loaded.value(w) == pytest.approx(files.direct().value(w), rel=1e-14)
    assert not (files.folder / "s.problem.npz").exists()


def test_coefficients_and_clusters_as_csv(files, run):
    table, labels = files.folder / "w.csv", files.folder / "c.csv"
    assert run(*files.fit("--coefficients", table, "--clusters", labels)).status == 0
    solution = gtv.Solution.load(files.folder / "s.npz")
    header, rows = read(table)
    assert header == ["place", "cluster", "x1", "x2"]
    assert [row[0] for row in rows] == list("abcdef")
    assert np.array_equal(np.array([row[2:] for row in rows], dtype=float), solution.w)
    assert [int(row[1]) for row in rows] == solution.clusters().tolist()
    assert read(labels) == (["place", "cluster"], [row[:2] for row in rows])


def test_node_column_that_reads_like_a_node(files, run):
    rows = [["node" if cell == "a" else cell for cell in edge] for edge in files.edge_rows]
    files.write("edges.csv", ["from", "to", "weight"], rows)
    data = [["node" if row[0] == "a" else row[0], *row[1:]] for row in files.rows()]
    files.write("data.csv", ["node", "cluster", "x2", "y"], data)
    labels, table = files.folder / "c.csv", files.folder / "w.csv"
    arguments = files.fit("--clusters", labels, "--coefficients", table)
    arguments[arguments.index("place")] = "node"
    assert run(*arguments).status == 0
    assert read(table)[0] == ["node", "cluster_", "cluster", "x2"]
    outcome = run("well-connected", files.folder / "s.problem.npz", "--partition", labels)
    assert outcome.status in (0, 1)
    assert outcome.err == ""


def test_intercept_is_a_column_of_ones(files, run):
    outcome = run(*files.fit("--intercept", "--json"))
    assert outcome.json["data"]["features"] == ["x1", "x2", "intercept"]
    _, X, _, _ = files.arrays()
    exact = files.direct(np.column_stack([X, np.ones(len(X))])).solve("CLARABEL", rtol=1e-9)
    assert outcome.json["solver"]["value"] == pytest.approx(exact.value, abs=1e-6)


def test_standardize_scales_and_says_how(files, run):
    header, rows = ["place", "x1", "one", "x2", "y"], files.rows()
    files.write("data.csv", header, [[*row[:2], 0.1, *row[2:]] for row in rows])
    outcome = run(*files.fit("--standardize"))
    assert "scaled to mean 0 and variance 1: x1, x2; constant, left as they are: one" in outcome.out
    solution = gtv.Solution.load(files.folder / "s.npz")
    scaling = solution.info["standardized"]
    assert scaling["constant"] == ["one"]
    _, X, _, _ = files.arrays()
    mean, scale = X.mean(axis=0), X.std(axis=0)
    assert scaling["mean"] == pytest.approx([mean[0], 0.0, mean[1]])
    assert scaling["scale"] == pytest.approx([scale[0], 1.0, scale[1]])
    Z = np.insert((X - mean) / scale, 1, 0.1, axis=1)
    exact = files.direct(Z).solve("CLARABEL", rtol=1e-9)
    assert solution.value == pytest.approx(exact.value, abs=1e-6)


def test_files_of_spreadsheets_and_archives(files, run):
    """Semicolons, quotes, CRLF and a byte order mark, gzipped: the same fit."""
    assert run(*files.fit()).status == 0
    plain = gtv.Solution.load(files.folder / "s.npz")
    for path in (files.edges, files.data):
        header, rows = read(path)
        lines = [";".join(f'"{cell}"' for cell in row) for row in (header, *rows)]
        path.write_bytes(gzip.compress("\r\n".join(["\ufeff" + lines[0], *lines[1:]]).encode()))
    assert run(*files.fit()).status == 0
    assert np.array_equal(gtv.Solution.load(files.folder / "s.npz").w, plain.w)


def test_features_in_the_order_given(files, run):
    assert run(*files.fit("--features", "x2", "x1")).status == 0
    swapped = gtv.Solution.load(files.folder / "s.npz")
    assert run(*files.fit()).status == 0
    plain = gtv.Solution.load(files.folder / "s.npz")
    assert swapped.info["features"] == ["x2", "x1"]
    assert swapped.w[:, ::-1] == pytest.approx(plain.w, abs=1e-4)


def test_node_without_edge_is_isolated_on_request(files, run):
    files.write("data.csv", ["place", "x1", "x2", "y"], [*files.rows(), [7, 1, 0, 2], [7, 0, 1, 3]])
    assert run(*files.fit()).status == 2
    outcome = run(*files.fit("--isolated", "--json"))
    assert outcome.status == 0
    assert outcome.json["graph"]["isolated"] == 1
    solution = gtv.Solution.load(files.folder / "s.npz")
    assert solution.nodes[-1] == "7"
    assert solution.w[-1] == pytest.approx([2, 3], abs=1e-6)


def test_integer_nodes_and_empty_targets(files, run):
    number = {name: str(k + 1) for k, name in enumerate("abcdef")}
    files.write(
        "edges.csv", ["u", "v", "w"], [[number[i], number[j], a] for i, j, a in files.edge_rows]
    )
    rows = [[number[row[0]], *row[1:]] for row in files.rows()]
    files.write("data.csv", ["place", "x1", "x2", "y"], [*rows, ["6", 1, 1, ""]])
    outcome = run(*files.fit("--json"))
    assert outcome.status == 0
    assert outcome.json["data"]["rows_without_target"] == 1
    assert list(gtv.Solution.load(files.folder / "s.npz").nodes) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("solver", "rtol"), [("PDHG", "1e-6"), ("CLARABEL", "1e-6"), ("clarabel", "1e-8")]
)
def test_other_solvers(files, run, solver, rtol):
    outcome = run(*files.fit("--solver", solver, "--rtol", rtol, "--json"))
    assert outcome.status == 0
    assert outcome.json["solver"]["name"] == solver.upper()
    assert outcome.json["certificate"]["rel_gap"] <= float(rtol)


def test_backend_that_cannot_solve_is_not_proved(files, run):
    before = files.content()
    outcome = run(*files.fit("--solver", "HIGHS"))
    assert outcome.status == 1
    assert outcome.err.startswith("gtvcvx fit: error: ")
    assert files.content() == before


def test_limit_writes_the_incumbent_and_its_true_gap(files, run):
    outcome = run(*files.fit("--max-iter", "2", "--json"))
    assert outcome.status == 1
    certificate = outcome.json["certificate"]
    assert certificate["status"] == "UNPROVED"
    assert certificate["exact"] is True
    assert certificate["rtol"] == 1e-6
    optimum = files.direct().solve("CLARABEL", rtol=1e-9).value
    assert certificate["lower"] <= optimum <= certificate["upper"]
    assert certificate["rel_gap"] > 1e-6
    solution = gtv.Solution.load(files.folder / "s.npz")
    assert solution.status == "user_limit"
    assert certificate["upper"] == pytest.approx(solution.value, rel=1e-12)
    shares = certificate["largest_shares"]
    assert all(0 < share <= certificate["gap"] for kind in shares.values() for _, share in kind)


def test_interrupt_writes_the_incumbent(files, run, monkeypatch):
    iterate = PrimalDual.run
    calls = []

    def interrupted(self, n_iter):
        calls.append(n_iter)
        iterate(self, n_iter)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(PrimalDual, "run", interrupted)
    outcome = run(*files.fit("--rtol", "1e-14"))
    assert outcome.status == 1
    assert len(calls) == 3
    assert "user_limit" in outcome.out
    assert "UNPROVED" in outcome.out
    solution = gtv.Solution.load(files.folder / "s.npz")
    assert solution.n_iter >= sum(calls)
    assert np.isfinite(solution.rel_gap)


def test_penalty_with_powers_is_proved(files, run):
    outcome = run(*files.fit("--penalty", "pnorm:3"))
    assert outcome.status == 0
    assert "pnorm with p = 3" in outcome.out
    assert "CERTIFIED" in outcome.out
    assert "gap at most" in outcome.out


def test_quiet_prints_nothing_but_json(files, run):
    outcome = run(*files.fit("--quiet"))
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    assert run(*files.fit("--quiet", "--json")).json["command"] == "fit"
