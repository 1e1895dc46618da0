"""A TCP connection to another worker: frames of raw bytes, without copies, never blocking."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from enum import IntEnum

from gtvcvx.distributed.engines._errors import WorkerLostError

_HEAD = struct.Struct("<QQ")
_EMPTY = memoryview(b"")
# Head and body in one system call and one packet, where the platform has that.
_TOGETHER = hasattr(socket.socket, "sendmsg")


class Kind(IntEnum):
    """Which call of a fabric a frame belongs to."""

    EXCHANGE = 1
    ALL_GATHER = 2
    GATHER = 3
    BROADCAST = 4
    BARRIER = 5


class Channel:
    """One connection; at most one frame is on its way in each direction.

    Parameters
    ----------
    rank : int
        Of the other worker.
    connection : socket
    """

    def __init__(self, rank: int, connection: socket.socket) -> None:
        connection.setblocking(False)
        # Without it small frames wait for the acknowledgement of the last one.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rank, self.connection = rank, connection
        self._out, self._sent, self._to_send = [_EMPTY, _EMPTY], 0, 0
        self._out_head = bytearray(_HEAD.size)
        self._head, self._head_in = memoryview(bytearray(_HEAD.size)), 0
        self._body, self._body_in = _EMPTY, 0
        self._kind = Kind.EXCHANGE
        self._room: Callable[[int], memoryview] | None = None

    def offer(self, kind: Kind, body: memoryview) -> None:
        """Prepare a frame; `push` sends it."""
        _HEAD.pack_into(self._out_head, 0, kind, len(body))
        self._out = [memoryview(self._out_head), body]
        self._sent, self._to_send = 0, _HEAD.size + len(body)

    def push(self) -> bool:
        """Send what can be sent now, and tell whether that was the last of it."""
        try:
            while self._sent < self._to_send:
                self._sent += self._send()
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost() from error
        return True

    def _send(self) -> int:
        if self._sent >= _HEAD.size:
            return self.connection.send(self._out[1][self._sent - _HEAD.size :])
        if _TOGETHER and not self._sent:
            return self.connection.sendmsg(self._out)
        return self.connection.send(self._out[0][self._sent :])

    def expect(self, kind: Kind, body: memoryview) -> None:
        """Prepare for a frame of known length; `pull` fills the body."""
        self._kind, self._body, self._room = kind, body, None
        self._head_in = self._body_in = 0

    def expect_any(self, kind: Kind, room: Callable[[int], memoryview]) -> None:
        """Prepare for a frame of any length, which `room` finds a place for."""
        self.expect(kind, _EMPTY)
        self._room = room

    def pull(self) -> bool:
        """Read what is there now, and tell whether the frame is complete."""
        try:
            while self._head_in < _HEAD.size:
                self._head_in += self._read(self._head[self._head_in :])
                if self._head_in == _HEAD.size:
                    self._check_head()
            while self._body_in < len(self._body):
                self._body_in += self._read(self._body[self._body_in :])
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost() from error
        return True

    def _read(self, into: memoryview) -> int:
        got = self.connection.recv_into(into)
        if not got:
            raise self._lost()
        return got

    def _check_head(self) -> None:
        kind, length = _HEAD.unpack(self._head)
        if kind == self._kind and self._room is not None:
            self._body = self._room(length)
        elif kind != self._kind or length != len(self._body):
            name = Kind(kind).name.lower() if kind in set(Kind) else f"kind {kind}"
            expected = "any number of" if self._room else str(len(self._body))
            raise RuntimeError(
                f"worker {self.rank} sends {length} bytes for {name}, {expected} bytes for "
                f"{self._kind.name.lower()} are expected: the calls of workers differ"
            )

    def _lost(self) -> WorkerLostError:
        return WorkerLostError(self.rank, "its connection has closed")

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
