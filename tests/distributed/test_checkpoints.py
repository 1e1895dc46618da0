"""Checkpoints: a run that was killed goes on, and ends with the same bits."""

import os
import signal
from pathlib import Path

import _distributed_tasks as tasks
import numpy as np
import pytest
from _problems import CASES, badly_conditioned

from gtvcvx.distributed import _solve, shard, solve
from gtvcvx.distributed._slices import Slices
from gtvcvx.distributed.engines import LocalEngine, WorkerLostError

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    # The processes have the search path of their parent.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def everything(run):
    found = run.gather()
    history = [(r.n_iter, r.value, r.dual_value) for r in run.history]
    return [a.tobytes() for a in (found.w, found.u, found.node_gaps)], history, run.gap


class Killing(LocalEngine):
    """Kills one of its workers at an iteration, once."""

    def __init__(self, folder, rank, n_iter):
        self.folder, self.rank, self.n_iter = str(folder), rank, n_iter

    def run(self, task, argument, workers, timeout=60.0, replace=0):
        if task is not _solve.work:
            return super().run(task, argument, workers, timeout, replace)
        given = (self.folder, self.rank, self.n_iter, argument)
        return super().run(tasks.killed, given, workers, timeout, replace)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    shard(CASES["raw units"], folder, 5, partitioner="order")
    return folder, everything(solve(folder, workers=1, rtol=1e-8))


@pytest.mark.parametrize("seed", range(MULTIPLIER))
def test_a_worker_is_killed_and_replaced(whole, tmp_path, seed):
    folder, expected = whole
    at = int(np.random.default_rng(seed).integers(100, 1300))
    engine = Killing(tmp_path, 1, at)
    given = {"checkpoint": tmp_path / "kept", "every": 0.0, "out": tmp_path / "out", "replace": 1}
    run = solve(folder, engine=engine, workers=2, rtol=1e-8, **given)
    assert (tmp_path / "killed").exists()
    assert everything(run) == expected
    resumed = tasks.starts(tmp_path)
    assert resumed[0] == 0 < resumed[-1] <= at  # the second attempt went on from a checkpoint


def test_a_resumed_run_stalls_where_the_first_one_does(tmp_path):
    shard(badly_conditioned(), tmp_path / "shards", 3, partitioner="order")
    expected = everything(solve(tmp_path / "shards", workers=1))
    given = {"checkpoint": tmp_path / "kept", "every": 0.0, "out": tmp_path / "out", "replace": 1}
    run = solve(tmp_path / "shards", engine=Killing(tmp_path, 1, 600), workers=2, **given)
    assert (tmp_path / "killed").exists()
    assert run.info["switched"]
    assert everything(run) == expected


def test_a_run_that_has_failed_is_resumed(whole, tmp_path):
    folder, expected = whole
    kept = {"checkpoint": tmp_path / "kept", "every": 0.0, "out": tmp_path / "out", "rtol": 1e-8}
    with pytest.raises(WorkerLostError, match="worker 1 is lost"):
        solve(folder, engine=Killing(tmp_path, 1, 300), workers=2, **kept)
    run = solve(folder, workers=1, resume=True, **kept)  # by one worker now
    assert everything(run) == expected


def test_resume_starts_at_zero_where_nothing_was_kept(whole, tmp_path):
    folder, expected = whole
    kept = {"checkpoint": tmp_path / "kept", "out": tmp_path / "out", "rtol": 1e-8}
    assert everything(solve(folder, workers=1, resume=True, **kept)) == expected
    assert not (tmp_path / "kept").exists()  # 30 seconds are not over


def test_checkpoints_of_other_problems_are_refused(whole, tmp_path):
    folder, _ = whole
    kept = tmp_path / "kept"
    solve(folder, workers=1, checkpoint=kept, every=0.0, out=tmp_path / "out")
    shard(CASES["raw units"], tmp_path / "other", 5, partitioner="order")
    with pytest.raises(ValueError, match=r"checkpoint: .* holds one of another problem"):
        solve(tmp_path / "other", workers=1, checkpoint=kept, resume=True)
    slices = Slices(kept, "checkpoint")
    index = slices.index()
    path = next(kept.glob("checkpoint-00002-*.npz"))
    assert len(list(kept.iterdir())) == 6  # one generation, and the index
    assert slices.slice(index, 2)["number"] == 2
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"checkpoint-00002-.*damaged"):
        solve(folder, workers=1, checkpoint=kept, resume=True, out=tmp_path / "out")


def test_ctrl_c_ends_all_workers_with_the_incumbent(whole, tmp_path):
    folder, _ = whole
    seen = []

    def press(progress):
        seen.append(progress)
        os.kill(os.getpid(), signal.SIGINT)

    run = solve(folder, workers=2, rtol=1e-15, callback=press, out=tmp_path)
    assert len(seen) == 1
    assert run.status == "user_limit"
    assert run.gap == seen[0].gap
