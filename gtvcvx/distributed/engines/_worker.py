"""A worker other than rank 0: it takes part in attempts until the launcher goes away."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

from gtvcvx._processes._failures import in_words, packed_error
from gtvcvx._processes._inside import enter, from_parent, leave, received_start
from gtvcvx._processes._records import TOKEN_BYTES
from gtvcvx.distributed.engines._control import (
    Control,
    LauncherGone,
    Say,
    packed_addresses,
    packed_loss,
    unpacked_addresses,
)
from gtvcvx.distributed.engines._errors import WorkerLostError
from gtvcvx.distributed.engines._fabric import Task
from gtvcvx.distributed.engines._introductions import Address, Purpose, introduced
from gtvcvx.distributed.engines._meeting import Meeting
from gtvcvx.distributed.engines._mesh import Mesh

#: Port of the launcher, rank, time-out, length of the launcher's host; the token and host follow.
DOOR = struct.Struct("!HIdH")


def main() -> None:
    """Serve in a process that `gtvcvx.distributed.engines._local` has started."""
    enter()
    port, rank, timeout, length = DOOR.unpack(from_parent(DOOR.size))
    token = from_parent(TOKEN_BYTES)
    host = from_parent(length).decode()
    # Where nobody is there to be told, there is nothing to say.
    with contextlib.suppress(LauncherGone, OSError):
        Worker(rank, (host, port), host, token, timeout).serve(received_start)
    leave()


class Worker:
    """One worker.

    Parameters
    ----------
    rank : int
    launcher : Address
    host : str
        Address of the interface that other workers reach this one at.
    token : bytes
    timeout : float

    Raises
    ------
    OSError
        The launcher is not there.
    """

    def __init__(
        self, rank: int, launcher: Address, host: str, token: bytes, timeout: float
    ) -> None:
        self._rank, self._host, self._token, self._timeout = rank, host, token, timeout
        self._control = Control(introduced(launcher, token, Purpose.CONTROL, 0, rank, timeout))
        self._mesh: Mesh | None = None

    def serve(self, start: Any) -> None:
        """Take part in attempts until the launcher closes the connection.

        Parameters
        ----------
        start : callable
            Returns the task and its argument; it is called once, and what it raises is an error of
            this worker.

        Raises
        ------
        LauncherGone
        """
        control = self._control
        try:
            given: tuple[Task, Any] | None = None
            while True:
                control.attempt = control.await_(Say.BEGIN)[0].round
                self._leave_mesh()
                try:
                    given = given or start()
                    self._attempt(*given)
                except LauncherGone:
                    raise
                except WorkerLostError as error:
                    control.say(Say.LOST, body=packed_loss(error))
                except BaseException as error:
                    # Whatever the task did, such as leaving by SystemExit: the launcher is told.
                    control.say(Say.FAILED, body=packed_error(in_words(error)))
                else:
                    control.say(Say.DONE)
        finally:
            self._leave_mesh()
            control.close()

    def _attempt(self, task: Task, argument: Any) -> None:
        control = self._control
        meeting = Meeting(self._rank, self._host, self._token, control.attempt, self._timeout)
        try:
            mine = packed_addresses({self._rank: meeting.address})
            control.say(Say.LISTENING, body=mine)
            addresses = unpacked_addresses(control.await_(Say.MESH)[1])
            channels = meeting.channels(addresses, control.look)
        finally:
            meeting.close()
        self._mesh = Mesh(self._rank, channels, control, self._timeout)
        task(self._mesh, argument)

    def _leave_mesh(self) -> None:
        # Not at the end of a task: who sees a closed connection takes its worker for dead.
        if self._mesh is not None:
            self._mesh.close()
            self._mesh = None
