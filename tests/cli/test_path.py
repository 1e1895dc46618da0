"""``gtvcvx path``: the table, the file and the picture of a lambda path."""

from __future__ import annotations

import csv
import signal

import numpy as np
import pytest

import gtvcvx as gtv


@pytest.fixture
def path(files, run):
    def call(*extra, output="p.npz", lams="9,.9,.2"):
        plain = files.fit(output=output)
        at = plain.index("--lam")
        arguments = ["path", *plain[1:at], *plain[at + 2 :]]
        return run(*arguments, *(["--lams", lams] if lams else []), *map(str, extra))

    return call


def test_table_is_the_path(files, path):
    outcome = path("--json")
    assert (outcome.status, outcome.err) == (0, "")
    found = gtv.LambdaPath.load(files.folder / "p.npz")
    expected = gtv.lambda_path(files.direct(), [9, 0.9, 0.2])
    rows = outcome.json["rows"]
    assert [row["lambda"] for row in rows] == found.lams.tolist() == [9, 0.9, 0.2]
    assert [row["clusters"] for row in rows] == expected.n_clusters.tolist()
    assert [row["relative gap"] for row in rows] == found.rel_gaps.tolist()
    assert [row["objective"] for row in rows] == pytest.approx(expected.values, rel=1e-5)
    _, X, y, node = files.arrays()
    for row, solution in zip(rows, found, strict=True):
        error = np.mean((np.einsum("nd,nd->n", X, solution.w[node]) - y) ** 2)
        assert row["mean squared error"] == pytest.approx(error)
    assert outcome.json["path"]["status"] == "complete"


def test_table_as_csv_and_default_grid(files, path):
    outcome = path(
        "--intercept", "--standardize", "--lambda-ratio", ".1", output="p.csv", lams=None
    )
    assert outcome.status == 0
    with (files.folder / "p.csv").open(newline="") as handle:
        header, *rows = csv.reader(handle)
    names = ["lambda", "clusters", "mean squared error", "objective", "relative gap"]
    assert header == names
    assert len(rows) == 20
    assert float(rows[-1][0]) == pytest.approx(0.1 * float(rows[0][0]))
    assert rows[0][1] == "1"
    assert all(f"{float(row[0]):.6g}" in outcome.out for row in rows)


def test_other_losses_and_picture(files, path):
    pytest.importorskip("matplotlib")
    picture = files.folder / "p.svg"
    outcome = path("--loss", "huber", "--delta", "1", "--picture", picture)
    assert outcome.status == 0
    assert "loss huber, delta 1; penalty l2\n" in outcome.out
    assert "mean loss" in outcome.out
    assert picture.read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_what_is_not_reached_is_not_proved(files, path, monkeypatch):
    outcome = path("--max-iter", "1", "--solver", "PDHG")
    assert outcome.status == 1
    assert "missed the gap, rtol 1e-06" in outcome.out
    outcome = path("--time-limit", "1e-9")
    assert outcome.status == 1
    assert "the time limit has ended the path, 2 smaller values of lambda left out" in outcome.out
    solve = gtv.GTVProblem.solve

    def interrupted(self, *args, **options):
        if self.lam < 1:
            signal.raise_signal(signal.SIGINT)
        return solve(self, *args, **options)

    monkeypatch.setattr(gtv.GTVProblem, "solve", interrupted)
    outcome = path()
    assert outcome.status == 1
    assert "Ctrl-C has ended the path" in outcome.out
    assert 1 <= len(gtv.LambdaPath.load(files.folder / "p.npz")) < 3


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--lams", "1"], ["--lams", "at least 2"]),
        (["--lambda-ratio", ".1"], ["--lambda-ratio", "--lams"]),
        (["--penalty", "squared", "--lams", "5"], ["'squared'", "not a norm"]),
        (["--loss", "quantile"], ["--level"]),
        (["--picture", "p.bmp"], ["--picture", ".png"]),
        (["-o", "{}/data.csv"], ["--output", "--data"]),
        (["--lam", "1"], ["--lam"]),
    ],
)
def test_bad_input(files, path, extra, words):
    before = files.content()
    outcome = path(*(word.format(files.folder) for word in extra))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert all(word in outcome.err for word in words)
    assert files.content() == before
