"""Bad input: one line on standard error that names it, status 2, and nothing written."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

import gtvcvx as gtv

GOOD_EDGES = "from,to,weight\na,b,1\nb,c,1\na,c,2\nc,d,.01\nd,e,1\ne,f,1\nd,f,1\n"


def refused(outcome, *words):
    """One line of error that holds the words, no output, status 2."""
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("gtvcvx ")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["edges.csv", "empty"]),
        ("from,to\n", ["edges.csv", "no edge"]),
        ("a,b,1\nb,b,1\n", ["edges.csv, line 2", "'b'", "itself"]),
        ("a,b,1\nb,c,-1\n", ["edges.csv, line 2", "weight", "'-1'"]),
        ("a,b,1\nb,c,0\n", ["edges.csv, line 2", "positive"]),
        ("a,b,1\nb,c,nan\n", ["edges.csv, line 2", "'nan'"]),
        ("a,b,1\nb,c,inf\n", ["edges.csv, line 2", "'inf'"]),
        ("a,b,1\nb,c,heavy\n", ["edges.csv, line 2", "'heavy'"]),
        ("a,b,1\nb,c\n", ["edges.csv, line 2", "3 cells"]),
        ("a,b,1\nb,,1\n", ["edges.csv, line 2", "empty"]),
        ("a\nb\n", ["edges.csv, line 1", "2 or 3 cells"]),
        ("a,b,1e300\nb,a,1e308\na,b,1.7e308\n", ["parallel", "infinity"]),
    ],
)
def test_edges(files, run, text, words):
    files.edges.write_text(text)
    before = files.content()
    refused(run(*files.fit()), *words)
    assert files.content() == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["data.csv", "empty"]),
        ("place,x1,y\n", ["data.csv", "'y'"]),
        ("place,x1,y\na,1,\n", ["data.csv", "no row", "'y'"]),
        ("place,y\na,1\n", ["data.csv", "no feature column", "--intercept"]),
        ("place,x1,x1,y\na,1,2,3\n", ["data.csv, line 1", "'x1'", "twice"]),
        ("node,x1,y\na,1,2\n", ["data.csv, line 1", "'place'", "(node)"]),
        ("place,x1,z\na,1,2\n", ["data.csv, line 1", "'y'", "(target)"]),
        ("place;x1;y\na;1;2,5\n", ["data.csv, line 2", "'y'", "'2,5' has a decimal comma"]),
        ("place,x1,y,\na,1,2,\n", ["data.csv, line 1", "no name", "end in a separator"]),
        ("place,x1,y\na,one,2\n", ["data.csv, line 2", "'x1'", "'one'"]),
        ("place,x1,y\na,1,2\nb,NaN,2\n", ["data.csv, line 3", "'x1'", "'NaN'"]),
        ("place,x1,y\na,1,inf\n", ["data.csv, line 2", "'y'", "'inf'"]),
        ("place,x1,y\na,,2\n", ["data.csv, line 2", "'x1'", "empty"]),
        ("place,x1,y\na,1,2,3\n", ["data.csv, line 2", "3 cells"]),
        ("place,x1,y\na,1,2\nz,1,2\n", ["data.csv, line 3", "'z'", "not in the graph"]),
        ("place,x1,y\na,1,2\nb,1,1e200\n", ["data.csv, line 3", "'y'", "1e+200", "too large"]),
        ("place,x1,y\na,1e300,2\n", ["data.csv, line 2", "'x1'", "too large"]),
    ],
)
def test_data(files, run, text, words):
    files.data.write_text(text)
    before = files.content()
    refused(run(*files.fit()), *words)
    assert files.content() == before


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--lam", "0"], ["--lam", "positive", "'0'"]),
        (["--lam", "-1"], ["--lam"]),
        (["--lam", "nan"], ["--lam", "'nan'"]),
        (["--lam", "inf"], ["--lam", "'inf'"]),
        (["--lam", "much"], ["--lam", "'much'"]),
        (["--lam", "1e308"], ["lam", "weight", "inf"]),
        (["--rtol", "0"], ["--rtol"]),
        (["--max-iter", "0"], ["--max-iter", "positive integer"]),
        (["--max-iter", "1.5"], ["--max-iter", "'1.5'"]),
        (["--time-limit", "-3"], ["--time-limit"]),
        (["--penalty", "l3"], ["--penalty", "l2", "'l3'"]),
        (["--penalty", "pnorm:0.5"], ["--penalty", "pnorm:0.5"]),
        (["--penalty", "pnorm:x"], ["--penalty", "pnorm:x"]),
        (["--penalty", "pnorm:nan"], ["--penalty", "pnorm:nan"]),
        (["--solver", "SIMPLEX"], ["'SIMPLEX'", "CLARABEL"]),
        (["--solver", "HIGHS", "--rtol", "1e-6"], ["rtol", "HIGHS"]),
        (["--node", "x9"], ["data.csv, line 1", "'x9'"]),
        (["--target", "place"], ["target", "'place'"]),
        (["--features", "x1", "x7"], ["'x7'"]),
        (["--features", "x1", "x1"], ["'x1'", "twice"]),
        (["--features", "y"], ["'y'"]),
        (["--edges", "missing.csv"], ["missing.csv", "no such file"]),
        (["--data", "missing.csv"], ["missing.csv", "no such file"]),
        (["--pen", "l1"], ["--pen"]),
        (["--cv", "5"], ["--cv"]),
        (["surplus"], ["surplus"]),
    ],
)
def test_arguments_of_fit(files, run, extra, words):
    before = files.content()
    refused(run(*files.fit(*extra)), *words)
    assert files.content() == before


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["-o", "{}/nowhere/s.npz"], ["--output", "nowhere", "no folder"]),
        (["-o", "{}"], ["--output", "not a regular file"]),
        (["-o", "{}/folder/"], ["--output", "file name"]),
        (["--clusters", "{}/new/"], ["--clusters", "file name"]),
        (["-o", ""], ["--output", "file name"]),
        (["-o", "{}/data.csv"], ["--output", "data.csv", "--data"]),
        (["--problem", "{}/edges.csv"], ["--problem", "edges.csv", "--edges"]),
        (["--problem", "{}/s.npz"], ["--problem", "--output"]),
        (["--coefficients", "{}/s.npz"], ["--coefficients", "--output"]),
        (["--clusters", "{}/link.csv"], ["--clusters", "link.csv", "--data"]),
        (["--clusters", "{}/nowhere/c.csv"], ["--clusters", "nowhere"]),
    ],
)
def test_outputs_of_fit(files, run, extra, words):
    (files.folder / "folder").mkdir()
    (files.folder / "link.csv").symlink_to(files.data)
    before = files.content()
    refused(run(*files.fit(*(word.format(files.folder) for word in extra))), *words)
    assert files.content() == before


def test_existing_output_survives_bad_input(fitted, run):
    fitted.edges.write_text("a,a,1\n")
    before = fitted.content()
    refused(run(*fitted.fit()), "itself")
    assert fitted.content() == before


def test_intercept_that_is_there_already(files, run):
    files.data.write_text("place,intercept,y\na,1,2\nb,1,3\n")
    refused(run(*files.fit("--intercept")), "--intercept", "'intercept'")


def test_columns_that_cannot_be_scaled(files, run):
    files.data.write_text("place,x1,y\na,1e-200,2\nb,2e-200,3\n")
    refused(run(*files.fit("--standardize")), "--standardize", "'x1'")


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def member(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def structured(**entries):
    return npz(json=np.array(json.dumps(entries)))


PROBLEM = {"schema": "gtv-problem/1", "n_nodes": 2, "dim": 1, "edges": [[0, 1]], "lam": 1.0}
PROBLEM |= {"weights": [1.0], "penalty": {"kind": "l2"}, "terms": [], "nodes": ["a", "b"]}

DAMAGED = {
    "empty": b"",
    "text": b"no archive",
    "truncated": structured(**PROBLEM)[:-30],
    "array": npy(np.zeros(3)),
    "pickle": npy(np.array([{"a": 1}], dtype=object)),
    "pickle in npz": member("json.npy", npy(np.array([{}], dtype=object))),
    "no json": npz(a0=np.zeros(2)),
    "not json": npz(json=np.array("{")),
    "deep json": npz(json=np.array("[" * 100_000)),
    "list": npz(json=np.array("[]")),
    "other schema": structured(schema="gtv-problem/999"),
    "only schema": structured(schema="gtv-problem/1"),
    "array that is missing": structured(**{**PROBLEM, "edges": {"array": "a7"}}),
    "array that is a list": structured(**{**PROBLEM, "edges": {"array": ["a7"]}}),
    "text for edges": structured(**{**PROBLEM, "edges": "none"}),
    "self-loop": structured(**{**PROBLEM, "edges": [[1, 1]]}),
    "negative weight": structured(**{**PROBLEM, "weights": [-1.0]}),
    "huge weight": structured(**{**PROBLEM, "weights": [10**400]}),
    "lam 0": structured(**{**PROBLEM, "lam": 0.0}),
    "lam infinite": structured(**{**PROBLEM, "lam": {"float": "inf"}}),
    "penalty": structured(**{**PROBLEM, "penalty": {"kind": "l7"}}),
    "penalty null": structured(**{**PROBLEM, "penalty": None}),
    "terms": structured(**{**PROBLEM, "terms": [{"kind": "squared"}]}),
    "nodes": structured(**{**PROBLEM, "nodes": ["a", "a"]}),
    "count": structured(**{**PROBLEM, "n_nodes": -2}),
    "huge count": structured(**{**PROBLEM, "n_nodes": 10**18}),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_problem_files(fitted, run, kind):
    bad = fitted.folder / "bad.npz"
    bad.write_bytes(DAMAGED[kind])
    before = fitted.content()
    certificate = fitted.folder / "c.json"
    refused(run("certify", bad, fitted.folder / "s.npz", "-o", certificate), "bad.npz")
    refused(run("well-connected", bad, "--partition", fitted.folder / "labels.csv"), "bad.npz")
    assert fitted.content() == before


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_solution_files(fitted, run, kind):
    bad = fitted.folder / "bad.npz"
    bad.write_bytes(DAMAGED[kind])
    before = fitted.content()
    problem, certificate = fitted.folder / "s.problem.npz", fitted.folder / "c.json"
    refused(run("certify", problem, bad, "-o", certificate), "bad.npz")
    assert fitted.content() == before


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("w", np.zeros((5, 2)), ["(6, 2)", "(5, 2)"]),
        ("w", np.full((6, 2), np.nan), ["'a'", "not finite"]),
        ("u", np.zeros((3, 2)), ["(7, 2)"]),
        ("u", np.full((7, 2), np.inf), ["not finite"]),
        ("nodes", list("abcdeg"), ["node labels", "s.problem.npz"]),
    ],
)
def test_solution_that_does_not_fit(fitted, run, field, value, words):
    solution = gtv.Solution.load(fitted.folder / "s.npz")
    setattr(solution, field, value)
    solution.save(fitted.folder / "bad.npz")
    before = fitted.content()
    problem, certificate = fitted.folder / "s.problem.npz", fitted.folder / "c.json"
    outcome = run("certify", problem, fitted.folder / "bad.npz", "-o", certificate)
    refused(outcome, "bad.npz", *words)
    assert fitted.content() == before


def test_solution_given_as_problem_and_the_reverse(fitted, run):
    problem, solution = fitted.folder / "s.problem.npz", fitted.folder / "s.npz"
    before = fitted.content()
    outcome = run("certify", solution, problem, "-o", fitted.folder / "c.json")
    refused(outcome, "s.npz", "gtv-problem/1", "gtv-solution/1")
    assert fitted.content() == before


@pytest.mark.parametrize("output", ["s.npz", "s.problem.npz", "nowhere/c.json", "."])
def test_output_of_certify(fitted, run, output):
    problem, solution = fitted.folder / "s.problem.npz", fitted.folder / "s.npz"
    before = fitted.content()
    outcome = run("certify", problem, solution, "-o", fitted.folder / output)
    refused(outcome, "--output")
    assert fitted.content() == before


@pytest.mark.parametrize("command", ["certify", "well-connected", "check"])
def test_files_that_are_not_there(tmp_path, run, command):
    extra = {
        "certify": ["s.npz", "-o", tmp_path / "c.json"],
        "well-connected": ["--partition", "labels.csv"],
        "check": [],
    }
    missing = tmp_path / "missing.npz"
    refused(run(command, missing, *extra[command]), "missing.npz", "no such file")
    refused(run(command, tmp_path, *extra[command]), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("node,cluster\n", ["labels.csv"]),
        ("a,0\nb,0\nc,0\nd,1\ne,1\n", ["'f'"]),
        ("a,0\nb,0\nc,0\nd,1\ne,1\nf,1\nz,1\n", ["line 7", "'z'"]),
        ("a,0\nb,0\nc,0\nd,1\ne,1\nf,1\na,1\n", ["line 7", "'a'"]),
        ("a,0\nb,0\nc,0\nd,1\ne,1\nf,\n", ["line 6", "empty"]),
        ("a,0,1\n", ["line 1", "2 cells"]),
    ],
)
def test_partition(fitted, run, text, words):
    labels = fitted.folder / "labels.csv"
    labels.write_text(text)
    before = fitted.content()
    problem = fitted.folder / "s.problem.npz"
    refused(run("well-connected", problem, "--partition", labels), "labels.csv", *words)
    assert fitted.content() == before
