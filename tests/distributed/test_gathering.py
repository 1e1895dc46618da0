"""Small problems on which iterations stall: rank 0 gathers and finishes them."""

from pathlib import Path

import _distributed_tasks as tasks
import numpy as np
import pytest
from _problems import CASES, badly_conditioned, instance
from _sharded import parts_of

import gtvcvx as gtv
from gtvcvx.distributed import shard, solve
from gtvcvx.distributed._gathering import Gathering, GatheringSettings
from gtvcvx.distributed.engines import LocalEngine

WEIGHTED = gtv.SquaredLoss.from_rows(np.eye(2), [1.0, 2.0], [4, 5], sample_weight=[1.0, 2.0])
SUM = CASES["l2"].losses + gtv.LassoLoss.from_rows(np.eye(2), [1.0, 2.0], [4, 5], kappa=0.1)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.mark.parametrize(
    "problem",
    [
        instance(),
        CASES["p-norm"],
        gtv.GTVProblem(CASES["l2"].graph, WEIGHTED + gtv.PointLoss.stack(np.ones((70, 2)))),
        gtv.GTVProblem(CASES["l2"].graph, SUM),
    ],
)
def test_the_whole_is_what_it_was(problem, tmp_path):
    shard(problem, tmp_path, 4, partitioner=np.arange(problem.graph.n_nodes) % 4)
    found = LocalEngine().run(tasks.whole, str(tmp_path), 1)
    w = np.random.default_rng(0).normal(size=(problem.graph.n_nodes, problem.dim))
    np.testing.assert_array_equal(found.graph.edges, problem.graph.edges)
    np.testing.assert_array_equal(found.capacities, problem.capacities)
    assert found.value(w) == problem.value(w)
    for one, other in zip(found.losses.terms(), problem.losses.terms(), strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


LOSSES = {
    "squared": badly_conditioned(),
    # Its flow alone proves little, since no shard keeps the multipliers that go with it.
    "logistic": badly_conditioned(loss=gtv.LogisticLoss),
    "huber": badly_conditioned(loss=gtv.HuberLoss, delta=1.0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_stalls_is_finished(name, tmp_path):
    problem = LOSSES[name]
    shard(problem, tmp_path, 3, partitioner="order")
    run = solve(tmp_path, workers=1, rtol=1e-8)
    exact = problem.solve(rtol=1e-9)
    assert (run.status, run.info["switched"]) == ("optimal", True)
    assert run.rel_gap <= 1e-8
    assert run.info["method"].startswith("primal-dual, ")
    assert run.dual_value - 1e-12 <= exact.value <= run.value + exact.gap
    found = run.gather()
    assert problem.value(found.w) == pytest.approx(run.value, rel=1e-12)
    assert found.node_gaps.sum() + found.edge_gaps.sum() <= run.gap
    assert run.certificate(tmp_path / "c.gtvc", 1e-7).status == "CERTIFIED"


def test_what_is_large_or_ends_soon_is_not_gathered(tmp_path, monkeypatch):
    parts = parts_of(CASES["l2"], tmp_path, 3)
    assert Gathering.fits(parts)
    assert not Gathering.fits(parts, GatheringSettings(most_bytes=1e4))
    monkeypatch.setattr("gtvcvx.distributed._gathering.gathered_problem", None)
    assert not solve(tmp_path, workers=1).info["switched"]


def test_what_remains_is_iterated_on(tmp_path, monkeypatch):
    """Rank 0 gives up after 3 iterations: those over shards go on from its point."""
    original = gtv.GTVProblem.solve
    limited = lambda problem, **given: original(problem, **{**given, "max_iter": 3})  # noqa: E731
    monkeypatch.setattr(gtv.GTVProblem, "solve", limited)
    shard(LOSSES["squared"], tmp_path, 3)
    run = solve(tmp_path, workers=1, rtol=1e-8)
    assert (run.status, run.info["switched"]) == ("optimal", True)
    assert run.n_iter > 2000 + 3 + 100


def test_who_waits_hears_that_rank_0_is_there(tmp_path):
    shard(CASES["l2"], tmp_path, 2)
    # Who waits gives up half a second and a few for questions after the last sign of life.
    heard = LocalEngine().run(tasks.long_work, (tmp_path, 5.0), 2, 0.5)
    np.testing.assert_array_equal(heard, [0.0, 7.0, 14.0])


def test_ctrl_c_ends_what_rank_0_does_alone(tmp_path):
    shard(CASES["l2"], tmp_path, 2)
    seconds, heard = LocalEngine().run(tasks.interrupted_work, str(tmp_path), 2)
    assert seconds < 60.0
    assert heard == 2.0
