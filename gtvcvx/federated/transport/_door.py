"""Where the processes of clients come in: a port of this machine, and a token for each of them."""

from __future__ import annotations

import hmac
import os
import socket
from collections.abc import Mapping

from gtvcvx._processes import _door
from gtvcvx._processes._door import TurnedAway
from gtvcvx._processes._link import Link
from gtvcvx._processes._records import TOKEN_BYTES, RecordError
from gtvcvx.federated.process._records import HELLO
from gtvcvx.federated.transport._child import Child, ClientError


class Door:
    """Listens on the loopback interface; who does not show the token of a client stays out."""

    def __init__(self) -> None:
        self._door = _door.Door(self._welcome)
        self.port = self._door.port
        self._children: Mapping[int, Child] = {}

    def _welcome(self, connection: socket.socket) -> _Knocking:
        return _Knocking(connection, self._children)

    def admit(self, children: Mapping[int, Child], timeout: float) -> dict[int, Link]:
        """Wait for processes, and return the connection of each.

        Parameters
        ----------
        children : mapping of int to Child
        timeout : float
            Seconds without anybody coming after which that is given up.

        Raises
        ------
        ClientError
            Naming a client that does not come.
        """
        self._children = children
        missing: set[int] = set()

        def look(absent: set[int]) -> None:
            nonlocal missing
            missing = absent
            _check_alive({i: children[i] for i in sorted(absent)})

        try:
            inside = self._door.admit(children, timeout, look)
        except TimeoutError:
            raise ClientError(f"client {min(missing)}: its process did not start in time") from None
        return {i: knocking.link for i, knocking in inside.items()}

    def close(self) -> None:
        """Stop listening."""
        self._door.close()


class _Knocking:
    """Who has knocked, and perhaps has a token."""

    def __init__(self, connection: socket.socket, children: Mapping[int, Child]) -> None:
        self.connection, self._children = connection, children
        self.link = Link(connection, {HELLO: TOKEN_BYTES})

    def hear(self) -> int | None:
        """Read what has come, and return whose token it is."""
        there = self.link.pull()
        try:
            said = next(self.link.records(), None)
        except RecordError:
            raise TurnedAway from None
        if said is None:
            if not there:
                raise TurnedAway
            return None
        head, token = said
        child = self._children.get(head.round)
        if child is None or not hmac.compare_digest(token, child.token):
            raise TurnedAway
        # It shows itself once: whoever comes later with the same token is turned away.
        child.token = os.urandom(TOKEN_BYTES)
        return head.round

    def close(self) -> None:
        """Close the connection."""
        self.link.close()


def _check_alive(children: Mapping[int, Child]) -> None:
    for i, child in children.items():
        code = child.process.poll()
        if code is not None:
            raise ClientError(f"client {i}: its process ended with code {code} when it started")
