"""What ranks tell each other when something goes wrong: each says once that its task is over.

A report makes all who wait report, too; who has not reported a moment later is lost.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from gtvcvx._processes._failures import Failure, as_error, in_words, packed_error, unpacked_error
from gtvcvx.distributed.engines._control import GRACE
from gtvcvx.distributed.engines._errors import USUAL, WorkerError, WorkerLostError, label_of


class Reports:
    """Reports of all ranks of a run.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    timeout : float

    Attributes
    ----------
    told : Exception or None
        What `look` has raised.
    """

    def __init__(self, mpi: Any, timeout: float) -> None:
        self._mpi, self._timeout = mpi, timeout
        self._comm = mpi.COMM_WORLD.Dup()
        self._rank, self._size = self._comm.Get_rank(), self._comm.Get_size()
        self._failures: dict[int, Failure | None] = {}
        self._sent: list[Any] = []
        self.told: Exception | None = None

    def look(self) -> None:
        """Raise what is to be raised if somebody has reported.

        Raises
        ------
        WorkerLostError, WorkerError
        """
        if self._hear():
            self._report(None)
            self._collect()
            self.told = self.first_failure() or self._loss(())
            raise self.told

    def silent(self, ranks: Collection[int]) -> WorkerLostError:
        """Return whose fault it is that nothing comes of these."""
        self._report(None)
        self._collect()
        return self._loss(ranks)

    def conclude(self, error: BaseException) -> None:
        """Report the end of the own task, and hear those of the others."""
        known = error is self.told or isinstance(error, WorkerLostError)
        self._report(None if known else in_words(error))
        self._collect()

    def first_failure(self) -> Exception | None:
        """Return the error of the first rank whose task has failed by itself."""
        for rank in sorted(self._failures):
            failure = self._failures[rank]
            if failure is not None:
                return as_error(label_of(rank), failure, USUAL, WorkerError)
        return None

    def _loss(self, suspects: Collection[int]) -> WorkerLostError:
        mute = [rank for rank in range(self._size) if rank not in self._failures]
        also = "" if mute else ", and so are all who wait for each other"
        first = min(mute or suspects, default=0)
        return WorkerLostError(first, f"silent for {self._timeout:g} s{also}")

    def _report(self, failure: Failure | None) -> None:
        if self._rank in self._failures:
            return
        self._failures[self._rank] = failure
        body = b"" if failure is None else packed_error(failure)
        for rank in range(self._size):
            if rank != self._rank:
                # Kept, since nobody may take it.
                self._sent.append((body, self._comm.Isend([body, self._mpi.BYTE], rank)))

    def _collect(self) -> None:
        until = time.monotonic() + GRACE
        while len(self._failures) < self._size and time.monotonic() < until:
            if not self._hear():
                time.sleep(0.001)

    def _hear(self) -> bool:
        """Take a report that has come, and tell whether there was one."""
        status = self._mpi.Status()
        if not self._comm.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            return False
        body = bytearray(status.Get_count(self._mpi.BYTE))
        self._comm.Recv([body, self._mpi.BYTE], status.Get_source())
        self._failures[status.Get_source()] = unpacked_error(bytes(body)) if body else None
        return True

    def close(self) -> None:
        """Let go of the communicator."""
        self._comm.Free()
