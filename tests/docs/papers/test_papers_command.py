"""``python examples/papers``: as a reader would run it, and from inside."""

from __future__ import annotations

import dataclasses
import importlib.util

import pytest
from _made_up import EXPERIMENT
from _papers import FOLDER, _catalogue, experiments

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
_spec = importlib.util.spec_from_file_location("papers_main", FOLDER / "__main__.py")
papers_main = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(papers_main)


@pytest.fixture
def made_up(monkeypatch):
    """A catalogue of one experiment, which costs nothing."""
    monkeypatch.setattr(_catalogue, "experiments", lambda: {EXPERIMENT.name: EXPERIMENT})


def test_the_list_has_every_experiment(capsys):
    """As a command it is run with the page, by test_reproduction_page.py."""
    assert papers_main.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(experiments())
    for line, experiment in zip(lines, experiments().values(), strict=True):
        assert experiment.item in line
        assert experiment.data in line


def test_experiments_are_listed_by_paper_and_number():
    names = list(experiments())
    papers = [experiment.paper for experiment in experiments().values()]
    order = ["GTV", "nLasso", "FedADMM", "PGFL", "Notes"]
    assert papers == sorted(papers, key=order.index)
    wanted = ["gtv-table-1", "gtv-figure-2", "gtv-figure-10", "gtv-covariance"]
    assert [name for name in names if name in wanted] == [n for n in wanted if n in names]


def test_every_module_of_a_paper_defines_an_experiment():
    assert len(_catalogue.files()) == len(experiments())
    sources = {FOLDER / _catalogue.source(experiment) for experiment in experiments().values()}
    assert sources == set(_catalogue.files())


@pytest.mark.parametrize("name", experiments())
def test_every_experiment_says_what_it_is(name):
    experiment = experiments()[name]
    assert len(experiment.about.splitlines()) >= 3
    assert experiment.data
    # A few remarks of one sentence each; pictures have no room for long titles.
    assert len(experiment.title) <= 100


def test_a_run_prints_a_table_and_writes_three_files(made_up, tmp_path, capsys):
    out = tmp_path / "new" / "out"
    assert papers_main.main([EXPERIMENT.name, "--out", str(out), "--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    for word in (
        "0.75 (0.354)",
        "REPRODUCED",
        "CANNOT HOLD",
        "synthetic",
        "2 seeds",
        "near enough",
    ):
        assert word in printed
    assert sorted(path.name for path in out.iterdir()) == [
        *("cells", "made-up-table-1.csv", "made-up-table-1.json", "made-up-table-1.svg")
    ]
    files = (out / "cells").rglob("*.npz")
    assert len(list(files)) == 2


def test_another_reading_has_files_of_its_own(made_up, tmp_path, capsys):
    arguments = [EXPERIMENT.name, "--reading", "notebook", "--paper", "--out", str(tmp_path)]
    assert papers_main.main(arguments) == 0
    assert "paper size, reading 'notebook', 5 seeds" in capsys.readouterr().out
    assert (tmp_path / "made-up-table-1-notebook.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["made-up-table-2"],
            "no experiment is called 'made-up-table-2': the nearest is 'made-up-",
        ),
        (["x"], "--list shows all"),
        ([EXPERIMENT.name, "--reading", "mine"], "reading: made-up-table-1 has paper, notebook"),
        ([EXPERIMENT.name, "--seeds", "0"], "seeds: at least one"),
    ],
)
def test_wrong_arguments_are_errors_that_say_what_is_there(
    made_up, tmp_path, capsys, arguments, said
):
    assert papers_main.main([*arguments, "--out", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.startswith("python examples/papers: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (
            ImportError("no scikit-learn"),
            2,
            "no scikit-learn; some experiments need: python -m pip",
        ),
        (FileNotFoundError("t10k: put there"), 2, "t10k: put there"),
        (KeyboardInterrupt(), 130, "interrupted; the same command goes on where it was"),
    ],
)
def test_what_stops_a_run_is_said_in_a_line(tmp_path, monkeypatch, capsys, error, status, said):
    def run(study):
        raise error

    stops = dataclasses.replace(EXPERIMENT, run=run)
    monkeypatch.setattr(_catalogue, "experiments", lambda: {stops.name: stops})
    assert papers_main.main([stops.name, "--out", str(tmp_path)]) == status
    assert capsys.readouterr().err.startswith(f"python examples/papers: {said}")


def test_a_name_or_the_list_is_asked_for(made_up, capsys):
    with pytest.raises(SystemExit) as stop:
        papers_main.main([])
    assert stop.value.code == 2
    assert "--list" in capsys.readouterr().err


def test_two_experiments_of_one_name_are_an_error(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / "papers_twice").mkdir(exist_ok=True)
        (tmp_path / "papers_twice" / f"{name}.py").write_text("from _made_up import EXPERIMENT\n")
    monkeypatch.setattr(_catalogue, "HERE", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"two\.py: 'made-up-table-1' is defined twice"):
        _catalogue.experiments()
