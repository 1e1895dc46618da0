"""A fabric over TCP: a connection between each two workers."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.distributed.engines._channel import Channel, Kind
from gtvcvx.distributed.engines._errors import WorkerLostError
from gtvcvx.distributed.engines._patience import SPIN, give_way

_EMPTY = memoryview(b"")


class Watch(Protocol):
    """Hears what is said beside the mesh while a worker waits: who is lost, who has failed."""

    #: Seconds between `suspect` and giving up.
    patience: float

    def connections(self) -> Collection[socket.socket]:
        """Return what to wait for beside the mesh."""

    def look(self) -> None:
        """Read what has come there; raises if it says that the run is over."""

    def suspect(self, ranks: Collection[int]) -> None:
        """Hear that nothing has come of these for as long as the time-out; may raise."""


class Mesh:
    """The `Fabric` of one worker.

    Parameters
    ----------
    rank : int
    channels : mapping of int to Channel
        To all other workers.
    watch : Watch
    timeout : float
        Seconds of silence.
    """

    def __init__(
        self, rank: int, channels: Mapping[int, Channel], watch: Watch, timeout: float
    ) -> None:
        self.rank, self.size = rank, len(channels) + 1
        self._channels, self._watch, self._timeout = dict(channels), watch, timeout
        self._all = [self._channels[r] for r in sorted(self._channels)]
        self._selector = selectors.DefaultSelector()
        for connection in watch.connections():
            self._selector.register(connection, selectors.EVENT_READ)
        self._error: Exception | None = None

    def exchange(self, out: Mapping[int, FloatArray], into: Mapping[int, FloatArray]) -> None:
        """Send an array to each peer of `out`, and fill those of `into`."""
        channels = self._channels
        sending, receiving = [], []
        for rank, array in out.items():
            channel = channels[rank]
            channel.offer(Kind.EXCHANGE, _bytes_of(array))
            sending.append(channel)
        for rank, array in into.items():
            channel = channels[rank]
            channel.expect(Kind.EXCHANGE, _bytes_of(array))
            receiving.append(channel)
        self._transfer(sending, receiving)

    def all_gather(self, own: FloatArray) -> list[FloatArray]:
        """Return the arrays of all workers."""
        own = np.ascontiguousarray(own)
        rows = _Rows(own.shape[1:])
        found = {self.rank: own.copy()}

        def expect(channel: Channel) -> None:
            def room(length: int) -> memoryview:
                array = found[channel.rank] = rows.array(channel.rank, length)
                return _bytes_of(array)

            channel.expect_any(Kind.ALL_GATHER, room)

        for channel in self._all:
            channel.offer(Kind.ALL_GATHER, _bytes_of(own))
            expect(channel)
        self._transfer(self._all, self._all)
        return [found[rank] for rank in range(self.size)]

    def gather(self, data: bytes) -> list[bytes] | None:
        """Return what all workers give, at rank 0."""
        if self.rank:
            root = self._channels[0]
            root.offer(Kind.GATHER, memoryview(data))
            self._transfer([root], [])
            return None
        found = self._received(Kind.GATHER, self._all)
        return [data, *found]

    def broadcast(self, data: bytes | None) -> bytes:
        """Return what rank 0 gives."""
        if self.rank:
            return self._received(Kind.BROADCAST, [self._channels[0]])[0]
        if data is None:
            raise TypeError("data: bytes are expected of rank 0, got None")
        for channel in self._all:
            channel.offer(Kind.BROADCAST, memoryview(data))
        self._transfer(self._all, [])
        return data

    def barrier(self) -> None:
        """Wait until all workers are here."""
        for channel in self._all:
            channel.offer(Kind.BARRIER, _EMPTY)
            channel.expect(Kind.BARRIER, _EMPTY)
        self._transfer(self._all, self._all)

    def close(self) -> None:
        """Close all connections."""
        for channel in self._all:
            channel.close()
        self._selector.close()

    def _received(self, kind: Kind, channels: Sequence[Channel]) -> list[bytes]:
        found: dict[int, bytearray] = {}

        def expect(channel: Channel) -> None:
            def room(length: int) -> memoryview:
                return memoryview(found.setdefault(channel.rank, bytearray(length)))

            channel.expect_any(kind, room)

        for channel in channels:
            expect(channel)
        self._transfer([], channels)
        return [bytes(found[channel.rank]) for channel in channels]

    def _transfer(self, sending: Sequence[Channel], receiving: Sequence[Channel]) -> None:
        if self._error is not None:
            # Half a frame may be on its way: nothing that comes after it makes sense.
            raise self._error
        try:
            self._move(sending, receiving)
        except Exception as error:
            self._error = error
            raise

    def _move(self, sending: Sequence[Channel], receiving: Sequence[Channel]) -> None:
        sending, receiving = _left(sending, receiving)
        end = time.perf_counter() + SPIN
        while (sending or receiving) and time.perf_counter() < end:
            give_way()
            sending, receiving = _left(sending, receiving)
        deadline, suspected = time.monotonic() + self._timeout, False
        while sending or receiving:
            if self._wait(sending, receiving, deadline):
                deadline, suspected = time.monotonic() + self._timeout, False
                sending, receiving = _left(sending, receiving)
            elif time.monotonic() >= deadline:
                ranks = {channel.rank for channel in (*sending, *receiving)}
                if suspected:
                    raise WorkerLostError(min(ranks), f"silent for {self._timeout:g} s")
                self._watch.suspect(ranks)
                deadline, suspected = time.monotonic() + self._watch.patience, True

    def _wait(
        self, sending: Sequence[Channel], receiving: Sequence[Channel], deadline: float
    ) -> bool:
        """Sleep until something can be moved, and tell whether it can."""
        events = {channel.connection: selectors.EVENT_READ for channel in receiving}
        for channel in sending:
            already = events.get(channel.connection, 0)
            events[channel.connection] = already | selectors.EVENT_WRITE
        for connection, mask in events.items():
            self._selector.register(connection, mask)
        try:
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
        finally:
            for connection in events:
                self._selector.unregister(connection)
        moving = sum(key.fileobj in events for key, _ in ready)
        # The mesh first: a worker's last frame comes before the news of its end.
        if moving < len(ready) and not moving:
            self._watch.look()
        return bool(moving)


def _left(
    sending: Sequence[Channel], receiving: Sequence[Channel]
) -> tuple[list[Channel], list[Channel]]:
    """Move what can be moved now, and return the channels that are not through."""
    return (
        [channel for channel in sending if not channel.push()],
        [channel for channel in receiving if not channel.pull()],
    )


def _bytes_of(array: FloatArray) -> memoryview:
    # Views without entries cannot be cast.
    return array.data.cast("B") if array.size else _EMPTY


class _Rows:
    """Makes room for arrays with rows of one shape.

    Parameters
    ----------
    shape : tuple of int
        Of a row.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape, self._bytes = shape, 8 * int(np.prod(shape, dtype=np.int64))

    def array(self, rank: int, length: int) -> FloatArray:
        if length % max(self._bytes, 1):
            raise RuntimeError(
                f"worker {rank} gathers {length} bytes, rows of {self._bytes} bytes are expected"
            )
        return np.empty((length // max(self._bytes, 1), *self._shape))
