"""How workers know each other: both ends of a connection show that they have the run's token."""

from __future__ import annotations

import hmac
import socket
import struct
from enum import IntEnum

from gtvcvx._processes._door import TurnedAway

#: Where a worker listens: host and port.
Address = tuple[str, int]

# What it is, purpose, attempt and rank; then the proof.
_HELLO = struct.Struct("!8sBII")
_MAGIC = b"gtvcvx-1"
_PROOF = 32


class Purpose(IntEnum):
    """What a connection is for."""

    CONTROL = 1
    MESH = 2


def _proof(token: bytes, said: bytes) -> bytes:
    # The token itself never travels: only who has it can make this.
    return hmac.digest(token, said, "sha256")


def introduced(
    address: Address, token: bytes, purpose: Purpose, attempt: int, rank: int, timeout: float
) -> socket.socket:
    """Return a connection to who listens there, once both have shown their proofs.

    Raises
    ------
    OSError
        Nobody is there, or nobody who knows the token.
    """
    connection = socket.create_connection(address, timeout)
    try:
        said = _HELLO.pack(_MAGIC, purpose, attempt, rank)
        connection.sendall(said + _proof(token, said))
        answer = _read(connection, _PROOF)
        if not hmac.compare_digest(answer, _proof(token, b"welcome" + said)):
            raise ConnectionError(f"{address[0]}:{address[1]}: who listens there is no worker")
    except BaseException:
        connection.close()
        raise
    return connection


def _read(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            raise ConnectionError("turned away")
        data += piece
    return data


class Knocking:
    """Who has knocked, and perhaps knows the token (`gtvcvx._processes._door.Visitor`).

    Parameters
    ----------
    connection : socket
    token : bytes
    purpose : Purpose
    attempt : int
        Those of other attempts are turned away.
    """

    def __init__(
        self, connection: socket.socket, token: bytes, purpose: Purpose, attempt: int
    ) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._token, self._expected = token, (_MAGIC, purpose, attempt)
        self._said = b""

    def hear(self) -> int | None:
        """Read what has come, and return the rank of who has shown its proof."""
        try:
            # No byte more than the introduction: frames may follow at once.
            piece = self.connection.recv(_HELLO.size + _PROOF - len(self._said))
            self._said += piece
            if not piece:
                raise TurnedAway
            if len(self._said) < _HELLO.size + _PROOF:
                return None
            return self._welcome()
        except BlockingIOError:
            return None
        except OSError:
            raise TurnedAway from None

    def _welcome(self) -> int:
        said, proof = self._said[: _HELLO.size], self._said[_HELLO.size :]
        *who, rank = _HELLO.unpack(said)
        if tuple(who) != self._expected:
            raise TurnedAway
        if not hmac.compare_digest(proof, _proof(self._token, said)):
            raise TurnedAway
        # Nothing else has been sent here, so that there is room for it.
        self.connection.send(_proof(self._token, b"welcome" + said))
        return int(rank)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
