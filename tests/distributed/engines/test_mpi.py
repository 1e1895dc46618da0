"""Ranks of MPI (extra mpi): the same tasks, and jobs that end when something goes wrong."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import _engine_tasks as tasks
import pytest

ROOT = Path(__file__).resolve().parents[3]
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or MPIEXEC is None, reason="extra mpi"
)

SCRIPT = """
import pathlib, sys
import _engine_tasks as tasks
import gtvcvx.distributed.engines._mpi_fabric as fabric
from gtvcvx.distributed.engines import MPIEngine
what, folder, workers = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
run = MPIEngine().run
if what == "everything":
    for piece in (1 << 30, 1 << 19):
        fabric.PIECE = piece
        found = run(tasks.everything, {"x": 1}, workers)
        # Of rank 0 alone, or of more than one, whose words would be counted.
        if found is not None:
            print("ranks %s\\n" % [each["rank"] for each in found], end="", flush=True)
elif what == "fail":
    run(tasks.fail, (folder, [2, 1], ValueError("x: bad")), workers)
elif what == "stop":
    run(tasks.stop_silently, (folder, 2), workers, timeout=0.7)
elif what == "kill":
    run(tasks.kill_later, (folder, 1, 0.1), workers)
elif what == "differ":
    run(tasks.differ, "length", workers)
elif what == "wait":
    try:
        run(tasks.call_back, "waiting", workers)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
else:
    run(tasks.everything, None, workers + 1)
"""


def job(tmp_path: Path, workers: int, what: str) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    places = os.pathsep.join((str(ROOT), str(Path(__file__).parent)))
    program = [sys.executable, str(script), what, str(tmp_path), str(workers)]
    assert MPIEXEC is not None
    return subprocess.Popen(
        [MPIEXEC, "-n", str(workers), *program],
        env={**os.environ, "PYTHONPATH": places},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def outcome(tmp_path: Path, workers: int, what: str) -> tuple[int, str, str]:
    process = job(tmp_path, workers, what)
    out, err = process.communicate(timeout=120.0)
    return process.returncode, out, err


def survivors(tmp_path: Path) -> list[int]:
    return [
        each["pid"]
        for each in tasks.notes(tmp_path, "began").values()
        if Path(f"/proc/{each['pid']}").exists()
    ]


def nobody_is_left(tmp_path: Path) -> bool:
    until = time.monotonic() + 10.0
    while survivors(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    return not survivors(tmp_path)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_numbers_arrive(tmp_path: Path, workers: int) -> None:
    code, out, err = outcome(tmp_path, workers, "everything")
    assert code == 0, err
    assert out == f"ranks {list(range(workers))}\n" * 2


def test_an_error_is_that_of_the_lowest_rank(tmp_path: Path) -> None:
    code, _, err = outcome(tmp_path, 3, "fail")
    assert code != 0
    assert "ValueError: worker 1: x: bad\nIn the process of worker 1:\nTraceback" in err
    assert nobody_is_left(tmp_path)


def test_a_silent_rank_ends_the_job(tmp_path: Path) -> None:
    code, _, err = outcome(tmp_path, 3, "stop")
    assert code != 0
    assert "worker 2 is lost: silent for 0.7 s" in err
    seen = tasks.notes(tmp_path, "lost")
    assert {rank: each["rank"] for rank, each in seen.items()} == {0: 2, 1: 2}
    assert nobody_is_left(tmp_path)


def test_a_rank_that_is_killed_ends_the_job(tmp_path: Path) -> None:
    code, _, _ = outcome(tmp_path, 3, "kill")
    assert code != 0
    assert nobody_is_left(tmp_path)


def test_calls_that_differ(tmp_path: Path) -> None:
    code, _, _ = outcome(tmp_path, 2, "differ")
    assert code != 0


def test_the_number_of_workers_is_that_of_the_job(tmp_path: Path) -> None:
    code, _, err = outcome(tmp_path, 1, "count")
    assert code != 0
    assert "workers: mpiexec has started 1 of them, got 2; start 2 with mpiexec -n 2" in err


def test_ctrl_c_is_for_rank_0(tmp_path: Path) -> None:
    process = job(tmp_path, 2, "wait")
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30.0)
    # mpiexec has something to say, too.
    assert out.endswith("interrupted\n")
