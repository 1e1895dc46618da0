"""Runs a task in rank 0 and its crew: attempts, what their ends mean, and replacement."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from typing import Any

from gtvcvx._logging import room_logger
from gtvcvx._processes._records import TOKEN_BYTES
from gtvcvx.distributed.engines._crew import Crew, Starter
from gtvcvx.distributed.engines._errors import WorkerLostError
from gtvcvx.distributed.engines._fabric import Task
from gtvcvx.distributed.engines._meeting import Meeting
from gtvcvx.distributed.engines._mesh import Mesh

_LOG = room_logger("distributed")
# Seconds that processes have to end by themselves. They do at once, unless they hang.
_END = 3.0


class _Nobody:
    """The `Watch` of a worker that is alone."""

    patience = 0.0

    def connections(self) -> Collection[socket.socket]:
        return ()

    def look(self) -> None:
        pass

    def suspect(self, ranks: Collection[int]) -> None:
        pass


def run_alone(task: Task, argument: Any) -> Any:
    """Run a task that has no other workers."""
    return task(Mesh(0, {}, _Nobody(), 0.0), argument)


class Team:
    """Rank 0, which is this process, and the others.

    Parameters
    ----------
    starter : Starter
    task : callable
    argument : object
    workers : int
    timeout : float
    """

    def __init__(
        self, starter: Starter, task: Task, argument: Any, workers: int, timeout: float
    ) -> None:
        self._task, self._argument, self._timeout = task, argument, timeout
        self._others = set(range(1, workers))
        self._host, self._token = starter.host, os.urandom(TOKEN_BYTES)
        self._crew = Crew(starter, self._token, timeout)

    def run(self, replace: int) -> Any:
        """Run the task; so many times, after the loss of workers, again."""
        crew, lives = self._crew, replace
        try:
            while True:
                try:
                    crew.hire(sorted(self._others - crew.members()))
                    return self._attempt()
                except WorkerLostError as error:
                    if not lives or not error.rank:
                        raise
                    lives -= 1
                    _LOG.warning("%s; it is started anew, %d times more at most", error, lives)
                crew.dismiss(self._others - (crew.idle() - crew.lost.keys()))
        finally:
            crew.close(_END)

    def _attempt(self) -> Any:
        crew = self._crew
        mesh: Mesh | None = None
        try:
            mesh = self._mesh()
            result = self._task(mesh, self._argument)
            crew.settle()
            return result
        except WorkerLostError as error:
            crew.lost.setdefault(error.rank, error.reason)
            self._raise_loss(error)
        except Exception as error:
            if crew.lost:
                self._raise_loss(error)
            self._stop(error)
            if error is crew.told:
                # Others may have failed in the meantime: the first of them, whoever was faster.
                raise crew.failure() or error from None
            raise
        except BaseException as error:
            self._stop(error)
            raise
        finally:
            # After the others were told: who sees a closed connection takes its worker for dead.
            if mesh is not None:
                mesh.close()

    def _mesh(self) -> Mesh:
        crew = self._crew
        addresses = crew.begin()
        meeting = Meeting(0, self._host, self._token, crew.attempt, self._timeout)
        try:
            addresses[0] = meeting.address
            crew.introduce(addresses)
            channels = meeting.channels(addresses, crew.look)
        finally:
            meeting.close()
        return Mesh(0, channels, crew, self._timeout)

    def _raise_loss(self, error: Exception) -> None:
        """Raise that workers are lost, in the name of the first."""
        lost = self._crew.lost
        first = WorkerLostError(min(lost), lost[min(lost)])
        self._crew.stop(first)
        raise first from (None if isinstance(error, WorkerLostError) else error)

    def _stop(self, error: BaseException) -> None:
        self._crew.stop(WorkerLostError(0, f"its task has ended by {type(error).__name__}"))
