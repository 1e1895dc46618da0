"""``gtvcvx report``: one page that says what the certificate says, and needs nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from _pages import Page, assert_self_contained, read

import gtvcvx as gtv
import verify
from gtvcvx.cli import _html, _html_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
NASTY = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b", "$\\frac", "日本"]


@pytest.fixture
def nasty(tmp_path):
    """A problem whose labels and feature names try to be HTML or mathematics."""
    rng = np.random.default_rng(0)
    graph = gtv.EmpiricalGraph(5, [[0, 1], [1, 2], [2, 3], [3, 4], [0, 4]], None, NASTY)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.standard_normal((5, 2))), "l2", 0.3)
    solution = problem.solve(rtol=1e-8, verbose=False)
    solution.info["features"] = ["<b>height</b>", "$x^"]
    problem.save(tmp_path / "n.problem.npz")
    solution.save(tmp_path / "n.npz")
    return tmp_path


def test_page_of_a_fit(fitted, run):
    outcome = run("report", fitted.folder / "s.npz")
    assert (outcome.status, outcome.err) == (0, "")
    assert "Certificate CERTIFIED" in outcome.out
    path = fitted.folder / "s.html"
    assert f"Written     {path}" in outcome.out
    page = read(path)
    assert_self_contained(page)
    assert page.verdict == "CERTIFIED"
    assert "Solution s.npz" in page.words
    assert page.facts["Graph"] == ("6 nodes, 7 edges, 1 connected component, 0 isolated nodes")
    assert page.facts["Parameters"] == "2 coefficients a node: x1, x2"
    assert page.facts["Nodes with data"] == "5 of 6"
    assert page.facts["Losses"] == "squared error at 5 nodes, 20 data points"
    assert page.facts["Penalty"] == "l2, lambda = 0.2"
    assert len(page.pictures) >= 5
    for picture in page.pictures:
        assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_figures_are_those_of_the_certificate(fitted, run):
    folder = fitted.folder
    certificate = verify.certify(
        gtv.GTVProblem.load(folder / "s.problem.npz").to_data(),
        *(getattr(gtv.Solution.load(folder / "s.npz"), name) for name in "wu"),
        search=False,
    )
    outcome = run("report", folder / "s.npz", "--json")
    assert outcome.json["certificate"]["upper"] == certificate.upper
    assert outcome.json["written"] == {"output": str(folder / "s.html")}
    page = read(folder / "s.html")
    assert page.facts["Objective of this solution"] == f"at most {certificate.upper!r}"
    assert page.facts["Lower bound on the optimum"] == repr(certificate.lower)
    assert page.facts["Gap"] == f"at most {certificate.gap!r}"
    assert page.facts["Relative gap"].startswith(f"at most {certificate.rel_gap!r},")
    assert page.facts["Bounds"] == "proved, in exact arithmetic"
    worst = certificate.worst(1)
    shares = [row for row in page.rows if row[0] == worst[0][0][0] and len(row) == 2]
    assert f"{worst[0][0][1]:.6g}" in [row[1] for row in shares]
    (head, tail), share = worst[1][0]
    assert any(row[:3] == [head, tail, f"{share:.6g}"] for row in page.rows)


def test_tables_hold_clusters_and_coefficients(fitted, run):
    run("report", fitted.folder / "s.npz", "--quiet")
    page = read(fitted.folder / "s.html")
    solution = gtv.Solution.load(fitted.folder / "s.npz")
    labels = solution.clusters()
    for i, node in enumerate("abcdef"):
        row = [node, str(labels[i]), "no" if node == "f" else "yes"]
        assert [*row, *(f"{x:.6g}" for x in solution.w[i])] in page.rows
    for c in range(labels.max() + 1):
        inside = labels == c
        mean = [f"{x:.6g}" for x in solution.w[inside].mean(axis=0)]
        members = ", ".join(np.array(list("abcdef"))[inside])
        (row,) = [row for row in page.rows if row[:2] == [str(c), str(inside.sum())]]
        assert row[2:4] == mean
        assert row[-1] == members
    assert f"{labels.max() + 1} clusters" in page.words


def test_certificate_file_is_checked_and_shown(fitted, run):
    folder = fitted.folder
    certificate = folder / "c.json"
    run("certify", folder / "s.problem.npz", folder / "s.npz", "-o", certificate)
    arguments = ("report", folder / "s.npz", "--certificate", certificate)
    outcome = run(*arguments, "-o", folder / "r.html", "--title", "My <title> & more")
    assert outcome.status == 0
    page = read(folder / "r.html")
    figures = verify.check(certificate).to_json()
    assert page.facts["Lower bound on the optimum"] == repr(figures["lower"])
    assert page.facts["Gap"] == f"at most {figures['gap']!r}"
    assert page.facts["Certificate"] == str(certificate)
    assert page.words.count("My <title> & more") == 2
    assert not (folder / "s.html").exists()
    strict = run(*arguments, "--rtol", "1e-30")
    assert strict.status == 1
    assert read(folder / "s.html").verdict == "UNPROVED"


def test_false_certificate_is_shown_as_refuted(fitted, run):
    folder = fitted.folder
    run("certify", folder / "s.problem.npz", folder / "s.npz", "-o", folder / "c.json")
    document = json.loads((folder / "c.json").read_text())
    document["sha256"] = "0" * 64
    (folder / "c.json").write_text(json.dumps(document))
    outcome = run("report", folder / "s.npz", "--certificate", folder / "c.json")
    assert outcome.status == 1
    page = read(folder / "s.html")
    assert page.verdict == "REFUTED"
    assert "Gap" not in page.facts


def test_bad_solution_is_not_certified(fitted, run):
    solution = gtv.Solution.load(fitted.folder / "s.npz")
    solution.w = solution.w + 0.5
    solution.save(fitted.folder / "s.npz")
    outcome = run("report", fitted.folder / "s.npz")
    assert outcome.status == 1
    page = read(fitted.folder / "s.html")
    assert page.verdict == "UNPROVED"
    assert "CERTIFIED" not in page.words


def test_certificates_of_something_else_are_refused(fitted, run):
    folder = fitted.folder
    problem, solution = folder / "s.problem.npz", folder / "s.npz"
    run("certify", problem, solution, "-o", folder / "c.json")
    run("well-connected", problem, "--partition", folder / "labels.csv", "-o", folder / "p.json")
    outcome = run("report", solution, "--certificate", folder / "p.json")
    assert outcome.status == 2
    assert "about a partition" in outcome.err
    other = gtv.Solution.load(solution)
    other.w = np.nextafter(other.w, np.inf)
    other.save(folder / "other.npz")
    arguments = ("--problem", problem, "--certificate", folder / "c.json")
    outcome = run("report", folder / "other.npz", *arguments)
    assert outcome.status == 2
    assert "another point" in outcome.err
    assert not list(folder.glob("*.html"))


def test_labels_stay_text(nasty, run):
    outcome = run("report", nasty / "n.npz", "--title", NASTY[0])
    assert (outcome.status, outcome.err) == (0, "")
    page = read(nasty / "n.html")
    assert_self_contained(page)
    assert {tag for tag, _ in page.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "section", "p", "strong"),
        *("br", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"),
        *("figure", "img", "figcaption"),
        *("button", "label", "input", "noscript", "script"),
    }
    solution = gtv.Solution.load(nasty / "n.npz")
    first = {row[0] for row in page.rows if len(row) == 5}
    assert set(NASTY) <= first
    for i, label in enumerate(NASTY):
        assert any(
            row[0] == label and row[-2:] == [f"{x:.6g}" for x in solution.w[i]] for row in page.rows
        )
    assert "2 coefficients a node: <b>height</b>, $x^" in page.facts["Parameters"]
    drawn = "".join(page.pictures)
    assert "日本" in drawn
    assert "&lt;script&gt;" in drawn


def test_same_input_gives_the_same_page(nasty, run):
    pages = []
    for _ in range(2):
        run("report", nasty / "n.npz", "--quiet")
        pages.append((nasty / "n.html").read_bytes())
    assert pages[0] == pages[1]


def test_rows_beyond_the_limit_are_counted(fitted, run):
    run("report", fitted.folder / "s.npz", "--rows", "4")
    page = read(fitted.folder / "s.html")
    assert f"2 nodes more; all of them are in {fitted.folder / 's.npz'}." in page.words
    shown = [row[0] for row in page.rows if len(row) == 5 and row[2] in ("yes", "no")]
    assert shown == list("abcd")


@pytest.mark.parametrize("penalty", ["l1", "squared", "pnorm"])
def test_kinds_of_problems(tmp_path, run, penalty):
    """Exact solutions, no capacities, no rule in the kernel; isolated nodes, one coefficient."""
    graph = gtv.EmpiricalGraph(4, [[0, 1], [1, 2]])
    losses = [gtv.PointLoss([0.0]), gtv.ZeroLoss(), gtv.PointLoss([3.0]), gtv.PointLoss([1.0])]
    phi = gtv.PNorm(3) if penalty == "pnorm" else penalty
    problem = gtv.GTVProblem(graph, losses, phi, 0.25)
    problem.save(tmp_path / "s.problem.npz")
    problem.solve("EXACT" if penalty == "l1" else "AUTO", verbose=False).save(tmp_path / "s.npz")
    outcome = run("report", tmp_path / "s.npz")
    page = read(tmp_path / "s.html")
    assert_self_contained(page)
    assert page.facts["Parameters"] == "1 coefficient a node: w0"
    assert page.facts["Graph"].endswith("2 connected components, 1 isolated node")
    assert ("Saturated edges" in page.facts) == (penalty != "squared")
    if penalty == "pnorm":
        assert outcome.status == 1
        assert page.verdict == "UNPROVED"
        assert page.facts["Bounds"] == "float estimates, not proved"
    else:
        assert outcome.status == 0
        assert page.verdict == "CERTIFIED"
    if penalty == "l1":
        assert page.facts["Gap"] == "at most 0.0"


def test_solution_without_a_finite_gap_has_its_page_too(tmp_path, run):
    """A flow of infinite cost: the shares cannot be shown, all the rest can."""
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [[0, 1]]), gtv.PointLoss.stack(np.eye(2)))
    solution = problem.solve(verbose=False)
    solution.node_gaps = np.full(2, np.inf)
    solution.history = []
    problem.save(tmp_path / "s.problem.npz")
    solution.save(tmp_path / "s.npz")
    run("certify", tmp_path / "s.problem.npz", tmp_path / "s.npz", "-o", tmp_path / "c.json")
    outcome = run("report", tmp_path / "s.npz", "--certificate", tmp_path / "c.json")
    assert (outcome.status, outcome.err) == (0, "")
    page = read(tmp_path / "s.html")
    assert "The gap is not finite." in page.words
    assert "The solver kept no history." in page.words


def test_graphs_that_are_too_large_are_not_drawn(fitted, run, monkeypatch):
    monkeypatch.setattr(_html_report, "MOST_EDGES", 6)
    assert run("report", fitted.folder / "s.npz").status == 0
    page = read(fitted.folder / "s.html")
    assert len(page.pictures) == 1  # the bars of the gap
    assert any("The graph is not drawn" in words for words in page.words)


def test_bad_input_is_named_before_any_work(fitted, run, monkeypatch):
    folder = fitted.folder
    before = fitted.content()
    lonely = folder / "lonely.npz"
    lonely.write_bytes((folder / "s.npz").read_bytes())
    for arguments, words in (
        (
            (folder / "none.npz", "--problem", folder / "s.problem.npz"),
            ["none.npz", "no such file"],
        ),
        ((lonely,), ["--problem", "lonely.problem.npz"]),
        ((folder / "s.npz", "-o", folder / "s.npz"), ["--output", "already given for SOLUTION"]),
        ((folder / "s.npz", "-o", folder / "nowhere" / "x.html"), ["no folder"]),
        ((folder / "s.npz", "--rows", "0"), ["--rows", "positive integer"]),
        ((folder / "s.npz", "--certificate", folder / "none.json"), ["none.json"]),
        ((folder / "s.npz", "--problem", fitted.edges), ["edges.csv", "gtv-problem/1"]),
    ):
        outcome = run("report", *arguments)
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err.count("\n") == 1
        assert all(word in outcome.err for word in words), outcome.err
    lonely.unlink()
    with monkeypatch.context() as hidden:
        hidden.setitem(sys.modules, "matplotlib.figure", None)
        outcome = run("report", folder / "s.npz")
        assert outcome.status == 2
        assert "gtvcvx[plot]" in outcome.err
    assert fitted.content() == before


def test_help(run):
    outcome = run("report", "--help")
    assert outcome.status == 0
    assert outcome.out.startswith("usage: gtvcvx report")
    for word in ("--certificate", "--json", "--quiet", "Exit status"):
        assert word in outcome.out
    assert "report" in run("--help").out


def test_numbers_of_certificates_are_rounded_to_floats():
    for text, value in (
        ("0x1.8p-1", 0.75),
        ("-0x1/0x3", -1 / 3),
        ("0x10000000000000001p-64", 1.0),
        (3, 3.0),
        (0.1, 0.1),
    ):
        assert _html_report._rounded(text) == value


def test_cells_are_escaped_and_numbers_stand_on_the_right():
    page = Page(_html.page("t", [_html.table("<c>", ["<h>", "n"], [["a<b", 1.5], ["&", 20]])]))
    assert page.rows == [["<h>", "n"], ["a<b", "1.5"], ["&", "20"]]
    classes = [a.get("class") for tag, a in page.tags if tag == "td"]
    assert classes == [None, "number", None, "number"]
    empty = Page(_html.page("t", [_html.table("c", ["a", "b"], [])]))
    assert empty.rows == [["a", "b"]]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_browser_shows_the_page(nasty, run):
    from matplotlib.image import imread

    run("report", nasty / "n.npz", "--quiet")
    page, shot = nasty / "n.html", nasty / "shot.png"
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
        f"--user-data-dir={nasty / 'profile'}",
        *("--window-size=1000,5000", "--hide-scrollbars"),
    ]
    command = [str(CHROMIUM), *options, f"--screenshot={shot}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    pixels = imread(shot)[:, :, :3]
    assert pixels.shape[:2] == (5000, 1000)
    assert np.allclose(pixels[-1, 0], 1.0)  # white paper
    # The pictures are there: colours that no text has, over much of the page's length.
    coloured = np.ptp(pixels, axis=2) > 0.3
    assert coloured.any(axis=1).sum() > 500
    command = [str(CHROMIUM), *options, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    dom = Page(done.stdout)
    assert dom.rows == read(page).rows
    assert dom.verdict == "CERTIFIED"
