"""Where the processes of clients come in: a port of this machine, and a token for each of them."""

from __future__ import annotations

import hmac
import os
import selectors
import socket
import time
from collections.abc import Mapping

from gtvcvx.federated.process._records import HELLO, TOKEN_BYTES, RecordError
from gtvcvx.federated.transport._child import Child, ClientError
from gtvcvx.federated.transport._link import Link

# How often processes are looked at that may have died before they could knock.
_LOOK = 0.2
# Connections without a token that are kept waiting; anybody else on the machine may knock.
_STRANGERS = 64


class Door:
    """Listens on the loopback interface; who does not show the token of a client stays out."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])

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
        links: dict[int, Link] = {}
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            try:
                self._admit(selector, children, links, timeout)
            finally:
                for key in list(selector.get_map().values()):
                    if key.data is not None:
                        key.data.close()
        return links

    def _admit(
        self,
        selector: selectors.BaseSelector,
        children: Mapping[int, Child],
        links: dict[int, Link],
        timeout: float,
    ) -> None:
        deadline = time.monotonic() + timeout
        while len(links) < len(children):
            for key, _ in selector.select(_LOOK):
                if key.data is None:
                    self._listen(selector, len(children) + _STRANGERS)
                    continue
                client = self._welcome(selector, key.data, children)
                if client is not None and client not in links:
                    links[client] = key.data
                    deadline = time.monotonic() + timeout
            missing = {i: child for i, child in children.items() if i not in links}
            _check_alive(missing)
            if missing and time.monotonic() > deadline:
                raise ClientError(f"client {min(missing)}: its process did not start in time")

    def _listen(self, selector: selectors.BaseSelector, room: int) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        waiting = [key.data for key in selector.get_map().values() if key.data is not None]
        if len(waiting) >= room:
            selector.unregister(waiting[0].connection)
            waiting[0].close()
        link = Link(connection, {HELLO: TOKEN_BYTES})
        selector.register(connection, selectors.EVENT_READ, link)

    def _welcome(
        self, selector: selectors.BaseSelector, link: Link, children: Mapping[int, Child]
    ) -> int | None:
        """Return who it is; None for who has not said so yet, or is turned away."""
        there = link.pull()
        try:
            said = next(link.records(), None)
        except RecordError:
            there, said = False, None
        if said is None and there:
            return None
        selector.unregister(link.connection)
        if said is not None:
            head, token = said
            child = children.get(head.round)
            if child is not None and hmac.compare_digest(token, child.token):
                # It shows itself once: whoever comes later with the same token is turned away.
                child.token = os.urandom(TOKEN_BYTES)
                return head.round
        link.close()
        return None

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


def _check_alive(children: Mapping[int, Child]) -> None:
    for i, child in children.items():
        code = child.process.poll()
        if code is not None:
            raise ClientError(f"client {i}: its process ended with code {code} when it started")
