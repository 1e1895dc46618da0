"""``gtvcvx shard`` and ``gtvcvx solve-shards``."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gtvcvx as gtv
import verify
from gtvcvx.distributed import Manifest


@pytest.fixture
def shards(fitted, run):
    folder = fitted.folder / "shards"
    problem = fitted.folder / "s.problem.npz"
    outcome = run("shard", problem, "-o", folder, "--shards", 3, "--partitioner", "order")
    assert (outcome.status, outcome.err) == (0, "")
    return folder


def test_a_problem_is_cut(fitted, run, shards):
    manifest = Manifest.load(shards)
    assert (manifest.n_shards, manifest.n_nodes, manifest.partitioner) == (3, 6, "order")
    outcome = run(
        *("shard", fitted.folder / "s.problem.npz", "-o", shards),
        *("--shards", 2, "--workers", 2, "--json"),
    )
    found = outcome.json
    assert (outcome.status, found["command"], found["shards"]) == (0, "shard", 2)
    manifest = Manifest.load(shards)
    assert found["cut_edges"] == manifest.cut_edges
    assert found["halo_bytes"] == manifest.halo_bytes
    assert 0 < found["expected_efficiency"] < 1


def test_what_to_expect_is_printed(fitted, run):
    outcome = run("shard", fitted.folder / "s.problem.npz", "-o", fitted.folder / "x", "--shards=2")
    names = [line.split()[0] for line in outcome.out.splitlines()]
    assert names == ["Problem", "partition", "halo", "memory", "model", "advice", "Written"]
    assert "one machine does it" in outcome.out


def test_tables_are_cut(files, run):
    folder = files.folder / "shards"
    arguments = [*("shard", "--edges", files.edges, "--data", files.data, "--node", "place")]
    arguments += ["--target", "y", "--lam", "0.2", "-o", folder, "--shards", "2"]
    assert run(*arguments, "--quiet").status == 0
    manifest = Manifest.load(folder)
    assert (manifest.n_nodes, manifest.dim, manifest.lam) == (6, 2, 0.2)
    more = ["--loss", "huber", "--delta", "0.5", "--intercept", "--penalty", "l1"]
    assert run(*arguments, *more, "--quiet").status == 0
    manifest = Manifest.load(folder)
    assert (manifest.dim, manifest.penalty) == (3, {"kind": "l1"})
    (term,) = manifest.shard(folder, 0).terms
    assert (term["kind"], set(term["delta"])) == ("huber", {0.5})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "PROBLEM or --edges, --data, --node, --target, --lam: needed"),
        (["p.npz", "--lam", "1"], "--lam: PROBLEM is given"),
        (["p.npz", "--intercept"], "--intercept: PROBLEM is given"),
        (["--edges", "e", "--data", "d"], "--node, --target, --lam: needed"),
        (["nothing.npz"], "nothing.npz: there is no such file"),
        (["p.npz", "--shards", "2", "--workers", "3"], "--workers: at most --shards, 2"),
        (["p.npz", "--shards", "0"], "--shards"),
        (["p.npz", "--partitioner", "best"], "--partitioner"),
    ],
)
def test_what_shard_refuses(run, tmp_path, arguments, words):
    outcome = run("shard", *arguments, "-o", tmp_path / "shards")
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert words in outcome.err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--delta", "1"], "--delta: --loss squared does not take it"),
        (["--loss", "quantile"], "--level: --loss quantile needs it"),
    ],
)
def test_parameters_of_losses(run, files, more, words):
    arguments = ["--edges", files.edges, "--data", files.data, "--node", "place", "--target", "y"]
    outcome = run("shard", *arguments, "--lam", "1", *more, "-o", files.folder / "shards")
    assert (outcome.status, words in outcome.err) == (2, True)


def test_a_file_is_no_folder(run, fitted):
    outcome = run("shard", fitted.folder / "s.problem.npz", "-o", fitted.edges)
    assert (outcome.status, "exists and is not a folder" in outcome.err) == (2, True)


def test_shards_are_solved_collected_and_certified(fitted, run, shards):
    solution, certificate = fitted.folder / "x.npz", fitted.folder / "x.gtvc"
    outcome = run(
        *("solve-shards", shards, "--workers", 1, "-o", solution, "--certificate", certificate),
    )
    assert (outcome.status, outcome.err) == (0, "")
    names = [line.split()[0] for line in outcome.out.splitlines()]
    assert names == [
        *("partition", "halo", "memory", "model", "advice"),
        *("Solved", "Value", "Gap", "Certificate", "Written"),
    ]
    problem = gtv.GTVProblem.load(fitted.folder / "s.problem.npz")
    found, expected = gtv.Solution.load(solution), gtv.Solution.load(fitted.folder / "s.npz")
    assert list(found.nodes) == list(expected.nodes)
    assert problem.value(found.w) == pytest.approx(expected.value, rel=2e-6)
    assert verify.check(certificate, problem.to_data()).status == "CERTIFIED"


def test_json_and_two_workers(run, shards):
    outcome = run("solve-shards", shards, "--rtol", "1e-4", "--json")
    assert outcome.status == 0
    found = json.loads(outcome.out)
    assert (found["command"], found["status"], found["workers"]) == ("solve-shards", "optimal", 2)
    assert found["certificate"] is None
    assert found["rel_gap"] <= 1e-4
    assert found["written"]["parts"] == str(shards / "solution")


def test_a_limit_is_not_proved(run, shards):
    outcome = run("solve-shards", shards, "--workers", 1, "--max-iter", 1, "--rtol", "1e-12")
    assert (outcome.status, "user limit" in outcome.out) == (1, True)


def test_checkpoints_and_resumption(run, fitted, shards):
    arguments = ["solve-shards", shards, "--workers", 1, "--rtol", "1e-8", "--quiet"]
    kept = ["--checkpoint", fitted.folder / "kept", "--every", "1e-9"]
    assert run(*arguments, *kept).status == 0
    outcome = run(*arguments, *kept, "--resume", "-o", fitted.folder / "again.npz")
    assert outcome.status == 0
    assert np.isfinite(gtv.Solution.load(fitted.folder / "again.npz").w).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "4"], "workers: 1 to 3, one for each shard"),
        (["--resume"], "--resume: there is no --checkpoint"),
        (["-o", "nowhere/x.npz"], "--output: there is no folder"),
        (["--engine", "dask"], "--engine"),
        (["--replace", "-1"], "--replace"),
    ],
)
def test_what_solve_shards_refuses(run, shards, arguments, words):
    outcome = run("solve-shards", shards, *arguments)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert words in outcome.err


def test_a_folder_without_shards(run, tmp_path):
    outcome = run("solve-shards", tmp_path)
    assert (outcome.status, "no manifest of shards can be read" in outcome.err) == (2, True)
