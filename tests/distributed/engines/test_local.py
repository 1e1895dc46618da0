"""Workers on this machine: what they are told, how they end, and who is to blame."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _engine_tasks as tasks
import pytest

from gtvcvx.distributed.engines import LocalEngine, WorkerError, WorkerLostError

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
ROOT = Path(__file__).resolve().parents[3]
LOCAL = LocalEngine()
LONG = 60.0


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    # The processes have the search path of their parent.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    yield
    assert children() == []


def children() -> list[int]:
    """Return the processes that this one has started and that are still there."""
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True
    )
    lines = [line.split(None, 1) for line in found.stdout.splitlines()]
    return [int(pid) for pid, command in lines if "engines._worker" in command]


def gone(pids: list[int], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(("workers", "threads"), [(1, None), (2, "2"), (3, None)])
def test_numbers_arrive(workers: int, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if threads is None:
        monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
    found = LOCAL.run(tasks.everything, {"x": [1, 2]}, workers, LONG)
    assert [each["rank"] for each in found] == list(range(workers))
    assert all(each["argument"] == {"x": [1, 2]} for each in found)
    # One, unless the environment says otherwise.
    assert all(each["threads"] == (threads or "1") for each in found[1:])
    assert found[0]["pid"] == os.getpid()
    assert len({each["pid"] for each in found}) == workers


@pytest.mark.parametrize("seconds", [0.05, 0.0, 0.3, 0.7][:MULTIPLIER])
def test_a_worker_that_is_killed(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(WorkerLostError, match="worker 2 is lost: its process was ended") as caught:
        LOCAL.run(tasks.kill_later, (tmp_path, 2, seconds), 3, LONG)
    assert caught.value.rank == 2
    assert "SIGKILL" in caught.value.reason
    seen = tasks.notes(tmp_path, "lost")
    assert {rank: each["rank"] for rank, each in seen.items()} == {0: 2, 1: 2}


@pytest.mark.parametrize("victim", [2, 1][:MULTIPLIER])
def test_a_worker_that_is_silent(tmp_path: Path, victim: int) -> None:
    began = time.monotonic()
    with pytest.raises(WorkerLostError, match=f"worker {victim} is lost: silent for 0.7 s"):
        LOCAL.run(tasks.stop_silently, (tmp_path, victim), 3, 0.7)
    assert time.monotonic() - began < 30.0
    seen = tasks.notes(tmp_path, "lost")
    assert {rank: each["rank"] for rank, each in seen.items()} == {0: victim, 3 - victim: victim}


@pytest.mark.parametrize(
    ("ranks", "error", "kind", "text"),
    [
        ([1], ValueError("x: bad"), ValueError, "worker 1: x: bad"),
        ([2, 1], tasks.OwnError("why"), WorkerError, "worker 1: OwnError: why"),
        ([1], SystemExit(3), WorkerError, "worker 1: SystemExit: 3"),
        ([0, 1], KeyError("own"), KeyError, "^'own'$"),
    ],
)
def test_a_task_that_fails(
    tmp_path: Path, ranks: list[int], error: Any, kind: Any, text: str
) -> None:
    with pytest.raises(kind, match=text) as caught:
        LOCAL.run(tasks.fail, (tmp_path, ranks, error), max(ranks) + 1, LONG)
    if 0 not in ranks:
        (words,) = caught.value.__notes__
        assert words.startswith(f"In the process of worker {min(ranks)}:\nTraceback")
        assert "in fault" in words


@pytest.mark.parametrize("how", ["length", "call"])
def test_calls_that_differ(how: str) -> None:
    with pytest.raises(RuntimeError, match="the calls of workers differ"):
        LOCAL.run(tasks.differ, how, 2, LONG)


def test_what_cannot_be_sent_is_named() -> None:
    with pytest.raises(TypeError, match="task: it cannot be sent"):
        LOCAL.run(lambda fabric, argument: None, None, 2, LONG)
    with pytest.raises(TypeError, match="argument: it cannot be sent"):
        LOCAL.run(tasks.everything, lambda: None, 2, LONG)
    with pytest.raises(ValueError, match="worker 1: no such thing here"):
        LOCAL.run(tasks.everything, tasks.Unreadable(), 2, LONG)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((3, None, 2, 1.0, 0), "task"),
        ((tasks.everything, None, 0, 1.0, 0), "workers"),
        ((tasks.everything, None, 2, 0.0, 0), "timeout"),
        ((tasks.everything, None, 2, 1.0, -1), "replace"),
    ],
)
def test_arguments_are_checked(given: Any, name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{name}: "):
        LOCAL.run(*given)


def test_lost_workers_are_started_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gtvcvx"):
        count, *pids = LOCAL.run(tasks.go_on, (tmp_path, 2), 3, LONG, replace=2)
    assert count == 40
    assert pids[0] == os.getpid()
    # The survivor is the same process all the time; the other was there three times.
    processes = {rank: list(tmp_path.glob(f"try*-{rank}")) for rank in range(3)}
    assert [len(each) for each in processes.values()] == [1, 1, 3]
    messages = [record.getMessage() for record in caplog.records]
    assert [text.split(":")[0] for text in messages] == ["worker 2 is lost"] * 2


def test_there_is_an_end_to_replacement(tmp_path: Path) -> None:
    with pytest.raises(WorkerLostError, match="worker 1 is lost"):
        LOCAL.run(tasks.go_on, (tmp_path, 9), 2, LONG, replace=1)


SCRIPT = """
import sys
import _engine_tasks as tasks
from gtvcvx.distributed.engines import LocalEngine
if __name__ == "__main__":
    try:
        LocalEngine().run(tasks.call_back, sys.argv[1], 3, 60.0)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def caller(tmp_path: Path, how: str) -> tuple[subprocess.Popen[str], list[int]]:
    """Return a script that runs workers, and all its processes."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    places = os.pathsep.join((str(ROOT), str(Path(__file__).parent)))
    process = subprocess.Popen(
        [sys.executable, str(path), how],
        env={**os.environ, "PYTHONPATH": places},
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout is not None
    return process, [int(pid) for pid in process.stdout.readline().split()]


@pytest.mark.parametrize(
    ("how", "end"),
    [
        ("waiting", signal.SIGINT),
        ("computing", signal.SIGKILL),
        ("computing", signal.SIGINT),
        ("waiting", signal.SIGKILL),
    ][: 2 * MULTIPLIER],
)
def test_nobody_outlives_the_caller(tmp_path: Path, how: str, end: signal.Signals) -> None:
    process, pids = caller(tmp_path, how)
    assert len(pids) == 3
    # As Ctrl-C of a terminal does, to the whole group.
    os.killpg(process.pid, end)
    out, _ = process.communicate(timeout=30.0)
    assert (out == "interrupted\n") == (end == signal.SIGINT)
    assert gone(pids)
