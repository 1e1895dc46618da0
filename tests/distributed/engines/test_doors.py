"""Who may join a run: those who know its token, each once, for this attempt."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

import pytest

from gtvcvx._processes._door import LOOPBACK, Door
from gtvcvx.distributed.engines import WorkerLostError, engine_named
from gtvcvx.distributed.engines._introductions import (
    _HELLO,
    _MAGIC,
    Knocking,
    Purpose,
    introduced,
)
from gtvcvx.distributed.engines._meeting import Meeting

TOKEN = os.urandom(32)


def try_in(port: int, token: bytes, purpose: Purpose, attempt: int, rank: int) -> bool:
    try:
        introduced((LOOPBACK, port), token, purpose, attempt, rank, 10.0).close()
    except OSError:
        return False
    return True


def test_only_who_knows_the_token_comes_in() -> None:
    door = Door(lambda connection: Knocking(connection, TOKEN, Purpose.MESH, 3))
    answers: dict[str, bool] = {}
    said = _HELLO.pack(_MAGIC, Purpose.MESH, 3, 1)

    def strangers() -> None:
        # Without a proof there is no answer: the connection is closed.
        with socket.create_connection((LOOPBACK, door.port)) as guess:
            guess.sendall(said + os.urandom(32))
            answers["proof"] = guess.recv(32) != b""
        silent = socket.create_connection((LOOPBACK, door.port))
        web = socket.create_connection((LOOPBACK, door.port))
        web.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + bytes(100))
        for name, given in {
            "token": (os.urandom(32), Purpose.MESH, 3, 1),
            "purpose": (TOKEN, Purpose.CONTROL, 3, 1),
            "attempt": (TOKEN, Purpose.MESH, 2, 1),
            "rank": (TOKEN, Purpose.MESH, 3, 7),
            "first": (TOKEN, Purpose.MESH, 3, 1),
            "again": (TOKEN, Purpose.MESH, 3, 1),
            "last": (TOKEN, Purpose.MESH, 3, 2),
        }.items():
            answers[name] = try_in(door.port, *given)
        silent.close()
        web.close()

    thread = threading.Thread(target=strangers)
    thread.start()
    inside = door.admit([1, 2], 10.0, lambda absent: None)
    thread.join()
    assert sorted(inside) == [1, 2]
    # Those with the token get their answer, and nothing more.
    refused = [name for name, there in answers.items() if not there]
    assert refused == ["proof", "token", "purpose", "attempt"]
    for knocking in inside.values():
        knocking.close()
    door.close()


def test_who_listens_has_to_know_the_token_too() -> None:
    listener = socket.create_server((LOOPBACK, 0))

    def lie() -> None:
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.sendall(bytes(32))
        connection.close()

    thread = threading.Thread(target=lie)
    thread.start()
    with pytest.raises(ConnectionError, match="who listens there is no worker"):
        introduced(listener.getsockname()[:2], TOKEN, Purpose.MESH, 1, 1, 10.0)
    thread.join()
    listener.close()


def test_who_does_not_come_is_named() -> None:
    closed = socket.create_server((LOOPBACK, 0))
    address: Any = closed.getsockname()[:2]
    closed.close()
    with pytest.raises(WorkerLostError, match="worker 0 is lost: it cannot be reached"):
        Meeting(1, LOOPBACK, TOKEN, 1, 0.2).channels({0: address, 1: address}, lambda: None)
    with pytest.raises(WorkerLostError, match="worker 1 is lost: it does not call"):
        Meeting(0, LOOPBACK, TOKEN, 1, 0.2).channels({0: address, 1: address}, lambda: None)


def test_engines_have_names() -> None:
    for name in ("local", "mpi", "ray"):
        assert engine_named(name).name == name
    with pytest.raises(ValueError, match="engine: one of local, mpi, ray is expected, got 'dask'"):
        engine_named("dask")
