"""``gtvcvx predict``: what the models say about rows, and what cannot be predicted."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import gtvcvx as gtv


def read(path):
    with path.open(newline="", encoding="utf-8") as handle:
        header, *rows = csv.reader(handle)
    return header, rows


@pytest.fixture
def predict(files, run):
    """Fit with options, then predict a file; outcome and rows."""

    def call(*fit, extra=(), data=None):
        fitted = run(*files.fit(*fit, "--quiet"))
        assert (fitted.status, fitted.err) == (0, "")
        output = files.folder / "p.csv"
        outcome = run(
            "predict", files.folder / "s.npz", data or files.data, "-o", output, *map(str, extra)
        )
        return outcome, read(output) if outcome.status == 0 else None

    return call


def linear(files, X, node):
    w = gtv.Solution.load(files.folder / "s.npz").w
    return np.einsum("nd,nd->n", X, w[node])


def test_values(files, predict):
    outcome, (header, rows) = predict()
    names, X, _, node = files.arrays()
    assert header == ["place", "prediction"]
    assert [row[0] for row in rows] == [names[i] for i in node]
    values = np.array([row[1] for row in rows], dtype=float)
    assert values == pytest.approx(linear(files, X, node), rel=1e-13)
    assert "20 rows at 5 nodes" in outcome.out


def test_intercept_scaling_and_order_of_columns(files, predict):
    """The file to predict is in raw units, has other columns, and no target."""
    _, X, y, node = files.arrays()
    rows = [[r, *x[::-1], "abcdef"[i]] for r, (i, x) in enumerate(zip(node, X, strict=True))]
    new = files.write("new.csv", ["id", "x2", "x1", "place"], rows)
    outcome, (_, rows) = predict("--standardize", "--intercept", data=new)
    values = np.array([row[1] for row in rows], dtype=float)
    original = gtv.Solution.load(files.folder / "s.npz").info["original"]["w"]
    expected = np.einsum("nd,nd->n", np.column_stack([X, np.ones(len(X))]), original[node])
    assert values == pytest.approx(expected, abs=1e-9)
    assert np.mean((values - y) ** 2) < 0.1 * np.var(y)
    assert outcome.err == ""


def test_a_node_without_data_is_predicted(files, predict):
    new = files.write("new.csv", ["place", "x1", "x2"], [["f", 1, 0], ["d", 1, 0]])
    _, (_, rows) = predict(data=new)
    assert float(rows[0][1]) == pytest.approx(float(rows[1][1]), abs=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("text", [None, ("no", "yes")])
def test_labels(files, predict, loss, text):
    names, X, y, node = files.arrays()
    y = y * np.where(np.arange(len(y)) % 4 == 1, -1, 1)
    low = 0 if loss == "logistic" else -1
    cells = [(text or (low, 1))[int(value > 0)] for value in y]
    rows = [[names[i], *x, c] for i, x, c in zip(node, X.tolist(), cells, strict=True)]
    files.write("data.csv", ["place", "x1", "x2", "y"], rows)
    outcome, (header, rows) = predict("--loss", loss, extra=["--score", "--json"])
    z = linear(files, X, node)
    assert header == ["place", {"logistic": "probability", "hinge": "score"}[loss], "label"]
    expected = 1 / (1 + np.exp(-z)) if loss == "logistic" else z
    assert [float(row[1]) for row in rows] == pytest.approx(expected.tolist(), rel=1e-9)
    label = [str((text or (low, 1))[int(value > 0)]) for value in z]
    assert [row[2] for row in rows] == label
    share = np.mean([a == str(b) for a, b in zip(label, cells, strict=True)])
    assert outcome.json["score"]["accuracy"] == share


@pytest.mark.parametrize("scaled", [[], ["--standardize", "--intercept"]])
def test_classes(files, predict, scaled):
    names, X, y, node = files.arrays()
    cells = [("low", "middle", "up")[k] for k in np.digitize(y, [-10, 20])]
    rows = [[names[i], *x, c] for i, x, c in zip(node, X.tolist(), cells, strict=True)]
    files.write("data.csv", ["place", "x1", "x2", "y"], rows)
    options = ["--loss", "multinomial", "--ridge", "0.1", *scaled]
    outcome, (header, rows) = predict(*options, extra=["--score", "--json"])
    assert header == ["place", *(f"probability ({c})" for c in ("low", "middle", "up")), "label"]
    info = gtv.Solution.load(files.folder / "s.npz").info
    w = info["original"]["w"] if scaled else gtv.Solution.load(files.folder / "s.npz").w
    raw = np.column_stack([X, np.ones(len(X))]) if scaled else X
    scores = np.einsum("np,npk->nk", raw, np.asarray(w)[node].reshape(*raw.shape, 3))
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    shares = np.array([row[1:4] for row in rows], dtype=float)
    assert shares == pytest.approx(expected, abs=1e-9)
    assert [row[4] for row in rows] == [("low", "middle", "up")[k] for k in shares.argmax(axis=1)]
    right = np.mean([row[4] == cell for row, cell in zip(rows, cells, strict=True)])
    assert outcome.json["score"]["accuracy"] == right > 0.5
    own = shares[np.arange(len(cells)), [("low", "middle", "up").index(c) for c in cells]]
    assert outcome.json["score"]["mean_loss"] == pytest.approx(-np.log(own).mean())
    new = files.write("new.csv", ["place", "x1", "x2", "y"], [["a", 1, 1, "other"]])
    outcome, _ = predict(*options, data=new, extra=["--score"])
    assert (outcome.status, "line 2" in outcome.err, "'other'" in outcome.err) == (2, True, True)


def test_labels_of_the_fit_are_those_of_the_score(files, predict):
    """A file with one of the two labels, or with a third, does not name them anew."""
    names, X, _, node = files.arrays()
    cells = ["yes" if k % 3 else "no" for k in range(len(node))]
    rows = [[names[i], *x, c] for i, x, c in zip(node, X.tolist(), cells, strict=True)]
    files.write("data.csv", ["place", "x1", "x2", "y"], rows)
    new = files.write("new.csv", ["place", "x1", "x2", "y"], [["a", 1, 1, "yes"], ["b", 1, 1, ""]])
    outcome, _ = predict("--loss", "logistic", data=new, extra=["--score", "--json"])
    p = float(read(files.folder / "p.csv")[1][0][1])
    assert outcome.json["score"]["rows"] == 1
    assert outcome.json["score"]["mean_loss"] == pytest.approx(-np.log(p))
    files.write("new.csv", ["place", "x1", "x2", "y"], [["a", 1, 1, "perhaps"]])
    outcome, _ = predict("--loss", "logistic", data=new, extra=["--score"])
    assert (outcome.status, "line 2" in outcome.err, "'perhaps'" in outcome.err) == (2, True, True)


def test_rates(files, predict):
    names, X, y, node = files.arrays()
    X, y = X / [1, 30], np.floor(np.abs(y) / 20)
    rows = [[names[i], *x, c] for i, x, c in zip(node, X.tolist(), y.tolist(), strict=True)]
    files.write("data.csv", ["place", "x1", "x2", "y"], rows)
    outcome, (header, rows) = predict("--loss", "poisson", extra=["--score"])
    assert header == ["place", "rate"]
    values = [float(row[1]) for row in rows]
    assert values == pytest.approx(np.exp(linear(files, X, node)).tolist(), rel=1e-12)
    assert "mean loss" in outcome.out
    far = files.write("far.csv", ["place", "x1", "x2"], [["a", 1e9, 1e9], ["a", -1e9, -1e9]])
    outcome, _ = predict("--loss", "poisson", data=far)
    assert outcome.status == 2
    assert "the rate is too large" in outcome.err


def test_score_is_that_of_the_fit(files, run, predict):
    told = run(*files.fit("--json")).json["mean_squared_error"]
    outcome, _ = predict(extra=["--score", "--json"])
    assert outcome.json["score"]["mean_squared_error"] == pytest.approx(told, rel=1e-12)
    assert outcome.json["score"]["rows"] == 20


@pytest.mark.parametrize(
    ("text", "extra", "words"),
    [
        ("place,x1,x2\na,1,2\nz,1,2\n", [], ["new.csv, line 3", "'z'", "not in the solution"]),
        ("place,x1\na,1\n", [], ["new.csv, line 1", "'x2'"]),
        ("place,x1,x2\na,1,\n", [], ["new.csv, line 2", "'x2'", "empty"]),
        ("place,x1,x2\n", [], ["new.csv", "no row"]),
        ("node,x1,x2\na,1,2\n", [], ["new.csv, line 1", "'place'"]),
        ("place,x1,x2\na,1,2\n", ["--score"], ["'y'", "(target)"]),
        ("place,x1,x2\na,1,2\n", ["--target", "y"], ["--target", "--score"]),
        ("place,x1,x2\na,1,2\n", ["-o", "{}/s.npz"], ["--output", "SOLUTION"]),
        ("place,x1,x2\na,1e300,1e300\na,1e308,1e308\n", [], ["line 3", "too large"]),
    ],
)
def test_bad_input(fitted, run, text, extra, words):
    new = fitted.folder / "new.csv"
    new.write_text(text)
    before = fitted.content()
    output = ["-o", fitted.folder / "p.csv", *(word.format(fitted.folder) for word in extra)]
    outcome = run("predict", fitted.folder / "s.npz", new, *output)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert all(word in outcome.err for word in words)
    assert fitted.content() == before


def test_node_column_of_another_name(fitted, run):
    new = fitted.write("new.csv", ["station", "x1", "x2"], [["a", 1, 2]])
    arguments = ["predict", fitted.folder / "s.npz", new, "-o", fitted.folder / "p.csv"]
    assert run(*arguments, "--node", "station").status == 0
    assert read(fitted.folder / "p.csv")[0] == ["station", "prediction"]


def test_solutions_that_predict_nothing(fitted, run):
    path = fitted.folder / "bad.npz"
    solution = gtv.Solution.load(fitted.folder / "s.npz")
    full = dict(solution.info)
    for info, words in [
        ({}, "does not say which columns"),
        ({**full, "features": ["x1"]}, "damaged"),
        ({**full, "loss": {**full["loss"], "name": "point"}}, "predicts no targets"),
        ({**full, "loss": {"name": "cubic"}}, "'cubic'"),
        ({**full, "columns": None}, "--node"),
    ]:
        solution.info = info
        solution.save(path)
        outcome = run("predict", path, fitted.data, "-o", fitted.folder / "p.csv")
        assert (outcome.status, words in outcome.err) == (2, True)
    # files of earlier versions say features and scaling only
    solution.info = {key: full[key] for key in ("features", "intercept", "standardized")}
    solution.save(path)
    outcome = run("predict", path, fitted.data, "-o", fitted.folder / "p.csv", "--node", "place")
    assert outcome.status == 0
