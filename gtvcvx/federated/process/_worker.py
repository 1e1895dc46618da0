"""The process of one client: it starts its program, and takes steps when told to."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from gtvcvx._processes._failures import in_words, packed_error
from gtvcvx._processes._inside import enter, from_parent, leave, received_start
from gtvcvx._processes._records import RECORD, TOKEN_BYTES, Head, record
from gtvcvx.federated.process import _records as records
from gtvcvx.federated.programs import Participant, Program, View, quiet
from gtvcvx.federated.wire import WireFormat

#: Port and number of the client, as the first bytes on standard input, before the token.
DOOR = struct.Struct("!HI")


@dataclass(frozen=True)
class Start:
    """What a client's process is told: its program, and all that it may see."""

    program: Program
    view: View
    form: WireFormat
    label: str


def main() -> None:
    """Serve until the parent goes away."""
    enter()
    port, client = DOOR.unpack(from_parent(DOOR.size))
    token = from_parent(TOKEN_BYTES)
    try:
        link = _connected(port)
        _send(link, record(records.HELLO, client, 0, token))
        _serve(link)
    except _ParentGone:
        pass  # or it has cut this client off
    leave()


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
        _send(link, record(records.READY))
        while True:
            _answer(link, participant)
    except _ParentGone:
        raise
    except BaseException as error:
        # Whatever the program did, such as leaving by SystemExit: the parent is told.
        _send(link, record(records.ERROR, 0, 0, packed_error(in_words(error))))


def _participant() -> Participant:
    start: Start = received_start()
    with quiet():
        return Participant(start.program, start.view, start.form, start.label)


def _answer(link: socket.socket, participant: Participant) -> None:
    head = Head(*RECORD.unpack(_received(link, RECORD.size)))
    body = _received(link, head.length)
    if head.kind == records.ASK:
        kind, out = records.STATE, records.packed_state(participant.report())
    else:
        frames = records.unpacked_frames(body)
        with quiet():
            sent = participant.step(head.round, head.phase, frames, None)
        kind, out = records.SENT, records.packed_sent(sent)
    _send(link, record(kind, head.round, head.phase, out))


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
