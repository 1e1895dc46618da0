"""Who may join: a token for each client, shown once; strangers cannot even hold others up."""

import os
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from gtvcvx._processes._records import RECORD, TOKEN_BYTES, record
from gtvcvx.federated.process import _records as records
from gtvcvx.federated.transport._child import ClientError
from gtvcvx.federated.transport._door import Door


@dataclass
class Process:
    code: int | None = None

    def poll(self) -> int | None:
        return self.code


@dataclass
class Child:
    """Stands for a process: the door asks for its token, and whether it lives."""

    process: Process = field(default_factory=Process)
    token: bytes = field(default_factory=lambda: os.urandom(TOKEN_BYTES))


def knock(door: Door, data: bytes) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", door.port))
    link.sendall(data)
    return link


def hello(client: int, token: bytes) -> bytes:
    return record(records.HELLO, client, 0, token)


def closed(link: socket.socket) -> bool:
    link.settimeout(5.0)
    try:
        return link.recv(1) == b""
    except ConnectionError:
        return True


def test_only_who_shows_its_token_comes_in() -> None:
    door, child = Door(), Child()
    token = child.token
    strangers = [
        knock(door, hello(0, os.urandom(TOKEN_BYTES))),
        knock(door, hello(1, token)),  # no such client
        knock(door, hello(0, token[:-1])),
        knock(door, record(records.STATE, 0, 0, token)),
        knock(door, RECORD.pack(records.HELLO, 0, 0, 1 << 40)),
        knock(door, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        *(knock(door, b"") for _ in range(100)),
    ]
    right = knock(door, b"")

    def late() -> None:
        time.sleep(0.1)
        right.sendall(hello(0, token))

    thread = threading.Thread(target=late)
    thread.start()
    children: dict[int, Any] = {0: child}
    links = door.admit(children, 10.0)
    thread.join()
    assert list(links) == [0]
    assert links[0].connection.getpeername() == right.getsockname()
    assert all(closed(stranger) for stranger in strangers)
    # The token is good for once.
    again = knock(door, hello(0, token))
    with pytest.raises(ClientError, match="client 0: its process did not start in time"):
        door.admit(children, 0.3)
    assert closed(again)
    for link in (*strangers, again, right, links[0]):
        link.close()
    door.close()


def test_a_process_that_dies_before_it_knocks_is_noticed_at_once() -> None:
    door = Door()
    children: dict[int, Any] = {0: Child(), 4: Child(Process(7))}
    began = time.monotonic()
    with pytest.raises(ClientError, match="client 4: its process ended with code 7"):
        door.admit(children, 60.0)
    assert time.monotonic() - began < 30.0
    door.close()


def test_who_has_come_in_is_let_go_if_another_does_not_come() -> None:
    door, first = Door(), Child()
    link = knock(door, hello(0, first.token))
    children: dict[int, Any] = {0: first, 1: Child()}
    with pytest.raises(ClientError, match="client 1: its process did not start in time"):
        door.admit(children, 0.3)
    assert closed(link)
    link.close()
    door.close()


def test_the_door_is_on_this_machine_only() -> None:
    door = Door()
    assert door._door._listener.getsockname()[0] == "127.0.0.1"
    door.close()
