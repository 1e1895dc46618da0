"""``gtvcvx report``: one page that says what the certificate says, and needs nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from _pages import Page, assert_self_contained, read

import gtvcvx as gtv
import verify
from gtvcvx.cli.report import _certificate, _command, _nodes, _page, _pictures, _svg
from gtvcvx.plotting._canvas import luminance

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
NASTY = [
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b", "$\\frac", "日本"),
    *("\N{PARTY POPPER}", "{{ 7*7 }}{% raw %}</style>", "fill: #17202a", "x" * 500),
]
# Tells the page around it what a browser has made of the page, and finds a node in it.
PROBE = """
addEventListener("load", () => {
  const textOf = (item) => item.textContent;
  const said = {
    widths: [document.documentElement.scrollWidth, innerWidth],
    rows: [...document.querySelectorAll("tr")].map((row) => [...row.cells].map(textOf)),
    verdict: textOf(document.querySelector(".verdict strong")),
  };
  const box = document.getElementById("find");
  box.value = "\N{PARTY POPPER}";
  box.dispatchEvent(new Event("input"));
  setTimeout(() => {
    const left = document.querySelectorAll("#node-rows tbody tr:not([hidden])");
    said.left = [...left].map((row) => textOf(row.cells[0]));
    said.found = textOf(document.getElementById("found"));
    parent.postMessage(JSON.stringify(said), "*");
  }, 500);
});
"""
# A window has at least 500 pixels, a frame as many as it is told.
FRAME = """<!DOCTYPE html><title>t</title><iframe src="n.html" width="420" height="2000"></iframe>
<pre></pre><script>addEventListener("message", (event) => {
  document.querySelector("pre").textContent = event.data;
});</script>"""


@pytest.fixture
def nasty(tmp_path):
    """A problem whose labels and feature names try to be HTML or mathematics."""
    rng = np.random.default_rng(0)
    n = len(NASTY)
    graph = gtv.EmpiricalGraph(n, [[i, (i + 1) % n] for i in range(n)], None, NASTY)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.standard_normal((n, 2))), "l2", 0.3)
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
        *("br", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "main"),
        *("figure", "img", "figcaption", "nav", "ul", "li", "a", "h3", "details", "summary"),
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
    (note,) = [words for words in page.words if "no row in this table" in words]
    assert note.startswith("2 nodes more have")
    assert note.endswith(f"all of them are in {fitted.folder / 's.npz'}.")
    shown = [row[0] for row in page.rows if len(row) == 5 and row[2] in ("yes", "no")]
    assert shown == list("abcd")


@pytest.mark.parametrize("penalty", ["l1", "squared", "indefinite"])
def test_kinds_of_problems(tmp_path, run, penalty):
    """Exact solutions, no capacities, no witness; isolated nodes, one coefficient."""
    graph = gtv.EmpiricalGraph(4, [[0, 1], [1, 2]])
    losses = [gtv.PointLoss([0.0]), gtv.ZeroLoss(), gtv.PointLoss([3.0]), gtv.PointLoss([1.0])]
    phi, near = penalty, 1 + 2.0**-52
    if penalty == "indefinite":  # by less than floats can tell, so that nothing proves it convex
        phi = gtv.Quadratic([[1.0, near], [near, 1.0]])
        losses = [gtv.ZeroLoss() if i == 1 else gtv.PointLoss([i, i]) for i in range(4)]
    problem = gtv.GTVProblem(graph, losses, phi, 0.25)
    problem.save(tmp_path / "s.problem.npz")
    problem.solve("EXACT" if penalty == "l1" else "AUTO", verbose=False).save(tmp_path / "s.npz")
    outcome = run("report", tmp_path / "s.npz")
    page = read(tmp_path / "s.html")
    assert_self_contained(page)
    one = penalty != "indefinite"
    assert (page.facts["Parameters"] == "1 coefficient a node: w0") == one
    assert page.facts["Graph"].endswith("2 connected components, 1 isolated node")
    assert ("Saturated edges" in page.facts) == (penalty == "l1")
    if penalty == "indefinite":
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
    monkeypatch.setattr(_pictures, "MOST_EDGES", 6)
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
        assert _certificate._rounded(text) == value


def test_cells_are_escaped_and_numbers_stand_on_the_right():
    """By the macro of the page, with names that are no templates."""
    module = _page._environment().get_template("_parts.html").module

    def table(*arguments):
        return Page(str(module.table(_page.Table(*arguments))))

    page = table("<c>", ["<h>", "n"], [["a<b", 1.5], ["{{ 1 }}", 20]])
    assert page.rows == [["<h>", "n"], ["a<b", "1.5"], ["{{ 1 }}", "20"]]
    classes = [a.get("class") for tag, a in page.tags if tag in ("th", "td")]
    assert classes == [None, "number"] * 3
    assert [a.get("scope") for tag, a in page.tags if tag == "th"] == ["col", "col", "row", "row"]
    assert table("c", ["a", "b"], []).rows == [["a", "b"]]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Solve for 32 pairs and a cluster of 8."""
    data = np.repeat(np.arange(33.0), [2] * 32 + [8])[:, None]
    labels = [f"node {i}" for i in range(72)]
    graph = gtv.EmpiricalGraph(72, [[i, i + 1] for i in range(71)], None, labels)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(100.0 * data), "l1", 0.01)
    solution = problem.solve(verbose=False)
    assert solution.clusters().max() == 32
    return _certificate.built(problem, solution, None)


def test_every_node_is_named(many, monkeypatch):
    """In the table of nodes, the table of clusters, or a list; or it is said how many are not."""
    section = _nodes.node_section(many, 5, "x.npz")
    large, others = section.members
    assert large.title == "Cluster 32: 8 nodes"
    assert large.names == [f"node {i}" for i in range(64, 72)]
    assert others.title == "3 other clusters, by number"
    assert others.names == [f"node {i} ({i // 2})" for i in range(58, 64)]
    in_table = ", ".join(str(row[-1]) for row in _nodes.cluster_section(many).table.rows).split(
        ", "
    )
    listed = {name.partition(" (")[0] for members in section.members for name in members.names}
    assert {f"node {i}" for i in range(72)} <= listed | set(in_table)
    assert "67 nodes more have no row in this table; all of them are in x.npz." in section.notes

    monkeypatch.setattr(_nodes, "MOST_NAMES", 8 * len("node 64") + len("node 58 (29)") + 3)
    section = _nodes.node_section(many, 5, "x.npz")
    assert [len(members.names) for members in section.members] == [8, 1]
    assert section.notes[-1].startswith("The names of 5 nodes are in no list")


def test_errors_on_held_out_data_and_the_path_are_shown(files, run):
    fit = files.fit("--quiet", lam="?", output="cv.npz")
    at = fit.index("--lam")
    fit[at : at + 2] = ["--cv", "3", "--lams", "4"]
    assert run(*fit).status == 0
    arguments = [str(word) for word in files.fit("--quiet", output="p.npz")]
    arguments[0] = "path"
    at = arguments.index("--lam")
    arguments[at : at + 2] = ["--lams", "3"]
    assert run(*arguments).status == 0
    folder = files.folder
    given = ("--held-out", files.data, "--path", folder / "p.npz")
    outcome = run("report", folder / "cv.npz", *given)
    assert (outcome.status, outcome.err) == (0, "")
    page = read(folder / "cv.html")
    solution = gtv.Solution.load(folder / "cv.npz")
    found = solution.info["cross_validation"]
    k = list(found["lams"]).index(found["lam"])
    error, spread = found["mean_errors"][k], found["standard_errors"][k]
    assert page.facts["Error at this lambda"] == (
        f"mean loss {error:.6g}, standard error {spread:.3g}"
    )
    row = [found["lam"], error, spread]
    clusters = str(found["n_clusters"][k])
    assert [*(f"{x:.6g}" for x in row), clusters, "this solution"] in page.rows
    X, y, node = files.arrays()[1:]
    residual = np.sum(X * solution.w[node], axis=1) - y
    assert float(page.facts["Mean squared error"]) == pytest.approx(np.mean(residual**2), rel=1e-5)
    assert page.facts["Held-out error"].startswith("mean squared error")
    assert {"Path", "Held-out error"} <= set(page.words)
    titles = [a["alt"] for tag, a in page.tags if tag == "img"]
    assert any(title.startswith("Held-out error") for title in titles)
    assert any(title.startswith("Fusions of 6 nodes") for title in titles)
    assert all(titles)

    other = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), gtv.PointLoss.stack([[0.0], [1.0]]))
    gtv.path.lambda_path(other, [1.0], verbose=False).save(folder / "o.npz")
    outcome = run("report", folder / "cv.npz", "--path", folder / "o.npz")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert "o.npz: its nodes are not those of" in outcome.err


def test_greys_of_pictures_turn_with_the_page_and_colours_stay():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg"><path style="fill: #17202a; stroke: #ee6677"/>'
        '<path style="stroke: #ffffff"/><text style="fill: #010101">fill: #17202a</text></svg>'
    )
    turned = _svg.turning(svg.encode()).decode()
    assert 'style="fill: var(--c17202a); stroke: #ee6677"' in turned
    assert 'style="stroke: var(--cffffff)"' in turned
    assert 'style="fill: #010101">fill: #17202a</text>' in turned
    assert f"--cffffff:{_svg.DARK_PAPER}" in turned
    assert f"--paper: {_svg.DARK_PAPER}" in _page.source("templates/style.css")
    dark = luminance(_svg.DARK_PAPER) + 0.05
    for grey in ("#ffffff", "#d5d8dc", "#bbbbbb", "#85929e"):
        contrast = 1.05 / (luminance(grey) + 0.05)
        found = (luminance(_svg.turned(grey)) + 0.05) / dark
        assert found == pytest.approx(contrast, rel=0.03)
    assert _svg.turned("#000000") == "#ffffff"


@pytest.fixture
def chromium(tmp_path):
    """Run Chromium on a page: ``chromium(page, *options)`` gives what it prints."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    profile = tmp_path / "profile"

    def call(page, *options):
        command = [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-sync", "--disable-background-networking", "--disable-component-update"),
            *("--disable-quic", f"--user-data-dir={profile}", "--hide-scrollbars", *options),
            page.as_uri(),
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)

    return call


@pytest.mark.parametrize(("scheme", "paper"), [(1, "#ffffff"), (0, _svg.DARK_PAPER)])
def test_browser_shows_the_page(nasty, run, chromium, scheme, paper):
    """In light and in dark, pictures too."""
    from matplotlib.colors import to_rgb
    from matplotlib.image import imread

    run("report", nasty / "n.npz", "--quiet")
    page, shot = nasty / "n.html", nasty / "shot.png"
    options = (f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1000,5000")
    chromium(page, *options, f"--screenshot={shot}")
    pixels = imread(shot)[:, :, :3]
    assert pixels.shape[:2] == (5000, 1000)
    background = np.abs(pixels - to_rgb(paper)).max(axis=2) < 0.01
    assert background[-1, 0]
    # Letters and lines are on it, and no sheet of another colour.
    assert background.mean() > 0.85
    if scheme == 0:  # no ink that is lost on a dark page
        assert (pixels.max(axis=2) < 0.06).mean() < 1e-4
    # The pictures are there: colours that no text has, over much of the page's length.
    coloured = np.ptp(pixels, axis=2) > 0.3
    assert coloured.any(axis=1).sum() > 500


def test_browser_has_no_complaints_on_a_small_screen(nasty, run, chromium, monkeypatch):
    """Nothing is wider than 420 pixels, no script fails, the search finds a node."""
    read_source = _command.source
    monkeypatch.setattr(_command, "source", lambda name: read_source(name) + PROBE)
    run("report", nasty / "n.npz", "--quiet")
    frame = nasty / "frame.html"
    frame.write_text(FRAME, encoding="utf-8")
    options = ("--virtual-time-budget=5000", "--enable-logging=stderr", "--dump-dom")
    done = chromium(frame, *options)
    assert "CONSOLE" not in done.stderr
    said = json.loads(unescape(re.search("<pre>(.*)</pre>", done.stdout, re.DOTALL)[1]))
    page = read(nasty / "n.html")
    assert said["widths"][0] <= said["widths"][1] <= 420
    assert said["rows"] == page.rows
    assert said["verdict"] == page.verdict == "CERTIFIED"
    assert said["left"] == ["\N{PARTY POPPER}"]
    assert said["found"] == "1 in the table, 0 in the lists"
