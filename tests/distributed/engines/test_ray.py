"""Actors of Ray (extra ray): the same tasks and faults as on this machine alone."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _engine_tasks as tasks
import pytest

from gtvcvx.distributed.engines import RayEngine, WorkerError, WorkerLostError

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="extra ray"),
    # Of Ray itself.
    pytest.mark.filterwarnings("ignore"),
]
RAY = RayEngine()
LONG = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start Ray once: it takes seconds."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def gone(folder: Path) -> bool:
    """Whether the processes that noted themselves have ended, but for this one."""
    pids = [each["pid"] for each in tasks.notes(folder, "began").values()]
    left = [pid for pid in pids if pid != os.getpid()]
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        if not any(running(pid) for pid in left):
            return True
        time.sleep(0.05)
    return False


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.usefixtures("cluster")
def test_numbers_arrive() -> None:
    for workers in (1, 3):
        found = RAY.run(tasks.everything, {"x": [1, 2]}, workers, LONG)
        assert [each["rank"] for each in found] == list(range(workers))
        assert all(each["argument"] == {"x": [1, 2]} for each in found)
        assert all(each["threads"] == "1" for each in found[1:])
        assert len({each["pid"] for each in found}) == workers


@pytest.mark.usefixtures("cluster")
def test_a_task_that_fails(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="worker 1: OwnError: why") as caught:
        RAY.run(tasks.fail, (tmp_path, [2, 1], tasks.OwnError("why")), 3, LONG)
    assert "in fault" in caught.value.__notes__[0]
    assert gone(tmp_path)


@pytest.mark.usefixtures("cluster")
def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    with pytest.raises(WorkerLostError, match="worker 2 is lost"):
        RAY.run(tasks.kill_later, (tmp_path, 2, 0.1), 3, LONG)
    seen = tasks.notes(tmp_path, "lost")
    assert {rank: each["rank"] for rank, each in seen.items()} == {0: 2, 1: 2}
    assert gone(tmp_path)


@pytest.mark.usefixtures("cluster")
def test_a_worker_that_is_silent(tmp_path: Path) -> None:
    with pytest.raises(WorkerLostError, match="worker 2 is lost: silent"):
        RAY.run(tasks.stop_silently, (tmp_path, 2), 3, 0.7)
    assert gone(tmp_path)


@pytest.mark.usefixtures("cluster")
def test_lost_workers_are_started_anew(tmp_path: Path) -> None:
    count, *pids = RAY.run(tasks.go_on, (tmp_path, 2), 3, LONG, replace=2)
    assert count == 40
    assert pids[0] == os.getpid()
    processes = {rank: list(tmp_path.glob(f"try*-{rank}")) for rank in range(3)}
    assert [len(each) for each in processes.values()] == [1, 1, 3]
