"""``gtvcvx fit --loss``: every loss as in Python, its targets, its regularizers, its units."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.cli import _arguments
from gtvcvx.losses.batched._terms import MULTINOMIAL, ROW_KINDS

LOSSES = {
    "logistic": (gtv.LogisticLoss, {}),
    "multinomial": (gtv.MultinomialLogisticLoss, {}),
    "poisson": (gtv.PoissonLoss, {}),
    "huber": (gtv.HuberLoss, {"delta": 0.7}),
    "pseudohuber": (gtv.PseudoHuberLoss, {"delta": 0.7}),
    "absolute": (gtv.AbsoluteLoss, {}),
    "quantile": (gtv.QuantileLoss, {"level": 0.3}),
    "hinge": (gtv.HingeLoss, {}),
    "lasso": (gtv.LassoLoss, {"kappa": 0.1}),
    "squared": (gtv.SquaredLoss, {}),
}
HEADER = ["place", "x1", "x2", "y"]


def targets(loss: str, y: np.ndarray) -> np.ndarray:
    """Turn numbers into targets of the loss, which no model fits without error."""
    if loss in ("logistic", "hinge"):
        y = y * np.where(np.arange(len(y)) % 4 == 1, -1, 1)
        return np.where(y > 0, 1, 0 if loss == "logistic" else -1)
    if loss == "multinomial":
        return np.digitize(y, [-10, 20]) + np.arange(len(y)) // 3 % 2
    return np.floor(np.abs(y) / 20) if loss == "poisson" else y


@pytest.fixture
def of_loss(files):
    """Write the small problem with targets of a loss and x2 of usual size; arguments of its fit."""

    def arguments(loss, *extra, text=None):
        _, X, y, node = files.arrays()
        X, values = X / [1.0, 30.0], targets(loss, y)
        index = values if loss == "multinomial" else (values > 0).astype(int)
        cells = [text[k] for k in index] if text else values.tolist()
        names = "abcdef"
        rows = [[names[i], *x, c] for i, x, c in zip(node, X.tolist(), cells, strict=True)]
        files.write("data.csv", HEADER, rows)
        options = [f"--{k}={x}" for k, x in LOSSES[loss][1].items()]
        return files.fit("--loss", loss, *options, *extra), X, values, node

    return arguments


def direct(files, loss, X, y, node, **more):
    kind, options = LOSSES[loss]
    names = list("abcdef")
    ends = [[names.index(i), names.index(j)] for i, j, _ in files.edge_rows]
    graph = gtv.EmpiricalGraph(6, ends, [a for *_, a in files.edge_rows], names)
    return gtv.GTVProblem(graph, kind.from_rows(X, y, node, 6, **options, **more), "l2", lam=0.2)


def test_every_loss_of_rows_is_there():
    assert set(LOSSES) == set(_arguments.LOSSES) - {"point"} == {*ROW_KINDS, MULTINOMIAL, "lasso"}


@pytest.mark.parametrize("loss", LOSSES)
def test_solves_what_python_solves(files, run, of_loss, loss):
    arguments, X, y, node = of_loss(loss, "--json")
    outcome = run(*arguments)
    assert (outcome.status, outcome.err) == (0, "")
    expected = direct(files, loss, X, y, node).solve(rtol=1e-7, verbose=False)
    assert outcome.json["solver"]["value"] == pytest.approx(expected.value, abs=3e-6)
    assert outcome.json["certificate"]["status"] == "CERTIFIED"
    assert outcome.json["data"]["loss"]["name"] == loss
    solution = gtv.Solution.load(files.folder / "s.npz")
    assert solution.info["loss"]["name"] == loss
    assert solution.info["columns"] == {"node": "place", "target": "y", "features": ["x1", "x2"]}
    # the mean over all rows of what the objective averages node by node: four rows each
    kind, options = LOSSES[loss]
    kind, options = (gtv.SquaredLoss, {}) if loss == "lasso" else (kind, options)
    own = kind.from_rows(X, y, node, 6, **options).value(solution.w).sum() / 5
    assert outcome.json["mean_loss"] == pytest.approx(own, rel=1e-10)


def test_regularizers_spare_the_intercept(files, run, of_loss):
    arguments, X, y, node = of_loss("logistic", "--intercept", "--ridge", "0.3", "--json")
    outcome = run(*arguments)
    ones = np.column_stack([X, np.ones(len(X))])
    expected = direct(files, "logistic", ones, y, node, ridge=0.3, intercept=2)
    solution = expected.solve(rtol=1e-7, verbose=False)
    assert outcome.json["solver"]["value"] == pytest.approx(solution.value, abs=3e-6)
    arguments, X, y, node = of_loss("lasso", "--intercept", "--json")
    outcome = run(*arguments)
    expected = direct(files, "lasso", ones, y, node, intercept=2).solve(rtol=1e-7, verbose=False)
    assert outcome.json["solver"]["value"] == pytest.approx(expected.value, abs=3e-6)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_two_texts_are_labels_in_alphabetical_order(files, run, of_loss, loss):
    arguments, X, y, node = of_loss(loss, text=["no, never", "yes"])
    outcome = run(*arguments)
    assert outcome.status == 0
    low = {"logistic": 0, "hinge": -1}[loss]
    assert f"Labels      no, never = {low}, yes = 1" in outcome.out
    assert "accuracy of the data 0." in outcome.out
    solution = gtv.Solution.load(files.folder / "s.npz")
    assert solution.info["labels"] == ["no, never", "yes"]
    expected = direct(files, loss, X, y, node).solve(rtol=1e-7, verbose=False)
    assert solution.value == pytest.approx(expected.value, abs=3e-6)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        (["9", "10", "-2", "4"], [2, 3, 0, 1]),
        (["red", "blue", "green", "a, b"], [3, 1, 2, 0]),
    ],
)
def test_labels_of_classes_are_numbered_in_their_order(files, run, of_loss, text, order):
    arguments, X, y, node = of_loss("multinomial", "--ridge", "0.2", "--intercept", text=text)
    outcome = run(*arguments)
    assert (outcome.status, outcome.err) == (0, "")
    names = [text[k] for k in order]
    said = ", ".join(f"{name} = {k}" for k, name in enumerate(names))
    assert f"Labels      {said}\n" in outcome.out
    assert "Features    x1, x2, intercept\n" in outcome.out
    assert "accuracy of the data 0." in outcome.out
    solution = gtv.Solution.load(files.folder / "s.npz")
    assert solution.info["labels"] == names
    assert solution.info["features"][:5] == [
        *(f"x1 ({name})" for name in names),
        f"x2 ({names[0]})",
    ]
    ones = np.column_stack([X, np.ones(len(X))])
    ranks = np.argsort(order)[y]
    expected = direct(files, "multinomial", ones, ranks, node, ridge=0.2, intercept=2)
    value = expected.solve(rtol=1e-7, verbose=False).value
    assert solution.value == pytest.approx(value, abs=3e-6)


def test_classes_in_the_units_of_the_file(files, run, of_loss):
    """Scores by the converted coefficients from the raw columns are those of the scaled model."""
    options = ("--standardize", "--intercept", "--ridge", "0.1", "--coefficients")
    arguments, X, _, node = of_loss("multinomial", *options, files.folder / "w.csv")
    assert run(*arguments).status == 0
    solution = gtv.Solution.load(files.folder / "s.npz")
    scaling, original = solution.info["standardized"], solution.info["original"]
    Z = np.column_stack([(X - scaling["mean"]) / scaling["scale"], np.ones(len(X))])
    raw = np.column_stack([X, np.ones(len(X))])
    scores = [
        np.einsum("np,npk->nk", A, np.asarray(w)[node].reshape(len(A), 3, -1))
        for A, w in ((Z, solution.w), (raw, original["w"]))
    ]
    assert scores[1] == pytest.approx(scores[0], abs=1e-9)
    assert original["features"] == solution.info["features"]


@pytest.mark.parametrize("loss", ["logistic", "multinomial", "poisson", "huber", "hinge", "lasso"])
def test_cross_validation(run, of_loss, loss):
    arguments, *_ = of_loss(loss, "--json")
    at = arguments.index("--lam")
    outcome = run(*arguments[:at], "--cv", "2", "--lams", "1,.1", *arguments[at + 2 :])
    assert outcome.status == 0
    cv = outcome.json["cross_validation"]
    assert cv["lams"] == [1, 0.1]
    assert np.isfinite(cv["fold_errors"]).all()


@pytest.mark.parametrize("intercept", [[], ["--intercept"]])
def test_coefficients_in_the_units_of_the_file(files, run, intercept):
    """Predictions by them from the raw columns are those of the scaled model."""
    table = files.folder / "w.csv"
    outcome = run(*files.fit("--standardize", *intercept, "--coefficients", table, "--json"))
    solution = gtv.Solution.load(files.folder / "s.npz")
    original = solution.info["original"]
    assert original["features"] == ["x1", "x2", "intercept"]
    _, X, _, node = files.arrays()
    scaling = solution.info["standardized"]
    Z = (X - scaling["mean"]) / scaling["scale"]
    if intercept:
        Z = np.column_stack([Z, np.ones(len(Z))])
    raw = np.column_stack([X, np.ones(len(X))])
    expected = np.einsum("nd,nd->n", Z, solution.w[node])
    assert np.einsum("nd,nd->n", raw, original["w"][node]) == pytest.approx(expected, abs=1e-9)
    with table.open(newline="") as handle:
        header, *rows = csv.reader(handle)
    assert header[-3:] == ["x1_original", "x2_original", "intercept_original"]
    assert np.array_equal(np.array([row[-3:] for row in rows], dtype=float), original["w"])
    told = outcome.json["original_units"]
    members = [list("abcdef").index(node) for node in outcome.json["clusters"][1]["nodes"]]
    mean = original["w"][members].mean(axis=0)
    assert told["coefficients"][1] == pytest.approx(mean.tolist())
    assert "units of the file" in run(*files.fit("--standardize", *intercept)).out


def test_points(files, run):
    """Parameters follow the rows; a node without a row follows its neighbours."""
    rows = [[node, k, 10.0 * (k > 2)] for k, node in enumerate("abcde")]
    files.write("data.csv", ["place", "x", "z"], rows)
    arguments = files.fit("--loss", "point", "--json")
    at = arguments.index("--target")
    del arguments[at : at + 2]
    outcome = run(*arguments)
    assert outcome.status == 0
    w = gtv.Solution.load(files.folder / "s.npz").w
    a = np.array([row[1:] for row in rows])
    assert outcome.json["mean_squared_error"] == pytest.approx(((w[:5] - a) ** 2).sum() / 5)
    assert np.abs(w[5] - w[4]).max() < 6
    at = arguments.index("--lam")
    by_nodes = run(*arguments[:at], "--cv", "2", "--lams", "1,.1", *arguments[at + 2 :])
    assert by_nodes.json["cross_validation"]["over"] == "nodes"
    scaled = run(*arguments, "--standardize")
    original = gtv.Solution.load(files.folder / "s.npz").info["original"]
    assert scaled.status == 0
    assert original["features"] == ["x", "z"]
    assert original["w"].min() >= 0
    files.write("data.csv", ["place", "x", "z"], [*rows, ["b", 1, 1]])
    assert "line 7: node 'b' has a row already, on line 3" in run(*arguments).err


@pytest.mark.parametrize(
    ("loss", "cells", "words"),
    [
        ("logistic", ["0", "1", "2"], ["line 4", "'y'", "0 or 1", "'2'"]),
        ("logistic", ["0", "1", "yes"], ["line 4", "0 or 1", "'yes'"]),
        ("logistic", ["no", "yes", "maybe"], ["line 4", "third label", "'maybe'"]),
        ("logistic", ["no", "1", "yes"], ["line 3", "'1'", "'no'"]),
        ("logistic", ["no", "NA", "yes"], ["line 3", "'NA'", "missing", "empty"]),
        ("logistic", ["no", "no", ""], ["one label only", "'no'"]),
        ("hinge", ["1", "0", "1"], ["line 3", "-1 or 1", "'0'"]),
        ("multinomial", ["0", "1", "1.5"], ["line 4", "an integer or a text", "'1.5'"]),
        ("multinomial", ["a", "b", "3"], ["line 4", "'3'", "'a'", "all are integers"]),
        ("multinomial", ["a", "NA", "b"], ["line 3", "'NA'", "missing", "empty"]),
        ("multinomial", ["7", "7", ""], ["one label only", "'7'"]),
        ("poisson", ["0", "3", "-1"], ["line 4", "count", "'-1'"]),
        ("huber", ["0", "x", "1"], ["line 3", "'x'", "not a number"]),
    ],
)
def test_targets_are_checked_by_line(files, run, loss, cells, words):
    files.write("data.csv", HEADER, [["abc"[k], 1, k, cell] for k, cell in enumerate(cells)])
    extra = [f"--{name}={value}" for name, value in LOSSES[loss][1].items()]
    before = files.content()
    outcome = run(*files.fit("--loss", loss, *extra))
    assert (outcome.status, outcome.out) == (2, "")
    assert all(word in outcome.err for word in ["data.csv", *words])
    assert files.content() == before


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--loss", "cubic"], ["--loss", "'cubic'", "huber"]),
        (["--loss", "huber"], ["--delta", "huber needs it"]),
        (["--loss", "quantile"], ["--level"]),
        (["--loss", "quantile", "--level", "1"], ["--level", "between 0 and 1"]),
        (["--loss", "lasso"], ["--kappa"]),
        (["--delta", "1"], ["--delta", "squared", "huber, pseudohuber"]),
        (["--loss", "logistic", "--level", ".5"], ["--level", "logistic", "quantile"]),
        (["--ridge", "-1"], ["--ridge", "'-1'"]),
        (["--loss", "multinomial", "--kappa", "1"], ["--kappa", "multinomial"]),
        (["--loss", "point"], ["--target", "point"]),
        (["--loss", "point", "--ridge", "1"], ["--ridge", "point"]),
    ],
)
def test_options(files, run, extra, words):
    before = files.content()
    outcome = run(*files.fit(*extra))
    assert (outcome.status, outcome.out) == (2, "")
    assert all(word in outcome.err for word in words)
    assert files.content() == before


def test_a_target_is_needed(files, run):
    arguments = files.fit()
    at = arguments.index("--target")
    outcome = run(*arguments[:at], *arguments[at + 2 :])
    assert outcome.status == 2
    assert "--target: the loss squared needs a target column" in outcome.err


def test_a_table_in_raw_units_with_few_rows(files, run):
    """Three rows, one of them at a node of its own, in dollars and in years."""
    files.write(
        "data.csv",
        ["place", "income", "year", "y"],
        [["a", 51234.5, 1969, 3], ["d", 7e4, 2009, 5], ["d", 7e4, 2009, 4]],
    )
    outcome = run(*files.fit("--standardize", "--intercept", "--loss", "huber", "--delta", "1"))
    assert outcome.status == 0
    assert "CERTIFIED" in outcome.out
