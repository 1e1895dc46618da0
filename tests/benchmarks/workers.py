"""A process for each peer: its memory is its own, and it can be stopped when its time is over."""

from __future__ import annotations

import multiprocessing as mp
import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import numpy as np
from families import FAMILIES, Case
from peers import PEERS, Outcome, Task

# Beyond the limit that a peer itself is told, for what it does not count: build, last iteration.
GRACE = 30.0
WARM_UP_LIMIT = 10.0


class Worker:
    """One peer on one case; every solve starts from a newly built problem."""

    def __init__(self, case: Case, peer: str, warm: bool = True) -> None:
        context = mp.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, case, peer, warm), daemon=True)
        self._process.start()
        theirs.close()

    def solve(self, task: Task) -> Outcome:
        """Return what the peer did; never raises for what the peer does wrong."""
        wait = 1.5 * task.time_limit + GRACE
        if not self._process.is_alive():
            return Outcome("stopped before")
        self._pipe.send(task)
        # Building is not limited: it comes back before the clock starts.
        try:
            self._pipe.recv()
            if not self._pipe.poll(wait):
                self.close()
                return Outcome("killed at the time limit", seconds=wait)
            return self._pipe.recv()
        except (EOFError, ConnectionError):
            return Outcome("died, perhaps of memory")

    def close(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection, case: Case, peer: str, warm: bool) -> None:
    if warm:  # load, or compile, what the first call would; its answer is not wanted
        small = replace(case, size=FAMILIES[case.family].quick_size)
        with suppress(Exception):
            PEERS[peer].solve(small.problem(), Task(1e-2, np.inf, WARM_UP_LIMIT, 1e-2))
    while True:
        task = pipe.recv()
        problem = case.problem()
        pipe.send("built")
        try:
            outcome = PEERS[peer].solve(problem, task)
        except Exception as error:  # whatever a peer does wrong is a row of the table
            outcome = Outcome(f"failed: {type(error).__name__}: {error}"[:80])
        if outcome.w is not None and not np.isfinite(outcome.w).all():
            outcome = Outcome("failed: its answer is not finite")
        if np.isnan(outcome.memory):
            outcome.memory = peak_memory()
        pipe.send(outcome)


def peak_memory() -> float:
    """Peak resident memory of this process in MB; NaN where the system does not tell."""
    # Not getrusage: a new process inherits the peak of the one that started it.
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    return float(text.split("VmHWM:")[1].split()[0]) / 1024


def first_call(case: Case) -> dict[str, float]:
    """Seconds of a first solve: nothing compiled, compiled code on disk, and in memory."""
    task = Task(1e-3, -np.inf, 600.0, 0.0)
    seconds = []
    with tempfile.TemporaryDirectory() as empty, patch.dict(os.environ, NUMBA_CACHE_DIR=empty):
        for _ in range(2):
            worker = Worker(case, "gtvcvx", warm=False)
            seconds += [worker.solve(task).seconds for _ in range(2)]
            worker.close()
    return {"compiling": seconds[0], "cached": seconds[2], "second": min(seconds[1], seconds[3])}
