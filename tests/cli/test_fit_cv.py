"""``gtvcvx fit --cv``: the table, the choice, the folds, and what goes with it."""

from __future__ import annotations

import re
import signal

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.model_selection import cross_validate

LAMS = [20.0, 2.0, 0.2, 0.02]
LAMS_TEXT = "20,2,0.2,0.02"


@pytest.fixture
def fit(files):
    """Arguments of a fit with cross-validation over four values of lambda."""

    def arguments(*extra, lams=LAMS_TEXT, cv="3"):
        plain = files.fit(*extra)
        at = plain.index("--lam")
        return [*plain[:at], "--cv", cv, *(["--lams", lams] if lams else []), *plain[at + 2 :]]

    return arguments


def table(text):
    """Rows of the table: numbers, and what marks them."""
    pattern = r"^ +([\d.e+-]+) +([\d.e+-]+) +([\d.e+-]+) +(\d+)((?: +\S+)*)$"
    return [
        (*map(float, row[:4]), row[4].split())
        for row in re.findall(pattern, text, flags=re.MULTILINE)
    ][: len(LAMS)]


@pytest.mark.parametrize("over", ["points", "nodes"])
def test_report_is_the_cross_validation_of_the_files(files, run, fit, over):
    outcome = run(*fit("--cv-over", over, "--seed", "4"))
    assert outcome.status == 0
    assert outcome.err == ""
    found = cross_validate(files.direct(), LAMS, cv=3, over=over, seed=4, rtol=0.9e-6)
    rows = table(outcome.out)
    assert [row[0] for row in rows] == LAMS
    assert [row[1] for row in rows] == pytest.approx(found.mean_errors, rel=1e-3)
    assert [row[2] for row in rows] == pytest.approx(found.std_errors, rel=1e-2)
    assert [row[3] for row in rows] == found.path.n_clusters.tolist()
    marked = [i for i, row in enumerate(rows) if "chosen" in row[4]]
    assert marked == [found.index_min]
    assert [i for i, row in enumerate(rows) if "least" in row[4]] == [found.index_min]
    assert [i for i, row in enumerate(rows) if "1se" in row[4]] == [found.index_1se]
    held = "20 data points" if over == "points" else "5 nodes"
    assert f"by 3-fold cross-validation, {held} held out once, rule min, seed 4" in outcome.out


def test_fit_is_that_of_the_choice(files, run, fit):
    outcome = run(*fit("--json"))
    assert outcome.status == 0
    chosen = outcome.json["cross_validation"]["lam"]
    assert outcome.json["problem"]["lam"] == chosen
    assert outcome.json["certificate"]["status"] == "CERTIFIED"
    assert gtv.GTVProblem.load(files.folder / "s.problem.npz").lam == chosen
    solution = gtv.Solution.load(files.folder / "s.npz")
    exact = files.direct().with_lam(chosen).solve("CLARABEL", rtol=1e-9)
    assert solution.value == pytest.approx(exact.value, abs=1e-6)
    assert solution.info["features"] == ["x1", "x2"]


def test_rule(run, fit):
    data = {rule: run(*fit("--rule", rule, "--json")).json for rule in ("min", "1se")}
    for rule, found in data.items():
        cv = found["cross_validation"]
        assert cv["rule"] == rule
        assert cv["lam"] == found["problem"]["lam"] == cv[f"lam_{rule}"]
    mean, error = (np.array(cv[name]) for name in ("mean_errors", "standard_errors"))
    least = int(np.argmin(mean))
    within = np.flatnonzero(mean <= mean[least] + error[least])
    assert cv["lam_1se"] == LAMS[within[0]] >= cv["lam_min"] == LAMS[least]


def test_json_has_it_all(run, fit):
    cv = run(*fit("--json")).json["cross_validation"]
    assert (cv["folds"], cv["over"], cv["seed"]) == (3, "points", 0)
    assert cv["lams"] == LAMS
    assert sum(cv["fold_sizes"]) == 20
    errors = np.array(cv["fold_errors"])
    assert errors.shape == (3, 4)
    mean = np.array(cv["fold_sizes"]) @ errors / 20
    assert cv["mean_errors"] == pytest.approx(mean.tolist(), rel=1e-12)
    assert max(cv["rel_gaps"]) <= 1e-6
    assert np.max(cv["fold_rel_gaps"]) <= 1e-6
    assert len(cv["n_clusters"]) == 4


def test_without_cross_validation_there_is_none(files, run):
    assert run(*files.fit("--json")).json["cross_validation"] is None


def test_folds_are_told_by_line_and_by_node(files, run, fit):
    """They are those of the file, whose rows need not be sorted by node."""
    rows = files.rows()
    shuffled = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    files.write("data.csv", ["place", "x1", "x2", "y"], shuffled)
    points = run(*fit("--json")).json["cross_validation"]
    assert [line for line, _ in points["fold_of"]] == list(range(2, 22))
    for node in "abcde":
        folds = [fold for (line, fold) in points["fold_of"] if shuffled[line - 2][0] == node]
        assert sorted(np.bincount(folds, minlength=3).tolist()) == [1, 1, 2]
    names = [row[0] for row in shuffled]
    order = np.argsort(["abcdef".index(name) for name in names], kind="stable")
    folds = np.array([fold for _, fold in points["fold_of"]])[order]
    graph = files.direct().graph
    data = np.array([row[1:] for row in shuffled], dtype=float)
    owner = np.array(["abcdef".index(name) for name in names])
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.from_rows(data[:, :2], data[:, 2], owner))
    again = cross_validate(problem, LAMS, cv=folds, rtol=0.9e-6)
    np.testing.assert_allclose(points["fold_errors"], again.fold_errors, rtol=1e-3)
    nodes = run(*fit("--json", "--cv-over", "nodes")).json["cross_validation"]
    assert [label for label, _ in nodes["fold_of"]] == list("abcdef")
    assert nodes["fold_of"][-1] == ["f", -1]


def test_grid_of_its_own(run, fit):
    arguments = ["--penalty", "l1", "--lambda-ratio", "0.1", "--json"]
    cv = run(*fit(*arguments, lams="5")).json["cross_validation"]
    assert len(cv["lams"]) == 5
    assert cv["lams"][-1] == pytest.approx(0.1 * cv["lams"][0])
    assert cv["n_clusters"][0] == 1


def test_least_error_at_the_end_of_the_grid(run, fit):
    outcome = run(*fit(lams="300,200"))
    assert "the smallest lambda has the least error: try a smaller --lambda-ratio" in outcome.out


def test_solutions_that_miss_the_gap_are_told(run, fit):
    outcome = run(*fit("--max-iter", "2"))
    assert outcome.status == 1
    assert re.search(r"\d+ of 12 solutions without the held-out data missed the gap", outcome.out)


def test_quiet(run, fit):
    outcome = run(*fit("--quiet"))
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


def test_interrupt_writes_nothing(files, run, fit, monkeypatch):
    solve, count = gtv.GTVProblem.solve, []

    def interrupted(self, *args, **options):
        count.append(self.lam)
        if len(count) == 6:
            signal.raise_signal(signal.SIGINT)
        return solve(self, *args, **options)

    monkeypatch.setattr(gtv.GTVProblem, "solve", interrupted)
    before = files.content()
    outcome = run(*fit())
    assert outcome.status == 1
    assert outcome.err == "gtvcvx fit: error: interrupted during cross-validation\n"
    assert files.content() == before


@pytest.mark.parametrize(
    ("extra", "options", "words"),
    [
        (["--lam", "1"], {}, ["--lam", "--cv"]),
        ([], {"cv": "1"}, ["--cv", "at least 2 folds", "'1'"]),
        ([], {"cv": "2.5"}, ["--cv", "positive integer", "'2.5'"]),
        ([], {"cv": "21"}, ["cv", "21 folds", "20"]),
        (["--cv-over", "nodes"], {"cv": "6"}, ["cv", "6 folds", "nodes with data"]),
        (["--cv-over", "edges"], {}, ["--cv-over", "'edges'"]),
        (["--rule", "max"], {}, ["--rule", "'max'"]),
        (["--seed", "-1"], {}, ["--seed", "'-1'"]),
        (["--seed", "x"], {}, ["--seed", "'x'"]),
        ([], {"lams": "1"}, ["--lams", "at least 2 values", "'1'"]),
        ([], {"lams": "1,0"}, ["--lams", "positive", "'0'"]),
        ([], {"lams": "1,"}, ["--lams", "positive", "''"]),
        ([], {"lams": "1,1"}, ["lams", "twice"]),
        (["--lambda-ratio", "0.1"], {}, ["--lambda-ratio", "--lams"]),
        (["--lambda-ratio", "1"], {"lams": "5"}, ["--lambda-ratio", "between 0 and 1"]),
        (["--atol", "-1"], {}, ["--atol", "'-1'"]),
        (["--penalty", "squared"], {"lams": None}, ["lams", "'squared'", "not a norm"]),
    ],
)
def test_bad_input(files, run, fit, extra, options, words):
    before = files.content()
    outcome = run(*fit(*extra, **options))
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err
    assert files.content() == before


@pytest.mark.parametrize(
    "extra",
    [
        ["--rule", "min"],
        ["--lams", "5"],
        ["--lambda-ratio", ".1"],
        ["--seed", "0"],
        ["--cv-over", "points"],
    ],
)
def test_options_without_effect(files, run, extra):
    outcome = run(*files.fit(*extra))
    assert outcome.status == 2
    assert f"{extra[0]}: only with --cv" in outcome.err


def test_neither_lambda_nor_folds(files, run):
    arguments = files.fit()
    at = arguments.index("--lam")
    outcome = run(*arguments[:at], *arguments[at + 2 :])
    assert outcome.status == 2
    assert "--lam --cv" in outcome.err


def test_a_time_limit_leaves_values_of_lambda_out_and_says_so(run, fit):
    outcome = run(*fit("--time-limit", "1e-9"))
    assert "the time limit has left out 3 smaller values of lambda" in outcome.out
    cv = run(*fit("--json", "--time-limit", "1e-9")).json["cross_validation"]
    assert cv["lams"] == LAMS[:1]
    assert np.array(cv["fold_errors"]).shape == (3, 1)


def test_a_tolerance_relative_to_the_objective_alone(run, fit):
    cv = run(*fit("--json", "--atol", "0")).json["cross_validation"]
    assert cv["lams"] == LAMS
    assert max(cv["rel_gaps"]) <= 1e-6
