"""Where processes come in: a port, and strangers who cannot even hold others up."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

#: The interface that this machine alone sees.
LOOPBACK = "127.0.0.1"
# How often processes are looked at that may have died before they could knock.
_LOOK = 0.2
# Connections without a token that are kept waiting; anybody else on the machine may knock.
_STRANGERS = 64


class TurnedAway(Exception):
    """Who knocks has shown nothing that lets it in."""


class Visitor(Protocol):
    """Who has knocked."""

    connection: socket.socket

    def hear(self) -> int | None:
        """Read what has come: who it is, or None if it has not said so yet.

        Raises
        ------
        TurnedAway
        """

    def close(self) -> None:
        """Close the connection."""


V = TypeVar("V", bound=Visitor)


class Door(Generic[V]):
    """Listens on an interface.

    Parameters
    ----------
    welcome : callable
        Makes a `Visitor` of a connection.
    host : str
        Address of the interface.
    """

    def __init__(self, welcome: Callable[[socket.socket], V], host: str = LOOPBACK) -> None:
        self._welcome = welcome
        self._listener = socket.create_server((host, 0), backlog=1024)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])

    def admit(
        self, wanted: Collection[int], timeout: float, look: Callable[[set[int]], object]
    ) -> dict[int, V]:
        """Wait for visitors, and return them by number; strangers are turned away.

        Parameters
        ----------
        wanted : collection of int
        timeout : float
            Seconds without anybody coming after which that is given up.
        look : callable
            Called now and then with those who are missing; may raise.

        Raises
        ------
        TimeoutError
            Somebody does not come.
        """
        inside: dict[int, V] = {}
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            try:
                self._admit(selector, set(wanted), inside, timeout, look)
            except BaseException:
                # Nobody else knows of those who have come in.
                for visitor in inside.values():
                    visitor.close()
                raise
            finally:
                for key in list(selector.get_map().values()):
                    if key.data is not None:
                        key.data.close()
        return inside

    def _admit(
        self,
        selector: selectors.BaseSelector,
        missing: set[int],
        inside: dict[int, V],
        timeout: float,
        look: Callable[[set[int]], object],
    ) -> None:
        deadline = time.monotonic() + timeout
        room = len(missing) + _STRANGERS
        while missing:
            for key, _ in selector.select(_LOOK):
                if key.data is None:
                    self._listen(selector, room)
                    continue
                number = self._hear(selector, key.data)
                if number in missing:
                    missing.discard(number)
                    inside[number] = key.data
                    deadline = time.monotonic() + timeout
                elif number is not None:
                    key.data.close()
            look(missing)
            if missing and time.monotonic() > deadline:
                raise TimeoutError

    def _listen(self, selector: selectors.BaseSelector, room: int) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        waiting = [key.data for key in selector.get_map().values() if key.data is not None]
        if len(waiting) >= room:
            selector.unregister(waiting[0].connection)
            waiting[0].close()
        visitor = self._welcome(connection)
        selector.register(connection, selectors.EVENT_READ, visitor)

    def _hear(self, selector: selectors.BaseSelector, visitor: V) -> int | None:
        """Return who it is; None for who has not said so yet, or is turned away."""
        try:
            number = visitor.hear()
        except TurnedAway:
            selector.unregister(visitor.connection)
            visitor.close()
            return None
        if number is not None:
            selector.unregister(visitor.connection)
        return number

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
