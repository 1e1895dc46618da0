"""docs/reproduction.md is what the records give, complete, and its commands run."""

from __future__ import annotations

import re

import pytest
from _documents import ROOT, _bash, blocks
from _made_up import EXPERIMENT
from _papers import experiments

from gtvcvx.experiments import Outcome, Record, Row, Verdict, cells_of, digest_of

pytest.importorskip("sklearn")
import _page

TEXT = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
FOUND = _page.records(experiments())


def test_the_page_is_what_the_records_give():
    """If not: python examples/papers --page."""
    assert _page.page(experiments(), FOUND) == TEXT


def test_every_experiment_has_a_record_and_a_section():
    assert list(FOUND) == list(experiments())
    assert re.findall(r"^### (.*)$", TEXT, re.MULTILINE) == list(FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_pictures_are_those_of_the_records(name):
    picture = (ROOT / "docs" / "pictures" / "reproduction" / f"{name}.svg").read_text("utf-8")
    assert f"{name} sha256:{digest_of(FOUND[name])}" in picture
    assert f"](pictures/reproduction/{name}.svg)" in TEXT


def test_records_are_small():
    """A repository is no place for data."""
    sizes = {path.name: path.stat().st_size for path in _page.RESULTS.glob("*.json")}
    assert {name: size for name, size in sizes.items() if size > 250_000} == {}


def test_there_is_no_picture_without_a_record():
    pictures = (ROOT / "docs" / "pictures" / "reproduction").iterdir()
    assert sorted(path.name for path in pictures) == sorted(f"{name}.svg" for name in FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_every_curve_of_a_run_says_what_is_proved_of_its_end(name):
    panels = FOUND[name].outcome.panels
    silent = [
        f"{panel.title}: {curve.label}"
        for panel in panels
        for curve in panel.curves
        if curve.kind == "run" and not curve.final.strip()
    ]
    assert silent == []


@pytest.mark.parametrize("name", FOUND)
def test_records_are_of_the_experiment_as_it_is(name):
    experiment, record = experiments()[name], FOUND[name]
    assert (record.paper, record.item) == (experiment.paper, experiment.item)
    assert record.title == experiment.title
    assert record.size in ("default", "paper")
    assert record.reading in experiment.readings
    if "synthetic" in experiment.data and not record.outcome.data:
        assert record.data == experiment.data


def test_verdicts_are_counted_and_come_first():
    table = TEXT.partition("## All verdicts")[2].partition("\n## ")[0]
    rows = [row for record in FOUND.values() for row in record.outcome.rows if row.verdict]
    assert len(re.findall(r"^\| \[\[", table, re.MULTILINE)) == len(rows)
    numbers = table.partition("How many there are:")[2]
    for paper in {record.paper for record in FOUND.values()}:
        own = [row for r in FOUND.values() if r.paper == paper for row in r.outcome.rows]
        counts = [str(sum(row.verdict is verdict for row in own)) for verdict in Verdict]
        assert f"| [{paper}] | {' | '.join(counts)} |" in numbers


def test_every_run_is_listed_with_its_size_and_time():
    table = TEXT.partition("## The runs that are shown")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| [[")]
    assert len(lines) == len(FOUND)
    for line, (name, record) in zip(lines, FOUND.items(), strict=True):
        assert f"](#{name})" in line
        assert _page.SIZES[record.size] in line
        wanted = _page.usual_seeds(experiments()[name], record)
        said = f"{record.seeds} of {wanted}" if record.seeds < wanted else f"{record.seeds}"
        assert f"| {said} | {_page.duration(record.cpu_seconds)} |" in line


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!http)([^)]+)\)", TEXT))))
def test_links_lead_somewhere(target):
    path, _, place = target.partition("#")
    assert not path or (ROOT / "docs" / path).is_file()
    assert not place or f"\n### {place}\n" in TEXT


def test_commands_of_the_page_run_in_a_checkout(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = "".join(text for language, text in blocks(TEXT) if language == "bash")
    assert shown.count("python examples/papers") == 2
    printed = _bash(shown, tmp_path)
    assert all(name in printed for name in experiments())
    assert "REPRODUCED" in printed
    assert {path.suffix for path in (tmp_path / "papers-out").iterdir()} == {
        *("", ".json", ".csv", ".svg")
    }


@pytest.mark.parametrize("name", FOUND)
def test_commands_of_the_sections_are_those_of_their_runs(name):
    section = TEXT.partition(f"\n### {name}\n")[2].partition("\n##")[0]
    (command,) = re.findall(r"`python examples/papers ([^`]*)`, \[", section)
    words = command.split()
    assert words[0] == name
    experiment, record = experiments()[name], FOUND[name]
    assert ("--paper" in words) == (record.size == "paper")
    usual = experiment.paper_seeds if "--paper" in words else experiment.seeds
    seeds = int(words[words.index("--seeds") + 1]) if "--seeds" in words else usual
    assert seeds == record.seeds


def test_a_record_of_no_experiment_is_an_error(tmp_path, monkeypatch):
    record = Record.of(
        EXPERIMENT, EXPERIMENT.study("tiny"), EXPERIMENT.run(EXPERIMENT.study("tiny"))
    )
    record.save(tmp_path / "made-up-table-1.json")
    monkeypatch.setattr(_page, "RESULTS", tmp_path)
    with pytest.raises(ValueError, match=r"results/made-up-table-1\.json: no experiment"):
        _page.records({})
    assert list(_page.records({"made-up-table-1": EXPERIMENT})) == ["made-up-table-1"]


def test_a_section_shows_everything_and_signs_are_no_markup():
    rows = [
        Row("a|b", 0.5, [1.0, 2.0], [0.1, 0.1], Verdict.CANNOT_HOLD, "R*lam < w_i and w_j*"),
        Row("open", "not given", "words", None, None, "no optimum: <none>"),
    ]
    outcome = Outcome(rows, [], {"lam": "given: `x_1`"}, ["a note"], "error in m", "user's MNIST")
    record = Record.of(EXPERIMENT, EXPERIMENT.study("paper", seeds=2), outcome, 4000.0)
    text = _page.section(EXPERIMENT, record)
    cells = [_page.escaped(cell) for cell in cells_of(rows[0])]
    assert "| " + " | ".join(cells) + " |" in text
    for shown in (
        r"**a|b**: R\*lam \< w\_i and w\_j\*",
        r"a\|b",
        "| lam | given: `x_1` |",
        "- a note",
        "Ours: error in m.",
        "Data: user's MNIST. Shown is the full setting with 2 of 5 seeds, 67 min of CPU time",
        "`python examples/papers made-up-table-1 --paper --seeds 2`",
        "(a finding of ours)",
    ):
        assert shown in text
