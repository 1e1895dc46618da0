"""The benchmarks of tests/benchmarks, on sizes that say nothing about speed."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from _benchmark_modules import FOLDER, module, siblings

__all__ = ["siblings"]  # a fixture for all of the tests


def small_cases():
    sys.path.insert(0, str(FOLDER))
    try:
        families = module("families")
    finally:
        sys.path.remove(str(FOLDER))
    return [case for family in families.FAMILIES for case in families.cases(family, quick=True)]


@pytest.mark.parametrize("case", small_cases(), ids=str)
def test_every_instance_can_be_built_and_is_the_same_again(case):
    first, second = case.problem().to_data(), case.problem().to_data()
    assert abs(first["n_nodes"] - case.size) <= 0.05 * case.size
    assert first["lam"] == case.lam
    assert first["penalty"] == {"kind": case.penalty}
    np.testing.assert_array_equal(first["edges"], second["edges"])
    for a, b in zip(first["terms"], second["terms"], strict=True):
        for key in a.keys() - {"kind"}:
            np.testing.assert_array_equal(a[key], b[key])


def test_geometric_family_is_the_one_whose_figures_are_known():
    problem = module("families").Case("F4", 8_000, "", "l2", 0.3).problem()
    assert problem.graph.n_edges == 47_643
    labelled = np.unique(problem.to_data()["terms"][0]["node"])
    assert len(labelled) == 3_200


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared"])
def test_admm_reaches_the_optimum(penalty):
    case = module("families").Case("F4", 60, "", penalty, 0.3)
    problem = case.problem()
    best = problem.solve(rtol=1e-8, verbose=False)
    goal = best.value + 1e-6
    method = module("admm").NetworkLassoADMM(problem)
    values = method.run(lambda value: value <= goal or method.n_iter > 5_000)
    assert best.dual_value <= values[-1] <= goal
    assert values[-1] == problem.value(method.w)


@pytest.mark.parametrize("peer", ["gtvcvx", "CLARABEL", "CLARABEL:dual", "SCS", "PDHG"])
def test_peers_solve_the_same_problem(peer):
    peers = module("peers")
    problem = module("families").Case("F4", 60, "", "l2", 0.3).problem()
    best = problem.solve(rtol=1e-9, verbose=False)
    task = peers.Task(target=1e-6, goal=best.value + 1e-6, time_limit=20.0, tolerance=1e-8)
    outcome = peers.PEERS[peer].solve(problem, task)
    assert problem.value(outcome.w) == pytest.approx(best.value, rel=1e-5)
    assert 0 < outcome.own_seconds <= outcome.seconds


def test_quadratics_for_cut_pursuit_are_the_losses():
    external = module("external")
    problem = module("families").Case("F7", 30, "geometric 10%", "l1", 0.1).problem()
    applies = external.PROGRAMS["cut-pursuit"].applies
    assert applies(problem)
    curvature, centre = external.quadratics(problem)
    w = np.random.default_rng(0).standard_normal((problem.graph.n_nodes, 1))
    quadratic = 0.5 * curvature * w[:, 0] ** 2 - centre[:, 0] * w[:, 0]
    constant = problem.losses.value(np.zeros_like(w))
    np.testing.assert_allclose(quadratic + constant, problem.losses.value(w))
    assert not applies(module("families").Case("F4", 30, "", "l1", 0.1).problem())


def test_bytes_of_an_iteration_are_those_of_its_arrays():
    count = module("bandwidth").bytes_per_iteration
    assert count(0, 10, 2) == 10 * (4 * 8 + 4 + 8)
    # w twice, balance three times, extrapolated point twice, offset: d words each.
    assert count(10, 0, 3) == 10 * 8 * (8 * 3 + 3 * 3 + 2)


def test_footprint_is_that_of_the_solver_s_arrays():
    primal_dual = module("gtvcvx.solvers.primal_dual._primal_dual")
    problem = module("families").Case("F4", 200, "", "l2", 0.3).problem()
    n, m, d = problem.graph.n_nodes, problem.graph.n_edges, problem.dim
    method = primal_dual.PrimalDual(problem).state
    arcs = method._arcs
    arrays = [method.w, method.u, method._nodes, arcs.starts[:n], arcs.tails, method._tau]
    arrays += [problem.capacities, method._prox.matrix, method._prox.offset]
    assert module("bandwidth").footprint(n, m, d) == sum(array.nbytes for array in arrays)


def test_paths_are_measured_against_cold_solves():
    found = module("paths").measure(module("families").Case("F4", 60, "", "l2", 3.0))
    assert found["values"] == 20
    cold, total = found["cold solve, median (s)"], found["all cold solves (s)"]
    assert 0.0 < cold < total
    assert found["path / cold solve"] == pytest.approx(found["path (s)"] / cold)
    assert found["path / all cold solves"] == pytest.approx(found["path (s)"] / total)


def test_proofs_are_built_and_checked_in_processes_of_their_own():
    found = module("certificates").measure(module("families").Case("F4", 60, "", "l2", 0.3), 1)
    assert found["answer"] == "CERTIFIED"
    assert 0 < found["check (s)"] < found["check, memory (MB)"] < found["build, memory (MB)"]
    assert 0 < found["relative gap"] <= 1e-6


@pytest.mark.parametrize(("milliseconds", "valid"), [(10.0, True), (0.0, False)])
def test_what_beats_the_floor_is_not_a_ratio(monkeypatch, milliseconds, valid):
    bandwidth = module("bandwidth")
    loops = []

    def seconds(call, repeats):
        if repeats == bandwidth.TIMED:
            return 1e-3
        loops.append(call)
        return 1e-3 * milliseconds * bandwidth.TIMED

    monkeypatch.setattr(bandwidth, "_seconds", seconds)
    found = bandwidth.measure(module("families").Case("F4", 60, "", "l2", 0.3))
    assert len(loops) == bandwidth.TRIES + 1
    # 1 ms for the arrays' own size: the floor is that much longer as the loop moves more.
    assert found["floor (ms)"] == pytest.approx(found["traffic (MB)"] / found["bandwidth (GB/s)"])
    if valid:
        assert found["times the floor"] == pytest.approx(milliseconds / found["floor (ms)"])
    else:
        assert found["times the floor"].startswith("not valid")


def test_page_keeps_what_people_wrote(tmp_path):
    report = module("report")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    results = report.Results(tmp_path / "out")
    results.facts["machine"] = {"processor": "abacus"}
    results.write_page(page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "- processor: abacus" in text
    assert "old" not in text
    page.write_text("no markers")
    with pytest.raises(ValueError, match=r"page\.md"):
        results.write_page(page)
    assert page.read_text() == "no markers"


def test_families_of_other_runs_stay_on_the_page(tmp_path):
    report, measure = module("report"), module("measure")
    page = tmp_path / "page.md"
    old = (
        "- commit: old\n\n### F4\n\nfour\n\n### F9\n\nnine\n\n"
        f"### {report.BEHIND}\n\n- F4 x: slow\n- F9 y: slow\n\n### Paths\n\npaths\n"
    )
    page.write_text(f"before\n{report.BEGIN}\n\n{old}\n{report.END}\nafter\n")
    results = report.Results(tmp_path / "out")
    results.facts["machine"] = {"commit": "new"}
    missing = dict.fromkeys(field.name for field in dataclasses.fields(measure.Row))
    for family in ("F9", "F10"):
        given = {"case": f"{family} z", "series": "z", "family": family, "peer": "gtvcvx"}
        given |= {"n_nodes": 3, "n_edges": 2, "target": 1e-6, "status": "optimal"}
        row = measure.Row(**(missing | given | {"reached": family == "F10", "certificate": "x"}))
        results.rows.append(row)
    results.write_page(page)
    text = page.read_text()
    places = [text.index(f"### {name}\n") for name in ("F4", "F9", "F10", report.BEHIND, "Paths")]
    assert places == sorted(places)
    assert "- commit: old" in text
    assert "four" in text
    assert "nine" not in text
    assert text.count("Measured at commit new.") == 2
    assert "- F4 x: slow" in text
    assert "- F9 y: slow" not in text
    assert "- F9 z at 1e-06: gap not proved in time" in text


def test_the_page_of_the_repository_has_its_markers():
    report = module("report")
    text = report.PAGE.read_text(encoding="utf-8")
    assert text.count(report.BEGIN) == text.count(report.END) == 1


def test_one_command_measures_certifies_and_writes(tmp_path):
    command = [sys.executable, FOLDER, "--family", "F1", "--only", "l2", "--sizes", "20"]
    command += ["--peers", "ADMM", "--repeats", "1", "--quick", "--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "out" / "results.json").read_text())["rows"]
    assert [row["peer"] for row in rows] == ["gtvcvx", "ADMM"]
    for row in rows:
        assert row["reached"]
        assert row["certificate"] == "CERTIFIED"
        assert row["suboptimality"] <= row["target"] == 1e-6
        assert row["seconds"] > 0
    assert rows[0]["times"] == 1.0
    assert "| ADMM |" in (tmp_path / "out" / "results.md").read_text()
    assert (tmp_path / "out" / "gap-F1.png").stat().st_size > 1000


def test_first_solves_are_measured_of_every_loss():
    compilation = module("compilation")
    for loss in compilation.LOSSES:
        assert compilation.problem_of(loss, "l2", 2, 8).dim == 2
    (first, second), kernels = compilation.run("squared", "l2", 2, 8)
    assert first > 0.0
    assert second > 0.0
    assert sum(kernels.seconds.values()) <= first + second


def test_forests_and_many_dimensions_are_measured():
    forests = module("forests")
    for loss in module("families").FOREST_LOSSES:
        assert forests.problem_of("tree", loss, 9).solve().info["method"] == "dynamic programming"
    told = list(forests.lines(1, scale=1e-3))
    assert len(told) == 9
    assert all("optimal" in line for line in told[-2:])
    assert sum("solve without it" in line for line in told) == 4


def test_dimensions_are_measured():
    dimensions = module("dimensions")
    for name, (make, _) in dimensions.INSTANCES.items():
        assert make(1e-3).graph.n_nodes < 2000, name
    told = dimensions.measured("images", scale=0.005)
    assert told["status"] == "optimal"
    assert told["arrays, MB"] > 0.0


def test_large_tables_are_drawn_again_and_solved(monkeypatch, capsys):
    tables = module("large_tables")
    first, again = tables.drawn(3, 1, 200), tables.drawn(3, 1, 200)
    assert first.text == again.text
    np.testing.assert_array_equal(
        first.problem.to_data()["terms"][0]["X"], again.problem.to_data()["terms"][0]["X"]
    )
    drawn = [tables.drawn(3, k, 100) for k in range(40)]
    assert {one.text.split(",")[0] for one in drawn} == set(tables.LOSSES)
    monkeypatch.setattr(sys, "argv", ["large_tables", "--count", "3", "--largest", "100"])
    assert tables.main() == 0
    assert "3 of 3 solved" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["large_tables", "--only", "2", "--time-limit", "1e-9"])
    assert tables.main() == 0
    told = capsys.readouterr().out
    assert told.startswith("!   2 ")
    assert "0 of 1 solved" in told
