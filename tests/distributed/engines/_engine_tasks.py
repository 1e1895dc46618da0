"""Tasks of workers, in a module that their processes import."""

from __future__ import annotations

import json
import os
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from gtvcvx.distributed.engines import Fabric, WorkerLostError

# Odd, empty, and longer than what fits into the buffers of a connection.
SIZES = (1, 0, 3, 2501, 1_000_001)


def others(fabric: Fabric) -> list[int]:
    return [rank for rank in range(fabric.size) if rank != fabric.rank]


def numbers(sender: int, receiver: int, size: int) -> np.ndarray:
    return np.arange(float(size)) + 100.0 * sender + receiver


def exchange_sizes(fabric: Fabric) -> None:
    for size in SIZES:
        out = {r: numbers(fabric.rank, r, size + r) for r in others(fabric)}
        into = {r: np.full(size + fabric.rank, np.nan) for r in others(fabric)}
        for _ in range(2):
            fabric.exchange(out, into)
        for r, got in into.items():
            np.testing.assert_array_equal(got, numbers(r, fabric.rank, size + fabric.rank))


def exchange_along_a_ring(fabric: Fabric) -> None:
    """Each worker sends to the next one alone, rows of two columns."""
    after, before = (fabric.rank + 1) % fabric.size, (fabric.rank - 1) % fabric.size
    if fabric.size == 1:
        fabric.exchange({}, {})
        return
    got = np.empty((7, 2))
    fabric.exchange({after: np.full((7, 2), float(fabric.rank))}, {before: got})
    assert (got == before).all()


def gather_arrays(fabric: Fabric) -> None:
    for _ in range(3):
        for shape in ((0,), (3,), (fabric.rank,), (2 * fabric.rank, 3), (100_000, 2)):
            own = np.full(shape, float(fabric.rank))
            found = fabric.all_gather(own)
            assert len(found) == fabric.size
            for rank, array in enumerate(found):
                assert array.shape[1:] == own.shape[1:]
                assert (array == rank).all()
            assert found[fabric.rank].shape == shape
            own[...] = -1.0
            assert (found[fabric.rank] == fabric.rank).all()
        lengths = [len(array) for array in fabric.all_gather(np.zeros(5 * fabric.rank))]
        assert lengths == [5 * rank for rank in range(fabric.size)]


def gather_bytes(fabric: Fabric) -> None:
    for size in (0, 1, 1 << 22):
        data = bytes([fabric.rank]) * (size + fabric.rank)
        found = fabric.gather(data)
        if fabric.rank:
            assert found is None
        else:
            assert found == [bytes([r]) * (size + r) for r in range(fabric.size)]
        assert fabric.broadcast(None if fabric.rank else b"a" * size) == b"a" * size
        fabric.barrier()


def everything(fabric: Fabric, argument: Any) -> Any:
    exchange_sizes(fabric)
    exchange_along_a_ring(fabric)
    gather_arrays(fabric)
    gather_bytes(fabric)
    mine = {"pid": os.getpid(), "rank": fabric.rank, "argument": argument}
    mine["threads"] = os.environ.get("NUMBA_NUM_THREADS")
    found = fabric.gather(pickle.dumps(mine))
    return None if found is None else [pickle.loads(each) for each in found]


def note(folder: Path, fabric: Fabric, name: str, **words: Any) -> None:
    """Write a file at once or not at all."""
    path = folder / f"{name}-{fabric.rank}"
    path.with_suffix(".new").write_text(json.dumps({"pid": os.getpid(), **words}))
    path.with_suffix(".new").replace(path)


def notes(folder: Path, name: str) -> dict[int, dict[str, Any]]:
    found = sorted(folder.glob(f"{name}-?"))
    return {int(path.name[-1]): json.loads(path.read_text()) for path in found}


def step(fabric: Fabric) -> None:
    """Exchange with neighbours on a line, as shards of a path do: faults reach others late."""
    peers = [r for r in (fabric.rank - 1, fabric.rank + 1) if 0 <= r < fabric.size]
    fabric.exchange({r: np.ones(50) for r in peers}, {r: np.empty(50) for r in peers})


def march(fabric: Fabric, folder: Path, fault: Any) -> int:
    """Take steps for ever, with a fault at the third; survivors note what they see."""
    note(folder, fabric, "began")
    fabric.barrier()
    try:
        for k in range(1_000_000):
            if k == 3:
                fault(fabric.rank)
            step(fabric)
    except WorkerLostError as error:
        note(folder, fabric, "lost", rank=error.rank, reason=error.reason)
        raise
    return 0


def kill_later(fabric: Fabric, argument: Any) -> int:
    """Rank 0 kills another after some time."""
    folder, victim, seconds = argument
    if not fabric.rank:

        def kill() -> None:
            os.kill(notes(folder, "began")[victim]["pid"], signal.SIGKILL)

        timer = threading.Timer(seconds, kill)
        threading.Thread(target=_when_all_began, args=(folder, fabric, timer)).start()
    return march(fabric, folder, lambda rank: None)


def _when_all_began(folder: Path, fabric: Fabric, timer: threading.Timer) -> None:
    while len(notes(folder, "began")) < fabric.size:
        time.sleep(0.01)
    timer.start()


def stop_silently(fabric: Fabric, argument: Any) -> int:
    folder, victim = argument

    def fault(rank: int) -> None:
        if rank == victim:
            os.kill(os.getpid(), signal.SIGSTOP)

    return march(fabric, folder, fault)


class OwnError(Exception):
    """No usual one."""


def fail(fabric: Fabric, argument: Any) -> int:
    folder, ranks, error = argument

    def fault(rank: int) -> None:
        if rank in ranks:
            raise error

    return march(fabric, folder, fault)


def differ(fabric: Fabric, argument: Any) -> None:
    """Calls that do not fit to each other."""
    if fabric.rank == 0:
        fabric.exchange({1: np.ones(3)}, {1: np.empty(3)})
    elif argument == "length":
        fabric.exchange({0: np.ones(4)}, {0: np.empty(3)})
    else:
        fabric.all_gather(np.ones(3))


def go_on(fabric: Fabric, argument: Any) -> list[int]:
    """Count to 40, from where the files say; the last worker kills itself at 20, some times."""
    folder, deaths = argument
    note(folder, fabric, f"try{os.getpid()}")
    total = np.zeros(1)
    path = folder / "count"
    if path.exists():
        total[0] = float(path.read_text())
    while total[0] < 40:
        total += sum(each[0] for each in fabric.all_gather(np.ones(1))) / fabric.size
        if not fabric.rank:
            path.write_text(str(total[0]))
        fabric.barrier()
        died = len(list(folder.glob("died*")))
        if fabric.rank == fabric.size - 1 and total[0] == 20 + died and died < deaths:
            (folder / f"died{died}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    pids = fabric.all_gather(np.array([float(os.getpid())]))
    return [int(total[0]), *(int(pid[0]) for pid in pids)]


def call_back(fabric: Fabric, argument: Any) -> None:
    """Rank 0 tells the processes, and all wait until something happens."""
    pids = fabric.all_gather(np.array([float(os.getpid())]))
    if not fabric.rank:
        print(*(int(pid[0]) for pid in pids), flush=True)
    if argument == "computing" and fabric.rank:
        while True:
            sum(range(100_000))
    while True:
        step(fabric)
        time.sleep(0.01)


class Unreadable:
    """Cannot be loaded again."""

    def __reduce__(self) -> Any:
        return refuse, ()


def refuse() -> None:
    raise ValueError("no such thing here")
