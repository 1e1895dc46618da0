"""Certificates that workers write together."""

from pathlib import Path

import numpy as np
import pytest
from _certificate_tasks import certify
from _problems import graph_of, instance

import gtvcvx as gtv
import verify
from gtvcvx.distributed import shard, solve
from gtvcvx.distributed._gathering import Gathering
from gtvcvx.distributed.engines import LocalEngine


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    # The processes have the search path of their parent.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.mark.parametrize("labels", [False, True])
def test_workers_write_the_same_file(labels, tmp_path):
    problem = instance(seed=3, labels=labels)
    solution = problem.solve(rtol=1e-7)
    shard(problem, tmp_path / "shards", 5)
    files = []
    for workers in (1, 2):
        path = tmp_path / f"{workers}.gtvc"
        given = str(tmp_path / "shards"), problem.graph.edges, solution.w, solution.u, str(path)
        result = LocalEngine().run(certify, given, workers)
        assert result.status == "CERTIFIED"
        files.append(path)
    assert files[0].read_bytes() == files[1].read_bytes()
    result = verify.check(files[0], problem.to_data())
    assert result.status == "CERTIFIED"
    assert result.to_json()["upper"] == verify.certify(problem, solution.w, solution.u).upper


def one_row_a_node(penalty):
    rng = np.random.default_rng(0)
    rows = gtv.SquaredLoss.stack(rng.normal(size=(40, 1, 3)), rng.normal(size=(40, 1)))
    graph = graph_of(40, 0)
    labelled = gtv.EmpiricalGraph(40, graph.edges, graph.weights, [f"node {i}" for i in range(40)])
    return gtv.GTVProblem(labelled, rows, penalty, 0.1)


def classes():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8, 3, 1)), rng.integers(0, 2, (8, 3))
    losses = gtv.MultinomialLogisticLoss.stack(*rows, n_classes=2)
    return gtv.GTVProblem(gtv.generators.chain(4, 1.0), losses, "l2", 0.05)


@pytest.mark.parametrize(
    ("problem", "name", "workers"),
    [
        (one_row_a_node("l2"), "c.gtvc", 1),  # no component inside a shard absorbs what arrives
        (one_row_a_node("squared"), "c.gtvc", 1),
        (one_row_a_node(gtv.Quadratic(np.diag([2.0, 1.0, 0.5]))), "c.gtvc", 1),  # a matrix
        (classes(), "c.json", 2),  # no form in arrays
    ],
)
def test_small_problems_without_a_certificate_in_pieces(problem, name, workers, tmp_path):
    half = problem.graph.n_nodes // 2
    shard(problem, tmp_path / "shards", half, partitioner=np.arange(2 * half) % half)
    run = solve(tmp_path / "shards", workers=workers, rtol=1e-7)
    assert run.certificate(tmp_path / name).status == "CERTIFIED"
    assert verify.check(tmp_path / name, problem.to_data()).status == "CERTIFIED"


def test_large_ones_are_refused_or_unproved(tmp_path, monkeypatch):
    monkeypatch.setattr(Gathering, "fits", lambda parts: False)
    for penalty in ("l2", gtv.Quadratic(np.eye(3))):
        problem = one_row_a_node(penalty)
        shard(problem, tmp_path / "shards", 20, partitioner=np.arange(40) % 20)
        run = solve(tmp_path / "shards", workers=1, rtol=1e-7)
        if penalty == "l2":
            assert run.certificate(tmp_path / "c.gtvc").status == "UNPROVED"
        else:
            with pytest.raises(ValueError, match="shard 0: these losses, this penalty or these"):
                run.certificate(tmp_path / "c.gtvc")
