"""The launcher's view of its workers: who is there, what each has said, whose fault it is."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gtvcvx._processes._door import Door
from gtvcvx._processes._failures import Failure, as_error, unpacked_error
from gtvcvx._processes._link import Link
from gtvcvx._processes._records import Head, RecordError, record
from gtvcvx.distributed.engines._control import (
    FROM_WORKERS,
    GRACE,
    Say,
    packed_addresses,
    packed_loss,
    unpacked_addresses,
    unpacked_loss,
)
from gtvcvx.distributed.engines._errors import USUAL, WorkerError, WorkerLostError, label_of
from gtvcvx.distributed.engines._introductions import Address, Knocking, Purpose

# Seconds without anybody coming after which processes are not expected any more. They take one, and
# many of them on few cores a minute; but some come all the time.
_START = 60.0
# Seconds from the end of a connection to that of its process.
_LAST_BREATH = 0.2


class Starter(Protocol):
    """Starts and ends the processes of workers."""

    #: Address of the interface that the workers reach this process at.
    host: str

    def start(self, rank: int, launcher: Address, token: bytes) -> None:
        """Start the process of a worker, in the place of the one it had."""

    def ended(self, rank: int, wait: float = 0.0) -> str | None:
        """Say how its process has ended, after so many seconds at most; None if it has not."""

    def kill(self, rank: int) -> None:
        """End its process at once."""

    def end(self, seconds: float) -> None:
        """End all processes, after so many seconds by force."""


@dataclass
class _Member:
    """One worker, as far as it has been heard."""

    link: Link
    answered: int = 0
    address: Address | None = None
    done: bool = False
    failure: Failure | None = None
    loss: WorkerLostError | None = None

    @property
    def over(self) -> bool:
        return self.done or self.failure is not None or self.loss is not None

    def forget(self) -> None:
        """Be ready for a new attempt."""
        self.address, self.failure, self.loss, self.done = None, None, None, False


class Crew:
    """Workers 1, 2, ..., and the `Watch` of rank 0's mesh.

    Parameters
    ----------
    starter : Starter
    token : bytes
    timeout : float

    Attributes
    ----------
    attempt : int
    lost : dict of int to str
        Workers that are known to be lost, and why.
    told : Exception or None
        What `look` has raised of a worker's failure.
    """

    # `suspect` decides at once.
    patience = 0.0

    def __init__(self, starter: Starter, token: bytes, timeout: float) -> None:
        self._starter, self._token, self._timeout = starter, token, timeout
        self._door = Door(self._knocking, starter.host)
        self._selector = selectors.DefaultSelector()
        self._members: dict[int, _Member] = {}
        self._questions = 0
        self.attempt = 0
        self.lost: dict[int, str] = {}
        self.told: Exception | None = None
        self._suspected: set[int] = set()

    def _knocking(self, connection: socket.socket) -> Knocking:
        return Knocking(connection, self._token, Purpose.CONTROL, 0)

    def hire(self, ranks: Sequence[int]) -> None:
        """Start workers, and wait until they have come.

        Raises
        ------
        WorkerLostError
        """
        address = (self._starter.host, self._door.port)
        for rank in ranks:
            self._starter.start(rank, address, self._token)
        missing = set(ranks)

        def look(absent: set[int]) -> None:
            nonlocal missing
            missing = absent
            for rank in sorted(absent):
                how = self._starter.ended(rank)
                if how is not None:
                    raise self._loses(rank, f"{how} when it started")

        try:
            inside = self._door.admit(ranks, max(_START, self._timeout), look)
        except TimeoutError:
            raise self._loses(min(missing), "its process did not start in time") from None
        for rank, knocking in inside.items():
            link = Link(knocking.connection, FROM_WORKERS)
            self._members[rank] = _Member(link)
            self._selector.register(link.connection, selectors.EVENT_READ, rank)

    def begin(self) -> dict[int, Address]:
        """Begin an attempt, and return where the workers listen.

        Raises
        ------
        WorkerLostError, WorkerError
        """
        self.attempt += 1
        self.lost, self.told, self._suspected = {}, None, set()
        for member in self._members.values():
            member.forget()
        self._tell(Say.BEGIN)
        self._wait(lambda member: member.address is not None, max(_START, self._timeout))
        return {rank: m.address for rank, m in self._members.items() if m.address is not None}

    def introduce(self, addresses: dict[int, Address]) -> None:
        """Tell all workers where the others listen."""
        self._tell(Say.MESH, body=packed_addresses(addresses))

    def connections(self) -> Collection[socket.socket]:
        """Return the connections to all workers."""
        return [member.link.connection for member in self._members.values()]

    def look(self) -> None:
        """Hear what workers have said.

        Raises
        ------
        WorkerLostError, WorkerError
            One of them is lost, or its task has failed.
        """
        self._pump(0.0)
        if not self.lost:
            failed = self.failure()
            if failed is not None:
                self.told = failed
                raise failed
            blamed = {m.loss.rank for m in self._members.values() if m.loss is not None}
            if blamed := (blamed | self._suspected) - {0}:
                self._find_silent(blamed)
        self._raise_loss()

    def suspect(self, ranks: Collection[int]) -> None:
        """Find out whose fault it is that nothing comes of these.

        Raises
        ------
        WorkerLostError
        """
        self._find_silent(ranks)
        self._raise_loss()

    def _raise_loss(self) -> None:
        if self.lost:
            rank = min(self.lost)
            raise WorkerLostError(rank, self.lost[rank])

    def _find_silent(self, suspects: Collection[int]) -> None:
        """Ask all who are there: who waits answers, and who does not answer is lost.

        If all answer, they wait for each other; the suspects are lost then.
        """
        self._questions += 1
        self._tell(Say.ASK, self._questions)
        until = time.monotonic() + GRACE
        while (mute := self._mute()) and (left := until - time.monotonic()) > 0:
            self._pump(left)
        # Who has ended in the meantime is what the silence was about.
        if not self.lost:
            for rank in mute or suspects:
                also = "" if mute else ", and so are all who wait for each other"
                self._loses(rank, f"silent for {self._timeout:g} s{also}")

    def _mute(self) -> list[int]:
        return [
            r
            for r, member in self._members.items()
            if member.answered != self._questions and r not in self.lost
        ]

    def failure(self) -> Exception | None:
        """Return the error of the first worker whose task has raised one."""
        for rank in sorted(self._members):
            failure = self._members[rank].failure
            if failure is not None:
                return as_error(label_of(rank), failure, USUAL, WorkerError)
        return None

    def stop(self, reason: WorkerLostError) -> None:
        """Tell all workers that the attempt is over, and wait a moment for them to see it."""
        self._tell(Say.STOP, body=packed_loss(reason))
        until = time.monotonic() + GRACE
        while self.idle() != self._members.keys() and (left := until - time.monotonic()) > 0:
            self._pump(left)

    def settle(self) -> None:
        """Wait for the ends of all tasks, once that of rank 0 has ended.

        Raises
        ------
        WorkerLostError, WorkerError
        """
        self._wait(lambda member: member.over, self._timeout)
        for member in self._members.values():
            if member.loss is not None:
                # Rank 0 itself, since the loss of any other is known by now.
                raise member.loss

    def idle(self) -> set[int]:
        """Return the workers that wait for a new attempt, or are lost."""
        return {r for r, member in self._members.items() if member.over or r in self.lost}

    def dismiss(self, ranks: Iterable[int]) -> None:
        """End processes at once."""
        for rank in ranks:
            self._starter.kill(rank)
            member = self._members.pop(rank, None)
            if member is not None:
                self._close(member)

    def members(self) -> set[int]:
        """Return the ranks of those who are there."""
        return set(self._members)

    def close(self, seconds: float) -> None:
        """Let all workers go, and end those who have not gone in so many seconds."""
        try:
            # They would not go by themselves.
            self.dismiss(self.lost)
            for member in self._members.values():
                self._close(member)
            self._selector.close()
            self._door.close()
        finally:
            self._starter.end(seconds)

    def _close(self, member: _Member) -> None:
        if member.link.connection in self._selector.get_map():
            self._selector.unregister(member.link.connection)
        member.link.close()

    def _wait(self, ready: Callable[[_Member], bool], timeout: float) -> None:
        """Hear workers until all are ready; a loss or a failure ends that."""
        until = time.monotonic() + timeout
        while missing := [rank for rank, m in self._members.items() if not ready(m)]:
            self.look()
            if time.monotonic() > until:
                self.suspect(missing)
            self._pump(max(0.0, min(GRACE, until - time.monotonic())))
        self.look()

    def _tell(self, kind: Say, number: int = 0, body: bytes = b"") -> None:
        for member in self._members.values():
            member.link.put(record(kind, self.attempt, number, body))

    def _pump(self, seconds: float) -> None:
        """Wait at most so long for something to come, and read it."""
        for key, _ in self._selector.select(seconds):
            self._hear(key.data, self._members[key.data])

    def _hear(self, rank: int, member: _Member) -> None:
        member.link.push()
        there = member.link.pull()
        try:
            for head, body in member.link.records():
                self._note(member, head, body)
        except RecordError as error:
            self._loses(rank, str(error))
            there = False
        if not there:
            self._selector.unregister(member.link.connection)
            self._loses(
                rank, self._starter.ended(rank, _LAST_BREATH) or "its connection has closed"
            )

    def _note(self, member: _Member, head: Head, body: bytes) -> None:
        if head.round != self.attempt:
            return
        if head.kind == Say.HERE:
            member.answered = head.phase
        elif head.kind == Say.LISTENING:
            (member.address,) = unpacked_addresses(body).values()
        elif head.kind == Say.DONE:
            member.done = True
        elif head.kind == Say.FAILED:
            member.failure = unpacked_error(body)
        elif head.kind == Say.LOST:
            member.loss = unpacked_loss(body)
        elif head.kind == Say.SILENT and head.phase:
            self._suspected.add(head.phase)

    def _loses(self, rank: int, reason: str) -> WorkerLostError:
        self.lost.setdefault(rank, reason)
        return WorkerLostError(rank, self.lost[rank])
