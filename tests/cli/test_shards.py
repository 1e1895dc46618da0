"""``gtvcvx shard``."""

from __future__ import annotations

import pytest

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
