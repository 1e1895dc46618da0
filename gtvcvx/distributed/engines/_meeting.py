"""How the mesh of one attempt comes about: each worker listens, and calls those below it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from gtvcvx._processes._door import Door
from gtvcvx.distributed.engines._channel import Channel
from gtvcvx.distributed.engines._errors import WorkerLostError
from gtvcvx.distributed.engines._introductions import Address, Knocking, Purpose, introduced


class Meeting:
    """One worker's part in it.

    Parameters
    ----------
    rank : int
    host : str
        Address of the interface that the others reach.
    token : bytes
    attempt : int
    timeout : float
        Seconds to wait for each of the others.
    """

    def __init__(self, rank: int, host: str, token: bytes, attempt: int, timeout: float) -> None:
        self._rank, self._token, self._attempt, self._timeout = rank, token, attempt, timeout
        self._door = Door(self._knocking, host)
        self.address: Address = (host, self._door.port)

    def _knocking(self, connection: socket.socket) -> Knocking:
        return Knocking(connection, self._token, Purpose.MESH, self._attempt)

    def channels(
        self, addresses: Mapping[int, Address], look: Callable[[], object]
    ) -> dict[int, Channel]:
        """Return the connections to all others.

        Parameters
        ----------
        addresses : mapping of int to Address
            Of all workers.
        look : callable
            Called now and then; may raise.

        Raises
        ------
        WorkerLostError
            Somebody is not there.
        """
        found: dict[int, Channel] = {}
        try:
            for rank in range(self._rank):
                found[rank] = Channel(rank, self._call(rank, addresses[rank]))
            above = [rank for rank in addresses if rank > self._rank]
            for rank, knocking in self._admit(above, look).items():
                found[rank] = Channel(rank, knocking.connection)
        except BaseException:
            for channel in found.values():
                channel.close()
            raise
        finally:
            self.close()
        return found

    def _call(self, rank: int, address: Address) -> socket.socket:
        try:
            return introduced(
                address, self._token, Purpose.MESH, self._attempt, self._rank, self._timeout
            )
        except OSError as error:
            raise WorkerLostError(rank, f"it cannot be reached ({error})") from error

    def _admit(self, ranks: list[int], look: Callable[[], object]) -> dict[int, Knocking]:
        missing: set[int] = set()

        def note(absent: set[int]) -> None:
            nonlocal missing
            missing = absent
            look()

        try:
            return self._door.admit(ranks, self._timeout, note)
        except TimeoutError:
            raise WorkerLostError(min(missing), "it does not call") from None

    def close(self) -> None:
        """Stop listening."""
        self._door.close()
