"""What workers and their launcher say to each other beside the mesh."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Collection, Mapping
from enum import IntEnum

from gtvcvx._processes._link import Link
from gtvcvx._processes._records import Head, RecordError, record
from gtvcvx.distributed.engines._errors import WorkerLostError
from gtvcvx.distributed.engines._introductions import Address

#: Seconds in which a worker that waits answers a question; it does at once.
GRACE = 1.0


class Say(IntEnum):
    """Kinds of records; the second number of each is the attempt."""

    # From the launcher.
    BEGIN = 1  # listen, for a new attempt
    MESH = 2  # addresses of all workers
    STOP = 3  # the attempt is over; whose fault it is, and why
    ASK = 4  # are you there?
    # From workers.
    LISTENING = 5  # my address
    HERE = 6  # I am, in answer to the question of this number
    SILENT = 7  # nothing has come of the worker of this number for as long as the time-out
    DONE = 8  # my task has ended
    FAILED = 9  # my task has raised an error
    LOST = 10  # my task has raised that a worker is lost; which, and why


# Nobody says more than this at once: the addresses of 100,000 workers.
_LONGEST = 1 << 24
FROM_LAUNCHER: dict[int, int] = dict.fromkeys((Say.BEGIN, Say.MESH, Say.STOP, Say.ASK), _LONGEST)
FROM_WORKERS: dict[int, int] = dict.fromkeys((k for k in Say if k not in FROM_LAUNCHER), _LONGEST)


def packed_loss(error: WorkerLostError) -> bytes:
    """Return the body of `STOP` and `LOST`."""
    return json.dumps([error.rank, error.reason]).encode()


def unpacked_loss(body: bytes) -> WorkerLostError:
    """Return who is lost."""
    rank, reason = json.loads(body)
    return WorkerLostError(int(rank), str(reason))


def packed_addresses(addresses: Mapping[int, Address]) -> bytes:
    """Return the body of `MESH` and `LISTENING`."""
    return json.dumps([[rank, *address] for rank, address in addresses.items()]).encode()


def unpacked_addresses(body: bytes) -> dict[int, Address]:
    """Return where workers listen."""
    return {int(rank): (str(host), int(port)) for rank, host, port in json.loads(body)}


class LauncherGone(Exception):
    """The launcher has closed the connection: there is nothing more to do."""


class Control:
    """A worker's end of its connection to the launcher; the `Watch` of its mesh.

    Parameters
    ----------
    connection : socket
    """

    # The launcher asks everybody first, which takes `GRACE` twice where a question crosses another.
    patience = 3 * GRACE

    def __init__(self, connection: socket.socket) -> None:
        self._link = Link(connection, FROM_LAUNCHER)
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)
        self._kept: list[tuple[Head, bytes]] = []
        self.attempt = 0

    def connections(self) -> Collection[socket.socket]:
        """Return the one connection."""
        return [self._link.connection]

    def say(self, kind: Say, number: int = 0, body: bytes = b"") -> None:
        """Tell the launcher something."""
        self._link.put(record(kind, self.attempt, number, body))
        self._flush()

    def _flush(self) -> None:
        # What workers say is short; only a launcher that is stopped lets it wait.
        until = time.monotonic() + GRACE
        while self._link.waiting and time.monotonic() < until:
            time.sleep(0.001)
            self._link.push()

    def await_(self, kind: Say) -> tuple[Head, bytes]:
        """Wait for a record of a kind.

        Raises
        ------
        LauncherGone
        WorkerLostError
            The attempt is over, unless a new one is waited for.
        """
        while True:
            while self._kept:
                head, body = self._kept.pop(0)
                if head.kind == kind:
                    return head, body
                if kind != Say.BEGIN:
                    self._stop(head, body)
            self._selector.select()
            self._hear()

    def look(self) -> None:
        """Read what has come while the mesh waits.

        Raises
        ------
        WorkerLostError
            The attempt is over.
        """
        self._hear()
        for head, body in self._kept:
            self._stop(head, body)

    def _stop(self, head: Head, body: bytes) -> None:
        if head.kind == Say.STOP and head.round == self.attempt:
            raise unpacked_loss(body)

    def suspect(self, ranks: Collection[int]) -> None:
        """Tell the launcher that nothing comes of these: it knows whose fault that is."""
        self.say(Say.SILENT, min(ranks))

    def _hear(self) -> None:
        there = self._link.pull()
        try:
            for head, body in self._link.records():
                if head.kind == Say.ASK:
                    self.say(Say.HERE, head.phase)
                else:
                    self._kept.append((head, body))
        except RecordError as error:
            raise LauncherGone from error
        if not there:
            raise LauncherGone

    def close(self) -> None:
        """Close the connection."""
        self._selector.close()
        self._link.close()
