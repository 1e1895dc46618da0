"""The examples: each is run as a reader would run it, and what it prints and writes is checked."""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gtvcvx as gtv

FOLDER = Path(__file__).parents[2] / "examples"
MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def load(name):
    """The example as a module, to call its functions."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run(name, folder, *arguments):
    """Output of ``python examples/NAME.py ARGUMENTS`` in a folder, with warnings as errors."""
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def number_after(label, text):
    """The number that follows a label."""
    return float(re.search(rf"{re.escape(label)}\s+(-?[\d.]+(?:e[-+]?\d+)?)", text)[1])


def test_every_example_is_tested_and_says_what_the_reader_learns():
    tested = {
        *("clustering_table", "exact_small_instance"),
        *("federated_states", "state_incomes", "partition_check"),
    }
    elsewhere = {"theorem2_on_the_papers_graphs"}  # test_example_theorem2.py
    assert {path.stem for path in FOLDER.glob("*.py")} == tested | elsewhere
    for name in tested:
        assert "What you learn" in load(name).__doc__


# exact_small_instance


def test_exact_small_instance_agrees_with_its_dual_and_draws(tmp_path):
    pytest.importorskip("matplotlib")
    out = run("exact_small_instance", tmp_path)
    primal, dual = number_after("primal value", out), number_after("dual value", out)
    assert primal == pytest.approx(dual, abs=1e-8)
    assert "certificate  CERTIFIED" in out
    assert len(re.findall(r"^cluster \d", out, re.MULTILINE)) == 2
    problem = load("exact_small_instance").make_problem(0.2, 0)
    assert problem.solve(rtol=1e-9).value == pytest.approx(primal, abs=1e-8)

    png = (tmp_path / "exact_small_instance.png").read_bytes()
    assert png.startswith(PNG_SIGNATURE)
    width, height = struct.unpack(">II", png[16:24])
    assert width > 1000
    assert height > 300
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exact_small_instance.png"]


@pytest.mark.parametrize("lam", [0.1, 0.2])
def test_arrows_of_the_exact_small_instance_show_the_flow(lam):
    figure = pytest.importorskip("matplotlib.figure")
    example = load("exact_small_instance")
    problem = example.make_problem(lam, 0)
    solution = problem.solve("CLARABEL", rtol=1e-9)
    value, flow = example.solve_dual(problem)
    assert value == pytest.approx(solution.value, abs=1e-8)
    saturated = np.linalg.norm(flow, axis=1) > (1 - 1e-6) * problem.capacities
    # Nodes at their places, and the flow into each of them, as drawn.
    node_at = {tuple(place): i for i, place in enumerate(example.POSITIONS)}
    for k in range(problem.dim):
        axes = figure.Figure().subplots()
        example.draw_edges(axes, problem, flow[:, k], saturated)
        arrows = [text for text in axes.texts if not text.get_text()]
        amounts = [float(text.get_text()) for text in axes.texts if text.get_text()]
        assert len(arrows) == len(amounts) == problem.graph.n_edges
        net = np.zeros(10)
        for arrow, amount in zip(arrows, amounts, strict=True):
            start, end = node_at[tuple(arrow.xyann)], node_at[tuple(arrow.xy)]
            net[[start, end]] += [amount, -amount]
            if arrow.arrow_patch.get_facecolor()[0] > 0.5:  # red
                assert solution.w[end, k] > solution.w[start, k] - 1e-4
        sent = -(problem.graph.divergence @ flow[:, k])
        np.testing.assert_allclose(net, sent, atol=0.03)  # amounts have two decimals
        np.testing.assert_allclose(sent[list(example.UNLABELLED)], 0, atol=1e-7)


def test_exact_small_instance_without_matplotlib_names_the_extra(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SystemExit, match=r"gtvcvx\[plot\]"):
        load("exact_small_instance").main([str(tmp_path / "picture.png")])
    assert "CERTIFIED" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


# state_incomes


@pytest.fixture(scope="module")
def states():
    """The example and its table."""
    example = load("state_incomes")
    paths = example.us_income_paths()
    return example, example.read(paths.edges, paths.data)


def test_state_incomes_prints_certified_fits_and_errors(tmp_path, states):
    example, table = states
    out = run("state_incomes", tmp_path, "--years", 3, 81, "--splits", 2, "--seed", 1)
    assert out.count("certified to 1e-06: 4 of 4 fits") == 2
    few, all_years = out.split("81 years of each")
    held_out, other_years = re.findall(r"([\d.]+) \+-", re.search("pooled.*", few)[0])
    assert "-" in re.search("pooled.*", all_years)[0].split()
    # The pooled row again, without the example's own functions.
    errors = []
    for seed in (1, 2):
        labelled, train = example.draw_split(table, 3, seed)
        w = np.linalg.solve(table.X[train].T @ table.X[train], table.X[train].T @ table.y[train])
        square = (table.X @ w - table.y) ** 2
        known = labelled[table.node]
        errors.append([np.sqrt(square[rows].mean()) for rows in (~known, known & ~train)])
    expected = np.mean(errors, axis=0)
    np.testing.assert_allclose([float(held_out), float(other_years)], expected, atol=6e-5)
    assert not list(tmp_path.iterdir())


def test_state_incomes_draws_the_errors(tmp_path):
    pytest.importorskip("matplotlib")
    example = load("state_incomes")
    means = [{"pooled": np.array([0.2, 0.3])}, {"pooled": np.array([0.1, np.nan])}]
    example.draw(str(tmp_path / "errors.png"), [3, 81], means)
    assert (tmp_path / "errors.png").read_bytes().startswith(PNG_SIGNATURE)


def test_state_incomes_splits_hide_a_fifth_of_the_states(states):
    example, table = states
    labelled, train = example.draw_split(table, 3, 5)
    assert labelled.sum() == 48 - 10
    counts = np.bincount(table.node[train], minlength=48)
    np.testing.assert_array_equal(counts, 3 * labelled)
    again, same_rows = example.draw_split(table, 3, 5)
    np.testing.assert_array_equal(labelled, again)
    np.testing.assert_array_equal(train, same_rows)


def test_state_incomes_chooses_and_fits_without_what_is_held_out(states):
    """Other targets where nothing may be looked at: the same lambda, the same models."""
    example, table = states
    labelled, train = example.draw_split(table, 3, 0)
    spoiled = example.Table(table.graph, table.X, np.where(train, table.y, 1e3), table.node)
    lams = [example.cross_validated_lam(t, train, "squared", 0) for t in (table, spoiled)]
    assert lams[0] == lams[1]
    assert lams[0] in example.LAMBDAS
    for fit in (
        example.pooled_fit,
        lambda t, rows: example.per_node_fit(t, rows, labelled),
        lambda t, rows: t.problem(rows, "squared", lams[0]).solve(rtol=1e-6).w,
    ):
        np.testing.assert_array_equal(fit(table, train), fit(spoiled, train))


def test_state_incomes_per_node_fit_is_the_neighbours_mean_where_there_are_no_data(states):
    example, table = states
    labelled, train = example.draw_split(table, 5, 0)
    w = example.per_node_fit(table, train, labelled)
    G, index = table.graph.to_networkx(), table.graph.index
    for state, i in index.items():
        known = [index[other] for other in G[state] if labelled[index[other]]]
        if labelled[i]:
            rows = train & (table.node == i)
            residual = table.X[rows] @ w[i] - table.y[rows]
            np.testing.assert_allclose(table.X[rows].T @ residual, 0, atol=1e-9)
        else:
            assert known
            np.testing.assert_allclose(w[i], w[known].mean(axis=0))


def test_state_incomes_reads_other_tables_and_names_an_unknown_node(tmp_path):
    example = load("state_incomes")
    edges, data = tmp_path / "edges.csv", tmp_path / "data.csv"
    edges.write_text("source,target\n1,2\n2,3\n", encoding="utf-8")
    rows = [["node", "one", "x", "y"], [3, 1, 0.5, 2.0], [1, 1, -1, 0.25]]
    with data.open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows(rows)
    table = example.read(edges, data)
    np.testing.assert_array_equal(table.node, [2, 0])
    np.testing.assert_array_equal(table.X, [[1, 0.5], [1, -1]])
    np.testing.assert_array_equal(table.y, [2.0, 0.25])
    with data.open("a", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerow([4, 1, 0, 0])
    with pytest.raises(ValueError, match="'4' is not a node"):
        example.read(edges, data)


# partition_check


@pytest.fixture(scope="module")
def partition_output(tmp_path_factory):
    folder = tmp_path_factory.mktemp("partition")
    if importlib.util.find_spec("matplotlib") is None:
        return run("partition_check", folder)
    printed = run("partition_check", folder, "-o", "margins.png")
    assert (folder / "margins.png").read_bytes().startswith(PNG_SIGNATURE)
    return printed


def blocks(output):
    """Rows (lambda, found, recovered, slack, theorem, margins) of each block model's table."""
    pattern = r"^ +([\d.]+) +(\d+) +(yes|no) +(-?[\d.]+) +(yes|no) +([\d.]+), ([\d.]+)$"
    return [re.findall(pattern, part, re.MULTILINE) for part in output.split("Stochastic")[1:]]


def test_partition_check_verdicts_follow_the_rungs(partition_output):
    tables = blocks(partition_output)
    assert [len(table) for table in tables] == [5, 5]
    for table in tables:
        for _, found, recovered, slack, theorem, *margins in table:
            assert (recovered == "yes") == (float(slack) > 0)
            assert (theorem == "yes") == (min(map(float, margins)) > 1)
            assert theorem == "no" or recovered == "yes"
            assert recovered == "no" or found == "2"
        margins = np.array([row[5:] for row in table], dtype=float)
        assert (np.diff(margins[:, 0]) > 0).all()
    assert [row[4] for row in tables[0]].count("yes") == 1
    assert all(row[4] == "no" for row in tables[1])
    assert [row[2] for row in tables[1]].count("yes") == 4


def test_partition_check_says_how_conservative_the_theorem_is(partition_output):
    sparse, dense = partition_output.split("Stochastic")[1:]
    exact = number_after("recovered from lambda", sparse)
    theorem = number_after("well-connected from lambda", sparse)
    factor = float(re.search(r": ([\d.]+) times as large", sparse)[1])
    assert factor == pytest.approx(theorem / exact, rel=0.01)
    assert factor > 10
    assert "well-connected for no lambda" in dense
    assert 0.01 < number_after("recovered from lambda", dense) < 0.03


def test_partition_check_shows_a_set_whose_demands_do_not_fit(partition_output):
    pattern = r"([\d.]+) \(edges.*?\) \+ ([\d.]+) \(shift.*?\) \+ ([\d.]+) \(grad.*?weight ([\d.]+)"
    found = re.findall(pattern, partition_output)
    assert len(found) == 2
    for (*shares, capacity), table in zip(found, blocks(partition_output), strict=True):
        # Here the set is the tightest one, so that the ratio is the margin at lambda 0.1.
        ratio = float(capacity) / sum(map(float, shares))
        assert ratio == pytest.approx(float(table[2][5]), rel=0.01)
        assert ratio < 1


def test_partition_check_is_exact_on_the_star(partition_output):
    star = partition_output.split("Star with")[1]
    gradient = number_after("cluster's minimizer", star)
    assert number_after("well-connected above lambda", star) == pytest.approx(gradient, rel=1e-8)
    assert number_after("one cluster above", star) == pytest.approx(gradient, rel=1e-6)
    assert number_after("none below", star) == pytest.approx(gradient, rel=1e-6)
    assert re.findall(r"times that: (\d+) cluster", star) == ["2", "1"]


def test_least_recovered_lam_separates_recovered_from_not():
    example = load("partition_check")
    problem, planted = example.planted_problem(8, 0.8, 0.05, 0)
    lam = example.least_recovered_lam(problem, planted)
    spreads = []
    for factor in (0.9, 1.1):
        w = problem.with_lam(factor * lam).solve(rtol=1e-9).w
        spreads.append(max(np.ptp(w[planted == c], axis=0).max() for c in (0, 1)))
    assert spreads[0] > 1e-3 > 10 * spreads[1]


def test_graph_and_data_of_the_partition_check_are_the_planted_ones():
    problem, planted = load("partition_check").planted_problem(6, 1.0, 0.0, 3)
    assert isinstance(problem, gtv.GTVProblem)
    assert problem.graph.n_edges == 2 * 15
    np.testing.assert_array_equal(planted, [0] * 6 + [1] * 6)


# federated_states


def test_federated_states_certifies_every_run_and_beats_pooled_and_local(tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ("--splits", 1, "--rounds", 400, "-o", "gaps.png")
    out = run("federated_states", tmp_path, *arguments)
    best = number_after("GTV, solved in one place", out)
    assert best < 0.9 * number_after("each state alone", out)
    assert best < 0.6 * number_after("pooled", out)
    for name in ("FedADMM, all there", "FedADMM, 30 % absent", "FedADMM, and three crash"):
        assert number_after(name, out) == pytest.approx(best, abs=1e-4)
    assert out.count("1 of 1") == 3
    assert (tmp_path / "gaps.png").read_bytes().startswith(PNG_SIGNATURE)


# clustering_table


@pytest.mark.parametrize("real", [["iris", "wine"], *([["digits"]] if MULTIPLIER > 1 else [])])
def test_clustering_table_is_true(tmp_path, real):
    """Its figures are those of the methods, and it wins where its docstring says so."""
    pytest.importorskip("sklearn")
    out = run("clustering_table", tmp_path, "--real", *real, "--generated", "moons", "--seeds", 2)
    rows = {
        name: re.findall(r"(-?\d\.\d{3})(\*?) +[\d.]+ s", row)
        for name, row in re.findall(r"^(\w+(?:, \w+)?)  +(.*s)$", out, re.MULTILINE)
    }
    assert list(rows) == [f"{name}, {how}" for name in real for how in ("raw", "standardized")] + [
        "moons"
    ]
    for cells in rows.values():
        values = [float(value) for value, _ in cells]
        assert len(values) == 5
        assert [star == "*" for _, star in cells[:3]] == [v == max(values[:3]) for v in values[:3]]
    for name in real:
        best = [
            max(float(rows[f"{name}, {how}"][i][0]) for how in ("raw", "standardized"))
            for i in range(3)
        ]
        # k-means of two seeds is at the mercy of chance on wine.
        assert best[0] >= max(best[1:]) - 0.02
    example = load("clustering_table")
    X, y = example.GENERATED["moons"](2000)
    X2, y2 = example.GENERATED["moons"](2001)
    ward = np.mean(
        [example.scores([(X, y)], "Ward", 1)[0], example.scores([(X2, y2)], "Ward", 1)[0]]
    )
    assert float(rows["moons"][2][0]) == pytest.approx(ward, abs=6e-4)
    assert float(rows["moons"][0][0]) > 0.9
