"""The process of one client: it starts its program, and takes steps when told to."""

from __future__ import annotations

import os
import pickle
import runpy
import signal
import socket
import struct
import sys
import threading
import traceback
import types
from dataclasses import dataclass
from typing import Any

from gtvcvx.federated.process import _records as records
from gtvcvx.federated.programs import Participant, Program, View, quiet
from gtvcvx.federated.wire import WireFormat

#: Port and number of the client, as the first bytes on standard input, before the token.
DOOR = struct.Struct("!HI")
#: Lengths of the path of the main script and of the pickled start.
START = struct.Struct("!QQ")
_STDIN = 0

# Whether this is the process of a client; the main script is not to start others from here.
inside = False


@dataclass(frozen=True)
class Start:
    """What a client's process is told: its program, and all that it may see."""

    program: Program
    view: View
    form: WireFormat
    label: str


def main() -> None:
    """Serve until the parent goes away."""
    global inside
    inside = True
    # Ctrl-C is for the parent, which ends its clients itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    port, client = DOOR.unpack(_from_parent(DOOR.size))
    token = _from_parent(records.TOKEN_BYTES)
    try:
        link = _connected(port)
        _send(link, records.record(records.HELLO, client, 0, token))
        _serve(link)
    except _ParentGone:
        pass  # or it has cut this client off
    _leave()


class _ParentGone(Exception):
    pass


def _connected(port: int) -> socket.socket:
    try:
        link = socket.create_connection(("127.0.0.1", port))
    except OSError as error:
        raise _ParentGone from error
    # Without it small frames wait for the acknowledgement of the last one: 45 ms a round.
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def _serve(link: socket.socket) -> None:
    try:
        participant = _participant()
        _send(link, records.record(records.READY))
        while True:
            _answer(link, participant)
    except _ParentGone:
        raise
    except BaseException as error:
        # Whatever the program did, such as leaving by SystemExit: the parent is told.
        _send(link, records.record(records.ERROR, 0, 0, records.packed_error(_in_words(error))))


def _participant() -> Participant:
    """Read the start from the private pipe: nobody but the parent can have written to it."""
    main_length, length = START.unpack(_from_parent(START.size))
    main_path, raw = _from_parent(main_length).decode(), _from_parent(length)
    threading.Thread(target=_until_parent_ends, daemon=True).start()
    if main_path:
        _load_main(main_path)
    start: Start = pickle.loads(raw)
    with quiet():
        return Participant(start.program, start.view, start.form, start.label)


def _load_main(path: str) -> None:
    """Load the main script under another name, as `multiprocessing` does: programs are in it."""
    module = types.ModuleType("__mp_main__")
    module.__dict__.update(runpy.run_path(path, run_name="__mp_main__"))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module


def _answer(link: socket.socket, participant: Participant) -> None:
    head = records.Head(*records.RECORD.unpack(_received(link, records.RECORD.size)))
    body = _received(link, head.length)
    if head.kind == records.ASK:
        kind, out = records.STATE, records.packed_state(participant.report())
    else:
        frames = records.unpacked_frames(body)
        with quiet():
            sent = participant.step(head.round, head.phase, frames, None)
        kind, out = records.SENT, records.packed_sent(sent)
    _send(link, records.record(kind, head.round, head.phase, out))


def _send(link: socket.socket, data: bytes) -> None:
    try:
        link.sendall(data)
    except OSError as error:
        raise _ParentGone from error


def _received(link: socket.socket, length: int) -> bytes:
    buffer, at = bytearray(length), 0
    view = memoryview(buffer)
    while at < length:
        try:
            got = link.recv_into(view[at:])
        except OSError as error:
            raise _ParentGone from error
        if not got:
            raise _ParentGone
        at += got
    return bytes(buffer)


def _from_parent(length: int) -> bytes:
    # Unbuffered: the watching thread reads on from here.
    pieces, missing = [], length
    while missing:
        piece = os.read(_STDIN, min(missing, 1 << 20))
        if not piece:
            _leave()
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def _until_parent_ends() -> None:
    """End this process when the pipe closes, even in the middle of a long step."""
    while os.read(_STDIN, 1):
        pass
    _leave()


def _leave() -> Any:
    """End at once: a thread waits for input, and nothing needs tidying."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(0)


def _in_words(error: BaseException) -> records.Failure:
    name = type(error).__qualname__
    return records.Failure(name, str(error), "".join(traceback.format_exception(error)))
