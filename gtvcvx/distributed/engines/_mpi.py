"""The engine for clusters with a scheduler: ranks of one `mpiexec` (extra ``mpi``)."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from gtvcvx._extras import extra_module
from gtvcvx._logging import room_logger
from gtvcvx.distributed.engines._errors import WorkerLostError
from gtvcvx.distributed.engines._fabric import Task, check_run
from gtvcvx.distributed.engines._mpi_fabric import MPIFabric

_LOG = room_logger("distributed")
# Seconds that other ranks leave rank 0 to print its error, before they abort the job themselves.
_LAST_WORDS = 10.0

# Of runs that have failed: MPI may still write into their buffers.
_ABANDONED: list[MPIFabric] = []


class MPIEngine:
    """Runs in the processes of ``mpiexec -n 4 python script.py``, which all call `run`.

    The result is returned at rank 0, and None elsewhere. Whatever goes wrong ends the job with a
    status that is not zero: a worker that dies takes the job with it (MPI does that), and after an
    error, which each rank raises, rank 0 aborts what is left when it ends. Start the job again, and
    let the task resume.
    """

    name = "mpi"

    def __repr__(self) -> str:
        return "MPIEngine()"

    def run(
        self, task: Task, argument: Any, workers: int, timeout: float = 60.0, replace: int = 0
    ) -> Any:
        """Run a task in all ranks of the job (`Engine.run`)."""
        check_run(task, workers, timeout, replace)
        mpi = extra_module("mpi4py.MPI", "mpi", "runs over MPI")
        there = mpi.COMM_WORLD.Get_size()
        if workers != there:
            raise ValueError(
                f"workers: mpiexec has started {there} of them, got {workers}; start {workers} "
                f"with mpiexec -n {workers}"
            )
        if replace:
            raise ValueError(
                "replace: a job of MPI ends with the worker that it loses; start it again"
            )
        fabric = MPIFabric(mpi, timeout)
        _log_places(fabric)
        with _deaf_to_ctrl_c(fabric.rank > 0):
            try:
                result = task(fabric, argument)
                fabric.barrier()
            except BaseException as error:
                self._fail(mpi, fabric, error)
                raise
        fabric.close()
        return result if fabric.rank == 0 else None

    def _fail(self, mpi: Any, fabric: MPIFabric, error: BaseException) -> None:
        """Tell the other ranks, and raise what has gone wrong first."""
        if not _ABANDONED:
            atexit.register(_abort, mpi)
        _ABANDONED.append(fabric)
        reports = fabric.reports
        reports.conclude(error)
        if fabric.rank or not isinstance(error, Exception):
            return
        first = reports.first_failure()
        if first is not None and (error is reports.told or isinstance(error, WorkerLostError)):
            raise first from None


def mpi_world() -> tuple[int, int]:
    """Return the rank of this process and the number of ranks of its job, by MPI.

    Raises
    ------
    ImportError
        There is no mpi4py.
    """
    world = extra_module("mpi4py.MPI", "mpi", "runs over MPI").COMM_WORLD
    return int(world.Get_rank()), int(world.Get_size())


def _log_places(fabric: MPIFabric) -> None:
    """Say where the ranks are: when one dies, MPI names its process and machine."""
    found = fabric.gather(f"{os.getpid()} on {socket.gethostname()}".encode())
    for rank, place in enumerate(found or ()):
        _LOG.info("worker %d is process %s", rank, place.decode())


def _abort(mpi: Any) -> None:
    """End the job: with messages that nobody takes any more, MPI would wait for ever at its end."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if mpi.COMM_WORLD.Get_rank():
        time.sleep(_LAST_WORDS)
    mpi.COMM_WORLD.Abort(1)


@contextlib.contextmanager
def _deaf_to_ctrl_c(deaf: bool) -> Iterator[None]:
    """Leave Ctrl-C to rank 0, which tells the others."""
    if not deaf or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
