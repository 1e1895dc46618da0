"""The section of ``gtvcvx report`` that compares federated runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from _pages import assert_self_contained, read
from _systems import small

import gtvcvx as gtv
from gtvcvx import federated as fed


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Six clients, the solution of their problem, and runs: two good ones, one that diverged."""
    folder = tmp_path_factory.mktemp("runs")
    problem, solution = small("l1")
    problem.save(folder / "s.problem.npz")
    solution.save(folder / "s.npz")
    good = fed.simulate(fed.FedADMM(), problem, 100, availability=fed.Bernoulli(0.8))
    good.save(folder / "<b>good.npz")
    # Its value is not the objective of the page.
    fed.simulate(fed.PrimalDual(), problem.with_lam(0.1), 100).save(folder / "other.npz")
    fed.simulate(fed.FedADMM(step="printed", scale=1e9), problem, 9).save(folder / "_bad.npz")
    return folder


def test_federated_runs_are_compared(runs, run):
    files = [runs / name for name in ("<b>good.npz", "other.npz", "_bad.npz")]
    given = [word for path in files for word in ("--federated", path)]
    assert run("report", runs / "s.npz", *given).status == 0
    page = read(runs / "s.html")
    assert_self_contained(page)
    assert "Federated runs" in page.words
    problem = gtv.GTVProblem.load(runs / "s.problem.npz")
    solution = gtv.Solution.load(runs / "s.npz")
    for path in files:
        saved = fed.SavedRun.load(path)
        last = saved.history.last()
        name = path.name.removesuffix(".npz")
        active = saved.history.mean_active
        part = "none" if active is None else f"{active:.3g} of 6"
        assert [name, saved.algorithm, saved.status, str(saved.rounds), part] in page.rows
        distance = np.linalg.norm(saved.models - solution.w, axis=1).max()
        figures = [last["value"], last["gap"], problem.value(saved.models), distance]
        sent = [str(last["bytes_up"]), str(last["bytes_down"])]
        assert [name, *(f"{x:.6g}" for x in figures), *sent] in page.rows
    assert page.facts["Federated run 3"] == str(files[2])
    before = len(page.pictures)
    run("report", runs / "s.npz")
    again = read(runs / "s.html")
    assert "Federated runs" not in again.words
    assert before - len(again.pictures) == 3
    legend = "".join(page.pictures[-3:])
    assert legend.count("bad (diverged)") >= 3


def test_runs_without_gap_or_record_or_of_a_star_are_shown(runs, run, tmp_path):
    """A star has its centre as another node of w; what there is to compare are the models."""
    saved = fed.SavedRun.load(runs / "other.npz")
    saved.w = np.vstack([saved.w, saved.w.mean(axis=0)])
    saved.history = fed.History({k: v for k, v in saved.history.items() if k != "gap"})
    saved.save(tmp_path / "star.npz")
    empty = np.empty(0)
    bare = replace(saved, w=empty, models=empty, u=None, history=fed.History(), status="diverged")
    bare.save(tmp_path / "none.npz")
    output = ("-o", tmp_path / "r.html")
    options = ("--federated", tmp_path / "star.npz", "--federated", tmp_path / "none.npz")
    assert run("report", runs / "s.npz", *options, *output).status == 0
    page = read(tmp_path / "r.html")
    (star,) = (row for row in page.rows if row[0] == "star" and len(row) == 7)
    assert star[2] == "none"
    assert ["none"] * 7 in page.rows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": list("abcdef")}, "r.npz: its clients are not the nodes of"),
        ({"models": np.zeros((6, 2))}, "r.npz: its models have 2 coefficients, those of"),
        ({"status": "happy"}, "r.npz: not a complete run (status"),
    ],
)
def test_runs_of_other_problems_are_refused(runs, run, tmp_path, change, words):
    replace(fed.SavedRun.load(runs / "other.npz"), **change).save(tmp_path / "r.npz")
    outcome = run("report", runs / "s.npz", "--federated", tmp_path / "r.npz")
    assert outcome.status == 2
    assert words in outcome.err


def test_runs_given_twice_or_missing_are_refused(runs, run, tmp_path):
    twice = ("--federated", runs / "other.npz") * 2
    assert "other.npz is given twice" in run("report", runs / "s.npz", *twice).err
    missing = run("report", runs / "s.npz", "--federated", tmp_path / "gone.npz")
    assert missing.err == f"gtvcvx report: error: {tmp_path}/gone.npz: there is no such file\n"
    other = ("--federated", runs / "other.npz", "-o", runs / "other.npz")
    over = run("report", runs / "s.npz", *other)
    assert "already given for --federated" in over.err
