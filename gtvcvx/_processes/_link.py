"""One end of a connection for records: it never blocks, and trusts nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

from gtvcvx._processes._records import RECORD, Head, RecordError

# Read at a time; more than a round of small messages needs.
_CHUNK = 1 << 18


class Link:
    """Records to and from one process.

    Parameters
    ----------
    connection : socket
    limits : mapping of int to int
        The most bytes that a record of each kind may have; other kinds are refused.
    """

    def __init__(self, connection: socket.socket, limits: Mapping[int, int]) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection, self.limits = connection, limits
        self._out, self._in = bytearray(), bytearray()

    @property
    def waiting(self) -> bool:
        """Whether something is still to be sent."""
        return bool(self._out)

    def put(self, data: bytes) -> None:
        """Send, now or when the other end takes it."""
        self._out += data
        self.push()

    def push(self) -> None:
        """Send what can be sent now; a broken connection shows when it is read."""
        try:
            while self._out:
                del self._out[: self.connection.send(self._out)]
        except BlockingIOError:
            return
        except OSError:
            self._out.clear()

    def pull(self) -> bool:
        """Read what is there now, and tell whether the other end is still open."""
        try:
            piece = self.connection.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._in += piece
        return bool(piece)

    def records(self) -> Iterator[tuple[Head, bytes]]:
        """Take the records that are complete.

        Raises
        ------
        RecordError
            Of no kind that is allowed here, or longer than such a record can be.
        """
        while len(self._in) >= RECORD.size:
            head = Head(*RECORD.unpack_from(self._in))
            if head.kind not in self.limits:
                raise RecordError(f"a record of kind {head.kind} is none that may come here")
            if head.length > self.limits[head.kind]:
                raise RecordError(
                    f"a record announces {head.length} bytes, {self.limits[head.kind]} at most "
                    "are possible"
                )
            end = RECORD.size + head.length
            if len(self._in) < end:
                return
            body = bytes(self._in[RECORD.size : end])
            del self._in[:end]
            yield head, body

    def cut_short(self) -> str:
        """Say what is missing of a record that has begun; "" if nothing is."""
        if not self._in:
            return ""
        if len(self._in) < RECORD.size:
            return f"truncated record: {len(self._in)} bytes, its head has {RECORD.size}"
        head = Head(*RECORD.unpack_from(self._in))
        there = len(self._in) - RECORD.size
        return f"truncated record: {head.length} bytes are announced, {there} are there"

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
