"""Solves over shards: the optimum and its proof, the same bits for all workers, limits."""

from pathlib import Path

import numpy as np
import pytest
from _problems import CASES

import gtvcvx as gtv
import verify
from gtvcvx import distributed
from gtvcvx.distributed import Manifest, shard, solve


@pytest.mark.parametrize("name", CASES)
def test_the_optimum(name, tmp_path):
    problem = CASES[name]
    shard(problem, tmp_path, 5, partitioner="order")
    run = solve(tmp_path, workers=1, rtol=1e-8)
    exact = problem.solve(rtol=1e-9)
    size = max(1.0, abs(exact.value))
    assert run.status == "optimal"
    assert run.rel_gap <= 1e-8
    assert run.value - exact.value <= run.gap + 1e-12 * size
    assert run.dual_value <= exact.value + 1e-12 * size
    found = run.gather()
    assert problem.value(found.w) == pytest.approx(run.value, rel=1e-12)
    np.testing.assert_array_equal(found.edges, problem.graph.edges)
    total = found.node_gaps.sum() + found.edge_gaps.sum()
    # The gap has what rounding may add, too.
    assert total == pytest.approx(run.gap, rel=0.1, abs=3e-11 * size)
    assert [record.n_iter for record in run.history][-1] == run.n_iter


def test_within_1e9_of_one_machine():
    problem = CASES["l2"]
    found = problem.solve(rtol=1e-9, engine="local", workers=2)
    expected = problem.solve(rtol=1e-9)
    assert found.status == "optimal"
    assert abs(found.value - expected.value) <= 1e-9 * expected.value
    assert verify.certify(problem, found.w, found.u, rtol=1e-8).status == "CERTIFIED"


def everything(run):
    found = run.gather()
    numbers = [found.w, found.u, found.node_gaps, found.edge_gaps, found.slack]
    history = [(r.n_iter, r.value, r.dual_value) for r in run.history]
    weight = np.asarray(run.info["primal_weight"])
    return [a.tobytes() for a in (*numbers, weight)], history, run.gap, run.status


def test_bits_and_decisions_do_not_depend_on_the_workers(tmp_path):
    shard(CASES["raw units"], tmp_path, 5, partitioner="order")
    runs = [solve(tmp_path, workers=workers, out=tmp_path / str(workers)) for workers in (1, 2)]
    assert everything(runs[0]) == everything(runs[1])
    assert runs[1].certificate(tmp_path / "c.gtvc").status == "CERTIFIED"


def test_labels_come_back(tmp_path):
    graph = gtv.EmpiricalGraph(4, [(0, 2), (1, 3), (2, 3)], nodes=["a", "b", "c", "d"])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.arange(4.0)[:, None]), "l1", 0.1)
    shard(problem, tmp_path, 3, partitioner=[0, 1, 2, 0])
    found = solve(tmp_path, workers=1).gather()
    assert list(found.nodes) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(found.w, problem.solve(rtol=1e-9).w, atol=1e-5)


def test_limits_leave_a_valid_gap(tmp_path):
    problem = CASES["l2"]
    exact = problem.solve(rtol=1e-9).value
    shard(problem, tmp_path, 5)
    seen = []
    for limit in (
        {"max_iter": 37},
        {"time_limit": 1e-9},
        {"callback": lambda progress: seen.append(progress) or True, "rtol": 1e-15},
    ):
        run = solve(tmp_path, workers=2, **limit)
        assert run.status == "user_limit"
        assert run.dual_value <= exact + 1e-12 <= run.value + 2e-12
        assert np.isfinite(run.gap)
    assert len(seen) == 1
    assert seen[0].gap == run.gap


def test_an_error_of_a_callback_is_raised(tmp_path):
    def fail(progress):
        raise OSError("the callback's own")

    shard(CASES["l2"], tmp_path, 5)
    with pytest.raises(OSError, match="the callback's own"):
        solve(tmp_path, workers=2, callback=fail)


def test_each_worker_reads_its_own_shards_alone(tmp_path, monkeypatch):
    shard(CASES["l2"], tmp_path, 5)
    read = []
    original = Manifest.shard

    def noted(self, folder, number):
        read.append(number)
        return original(self, folder, number)

    monkeypatch.setattr(Manifest, "shard", noted)
    solve(tmp_path, workers=2)
    assert read == [0, 1, 2]  # of rank 0, which is this process


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resume": True}, "resume: there is no checkpoint"),
        ({"every": -1.0}, "every: a number of seconds"),
        ({"workers": 6}, "workers: at most one for each of the 5 shards"),
        ({"engine": "none"}, "engine: one of local, mpi, ray"),
        ({"rtol": 0.0}, "rtol: a positive"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message, tmp_path):
    shard(CASES["l2"], tmp_path, 5)
    with pytest.raises(ValueError, match=message):
        solve(tmp_path, **options)
    assert not (tmp_path / "solution").exists()


def test_solutions_of_another_problem_are_refused(tmp_path):
    shard(CASES["l2"], tmp_path / "a", 3)
    shard(CASES["l1"], tmp_path / "b", 3)
    run = solve(tmp_path / "a", workers=1)
    with pytest.raises(ValueError, match="no solution of the problem"):
        distributed.Run.load(
            tmp_path / "b", run.out, Manifest.load(tmp_path / "b"), run.engine, 1, 60.0
        )
    file = next(Path(run.out).glob("solution-00001-*.npz"))
    file.unlink()
    with pytest.raises(ValueError, match=r"solution-00001-.*cannot be read"):
        run.gather()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "mpi"}, "ranks of MPI need a folder"),
        ({"engine": "local", "solver": "PDHG"}, "engine: solver 'PDHG'"),
        ({"engine": "local", "checkpoint": "x"}, "checkpoint: an option of"),
    ],
)
def test_a_problem_in_memory_refuses(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CASES["l2"].solve(**options)
